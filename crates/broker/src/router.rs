//! Router: where publishers send to, and what its bindings make of a message.

pub(crate) mod command;
pub(crate) mod publish;
