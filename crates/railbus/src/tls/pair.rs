//! Pair: a certificate with its chain, and the key that belongs to it, in PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{InconsistentKeys, ServerConfig};

use super::Error;

/// Two files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
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
        let mut config = builder
            .with_no_client_auth()
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
