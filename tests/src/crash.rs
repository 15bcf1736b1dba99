//! Crash: brokers on one data directory that end in the middle of their work, again and again.
//!
//! In each cycle clients send and complete, and use the broker in each other way that is one of the
//! kinds, until the broker ends: by its power, by a signal, by a call to the disk that failed, or
//! because it is told to stop. Then a broker without faults starts on what is left, and all that it
//! has is compared with what the clients were told.
//! Invariant: the same seed makes the same plan; what the threads do in between is up to them.

mod backup;
mod book;
mod client;
mod cycle;
mod dice;
mod kinds;
mod ledger;
mod message;
mod survey;
mod traffic;

pub use book::Book;
pub use cycle::{Site, Tally};
pub use dice::Dice;

/// A number that the environment sets, or `default`.
///
/// # Panics
/// When it is set to something else.
#[must_use]
pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text}")),
        Err(_) => default,
    }
}

/// The seed that the environment names, or a new one; printed either way.
#[must_use]
pub fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = number(
        "RAILBUS_CRASH_SEED",
        now.map_or(1, |now| u64::from(now.subsec_nanos())),
    );
    println!("RAILBUS_CRASH_SEED={seed}");
    seed
}

/// How many cycles the environment asks for, or `default`.
#[must_use]
pub fn cycles(default: u64) -> u64 {
    number("RAILBUS_CRASH_CYCLES", default)
}
