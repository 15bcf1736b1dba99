//! Backups of a broker at work: what was acknowledged is in them, what was settled is not, and they
//! are made only where they may be.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use amqp::DeliveryState;
use e2e::{Broker, Peer, Setup, broker, http};

const PATH: &str = "/$railbus/backups";
/// Messages that the receiver is given at a time.
const CREDIT: u32 = 20;

/// What two clients were told so far.
#[derive(Default)]
struct Book {
    accepted: Mutex<BTreeSet<u64>>,
    settled: Mutex<BTreeSet<u64>>,
    enough: AtomicBool,
}

impl Book {
    fn accepted(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.accepted.lock().expect("no client panics")
    }

    fn settled(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.settled.lock().expect("no client panics")
    }

    fn goes_on(&self) -> bool {
        !self.enough.load(Ordering::Relaxed)
    }

    fn send(&self, address: SocketAddr) {
        let mut peer = Peer::connect(address);
        let sender = peer.sender("orders");
        for number in 0_u64.. {
            if !self.goes_on() {
                return;
            }
            let sent = peer.send(sender, &number.to_be_bytes());
            assert_eq!(sent, DeliveryState::Accepted);
            self.accepted().insert(number);
        }
    }

    /// Settles one of two, so that there is something to lose.
    fn receive(&self, address: SocketAddr) {
        let mut peer = Peer::connect(address);
        let receiver = peer.receiver("orders", CREDIT);
        while self.goes_on() {
            let received = peer.receive(receiver);
            let number = number_of(&received.body());
            if number.is_multiple_of(2) {
                let done = peer.settle(&received, DeliveryState::Accepted);
                assert_eq!(done, Some(DeliveryState::Accepted));
                self.settled().insert(number);
            }
            peer.credit(receiver, CREDIT);
        }
    }

    /// Waits until so much more was accepted and settled.
    fn go_on(&self, more: usize) {
        let accepted = self.accepted().len() + more;
        let settled = self.settled().len() + more;
        while self.accepted().len() < accepted || self.settled().len() < settled {
            std::thread::yield_now();
        }
    }
}

fn number_of(body: &[u8]) -> u64 {
    u64::from_be_bytes(body.try_into().expect("eight bytes"))
}

/// What was known around a backup.
struct Made {
    name: &'static str,
    accepted_before: BTreeSet<u64>,
    settled_before: BTreeSet<u64>,
    settled_after: BTreeSet<u64>,
}

fn back_up(broker: &Broker, name: &str) -> (u16, String) {
    let body = format!(r#"{{"directory": "{name}"}}"#);
    http::request(broker.address(), "POST", PATH, &[], &body)
}

fn run(arguments: &[&str], broker: Option<&Broker>) -> Output {
    let mut command = Command::new(broker::program());
    command.args(arguments);
    if let Some(broker) = broker {
        let text = format!(
            "Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true",
            broker.address()
        );
        command.env("RAILBUS_CONNECTION_STRING", text);
    }
    command.output().expect("the program is there")
}

fn restore(backup: &Path, to: &Path) -> Output {
    let shown = |path: &Path| path.to_str().expect("the path is text").to_owned();
    run(&["restore", &shown(backup), "--data-dir", &shown(to)], None)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a broker on a restored store has.
fn left_in(backup: &Path) -> BTreeSet<u64> {
    let setup = Setup::new();
    let restored = restore(backup, setup.data());
    assert!(restored.status.success(), "{}", stderr(&restored));
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 0);
    let mut left = BTreeSet::new();
    loop {
        let batch = peer.drain(receiver, 1_000);
        if batch.is_empty() {
            return left;
        }
        for received in batch {
            let number = number_of(&received.body());
            assert!(left.insert(number), "{number} is there twice");
        }
    }
}

fn check_durability(durability: &str) {
    let setup = Setup::new().arguments(&["--durability", durability]);
    let broker = setup.start();
    let (address, book) = (broker.address(), Book::default());
    let mut made = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| book.send(address));
        scope.spawn(|| book.receive(address));
        for name in ["one", "two", "three"] {
            book.go_on(30);
            let accepted_before = book.accepted().clone();
            let settled_before = book.settled().clone();
            let (status, answer) = back_up(&broker, name);
            assert_eq!(status, 201, "{answer}");
            let settled_after = book.settled().clone();
            made.push(Made {
                name,
                accepted_before,
                settled_before,
                settled_after,
            });
        }
        // The store goes on as if nothing had been.
        book.go_on(30);
        book.enough.store(true, Ordering::Relaxed);
    });
    broker.kill();
    for backup in made {
        let left = left_in(&setup.data().join("backups").join(backup.name));
        let wanted = &backup.accepted_before - &backup.settled_after;
        // One more may have been settled whose answer was on its way.
        let missing: Vec<_> = wanted.difference(&left).collect();
        assert!(missing.len() <= 1, "{} lacks {missing:?}", backup.name);
        let risen: Vec<_> = left.intersection(&backup.settled_before).collect();
        assert!(risen.is_empty(), "{} still has {risen:?}", backup.name);
    }
}

