//! Damage: finds, reports and leaves out what is damaged on the disk.
//!
//! The scrubber and `verify` read everything at rest; opening a store checks the list of tables and
//! can rescue log files.

pub mod contents;
pub mod damage_log;
pub mod loss;
pub mod manifest;
pub mod rescue;
pub mod scrubber;
pub mod verify;
pub mod walk;
