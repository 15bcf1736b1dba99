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

    /// The namespace that alone is in it, then a file instead of a directory
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,

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

    /// Give a namespace of a running broker what the backup of a namespace has, instead of what it
    /// has; it is made if it is not there. The backup is in the broker's directory of backups, and
    /// --config and --data-dir do not count
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Which broker, with --namespace.
    #[command(flatten)]
    pub broker: BrokerArguments,

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
