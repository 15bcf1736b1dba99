//! Command error: why a command ends without success, in one sentence.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use store::StoreError;

use crate::commands::bench::error::BenchError;
use crate::commands::messaging;
use crate::processor::MissingFeature;
use crate::remote::connection_string;
use crate::serve::development_key;
use crate::{config, remote, tls};

/// Why the program ends.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Processor(#[from] MissingFeature),
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(
        "{0} is not a loopback address, and no keys are configured: any client on the network could use the well-known \
         development key; configure [[auth.rules]] in railbus.toml, or allow it with --allow-development-key"
    )]
    DevelopmentKey(SocketAddr),
    #[error("the data directory {path} cannot be used: {error}")]
    DataDirectory {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("the data directory {path} cannot be used: {error}")]
    Store { path: PathBuf, error: StoreError },
    #[error("the keys in {path} cannot be used: {reason}")]
    IssuerKeys { path: PathBuf, reason: String },
    #[error(transparent)]
    DevelopmentIssuer(#[from] development_key::Error),
    #[error(
        "the broker with these settings has keys or issuers of its own, and no development issuer beside them"
    )]
    NoDevelopmentIssuer,
    #[error("the broker with these settings listens on no loopback address whose port is known")]
    NoLocalPort,
    #[error(
        "cannot listen on {0}: ports below 1024 need a privilege here. Run the broker as root, or once \
         `sudo sysctl net.ipv4.ip_unprivileged_port_start=443`, or choose other ports with --listen"
    )]
    PrivilegedPort(SocketAddr),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(
        "{0} leads to no certificate but this authority's, so the bundle would lack those of the system: unset it for \
         this command"
    )]
    NoSystemCertificates(&'static str),
    #[error("{path} cannot be written: {error}")]
    Write {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Start(#[from] server::StartError),
    #[error(transparent)]
    Restore(#[from] rocks::RestoreError),
    #[error("a backup cannot be restored to an ephemeral data directory: name one with --data-dir")]
    RestoreEphemeral,
    #[error("an ephemeral data directory has nothing to verify: name one with --data-dir")]
    VerifyEphemeral,
    #[error(
        "{path} is damaged (places found: {places}): restore a backup, or purge the messages that are named"
    )]
    Damaged { path: PathBuf, places: usize },
    #[error("a resource that the broker needs to start is not available: {0}")]
    System(std::io::Error),
    #[error(transparent)]
    ConnectionString(#[from] connection_string::Error),
    #[error(transparent)]
    Remote(#[from] remote::Error),
    #[error("{path} is a {kind}, not a {wanted}: use `railbus {kind}`")]
    Kind {
        path: String,
        kind: String,
        wanted: &'static str,
    },
    #[error(transparent)]
    Messaging(#[from] messaging::Error),
    #[error(transparent)]
    Bench(#[from] BenchError),
    #[error("{path} cannot be read: {error}")]
    Read {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("--correlation is not what a correlation filter consists of: {0}")]
    Correlation(serde_json::Error),
    #[error("the message cannot be read from stdin: {0}")]
    Stdin(std::io::Error),
    #[error(transparent)]
    RuleTest(#[from] entity::rules::TestError),
    #[error("stopped, since the store failed: {0}")]
    Failed(StoreError),
}

impl CommandError {
    /// 1 when it failed while running, 2 when it did not start.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Messaging(messaging::Error::Message(_)) | Self::Bench(BenchError::Options(_)) => {
                ExitCode::from(2)
            }
            Self::Failed(_)
            | Self::Remote(_)
            | Self::Messaging(_)
            | Self::Bench(_)
            | Self::Kind { .. }
            | Self::Damaged { .. }
            | Self::Write { .. } => ExitCode::from(1),
            Self::Processor(_)
            | Self::Config(_)
            | Self::DevelopmentKey(_)
            | Self::DataDirectory { .. }
            | Self::Store { .. }
            | Self::Restore(_)
            | Self::RestoreEphemeral
            | Self::VerifyEphemeral
            | Self::IssuerKeys { .. }
            | Self::DevelopmentIssuer(_)
            | Self::NoDevelopmentIssuer
            | Self::NoLocalPort
            | Self::NoSystemCertificates(_)
            | Self::PrivilegedPort(_)
            | Self::Tls(_)
            | Self::Start(_)
            | Self::ConnectionString(_)
            | Self::Correlation(_)
            | Self::Stdin(_)
            | Self::Read { .. }
            | Self::RuleTest(_)
            | Self::System(_) => ExitCode::from(2),
        }
    }
}
