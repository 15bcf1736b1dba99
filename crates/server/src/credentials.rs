//! Credentials: issuers and their keys, console sessions, and the limit on guesses.
//!
//! Rules and keys of namespaces, and the check of a token, are in the crate `access`. Nothing here
//! says what a credential may do.

pub mod console_sessions;
pub mod development_issuer;
pub mod guess_limiter;
pub mod issuer_keys;
pub mod key_schedule;
