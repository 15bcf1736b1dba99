//! Mutated connections: what a client says in an orderly life, changed at some places, again and
//! again. The broker refuses it or goes on; it keeps its memory, and another client is served.
//!
//! `RAILBUS_MUTATED_CONNECTIONS` sets how many there are, `RAILBUS_CRASH_SEED` repeats a run.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use amqp::{DeliveryState, Role};
use e2e::crash::{Dice, number, seed};
use e2e::peer;
use e2e::{Broker, Credentials, PATIENCE, Peer, Setup, http};

/// Between two looks at the broker.
const ROUND: u64 = 500;
/// What the broker may grow by after a tenth of the connections, in KiB.
const GROWTH: u64 = 16 * 1_024;
/// The length field of AMQP's frames begins here in a frame. [AMQP 2.3.1]
const HEADER: usize = 8;

/// A stream that keeps what is written to it.
struct Recorder {
    stream: TcpStream,
    said: Vec<u8>,
}

impl Read for Recorder {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.stream.read(to)
    }
}

impl Write for Recorder {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.said.extend_from_slice(from);
        self.stream.write_all(from)?;
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// What a client says that sends, receives, settles and asks for a node that is not there.
fn recording(address: SocketAddr) -> Vec<u8> {
    let stream = peer::connect(address);
    let recorder = Recorder {
        stream,
        said: Vec::new(),
    };
    let mut peer = Peer::over(recorder, Credentials::DEVELOPMENT);
    assert!(peer.try_open());
    let sender = peer.sender("others");
    for body in [&b"small"[..], &[7; 3_000]] {
        assert_eq!(peer.send(sender, body), DeliveryState::Accepted);
    }
    let receiver = peer.receiver("others", 2);
    for _ in 0..2 {
        let received = peer.receive(receiver);
        let settled = peer.settle(&received, DeliveryState::Accepted);
        assert_eq!(settled, Some(DeliveryState::Accepted));
    }
    let _ = peer.refused(Role::Receiver, "nowhere");
    peer.inner().said.clone()
}

/// Where frames begin, after each protocol header too.
fn frames(said: &[u8]) -> Vec<usize> {
    let (mut at, mut found) = (0, Vec::new());
    while at + HEADER <= said.len() {
        found.push(at);
        let size = match said[at..].strip_prefix(b"AMQP") {
            Some(_) => HEADER,
            None => {
                let size = said[at..]
                    .first_chunk()
                    .map(|size| u32::from_be_bytes(*size));
                usize::try_from(size.expect("a whole header")).expect("a small frame")
            }
        };
        at += size.max(HEADER);
    }
    found
}

/// Changes one place.
fn mutate(bytes: &mut Vec<u8>, frames: &[usize], dice: &mut Dice) {
    let mut roll = |end: usize| usize::try_from(dice.roll(end.max(1) as u64)).expect("below usize");
    let at = roll(bytes.len());
    let frame = frames[roll(frames.len())].min(bytes.len().saturating_sub(HEADER));
    match roll(8) {
        0 => bytes[at] ^= 1 << roll(8),
        1 => bytes[at] = [0, 0x40, 0x45, 0x7f, 0x80, 0xb0, 0xc1, 0xd0, 0xff][roll(9)],
        2 => drop(bytes.drain(at..(at + 1 + roll(16)).min(bytes.len()))),
        3 => {
            let piece = bytes[at..(at + roll(64)).min(bytes.len())].to_vec();
            drop(bytes.splice(at..at, piece));
        }
        4 => bytes.truncate(at),
        // The size, the offset of the data, the type and the channel of a frame.
        5 => {
            let at = (frame + roll(HEADER)).min(bytes.len() - 1);
            bytes[at] = [0, 1, 2, 7, 8, 0xff][roll(6)];
        }
        // A frame once more.
        6 => {
            let next = frames.iter().find(|next| **next > frame).copied();
            let end = next.unwrap_or(bytes.len()).min(bytes.len());
            let piece = bytes[frame.min(end)..end].to_vec();
            drop(bytes.splice(frame..frame, piece));
        }
        // A frame less.
        _ => {
            let next = frames.iter().find(|next| **next > frame).copied();
            let end = next.unwrap_or(bytes.len()).min(bytes.len());
            drop(bytes.drain(frame.min(end)..end));
        }
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}

/// Says `bytes` and hears all that the broker has to say to it.
fn say(address: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).expect("the broker listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("the socket is open");
    // The broker may close before it has read all.
    if stream.write_all(bytes).is_ok() {
        drop(stream.shutdown(Shutdown::Write));
    }
    let mut heard = [0; 4_096];
    loop {
        match stream.read(&mut heard) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the broker neither answers nor closes: {error}"),
        }
    }
}

/// Removes what these connections have left, so that only what they cost remains.
fn purge(broker: &Broker) {
    let path = "/$railbus/entities/others/purge";
    let (status, answer) = http::request(broker.address(), "POST", path, &[], "{}");
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn connections_that_break_rules_cost_nothing_and_disturb_nobody() {
    let seed = seed();
    let connections = number("RAILBUS_MUTATED_CONNECTIONS", 3_000);
    let mut dice = Dice::new(seed);
    let setup = Setup::new().environment("RUST_LOG", "off");
    let broker = setup.start();
    let said = recording(broker.address());
    let frames = frames(&said);
    let mut other = Peer::connect(broker.address());
    let sender = other.sender("orders");
    let mut before = None;
    for connection in 1..=connections {
        let mut bytes = said.clone();
        for _ in 0..=dice.roll(3) {
            mutate(&mut bytes, &frames, &mut dice);
        }
        say(broker.address(), &bytes);
        if connection % ROUND == 0 {
            assert_eq!(other.send(sender, b"meanwhile"), DeliveryState::Accepted);
            purge(&broker);
        }
        if connection * 10 >= connections {
            before.get_or_insert_with(|| broker.memory("VmRSS"));
        }
    }
    let (before, after) = (before.unwrap_or(0), broker.memory("VmRSS"));
    println!("connections={connections} before={before}KiB after={after}KiB");
    assert!(
        after < before + GROWTH,
        "RAILBUS_CRASH_SEED={seed}: grown from {before} to {after} KiB"
    );
    assert!(broker.stop().success(), "RAILBUS_CRASH_SEED={seed}");
}
