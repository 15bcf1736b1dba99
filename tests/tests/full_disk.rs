//! A disk that is really full: the broker ends with a clear error, and nothing accepted is lost.

use amqp::DeliveryState;
use e2e::{Broker, Peer, Setup, SmallDisk};

/// Messages on their way at a time.
const WINDOW: u32 = 8;
/// Large enough to fill the disk soon.
const BODY: usize = 100_000;

/// A body that starts with its number and does not compress.
fn body(number: u32) -> Vec<u8> {
    let mut body = number.to_be_bytes().to_vec();
    let mut state = u64::from(number) + 1;
    while body.len() < BODY {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        body.extend(state.to_be_bytes());
    }
    body
}

/// A broker on `disk` that refuses nothing before the disk does.
fn fearless(disk: &SmallDisk) -> Setup {
    cautious(disk).configure("[limits]\nreserve-bytes = 0")
}

/// A broker on `disk` that minds how much is free.
fn cautious(disk: &SmallDisk) -> Setup {
    let setup = Setup::new().configure("memory = '16MiB'");
    setup.keep_data_at(disk.path().join("data"))
}

/// Has the messages 1 to 3 accepted and stops.
fn leave_three_messages(setup: &Setup) {
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for number in 1..=3 {
        assert_eq!(peer.send(sender, &body(number)), DeliveryState::Accepted);
    }
    drop(peer);
    assert!(broker.stop().success());
}

/// Sends until the broker ends; returns the numbers of what was accepted.
fn send_until_the_end(broker: &Broker) -> Vec<u32> {
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let mut accepted = Vec::new();
    for first in (0..).step_by(WINDOW as usize) {
        let window = first..first + WINDOW;
        let sent: Vec<_> = window
            .map(|number| (number, peer.send_only(sender, &body(number))))
            .collect();
        for (number, cookie) in sent {
            match peer.outcome_or_end(cookie) {
                Some(DeliveryState::Accepted) => accepted.push(number),
                Some(other) => panic!("neither accepted nor the end: {other:?}"),
                None => return accepted,
            }
        }
    }
    unreachable!("numbers do not end")
}

/// Receives everything, checks every byte and returns the numbers.
fn stored(broker: &Broker) -> Vec<u32> {
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 0);
    let all = peer.drain(receiver, 10_000);
    let number = |received: &e2e::Received| {
        let found = received.body();
        let number = u32::from_be_bytes(found[..4].try_into().expect("four bytes"));
        assert!(found == body(number), "the body of {number} is as it was");
        number
    };
    all.iter().map(number).collect()
}

#[test]
fn a_full_disk_ends_the_broker_with_a_clear_error_and_nothing_accepted_is_lost() {
    // By its size, the log or a table being written may be what finds it full.
    for mebibytes in [24, 36, 48] {
        check_full(SmallDisk::new(mebibytes));
    }
}

fn check_full(mut disk: SmallDisk) {
    let setup = fearless(&disk);
    let broker = setup.start();
    let accepted = send_until_the_end(&broker);
    assert!(accepted.len() > 20, "only {}", accepted.len());
    let (status, log) = broker.end();
    assert_eq!(status.code(), Some(1), "{log}");
    let last = log.lines().last().expect("it says why");
    assert!(
        last.starts_with("railbus: stopped, since the store failed: the disk refused: "),
        "{last}"
    );
    assert!(last.contains("No space left on device"), "{last}");
    disk.grow(256);
    let mut stored = stored(&setup.start());
    // What had no answer may have arrived or not.
    stored.retain(|number| accepted.contains(number));
    assert_eq!(stored, accepted);
}

#[test]
fn on_a_full_disk_a_broker_starts_from_its_reserve_refuses_sends_and_settles() {
    let mut disk = SmallDisk::new(48);
    leave_three_messages(&fearless(&disk));
    disk.fill();
    let broker = cautious(&disk).start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let DeliveryState::Rejected(Some(error)) = peer.send(sender, b"more") else {
        panic!("not rejected")
    };
    assert_eq!(error.condition.as_str(), "com.microsoft:server-busy");
    let receiver = peer.receiver("orders", 1);
    let first = peer.receive(receiver);
    assert_eq!(
        peer.settle(&first, DeliveryState::Accepted),
        Some(DeliveryState::Accepted)
    );
    drop(peer);
    assert!(broker.stop().success());
    disk.grow(256);
    let broker = cautious(&disk).start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("others");
    assert_eq!(peer.send(sender, b"more"), DeliveryState::Accepted);
    assert_eq!(stored(&broker), [2, 3]);
}

#[test]
fn without_a_reserve_a_broker_refuses_to_start_on_a_full_disk_and_keeps_what_it_has() {
    // Too small for the reserve to be taken.
    let mut disk = SmallDisk::new(24);
    let setup = fearless(&disk);
    leave_three_messages(&setup);
    disk.fill();
    for _ in 0..3 {
        check_refused(&setup);
    }
    disk.grow(64);
    assert_eq!(stored(&setup.start()), [1, 2, 3]);
}

#[test]
fn a_new_directory_on_a_full_disk_is_refused() {
    let mut disk = SmallDisk::new(8);
    disk.fill();
    let setup = cautious(&disk);
    check_refused(&setup);
    disk.grow(256);
    assert_eq!(stored(&setup.start()), [0; 0]);
}

fn check_refused(setup: &Setup) {
    let (code, stderr) = setup.refused();
    assert_eq!(code, 2, "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "one sentence: {stderr:?}");
    let path = setup.data().display().to_string();
    for part in [&path, "cannot be used", "No space left on device"] {
        assert!(stderr.contains(part), "{part:?} is not in {stderr:?}");
    }
}
