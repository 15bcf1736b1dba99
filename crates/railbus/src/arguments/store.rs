//! Arguments of the commands on a whole store: `railbus backup`, `restore` and `verify`.

use std::path::PathBuf;

use clap::Args;

use super::BrokerArguments;

/// The options of `railbus backup`.
#[derive(Args, Clone, Debug)]
pub struct BackupArguments {
    /// What the backup is called in the broker's directory of backups, or its whole path
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Which broker.
    #[command(flatten)]
    pub broker: BrokerArguments,
}

/// The options of `railbus restore`.
#[derive(Args, Clone, Debug)]
pub struct RestoreArguments {
    /// The backup; it stays as it is
    #[arg(value_name = "DIR")]
    pub backup: PathBuf,

    /// The broker's settings [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// The data directory to make: not there yet, or empty [default: railbus-data]
    #[arg(long, value_name = "DIR", env = "RAILBUS_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
}

/// The options of `railbus verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyArguments {
    /// The broker's settings [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// The data directory [default: railbus-data]
    #[arg(long, value_name = "DIR", env = "RAILBUS_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
}
