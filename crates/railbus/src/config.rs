//! Configuration files: `railbus.toml`, entities files, and the official emulator's `Config.json`.
//!
//! Every error names the file, the line and the path of the value. Reading a file has no effect;
//! warnings are returned with its contents.

mod certificates;
pub mod choice;
mod emulator;
mod entities;
mod error;
mod faults;
#[cfg(test)]
mod file_tests;
mod issuers;
mod json;
#[cfg(test)]
mod mistake_tests;
mod namespaces;
mod policies;
mod railbus_toml;
mod toml_file;
#[cfg(test)]
mod topic_tests;
mod unknown_target;

pub use certificates::AuthCertificate;
pub use choice::{LogFormat, Right};
pub use entities::{Entities, read_entities};
pub use entity::{EntityPath, NamespaceName, Size};
pub use error::{Error, read};
pub use issuers::{AuthGrant, AuthIssuer};
pub use json::read_text;
pub use railbus_toml::{
    Auth, AuthRule, LimitsConfig, RailbusToml, TelemetryConfig, parse_address, read_railbus_toml,
};
