//! The options of `railbus ca` and `railbus identity`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::parse_address;
use crate::host_name::HostName;

/// What can be done with the local certificate authority.
#[derive(Clone, Debug, Subcommand)]
pub enum CaCommand {
    /// Prints where it is, its fingerprint, what its certificate holds for, and until when.
    Show(CaArguments),
    /// Prints its certificate in PEM, for clients to trust; makes it if there is none yet.
    Export {
        /// Which one.
        #[command(flatten)]
        authority: CaArguments,

        /// Write it to a file.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Prints what makes languages and tools trust it, as commands of a shell, and the line of the
    /// hosts file that belongs to --as.
    ///
    /// Writes the system's certificates together with the authority's to ca-bundle.pem beside it,
    /// for tools that take one file.
    Env(CaArguments),
}

/// Which certificate authority.
#[derive(Args, Clone, Debug, Default)]
pub struct CaArguments {
    /// The broker's settings [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// The broker's data directory [default: railbus-data]
    #[arg(long, value_name = "DIR", env = "RAILBUS_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// Where the authority is kept [default: tls in the data directory]
    #[arg(long, value_name = "DIR", env = "RAILBUS_TLS_DIR")]
    pub tls_dir: Option<PathBuf>,

    /// The name that the broker is started with
    #[arg(long = "as", value_name = "HOST", env = "RAILBUS_AS")]
    pub host: Option<HostName>,
}

/// What can be done with the development issuer.
#[derive(Clone, Debug, Subcommand)]
pub enum IdentityCommand {
    /// Prints the variables by which DefaultAzureCredential and ManagedIdentityCredential find it,
    /// as commands of a shell.
    Env(IdentityArguments),
}

/// Which broker's development issuer.
#[derive(Args, Clone, Debug, Default)]
pub struct IdentityArguments {
    /// The broker's settings [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// Where the broker listens; repeatable [default: as the broker]
    #[arg(long, value_name = "ADDR", env = "RAILBUS_LISTEN", value_delimiter = ',', value_parser = parse_address)]
    pub listen: Vec<SocketAddr>,
}
