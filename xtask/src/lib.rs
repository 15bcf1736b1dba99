//! The parts of the developer commands, in a library since `bench` starts brokers too.
//!
//! It needs a Rust toolchain and nothing else: it must not depend on RocksDB, nor on the crates it
//! checks, so that it still runs when they do not compile.

pub mod bench;
pub mod broker;
pub mod console;
pub mod dist;
pub mod package;
mod pool;
mod progress;
pub mod run;
pub mod setup;
pub mod shell;
pub mod sim;
mod summary;
mod tally;
pub mod test;
pub mod tidy;
pub mod torture;
pub mod workspace;
