//! Clocks: where time enters the server, and what moves the broker's time.
//!
//! The machine's clocks are read here alone. The shard reads the broker's clock, which a client may
//! move for all namespaces or for one. Tokens and time-outs stay on the machine's time.

pub mod broker_clock;
pub mod clock;
pub mod namespace_clocks;
pub mod virtual_clock;
