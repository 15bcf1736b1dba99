//! Faults on purpose: rules by which operations fail, and how a command fails by one.

pub(crate) mod concern;
pub(crate) mod inject;
pub(crate) mod refuse;
pub(crate) mod rules;
