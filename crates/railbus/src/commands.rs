//! Commands: the subcommands of `railbus` besides `serve`, a file or folder for each.

pub mod administration;
pub mod backup;
pub mod bench;
pub mod bulk_operation;
pub mod ca;
pub mod check;
pub mod clock;
pub mod explain;
pub mod export;
pub mod health;
pub mod identity;
pub mod messaging;
pub mod plan;
pub mod restore;
pub mod rule_test;
pub mod verify;
