//! Floods: what a client leaves unfinished, unread or unproven costs a bounded amount, is given
//! back once it is gone, and keeps nothing from other clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use amqp::frame::{self, FrameType};
use amqp::sasl::{Code, SaslFrame};
use amqp::{DeliveryState, Performative, Symbol, Transfer};
use bytes::{Bytes, BytesMut};
use e2e::{Broker, Credentials, PATIENCE, Peer, Setup, http, peer};
use endpoint::LinkId;

const KIB: usize = 1 << 10;
/// Memory that may stay behind after a flood, in KiB.
const LEFT_BEHIND: u64 = 8 * 1_024;

/// A broker that has worked a little, so that what it keeps for every client is there.
fn start(setup: &Setup) -> Broker {
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("others");
    for _ in 0..100 {
        assert_eq!(peer.send(sender, &[7; KIB]), DeliveryState::Accepted);
    }
    broker
}

/// The value of a metric, without its fraction.
fn metric(broker: &Broker, series: &str) -> u64 {
    let (status, page) = http::get(broker.address(), "/metrics");
    assert_eq!(status, 200, "{page}");
    let before = format!("{series} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&before));
    let value = value.expect("it is shown");
    let whole = value.split('.').next().unwrap_or(value);
    whole.parse().expect("a number")
}

fn partial_bytes(broker: &Broker) -> u64 {
    let series = "railbus_incoming_message_bytes{kind=\"partial\"}";
    metric(broker, series)
}

/// Waits until `holds`, as long as a test may wait.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Waits until the broker has hardly more memory than it had before.
fn wait_for_memory(broker: &Broker, before: u64) {
    let since = Instant::now();
    loop {
        let grown = broker.memory("VmRSS").saturating_sub(before);
        if grown < LEFT_BEHIND {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{grown} KiB stay behind");
        std::thread::yield_now();
    }
}

/// A frame of a delivery that goes on, on the first link of the session of `channel`.
fn unfinished(channel: u16, is_first: bool, payload: &[u8]) -> BytesMut {
    let mut bytes = BytesMut::new();
    let start = frame::begin(&mut bytes, FrameType::Amqp, channel);
    let transfer = Transfer {
        handle: 0,
        delivery_id: is_first.then_some(0),
        delivery_tag: is_first.then(|| Bytes::from_static(b"tag")),
        message_format: is_first.then_some(0),
        more: true,
        ..Transfer::default()
    };
    Performative::Transfer(transfer).encode(&mut bytes);
    bytes.extend_from_slice(payload);
    frame::finish(&mut bytes, start);
    bytes
}

#[test]
fn memory_of_messages_that_never_end_is_given_back_with_their_connections() {
    const CONNECTIONS: usize = 8;
    const LINKS: u16 = 50;
    const FRAMES: usize = 4;
    const PAYLOAD: usize = 50 * KIB;
    let broker = start(&Setup::new());
    let before = broker.memory("VmRSS");
    let mut flood: Vec<_> = (0..CONNECTIONS)
        .map(|_| Peer::connect(broker.address()))
        .collect();
    for peer in &mut flood {
        for channel in 0..LINKS {
            // Each in a session of its own.
            let _ = peer.sender("orders");
            for index in 0..FRAMES {
                let frame = unfinished(channel, index == 0, &[7; PAYLOAD]);
                peer.stream().write_all(&frame).expect("the broker reads");
            }
        }
    }
    let all = CONNECTIONS * usize::from(LINKS) * FRAMES * PAYLOAD;
    wait_until("all of it arrives", || partial_bytes(&broker) >= all as u64);
    let held = broker.memory("VmRSS") - before;
    assert!(held > 8 * LEFT_BEHIND, "a flood holds more than {held} KiB");
    drop(flood);
    wait_until("nothing is unfinished any more", || {
        partial_bytes(&broker) == 0
    });
    wait_for_memory(&broker, before);
}

#[test]
fn memory_of_many_connections_is_given_back_when_they_are_gone() {
    const CONNECTIONS: usize = 1_500;
    let broker = start(&Setup::new());
    let before = broker.memory("VmRSS");
    let crowd: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut peer = Peer::connect(broker.address());
            let link = peer.sender("orders");
            (peer, link)
        })
        .collect();
    let held = broker.memory("VmRSS") - before;
    assert!(held > LEFT_BEHIND, "a crowd holds more than {held} KiB");
    drop(crowd);
    wait_until("all connections end", || {
        metric(&broker, "railbus_amqp_connections") == 0
    });
    wait_for_memory(&broker, before);
}

/// More messages than the buffers of a socket take, however far the kernel lets them grow.
const BACKLOG: u64 = 1_024;

/// A queue with a backlog, a receiver of it that reads nothing by itself, and another one.
struct Flood {
    sender: Peer,
    link: LinkId,
    slow: Peer,
    other: Peer,
    receiver: LinkId,
}

impl Flood {
    fn begin(broker: &Broker) -> Self {
        let mut sender = Peer::connect(broker.address());
        let link = sender.sender("orders");
        for number in 0..BACKLOG {
            let mut body = number.to_be_bytes().to_vec();
            body.resize(32 * KIB, 7);
            assert_eq!(sender.send(link, &body), DeliveryState::Accepted);
        }
        let mut slow = Peer::connect(broker.address());
        let _ = slow.receiver("orders", 10_000);
        let mut other = Peer::connect(broker.address());
        let receiver = other.receiver("orders", 10_000);
        Self {
            sender,
            link,
            slow,
            other,
            receiver,
        }
    }

    fn send(&mut self, number: u64) {
        let state = self.sender.send(self.link, &number.to_be_bytes());
        assert_eq!(state, DeliveryState::Accepted);
    }

