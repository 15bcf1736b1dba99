//! Hostile: how long a sender at a fixed rate waits while the broker is attacked, and how long
//! without an attack.
//!
//! Each attack has its own broker and goes on, as fast as it can, for as long as the sender works.
//! Attackers are on the same machine, so part of what the sender waits is for the processor.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::latency;
use super::process::as_f64;
use super::results::{Results, Unit};
use super::scale::Scale;
use super::site::Site;

/// An attacker that is not answered goes on after this long.
const PATIENCE: Duration = Duration::from_secs(2);
const CREATE: &str = "PUT /new?api-version=2021-05 HTTP/1.1\r\nhost: localhost\r\n";

/// Says once what is hostile; the broker closes the connection, or the attacker does.
type Attack = fn(&mut TcpStream) -> std::io::Result<()>;

/// What each attacker does again and again, on a new connection each time.
const ATTACKS: [(&str, Attack); 6] = [
    ("bad tokens", bad_tokens),
    ("a body of 1 GiB", huge_body),
    ("XML bombs", xml_bomb),
    ("TLS garbage", tls_garbage),
    ("AMQP garbage", amqp_garbage),
    ("unfinished handshakes", unfinished),
];

/// Measures the sender alone, then under each attack.
pub fn measure(site: &Site, scale: Scale, results: &mut Results) -> Result<()> {
    let fresh = site.fresh()?;
    latency::paced(&fresh.place()?, scale, "others without an attack", results)?;
    fresh.stop()?;
    for (name, attack) in ATTACKS {
        let fresh = site.fresh()?;
        let row = format!("others during {name}");
        let (address, place) = (fresh.address()?, fresh.place()?);
        let (enough, count) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !enough.load(Ordering::Relaxed) {
                    if repeat(address, attack).is_ok() {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            let sent = latency::paced(&place, scale, &row, results);
            enough.store(true, Ordering::Relaxed);
            sent
        })?;
        let rate = as_f64(count.into_inner()) / as_f64(scale.seconds);
        results.add(&row, "attacks", Unit::PerSecond, rate);
        fresh.stop()?;
    }
    Ok(())
}

fn repeat(address: SocketAddr, attack: Attack) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    attack(&mut stream)
}

/// Waits until the broker has closed the connection.
fn drain(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut bytes = [0; 16 << 10];
    while stream.read(&mut bytes)? > 0 {}
    Ok(())
}

/// A hundred on one connection, all of them sent at once.
fn bad_tokens(stream: &mut TcpStream) -> std::io::Result<()> {
    let token = "SharedAccessSignature sr=http%3A%2F%2Flocalhost&sig=bm90aGluZw%3D%3D&se=4000000000&skn=RootManageSharedAccessKey";
    let request =
        format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: {token}\r\n\r\n");
    stream.write_all(request.repeat(99).as_bytes())?;
    let last = request.replacen("host", "connection: close\r\nhost", 1);
    stream.write_all(last.as_bytes())?;
    drain(stream)
}

fn huge_body(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(format!("{CREATE}content-length: 1073741824\r\n\r\n").as_bytes())?;
    while stream.write_all(&[b' '; 64 << 10]).is_ok() {}
    Ok(())
}

fn xml_bomb(stream: &mut TcpStream) -> std::io::Result<()> {
    let entities: String = (1..30)
        .map(|level| {
            let before = format!("&a{};", level - 1).repeat(10);
            format!("<!ENTITY a{level} \"{before}\">")
        })
        .collect();
    let bomb = format!("<!DOCTYPE a [<!ENTITY a0 \"lol\">{entities}]><entry>&a29;</entry>");
    let length = bomb.len();
    let request = format!("{CREATE}connection: close\r\ncontent-length: {length}\r\n\r\n{bomb}");
    stream.write_all(request.as_bytes())?;
    drain(stream)
}

fn tls_garbage(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"\x16\x03\x01\x00\x10garbage of a kind")?;
    drain(stream)
}

fn amqp_garbage(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"AMQP\x03\x01\x00\x00\xff\xff\xff\xff\x02\x01\x00\x00garbage")?;
    drain(stream)
}

/// Left by the attacker, so that many come and go.
fn unfinished(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"AMQP\x03")
}
