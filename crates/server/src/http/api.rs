//! The broker's own interface: the routes below `/$railbus/`, and the document that describes them.
//!
//! Requests and answers are JSON. A route reads the request, asks the shard and writes its answer.

pub mod backups;
pub mod clock;
pub mod connections;
pub mod document;
pub mod entities;
pub mod faults;
pub mod history;
pub mod namespaces;
pub mod overview;
pub mod plan;
pub mod policies;
pub mod rules;
pub mod snapshots;