    /// The number of the next message that the other receiver gets.
    fn receive(&mut self) -> u64 {
        let body = self.other.receive(self.receiver).body();
        let number = body.first_chunk().expect("each has its number");
        u64::from_be_bytes(*number)
    }
}

#[test]
fn a_receiver_that_does_not_read_keeps_no_more_than_its_socket_takes() {
    let broker = start(&Setup::new());
    let mut flood = Flood::begin(&broker);
    // Twice as many as there are receivers, so each would have some in turn.
    (BACKLOG..BACKLOG + 4).for_each(|number| flood.send(number));
    let mut numbers = Vec::new();
    while numbers.last().is_none_or(|last| *last < BACKLOG + 3) {
        numbers.push(flood.receive());
    }
    let kept = BACKLOG + 4 - numbers.len() as u64;
    assert!(kept < BACKLOG * 3 / 4, "the slow one keeps {kept}");
    let last: Vec<_> = numbers.split_off(numbers.len() - 4);
    let expected: Vec<_> = (BACKLOG..BACKLOG + 4).collect();
    assert_eq!(last, expected, "what came later is the other's alone");
}

#[test]
fn a_receiver_that_reads_byte_by_byte_keeps_no_message_from_others() {
    let broker = start(&Setup::new());
    let mut flood = Flood::begin(&broker);
    flood.send(BACKLOG);
    while flood.receive() < BACKLOG {}
    for number in BACKLOG + 1..=BACKLOG + 20 {
        let byte = &mut [0];
        let read = flood.slow.stream().read_exact(byte);
        read.expect("it holds a backlog");
        flood.send(number);
        assert_eq!(flood.receive(), number);
    }
}

const OWNER: Credentials = Credentials {
    rule: "owner",
    key: "key-of-owner",
};
/// The owner's key over HTTP, and a wrong one.
const RIGHT: &str = "Basic b3duZXI6a2V5LW9mLW93bmVy";
const WRONG: &str = "Basic b3duZXI6bm90LXRoZS1rZXk=";
/// The time between two answers to guesses, once too many have come.
const INTERVAL: Duration = Duration::from_millis(100);

/// A broker that delays answers from the second wrong key on.
fn guarded() -> Broker {
    let rules = "[[auth.rules]]\nname = 'owner'\nprimary-key = 'key-of-owner'\nrights = ['manage', 'send', 'listen']\n";
    let limits = "[limits]\nwrong-credentials-per-address = 1";
    Setup::new().configure(&format!("{rules}{limits}")).start()
}

/// Asks for the page of metrics with a key, and does not wait for the answer.
fn ask(stream: &mut TcpStream, authorization: &str) {
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: {authorization}\r\n\r\n"
    );
    stream
        .write_all(request.as_bytes())
        .expect("the broker reads");
}

/// The value of a metric, asked for with the right key.
fn guarded_metric(broker: &Broker, series: &str) -> u64 {
    let mut stream = peer::connect(broker.address());
    ask(&mut stream, RIGHT);
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("the page is text");
    let before = format!("{series} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&before));
    value.expect("it is shown").parse().expect("a number")
}

/// The owner logs in and sends.
fn work(broker: &Broker) {
    let mut owner = Peer::begin(broker.address(), OWNER);
    assert!(owner.try_open());
    let sender = owner.sender("orders");
    assert_eq!(owner.send(sender, b"hello"), DeliveryState::Accepted);
}

#[test]
fn guesses_of_one_address_are_answered_one_by_one_and_the_right_key_at_once() {
    const GUESSES: u32 = 30;
    let broker = guarded();
    let delayed = || guarded_metric(&broker, "railbus_refusals_delayed_total");
    let connect = |_| peer::connect(broker.address());
    let mut guesses: Vec<_> = (0..GUESSES).map(connect).collect();
    let since = Instant::now();
    guesses.iter_mut().for_each(|stream| ask(stream, WRONG));
    // From the same address, meanwhile.
    work(&broker);
    for stream in &mut guesses {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }
    assert!(since.elapsed() >= INTERVAL * (GUESSES - 1));
    let before = delayed();
    (0..10).for_each(|_| work(&broker));
    assert_eq!(delayed(), before, "a right key is never delayed");
}

/// What a client writes that logs in and waits for nothing.
fn login(Credentials { rule, key }: Credentials) -> BytesMut {
    let mut bytes = BytesMut::from(&b"AMQP\x03\x01\x00\x00"[..]);
    let start = frame::begin(&mut bytes, FrameType::Sasl, 0);
    let init = SaslFrame::Init {
        mechanism: Symbol::new("PLAIN"),
        initial_response: Some(format!("\0{rule}\0{key}").into()),
        hostname: None,
    };
    init.encode(&mut bytes);
    frame::finish(&mut bytes, start);
    bytes
}

#[test]
fn a_guesser_gains_nothing_by_leaving_before_the_answer() {
    const GUESSES: u32 = 20;
    let broker = guarded();
    let wrong = Credentials {
        rule: "owner",
        key: "not-the-key",
    };
    let since = Instant::now();
    for _ in 0..GUESSES {
        let mut stream = peer::connect(broker.address());
        stream.write_all(&login(wrong)).expect("the broker reads");
    }
    let refused = "railbus_credentials_refused_total{protocol=\"amqp\"}";
    wait_until("all are refused", || {
        guarded_metric(&broker, refused) == u64::from(GUESSES)
    });
    work(&broker);
    let mut last = Peer::begin(broker.address(), wrong);
    assert_eq!(last.sasl_outcome(), Code::Auth);
    assert!(since.elapsed() >= INTERVAL * GUESSES);
}
