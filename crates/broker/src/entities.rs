//! Entities: which there are, by id and by path; how they come, change and go.
//!
//! What an entity does with messages is not here; what administrators ask is in `administration`.

pub(crate) mod change;
pub(crate) mod definition;
pub(crate) mod directory;
pub(crate) mod exclusive;
pub(crate) mod namespaces;
pub(crate) mod policies;
mod recovery;
pub(crate) mod removal;
pub(crate) mod remove;
pub(crate) mod template;
pub(crate) mod tombstone;
