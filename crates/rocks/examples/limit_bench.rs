//! Limit: how fast one store takes the rows of a queue, in groups of a given size, each synced.
//!
//! `cargo run --release --example limit_bench -- DIRECTORY SECONDS SIZE GROUP BACKLOG` sends
//! messages with bodies of SIZE bytes in groups of GROUP. With a BACKLOG above zero each group
//! also settles as many, that many messages later. Two write sets are on their way at a time, so
//! that the store is never without work; it makes a group of all that waits, so the size of the
//! sets follows from that of its groups so far. It prints what it did on one line, for
//! `cargo xtask bench --rows limit`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rocks::{Options, RocksStore};
use store::{CommitId, Store, WriteSet};

mod rows;

use rows::{Rows, cpu_us};

/// Groups after which the size of the sets is looked at again.
const ROUND: u64 = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> u64 { arguments[index].parse().expect("a number") };
    let directory = PathBuf::from(&arguments[0]);
    let (seconds, size, group, backlog) = (number(1), number(2), number(3), number(4));
    let mut set_size = group.div_ceil(2).max(1);
    let rows = Rows::new(usize::try_from(size).expect("small"));
    let waiting = std::thread::current();
    let wake = Arc::new(move || waiting.unpark());
    let mut store = RocksStore::open(&directory, Options::default(), wake).expect("opens");
    let (began, cpu) = (Instant::now(), cpu_us());
    let (mut next, mut settled, mut last) = (1, 1, CommitId(0));
    let mut counted = (0, 1);
    while began.elapsed() < Duration::from_secs(seconds) {
        let mut set = WriteSet::default();
        rows.send(&mut set, next..next + set_size);
        if backlog > 0 && next > backlog {
            let until = next + set_size - backlog;
            rows.settle(&mut set, settled..until);
            settled = until;
        }
        wait(&store, CommitId(last.0.saturating_sub(1)));
        last = store.submit(set);
        next += set_size;
        let groups = store.statistics().snapshot().groups;
        if groups >= counted.0 + ROUND {
            let average = (next - counted.1) / (groups - counted.0);
            set_size = (set_size * group / average.max(1)).clamp(1, 2 * group.max(1));
            counted = (groups, next);
        }
    }
    wait(&store, last);
    let (micros, cpu) = (began.elapsed().as_micros(), cpu_us() - cpu);
    let (messages, groups) = (next - 1, store.statistics().snapshot().groups);
    println!("messages={messages} groups={groups} elapsed_us={micros} cpu_us={cpu}");
    store.close().expect("closes");
}

fn wait(store: &RocksStore, id: CommitId) {
    while store.durable() < id {
        assert_eq!(store.failure(), None);
        std::thread::park();
    }
}
