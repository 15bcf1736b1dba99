//! What a shard does, told as scripts: commands in, what it says out, under virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod script;
mod unreadable;
mod world;

mod administration;
mod batches;
mod browsing;
mod clocks;
mod commits;
mod connections;
mod crashes;
mod crashes_sessions;
mod credit;
mod dead_letters;
mod deferred;
mod deleting;
mod deleting_sessions;
mod distributions;
mod duplicates;
mod expiring_sessions;
mod expiry;
mod forwarding;
mod forwarding_sessions;
mod idle;
mod limits;
mod locks;
mod many_sessions;
mod memory;
mod random;
mod random_entities;
mod random_sessions;
mod receiving;
mod redriving;
mod removal;
mod restarts;
mod rules_in_bulk;
mod schedule;
mod schedule_load;
mod schedule_random;
mod selecting;
mod selecting_at_random;
mod sending;
mod session_ids;
mod sessions;
mod sessions_age;
mod sessions_window;
mod status;
mod topics;
mod topics_at_random;
mod transactions;
mod transactions_at_random;
mod transactions_settled;
mod transactions_states;
