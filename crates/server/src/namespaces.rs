//! Namespaces: the registry of those that are there, what each holds, and how one is set up,
//! changed as a whole, saved and loaded.
//!
//! What belongs to a single entity is the core's. Requests over HTTP see one namespace by its view.

pub mod apply;
pub mod namespace;
pub mod namespace_backup;
pub mod namespace_registry;
pub mod namespace_view;
pub mod setup;