#[test]
fn a_backup_holds_what_was_accepted_and_nothing_that_was_settled() {
    check_durability("synced");
}

#[test]
fn a_backup_of_a_buffered_store_holds_as_much() {
    check_durability("buffered");
}

#[test]
fn a_backup_is_made_nowhere_but_in_the_directory_of_backups() {
    let setup = Setup::new().configure("backup-dir = 'elsewhere'");
    let broker = setup.start();
    for name in ["..", "../outside", "/tmp/outside", ".hidden", "a/b", ""] {
        let (status, answer) = back_up(&broker, name);
        assert_eq!(status, 400, "{name}: {answer}");
    }
    let home = setup.directory().join("elsewhere");
    let entries = std::fs::read_dir(&home).expect("it was made");
    assert_eq!(entries.count(), 0);
    assert_eq!(back_up(&broker, "monday").0, 201);
    assert!(home.join("monday").join("db").is_dir());
    let (status, answer) = back_up(&broker, "monday");
    assert_eq!(status, 409);
    assert!(answer.contains("is there already"), "{answer}");
    let tuesday = home.join("tuesday");
    assert_eq!(back_up(&broker, tuesday.to_str().expect("text")).0, 201);
    assert_eq!(http::get(broker.address(), PATH).0, 405);
    let (status, answer) = http::request(broker.address(), "POST", PATH, &[], "monday");
    assert_eq!(status, 400, "{answer}");
}

#[test]
fn a_directory_of_backups_on_another_file_system_is_refused() {
    let broker = Setup::new().configure("backup-dir = '/dev/shm'").start();
    let name = format!("railbus-test-{}", std::process::id());
    let (status, answer) = back_up(&broker, &name);
    assert_eq!(status, 409, "{answer}");
    assert!(answer.contains("another file system"), "{answer}");
    assert!(!Path::new("/dev/shm").join(name).exists());
}

#[test]
fn a_backup_needs_the_manage_right() {
    let rules =
        "[[auth.rules]]\nname = 'owner'\nprimary-key = 'hush-hush-hush'\nrights = ['manage']";
    let setup = Setup::new().configure(rules);
    let broker = setup.start();
    assert_eq!(back_up(&broker, "monday").0, 401);
    assert!(!setup.data().join("backups").exists());
}

#[test]
fn the_command_line_makes_and_restores_a_backup() {
    let setup = Setup::new();
    let broker = setup.start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let sent = peer.send(sender, &7_u64.to_be_bytes());
    assert_eq!(sent, DeliveryState::Accepted);
    let made = run(&["backup", "monday"], Some(&broker));
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    let path = setup.data().join("backups").join("monday");
    let path = path.canonicalize().expect("it is there");
    let expected = format!("directory={} bytes=", path.display());
    assert!(
        said.starts_with(&expected) && said.lines().count() == 1,
        "{said}"
    );
    let again = run(&["backup", "monday"], Some(&broker));
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("is there already"));
    // The data directory of the broker that runs is not empty.
    let over = restore(&path, setup.data());
    assert_eq!(over.status.code(), Some(2));
    assert!(stderr(&over).contains("is not empty"), "{}", stderr(&over));
    assert_eq!(left_in(&path), BTreeSet::from([7]));
}

#[test]
fn a_damaged_backup_is_refused_with_one_sentence_and_nothing_is_made() {
    let setup = Setup::new();
    let broker = setup.start();
    assert_eq!(back_up(&broker, "monday").0, 201);
    let backup = setup.data().join("backups").join("monday");
    let manifest = std::fs::read_dir(backup.join("db")).expect("listed");
    let mut paths = manifest.map(|entry| entry.expect("listed").path());
    let manifest = paths.find(|path| path.to_string_lossy().contains("MANIFEST"));
    std::fs::write(manifest.expect("it has one"), "nothing").expect("written");
    let target = setup.directory().join("restored");
    let refused = restore(&backup, &target);
    assert_eq!(refused.status.code(), Some(2));
    let sentence = stderr(&refused);
    assert!(sentence.contains("cannot be used"), "{sentence}");
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    assert!(!target.exists());
    let refused = restore(setup.directory(), &target);
    assert!(
        stderr(&refused).contains("is no backup"),
        "{}",
        stderr(&refused)
    );
}
