//! What it costs the committer to release a shared body: its CPU time, next to what stays the same.
//!
//! `cargo run --release --example share_bench -- [directory] [messages] [group]` publishes
//! messages with two copies each and takes the copies away: first the one of all messages and then
//! the other, when every count has to be read; then both soon after they came, when all counts are
//! in memory. Each is compared with the same rows and bodies without counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rocks::{Durability, Options, RocksStore};
use store::{
    BodyPointer, CommitId, EntityId, MessageRow, Part, SequenceNumber, Store, Write, WriteSet,
};

const TOPIC: EntityId = EntityId(1);
const COPIES: [EntityId; 2] = [EntityId(2), EntityId(3)];
const BODY: &[u8] = &[7; 200];
/// Groups on their way at a time, so that the committer always finds the next one.
const IN_FLIGHT: u64 = 4;
/// Messages between publishing and settling when counts shall be in memory.
const SOON: u64 = 10_000;

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
    println!("ns of the committer's CPU time per copy, without counts and with:");
    for scattered in [false, true] {
        println!("{}", if scattered { "scattered" } else { "in order" });
        let bench = Bench {
            messages: number(1, 1_000_000),
            group: number(2, 256),
            scattered,
        };
        let plain = bench.run(&directory, false);
        let shared = bench.run(&directory, true);
        for ((what, without), (_, with)) in plain.iter().zip(&shared) {
            println!("  {what}: {without:.0} {with:.0}, so {:.0}", with - without);
        }
    }
}

fn default_directory() -> PathBuf {
    std::env::temp_dir().join(format!("share-bench-{}", std::process::id()))
}

struct Bench {
    messages: u64,
    group: u64,
    /// Whether a backlog is settled all over the place.
    scattered: bool,
}

impl Bench {
    /// Nanoseconds per copy of each phase.
    fn run(&self, directory: &Path, sharing: bool) -> Vec<(&'static str, f64)> {
        let path = directory.join(if sharing { "shared" } else { "plain" });
        let mut store = open(&path);
        let mut times = Vec::new();
        let copies = self.messages as f64;
        let published = self.phase(&mut store, |set, number| publish(set, number, sharing));
        times.push(("publish, per copy", published / copies / 2.0));
        for (what, entity) in [("first copy", COPIES[0]), ("last copy", COPIES[1])] {
            // Opened again, so that no count is in memory.
            store.close().expect("closes");
            store = open(&path);
            let took = self.phase(&mut store, |set, number| {
                settle(set, self.turn_of(number), entity, sharing);
            });
            times.push((what, took / copies));
        }
        let soon = self.phase(&mut store, |set, number| {
            publish(set, self.messages + number, sharing);
            if number > SOON {
                for entity in COPIES {
                    settle(set, self.messages + number - SOON, entity, sharing);
                }
            }
        });
        let settled = soon / copies / 2.0;
        times.push(("publish and settle soon, per copy", settled));
        store.close().expect("closes");
        std::fs::remove_dir_all(&path).expect("removed");
        times
    }

    /// What is settled as number so and so.
    fn turn_of(&self, number: u64) -> u64 {
        if self.scattered {
            // A prime, so every one has its turn.
            number * 611_953 % self.messages + 1
        } else {
            number
        }
    }

    /// Nanoseconds of the committer's CPU time for all messages.
    fn phase(&self, store: &mut RocksStore, fill: impl Fn(&mut WriteSet, u64)) -> f64 {
        let before = committer_ns();
        let mut last = CommitId(0);
        for first in (1..=self.messages).step_by(usize::try_from(self.group).expect("small")) {
            let mut set = WriteSet::default();
            (first..(first + self.group).min(self.messages + 1))
                .for_each(|number| fill(&mut set, number));
            last = store.submit(set);
            wait(store, CommitId(last.0.saturating_sub(IN_FLIGHT)));
        }
        wait(store, last);
        (committer_ns() - before) as f64
    }
}

fn open(path: &Path) -> RocksStore {
    let waiting = std::thread::current();
    let options = Options {
        durability: Durability::Buffered,
        ..Options::default()
    };
    RocksStore::open(path, options, Arc::new(move || waiting.unpark())).expect("opens")
}

fn wait(store: &RocksStore, id: CommitId) {
    while store.durable() < id {
        assert_eq!(store.failure(), None);
        std::thread::park();
    }
}

fn at(number: u64) -> BodyPointer {
    BodyPointer {
        home: TOPIC,
        number: SequenceNumber(number),
    }
}

fn publish(set: &mut WriteSet, number: u64, sharing: bool) {
    let pointer = at(number);
    set.push(Write::PutBody {
        pointer,
        body: Bytes::from_static(BODY),
    });
    if sharing {
        set.push(Write::ShareBody { pointer, copies: 2 });
    }
    for entity in COPIES {
        let row = MessageRow {
            enqueued_ms: 1_700_000_000_000,
            ttl_ms: u64::MAX,
            expires_ms: u64::MAX,
            size: 200,
            flags: 0,
            session_hash: 0,
            enqueued_number: 0,
            body: pointer,
        };
        set.push(Write::PutMessage {
            entity,
            part: Part::Active,
            number: pointer.number,
            row,
        });
    }
}

/// Without sharing the body goes with the second copy, as if it was known to be the last.
fn settle(set: &mut WriteSet, number: u64, entity: EntityId, sharing: bool) {
    let pointer = at(number);
    set.push(Write::RemoveMessage {
        entity,
        part: Part::Active,
        number: pointer.number,
    });
    if sharing {
        set.push(Write::ReleaseBody { pointer });
    } else if entity == COPIES[1] {
        set.push(Write::RemoveBody { pointer });
    }
}

/// What the thread of that name has used.
fn committer_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let named = tasks.flatten().map(|task| task.path()).filter(|task| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "committer")
    });
    let used = named.filter_map(|task| std::fs::read_to_string(task.join("schedstat")).ok());
    let used = used.filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    used.sum()
}
