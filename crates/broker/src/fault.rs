//! Faults on purpose: rules by which operations fail, so that tests see what a client does then.
//!
//! `rules` keeps the rules and chooses, `concern` says what a command is about, `inject` carries a
//! command out as its rule says, and `refuse` makes the answer of one that is refused. Without
//! rules a step does not come here. (docs/faults.md)

pub(crate) mod concern;
pub(crate) mod inject;
pub(crate) mod refuse;
pub(crate) mod rules;
