//! The index beside the journal: which rows come of write sets, and what of them may go.
//!
//! A durable group of write sets becomes one [`Batch`] of rows ([`merge`]): of what it puts and
//! removes again nothing is written, neighbours that go become one deletion, and a stretch in which
//! all is settled is dropped with its files ([`range_reclaim`]). Bodies stay in the journal; the
//! index has their places, and tells which segments are still needed ([`liveness`]).
//!
//! All of it works on [`Tables`]: ordered rows in three families. The embedded store keeps them in
//! RocksDB, the simulator in a model that loses what a crash may lose. Nothing here links RocksDB
//! or starts a thread, and the same calls give the same rows.

#![allow(
    missing_docs,
    reason = "one store uses it; what a name does not say is said"
)]

mod apply;
pub mod image;
pub mod key_search;
pub mod liveness;
pub mod merge;
pub mod model;
pub mod opening;
pub mod range_reclaim;
pub mod recovery;
mod removal;
pub mod settled;
pub mod shares;
mod tables;

pub use apply::{Catchup, Index};
pub use merge::{Found, Limits, MergedGroup, Merger};
pub use tables::{Batch, Cursor, Family, Row, Tables};
