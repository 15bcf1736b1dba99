//! Access rules, without IO: which credential gives which rights at which path.
//!
//! Every protocol and every dialect checks its operations here. [`Operation`] is the table of
//! operations and their rights, [`Access`] a snapshot of all rules, and [`Directory`] that snapshot
//! together with the entities that it is about.

pub mod access;
pub mod authorization;
pub mod directory;
pub mod operation;
pub mod rights;
pub mod scope;
pub mod token;

pub use access::{Access, Credential};
pub use authorization::Unauthorized;
pub use directory::{Directory, Entity};
pub use operation::Operation;
pub use rights::{AccessRule, AccessRules, RequiredRight, Rights, Secret};
pub use token::sign;
