//! Traffic: as many bytes over a bare socket as messages of 100 MiB are, and no broker.
//!
//! The sender of 100 MiB copies them, the system copies them twice, and the reader copies them
//! once. That alone keeps processors from others: neither side pauses within a message here, so
//! this is what such bytes cost others on that machine if each message is read as soon as it comes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::giant::{BODY, PIECE};

/// Between the starts of two messages. The broker takes about as long for one while others want
/// something.
const EVERY: Duration = Duration::from_secs(1);
/// As much as a connection of the broker reads at once.
const READ: usize = 64 * 1024;

/// Sends one message after the other for so long. Returns how many a second that were.
pub fn send(piece: &[u8], duration: Duration) -> Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut stream = TcpStream::connect(listener.local_addr()?)?;
    let (peer, _) = listener.accept()?;
    let reader = thread::spawn(move || read(peer));
    let (began, mut sent) = (Instant::now(), 0);
    while EVERY * sent < duration {
        thread::sleep((EVERY * sent).saturating_sub(began.elapsed()));
        stream.write_all(&message(piece))?;
        stream.read_exact(&mut [0])?;
        sent += 1;
    }
    drop(stream);
    reader
        .join()
        .map_err(|_| anyhow!("the reader panicked"))??;
    Ok(f64::from(sent) / began.elapsed().max(duration).as_secs_f64())
}

/// All bytes of a message in memory of their own, as a client has them that was given a body.
fn message(piece: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(BODY);
    while message.len() < BODY {
        let left = (BODY - message.len()).min(PIECE);
        message.extend_from_slice(&piece[..left]);
    }
    message
}

/// Reads messages and answers each, until there are no more.
fn read(mut stream: TcpStream) -> Result<()> {
    let mut buffer = vec![0; READ];
    let mut left = BODY;
    loop {
        let most = left.min(READ);
        match stream.read(&mut buffer[..most])? {
            0 => return Ok(()),
            count => left -= count,
        }
        if left == 0 {
            stream.write_all(&[0])?;
            left = BODY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::bodies;

    #[test]
    fn whole_messages_are_sent_read_and_answered() {
        for (duration, sent) in [(Duration::ZERO, false), (Duration::from_nanos(1), true)] {
            let rate = send(bodies::block(), duration).expect("a loopback socket works");
            assert_eq!(rate > 0.0, sent, "{rate} a second");
        }
        assert_eq!(message(bodies::block()).len(), BODY);
    }
}
