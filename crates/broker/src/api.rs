//! The interface: what the broker is asked and what it says, in types that hold no state.
//!
//! Everything here is vocabulary: ids, moments, settings, commands and outputs, rules as they are
//! described and evaluated. Nothing here refers to another chapter of the crate.

pub mod command;
pub mod id;
pub mod operation;
pub mod output;
pub mod settings;
pub mod time;

pub(crate) mod activity;
pub(crate) mod additions;
pub(crate) mod batch;
pub(crate) mod client_affine;
pub(crate) mod contents;
pub(crate) mod death;
pub(crate) mod declared;
pub(crate) mod delayed_retry;
pub(crate) mod entity_error;
pub(crate) mod error;
pub(crate) mod fault;
pub(crate) mod forward_error;
pub(crate) mod http_pattern;
pub(crate) mod incoming;
pub(crate) mod info;
pub(crate) mod injected_error;
pub(crate) mod kind;
pub(crate) mod latency;
pub(crate) mod lineage;
pub(crate) mod name;
pub(crate) mod namespace;
pub(crate) mod node;
pub(crate) mod order;
pub(crate) mod outcome;
pub(crate) mod page;
pub(crate) mod policy;
pub(crate) mod publication;
pub(crate) mod receive_mode;
pub(crate) mod resource;
pub(crate) mod retry_backoff;
pub(crate) mod room;
pub(crate) mod router;
pub(crate) mod rule;
pub(crate) mod snapshot;
pub(crate) mod store_only;
pub(crate) mod tier;
pub(crate) mod traffic;
