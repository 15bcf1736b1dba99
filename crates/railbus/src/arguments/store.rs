//! Arguments of the commands on a whole store: `railbus backup`, `restore` and `verify`.

use std::path::PathBuf;

use clap::Args;

use super::BrokerArguments;

/// The options of `railbus backup`.
#[derive(Args, Clone, Debug)]
pub struct BackupArguments {
    /// Name of the backup in the broker's directory of backups, or its whole path
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Back up only this namespace, to a file instead of a directory
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// The broker to ask.
    #[command(flatten)]
    pub broker: BrokerArguments,
}

/// The options of `railbus restore`.
#[derive(Args, Clone, Debug)]
pub struct RestoreArguments {
    /// The backup, which is not changed
    #[arg(value_name = "DIR")]
    pub backup: PathBuf,

    /// Namespace of a running broker to replace with the backup of a namespace; created if missing.
    /// The backup is in the broker's directory of backups; --config and --data-dir are ignored
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// The broker to ask, with --namespace.
    #[command(flatten)]
    pub broker: BrokerArguments,

    /// The broker's configuration file [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// Data directory to create; it must be missing or empty [default: railbus-data]
    #[arg(long, value_name = "DIR", env = "RAILBUS_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
}

/// The options of `railbus verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyArguments {
    /// The broker's configuration file [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// The data directory [default: railbus-data]
    #[arg(long, value_name = "DIR", env = "RAILBUS_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
}
