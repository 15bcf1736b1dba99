//! The options of `railbus ca` and `railbus identity`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::parse_address;
use crate::serve::host_name::HostName;

/// What can be done with the local certificate authority.
#[derive(Clone, Debug, Subcommand)]
pub enum CaCommand {
    /// Print its directory and fingerprint, and the names and expiry of the broker's certificate.
    Show(CaArguments),
    /// Print its certificate in PEM, for clients to trust; create the authority if there is none
    /// yet.
    Export {
        /// Which one.
        #[command(flatten)]
        authority: CaArguments,

        /// Write to this file [default: stdout].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print shell commands that make languages and tools trust it, and the line of the hosts file
    /// for --as.
    ///
    /// Writes the system's certificates together with the authority's to ca-bundle.pem in the
    /// authority's directory, for tools that take one file.
    Env(CaArguments),
}

/// Which certificate authority.
#[derive(Args, Clone, Debug, Default)]
pub struct CaArguments {
    /// The broker's configuration file [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// The broker's data directory [default: railbus-data]
    #[arg(long, value_name = "DIR", env = "RAILBUS_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// Directory of the local certificate authority [default: tls in the data directory]
    #[arg(long, value_name = "DIR", env = "RAILBUS_TLS_DIR")]
    pub tls_dir: Option<PathBuf>,

    /// The host name of the broker's --as
    #[arg(long = "as", value_name = "HOST", env = "RAILBUS_AS")]
    pub host: Option<HostName>,
}

/// What can be done with the development issuer.
#[derive(Clone, Debug, Subcommand)]
pub enum IdentityCommand {
    /// Print shell commands that set the variables by which DefaultAzureCredential and
    /// ManagedIdentityCredential find it.
    Env(IdentityArguments),
}

/// Which broker's development issuer.
#[derive(Args, Clone, Debug, Default)]
pub struct IdentityArguments {
    /// The broker's configuration file [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// Address that the broker listens on; repeatable [default: the broker's default]
    #[arg(long, value_name = "ADDR", env = "RAILBUS_LISTEN", value_delimiter = ',', value_parser = parse_address)]
    pub listen: Vec<SocketAddr>,
}
