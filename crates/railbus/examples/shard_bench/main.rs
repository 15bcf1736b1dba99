//! Shards: how many messages several shards decide and several stores commit, with nothing around them.
//!
//! `cargo run --release -p railbus --example shard_bench -- DIRECTORY SHARDS STORES SECONDS SIZE
//! IN_FLIGHT MODE` runs each shard on a thread of its own with a queue of its own, on one of the stores.
//! What a connection would say is made up on the same thread: `send` sends only, `both` receives and
//! settles too. IN_FLIGHT messages of each shard wait for an outcome at a time. It prints one line of
//! what was done and what each kind of thread has used, in microseconds of processor time a message.

mod door;
mod peer;
mod threads;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use broker::{BrokerSettings, Command, Mono, Now, Shard, Wall};
use store::Statistics;
use tikv_jemallocator::Jemalloc;

use door::{Door, Shared};
use peer::Peer;

/// As in the broker.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Commands of one turn, about as many as there are in a broker under load: if all that a commit lets go
/// came at once, shard and committer would take turns.
const BATCH: usize = 100;

/// What is asked for.
#[derive(Clone, Copy)]
struct Plan {
    time: Duration,
    size: usize,
    in_flight: u64,
    settles: bool,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> u64 { arguments[index].parse().expect("a number") };
    let directory = PathBuf::from(&arguments[0]);
    let (shards, stores) = (number(1), number(2));
    let plan = Plan {
        time: Duration::from_secs(number(3)),
        size: usize::try_from(number(4)).expect("small"),
        in_flight: number(5),
        settles: arguments[6] == "both",
    };
    run(&directory, shards, stores, plan);
}

fn run(directory: &std::path::Path, shards: u64, stores: u64, plan: Plan) {
    let bells: Vec<_> = (0..shards).map(|_| sync_channel::<()>(1)).collect();
    let shared: Vec<_> = (0..stores)
        .map(|store| {
            let of_store = |shard: &usize| *shard as u64 % stores == store;
            let own = (0..bells.len()).filter(of_store);
            let bells = own.map(|shard| bells[shard].0.clone()).collect();
            Shared::open(&directory.join(format!("store-{store}")), bells)
        })
        .collect();
    let (began, used) = (Instant::now(), threads::used());
    let workers: Vec<_> = bells
        .into_iter()
        .zip(0_u64..)
        .map(|((_, bell), number)| {
            let store = usize::try_from(number % stores).expect("small");
            let door = shared[store].door(number);
            let work = move || work(door, number, &bell, plan);
            let thread = thread::Builder::new().name(format!("shard-{number}"));
            thread.spawn(work).expect("a thread")
        })
        .collect();
    let done: Vec<_> = workers
        .into_iter()
        .map(|worker| worker.join().expect("no panic"))
        .collect();
    let elapsed = began.elapsed();
    let used = threads::since(&used, &threads::used());
    let commits: Vec<_> = shared.iter().map(Shared::statistics).collect();
    report(&done, elapsed, used, &commits);
}

/// What one shard has done.
struct Done {
    messages: u64,
    /// Processor time of its turns.
    turns: Duration,
    /// And of all that its thread did.
    thread: Duration,
}

fn work(door: Door, number: u64, bell: &Receiver<()>, plan: Plan) -> Done {
    let began = Instant::now();
    let now = || {
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now {
            wall: Wall(1_800_000_000_000 + ms),
            mono: Mono(ms),
        }
    };
    let settings = BrokerSettings::default();
    let mut shard = Shard::open(settings, Box::new(door), now()).expect("opens");
    let mut peer = Peer::new(number, plan.size, plan.in_flight, plan.settles);
    let (mut waiting, mut commands) = (VecDeque::from(peer.begin()), Vec::new());
    let (mut said, mut reads) = (Vec::new(), Vec::new());
    let mut turns = Duration::ZERO;
    loop {
        let batch = BATCH.min(waiting.len());
        commands.extend(waiting.drain(..batch));
        let before = threads::own();
        shard.turn(now(), &mut commands, &mut said, &mut reads);
        turns += threads::own() - before;
        assert_eq!(shard.store().failure(), None);
        for request in reads.drain(..) {
            let found = shard.store().reader().read(request.after, &request.query);
            let read = request.read;
            waiting.push_back(Command::Loaded { read, found });
        }
        if began.elapsed() >= plan.time {
            peer.stop();
        }
        peer.hear(&mut said, &mut waiting);
        if peer.is_done() {
            break;
        }
        if waiting.is_empty() {
            bell.recv().expect("the store outlives its shards");
        }
    }
    Done {
        messages: peer.messages(),
        turns,
        thread: threads::own(),
    }
}

fn report(done: &[Done], elapsed: Duration, used: threads::Used, commits: &[Statistics]) {
    let messages: u64 = done.iter().map(|done| done.messages).sum();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / messages as f64;
    let turns: Duration = done.iter().map(|done| done.turns).sum();
    let shards: Duration = done.iter().map(|done| done.thread).sum();
    let groups: u64 = commits.iter().map(|commits| commits.groups).sum();
    let commit: u64 = commits.iter().map(|commits| commits.commit_us_sum).sum();
    let sync: u64 = commits.iter().map(|commits| commits.sync_us_sum).sum();
    println!(
        "messages={messages} per_second={:.0} group={} turn_us={:.3} made_up_us={:.3} committer_us={:.3} \
         indexer_us={:.3} tables_us={:.3} commit_us={:.0} sync_us={:.0}",
        messages as f64 / elapsed.as_secs_f64(),
        messages / groups.max(1),
        each(turns),
        each(shards.saturating_sub(turns)),
        each(used.committer),
        each(used.indexer),
        each(used.tables),
        commit as f64 / groups.max(1) as f64,
        sync as f64 / groups.max(1) as f64,
    );
}
