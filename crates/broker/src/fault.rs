//! Faults on purpose: rules by which operations fail, so that tests see what a client does then.
//!
//! `rules` keeps the rules and chooses, `concern` says what a command is about, `inject` carries a
//! command out as its rule says, `refuse` makes the answer of one that is refused, and `outputs`
//! looks at what a step says: `receive` at the messages that it hands out. Without rules a step
//! does not come here. (docs/faults.md)

pub(crate) mod concern;
mod counted_rule;
mod delays;
mod handed_out;
pub(crate) mod inject;
pub(crate) mod outputs;
mod receive;
pub(crate) mod refuse;
pub(crate) mod rules;
