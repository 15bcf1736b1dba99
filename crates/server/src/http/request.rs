//! Requests: what is known of one before its route acts: head, caller, namespace, query and body.

pub mod body;
pub mod caller;
pub mod namespace_path;
pub mod origin;
pub mod query;
pub mod reader;
pub mod request_head;
pub mod request_right;
pub mod transport;
