//! Configuration files: `railbus.toml`, entities files, and the official emulator's `Config.json`.
//!
//! Every error names the file, the line and the path of the value. Reading a file has no effect;
//! what is worth a warning is returned with what was read.

mod choice;
mod duration;
mod emulator;
mod entities;
mod error;
mod fault;
mod json;
mod name;
mod queue;
mod railbus_toml;
mod size;
mod toml_file;
mod topic;

pub use choice::{Durability, Expiry, ForwardFailures, LocksOnDisconnect, LogFormat, Right, Sku};
pub use entities::{Entities, read_entities};
pub use error::{Error, read};
pub use fault::missing_targets;
pub use json::read_text;
pub use name::{EntityPath, NamespaceName};
pub use railbus_toml::{
    Auth, AuthRule, LimitsConfig, RailbusToml, parse_address, read_railbus_toml,
};
pub use size::Size;
