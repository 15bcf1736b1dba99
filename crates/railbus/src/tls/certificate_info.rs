//! Certificate info: the names, dates and fingerprint of a certificate.

use std::net::IpAddr;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::Time;

use super::Error;
use super::pair::read_chain;

/// The first certificate of a file. Times are seconds since 1970.
#[derive(Clone, Debug)]
pub struct CertificateInfo {
    pub subject: String,
    pub issuer: String,
    pub names: Vec<String>,
    pub from: i64,
    pub until: i64,
    /// SHA-256 in hexadecimal, as browsers and `openssl` show it.
    pub fingerprint: String,
}

impl CertificateInfo {
    /// Reads it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let (bytes, certificate) = first(path)?;
        let certificate = certificate.tbs_certificate;
        Ok(Self {
            subject: certificate.subject.to_string(),
            issuer: certificate.issuer.to_string(),
            names: match certificate.get::<SubjectAltName>() {
                Ok(Some((_, names))) => names.0.iter().filter_map(name).collect(),
                _ => Vec::new(),
            },
            from: seconds(&certificate.validity.not_before),
            until: seconds(&certificate.validity.not_after),
            fingerprint: fingerprint(&bytes),
        })
    }
}

/// The first certificate of a file, with its bytes.
pub fn first(path: &Path) -> Result<(CertificateDer<'static>, Certificate), Error> {
    let refuse = |reason: String| Error::Certificate {
        path: path.to_owned(),
        reason,
    };
    let mut chain = read_chain(path)?;
    let first = chain.swap_remove(0);
    let certificate = Certificate::from_der(&first)
        .map_err(|error| refuse(format!("it is no certificate: {error}")))?;
    Ok((first, certificate))
}

fn seconds(time: &Time) -> i64 {
    i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
}

fn name(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => {
            address(bytes.as_bytes()).map(|address| address.to_string())
        }
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
