//! Access rules, without IO: which credential gives which rights at which path.
//!
//! Every protocol and every dialect checks its operations here. [`Operation`] is the table of
//! operations and their rights, [`Access`] a snapshot of all rules, and [`Directory`] that snapshot
//! together with the entities that it is about.

pub mod access;
pub mod authorization;
pub mod certificate;
pub mod directory;
pub mod issuer;
pub mod jwt;
mod jwt_claims;
mod jwt_signature;
pub mod key_set;
pub mod operation;
pub mod rights;
pub mod scope;
pub mod signing_key;
pub mod token;

pub use access::{Access, Credential};
pub use authorization::{Unauthorized, audience, is_guess, key_name};
pub use certificate::CertificateRule;
pub use directory::{Directory, Entity};
pub use issuer::{Grant, GrantClaim, Issuer, KeySource, Locality};
pub use key_set::{IssuerKeys, KeyDigest, KeySet};
pub use operation::Operation;
pub use rights::{AccessRule, AccessRules, RequiredRight, Rights, Secret};
pub use signing_key::SigningKey;
pub use token::sign;
