//! How fast one store commits: groups of 1 KiB messages, each sent and later settled.
//!
//! `cargo run --release --example commit_bench -- [directory] [messages] [group] [backlog]`
//! prints messages per second and CPU microseconds per message; `backlog` is how many messages
//! stay between sending and settling. Then it opens the directory again and says how long that
//! took, with a backlog of all messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rocks::{Options, RocksStore};
use store::{CommitId, Found, Part, Query, SequenceNumber, Store, WriteSet};

mod rows;

use rows::{QUEUE, Rows, cpu_us};

/// Bytes of a body.
const SIZE: usize = 1_024;
/// Groups on their way at a time, so that the committer always finds the next one.
const IN_FLIGHT: u64 = 4;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        arguments
            .get(index)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let directory = arguments
        .first()
        .map_or_else(default_directory, PathBuf::from);
    let (messages, group, backlog) = (number(1, 500_000), number(2, 256), number(3, 10_000));
    flow(&directory, messages, group, backlog);
    fill_and_reopen(&directory, messages, group);
}

fn default_directory() -> PathBuf {
    std::env::temp_dir().join(format!("commit-bench-{}", std::process::id()))
}

/// Sends and settles, with a constant number of messages between.
fn flow(directory: &Path, messages: u64, group: u64, backlog: u64) {
    let path = directory.join("flow");
    let mut store = open(&path);
    let rows = Rows::new(SIZE);
    let (started, cpu) = (Instant::now(), cpu_us());
    let mut last = CommitId(0);
    for first in (1..=messages).step_by(usize::try_from(group).expect("small")) {
        let mut set = WriteSet::default();
        rows.send(&mut set, first..first + group);
        if first > backlog {
            rows.settle(&mut set, first - backlog..first - backlog + group);
        }
        last = store.submit(set);
        wait(&store, CommitId(last.0.saturating_sub(IN_FLIGHT)));
    }
    wait(&store, last);
    report("send and settle", messages, started, cpu);
    let snapshot = store.statistics().snapshot();
    println!("  groups {}, sets {}", snapshot.groups, snapshot.sets);
    store.close().expect("closes");
    std::fs::remove_dir_all(&path).expect("removed");
}

/// Sends only, then opens again.
fn fill_and_reopen(directory: &Path, messages: u64, group: u64) {
    let path = directory.join("fill");
    let mut store = open(&path);
    let rows = Rows::new(SIZE);
    let (started, cpu) = (Instant::now(), cpu_us());
    let mut last = CommitId(0);
    for first in (1..=messages).step_by(usize::try_from(group).expect("small")) {
        let mut set = WriteSet::default();
        rows.send(&mut set, first..first + group);
        last = store.submit(set);
        wait(&store, CommitId(last.0.saturating_sub(IN_FLIGHT)));
    }
    wait(&store, last);
    report("send", messages, started, cpu);
    store.close().expect("closes");
    let log = log_bytes(&path.join("db"));
    println!("{} MiB of log", log >> 20);
    let started = Instant::now();
    let mut store = open(&path);
    let recovery = store.recover().expect("recovers");
    println!(
        "recovered {} heads: {:?}",
        recovery.heads.len(),
        started.elapsed()
    );
    let window = Query::Range {
        entity: QUEUE,
        part: Part::Active,
        from: SequenceNumber(1),
        until: SequenceNumber::MAX,
        limit: 65_536,
        bodies: false,
        max_bytes: 0,
    };
    let found = store.reader().read(CommitId(0), &window);
    let found = found.and_then(Found::into_messages).expect("reads");
    println!("first window of {}: {:?}", found.len(), started.elapsed());
    drop(store);
    std::fs::remove_dir_all(&path).expect("removed");
}

fn open(path: &Path) -> RocksStore {
    let (started, cpu) = (Instant::now(), cpu_us());
    let waiting = std::thread::current();
    let wake = Arc::new(move || waiting.unpark());
    let store = RocksStore::open(path, Options::default(), wake).expect("opens");
    let cpu = (cpu_us() - cpu) / 1_000;
    println!("opened in {:?}, {cpu} ms of CPU", started.elapsed());
    store
}

fn wait(store: &RocksStore, id: CommitId) {
    while store.durable() < id {
        assert_eq!(store.failure(), None);
        std::thread::park();
    }
}

/// How much there is to replay.
fn log_bytes(database: &Path) -> u64 {
    let entries = std::fs::read_dir(database).expect("listed").flatten();
    let logs = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "log"));
    logs.map(|log| log.metadata().map_or(0, |metadata| metadata.len()))
        .sum()
}

fn report(what: &str, messages: u64, started: Instant, cpu_before: u64) {
    let seconds = started.elapsed().as_secs_f64();
    let rate = messages as f64 / seconds;
    let cpu = (cpu_us() - cpu_before) as f64 / messages as f64;
    println!("{what}: {rate:.0} messages/s, {cpu:.2} us of CPU per message");
}
