//! Load: AMQP connections that send and receive as fast as a broker lets them, or at a fixed rate, in one
//! thread that never waits but for all of them.
//!
//! `cargo xtask bench` and `railbus bench` both drive it, so what a user measures is what our own figures
//! speak of. A [`Client`] is one connection, a [`Work`] is what it does there, and [`turn`](turn::turn) lets
//! all of them go on.

mod access;
pub mod asking;
pub mod bodies;
mod client;
pub mod dress;
mod error;
mod peer;
pub mod receiver;
pub mod sender;
mod stamp;
pub mod turn;
pub mod waits;
pub mod wire;
mod work;

pub use client::Client;
pub use error::Error;
pub use peer::{Peer, Token};
pub use stamp::{STAMP, Stamp};
pub use work::Work;
