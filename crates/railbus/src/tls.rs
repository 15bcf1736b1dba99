//! TLS: the certificate of the broker, from configured files or from a local authority.
//!
//! Any fault is an error at start. Later the certificate is replaced when its files have changed
//! or when a local one is about to expire; a certificate that cannot be used leaves the old one in
//! use.

mod authority;
mod certificate_info;
pub mod files;
mod pair;
mod reloader;
mod signature;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use server::Certificate;
use tokio::sync::watch;

pub use authority::Authority;
pub use certificate_info::CertificateInfo;
pub use pair::{Pair, describe, read_chain};
pub use reloader::{CertificateReloader, CertificateSource, ReloadRequest, ReloadSender};

/// What the certificate is taken from, as configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// Files of its owner's.
    Files(Pair),
    /// A local authority.
    Local {
        /// Where it is kept; in the data directory otherwise.
        directory: Option<PathBuf>,
        /// What the certificate holds for besides this machine.
        names: Vec<String>,
        /// The authorities of client certificates.
        clients: Option<PathBuf>,
    },
}

impl Source {
    /// The host names that the certificate holds for, in lower case. A file that cannot be read has
    /// none: the listener that needs it says why.
    pub fn host_names(&self) -> Vec<String> {
        match self {
            Self::Local { names, .. } => names.clone(),
            Self::Files(pair) => {
                let info = CertificateInfo::read(&pair.certificate);
                let names = info.map(|info| info.names).unwrap_or_default();
                names.iter().map(|name| name.to_ascii_lowercase()).collect()
            }
        }
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("--tls-certificate and --tls-key belong together, but only one of them is set")]
    Half,
    #[error("the TLS certificate {path} cannot be used: {reason}")]
    Certificate { path: PathBuf, reason: String },
    #[error("the TLS key {path} cannot be used: {reason}")]
    Key { path: PathBuf, reason: String },
    #[error("the TLS key {key} does not belong to the certificate {certificate}")]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("the directory {path} of the local certificate authority cannot be used: {error}")]
    Directory {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("`{0}` cannot be in a TLS certificate: it must be a host name or an IP address")]
    Name(String),
    #[error("the local certificate authority can make no certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("there is no local certificate authority: the certificate is {0}")]
    NotLocal(PathBuf),
    #[error(
        "the local certificate authority of an ephemeral broker ends with it; keep it somewhere by --tls-dir"
    )]
    Ephemeral,
}

/// What this machine is called, and its addresses in `listen`, and `more`.
pub fn machine_names(listen: &[SocketAddr], more: &[String]) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"]
        .map(str::to_owned)
        .to_vec();
    let system = rustix::system::uname();
    let host = system.nodename().to_str().ok();
    // A host name may be invalid in a certificate.
    let host = host.filter(|host| host.is_ascii() && !host.is_empty());
    let listen = listen.iter().map(SocketAddr::ip);
    let listen = listen.filter(|address| !address.is_unspecified());
    let all = host.map(str::to_owned).into_iter();
    let all = all.chain(listen.map(|address| address.to_string()));
    for name in all.chain(more.iter().cloned()) {
        // An address has several spellings, a name several cases.
        let name = match name.parse::<IpAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => name.to_ascii_lowercase(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Where a data directory keeps its authority.
pub fn directory_in(data: &Path) -> PathBuf {
    data.join("tls")
}

/// The first certificate, its reloader, and the sender of requests to the reloader.
pub fn start(
    source: &Source,
    data: &Path,
) -> Result<(Certificate, CertificateReloader, ReloadSender), Error> {
    let (config, certificate_source) = open(source, data)?;
    let (sender, certificate) = watch::channel(Arc::new(config));
    let (reloader, reload_sender) = CertificateReloader::new(certificate_source, sender);
    Ok((certificate, reloader, reload_sender))
}

/// A certificate, and what is looked at to find the next one.
pub fn open(
    source: &Source,
    data: &Path,
) -> Result<(rustls::ServerConfig, CertificateSource), Error> {
    match source {
        Source::Files(pair) => CertificateSource::files(pair.clone()),
        Source::Local {
            directory,
            names,
            clients,
        } => {
            let directory = directory.clone().unwrap_or_else(|| directory_in(data));
            let authority = Authority::open(&directory)?;
            CertificateSource::local(authority, names.clone(), clients.clone())
        }
    }
}
