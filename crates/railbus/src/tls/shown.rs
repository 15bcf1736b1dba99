//! Shown: what a certificate says about itself.

use std::net::IpAddr;
use std::path::Path;

use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use super::Error;
use super::pair::read_chain;

/// The first certificate of a file. Times are seconds since 1970.
#[derive(Clone, Debug)]
pub struct Shown {
    pub subject: String,
    pub issuer: String,
    pub names: Vec<String>,
    pub from: i64,
    pub until: i64,
    pub public_key: Vec<u8>,
    /// SHA-256 in hexadecimal, as browsers and `openssl` show it.
    pub fingerprint: String,
}

impl Shown {
    /// Reads it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let chain = read_chain(path)?;
        let refuse = |reason: String| Error::Certificate {
            path: path.to_owned(),
            reason,
        };
        let first = chain
            .first()
            .map(|first| first.as_ref())
            .unwrap_or_default();
        let (_, certificate) = X509Certificate::from_der(first)
            .map_err(|error| refuse(format!("it is no certificate: {error}")))?;
        let validity = certificate.validity();
        Ok(Self {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            names: names(&certificate),
            from: validity.not_before.timestamp(),
            until: validity.not_after.timestamp(),
            public_key: certificate.public_key().subject_public_key.data.to_vec(),
            fingerprint: fingerprint(first),
        })
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    names.filter_map(name).collect()
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

fn fingerprint(der: &[u8]) -> String {
    let bytes: Vec<String> = Sha256::digest(der)
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    bytes.join(":")
}
