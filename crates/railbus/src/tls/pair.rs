//! Pair: a certificate with its chain, and the key that belongs to it, in PEM files.
//!
//! With a file of authorities too, clients are asked for a certificate by one of them. A client may
//! have none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};

use super::Error;

/// The two files, and the third if there is one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authorities of client certificates.
    pub clients: Option<PathBuf>,
}

impl Pair {
    /// Reads both and makes what a server shows of them.
    pub fn load(&self) -> Result<ServerConfig, Error> {
        let chain = read_chain(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| Error::Key {
            path: self.key.clone(),
            reason: describe(&error, "private key"),
        })?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| self.refuse(&error))?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(verifier(path)?),
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| self.refuse(&error))?;
        // AMQP has no protocol name, and clients without one are accepted.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    fn refuse(&self, error: &rustls::Error) -> Error {
        match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => Error::Mismatch {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
            },
            rustls::Error::InvalidCertificate(error) => Error::Certificate {
                path: self.certificate.clone(),
                reason: format!("it is no certificate: {error}"),
            },
            error => Error::Key {
                path: self.key.clone(),
                reason: error.to_string(),
            },
        }
    }
}

/// Checks certificates of clients by the authorities in a file.
fn verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let refuse = |reason: String| Error::Certificate {
        path: path.to_owned(),
        reason,
    };
    let mut roots = RootCertStore::empty();
    for authority in read_chain(path)? {
        let added = roots.add(authority);
        added.map_err(|error| refuse(error.to_string()))?;
    }
    let provider = Arc::new(ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| refuse(error.to_string()))
}

/// The certificates in a file, at least one.
pub fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let refuse = |reason: String| Error::Certificate {
        path: path.to_owned(),
        reason,
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match chain {
        Ok(chain) if chain.is_empty() => {
            Err(refuse(describe(&pem::Error::NoItemsFound, "certificate")))
        }
        Ok(chain) => Ok(chain),
        Err(error) => Err(refuse(describe(&error, "certificate"))),
    }
}

/// What is wrong with a PEM file, without anything that stands in it.
pub fn describe(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("there is no {what} in PEM in it"),
        _ => "it is no valid PEM".to_owned(),
    }
}
