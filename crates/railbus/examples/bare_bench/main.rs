//! Bare: the least program that takes messages, gives them and forgets them when they are settled.
//!
//! `cargo run --release -p railbus --example bare_bench -- DIRECTORY --store rocksdb|file` speaks
//! AMQP on a free port of 127.0.0.1, so whatever drives a broker can drive it. It has the protocol
//! from `endpoint` and knows queues, first in first out; no locks, limits, deadlines or rights.
//! What it accepts or settles is synced, in groups of whatever came while the last one was. It
//! prints its address when it listens and, once its input ends, what it has committed. For `cargo
//! xtask bench`, which shows what a broker would do that does nothing else.

mod bare;
mod committer;
mod database;
mod file;
mod peer;
mod queue;
mod row;
#[cfg(test)]
mod tests;

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::thread;

use clap::{Parser, ValueEnum};
use tikv_jemallocator::Jemalloc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use bare::Bare;
use committer::Store;
use database::Database;
use file::Log;

/// As in the broker.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Where messages go.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// RocksDB and its own log.
    Rocksdb,
    /// One file that is written over and over: what the disk alone could do.
    File,
}

#[derive(Debug, Parser)]
struct Options {
    directory: PathBuf,
    #[arg(long, value_enum)]
    store: Kind,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let options = Options::parse();
    let (end, ended) = oneshot::channel();
    thread::spawn(move || {
        let told = std::io::stdin().read_to_end(&mut Vec::new());
        // The receiver is gone if the program has failed.
        let _ = end.send(told);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Sockets are looked at often, however much there is to read on one of them.
        .event_interval(4)
        .build()?;
    runtime.block_on(run(&options, async {
        // That the input has failed is an end too.
        let _ = ended.await;
    }))
}

async fn run(options: &Options, ended: impl Future<Output = ()>) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let (store, table): (Box<dyn Store>, _) = match options.store {
        Kind::Rocksdb => {
            let database = Database::open(&options.directory)?;
            let table = database.table();
            (Box::new(database), Some(table))
        }
        Kind::File => (Box::new(Log::create(&options.directory)?), None),
    };
    let mut bare = Bare::new(listener, store, table);
    println!("bare_bench ready listen={address}");
    std::io::stdout().flush()?;
    tokio::select! {
        () = ended => {}
        failed = bare.run() => return Err(failed.into()),
    }
    let committed = bare.committed();
    println!(
        "messages={} groups={}",
        committed.messages, committed.groups
    );
    // Unfinished tables are not needed any more.
    std::process::exit(0);
}
