//! Development key: signs the tokens of the development issuer, and lasts with the data directory.
//! (docs/spec/admin.md#2.4)
//!
//! It is made at the first start, and only its owner can read it.

use std::path::{Path, PathBuf};

use access::Secret;
use rcgen::KeyPair;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use server::DevelopmentIssuer;

use crate::tls::{self, files};

/// Its file, in the data directory.
const FILE: &str = "identity.key";

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the key {path} of the development issuer cannot be used: {reason}")]
    Key { path: PathBuf, reason: String },
}

/// The issuer with the key in `data`, which is made if there is none. It gives tokens to programs
/// that show `header`.
pub fn open(data: &Path, header: &str) -> Result<DevelopmentIssuer, Error> {
    let path = data.join(FILE);
    let refuse = |reason: String| Error::Key {
        path: path.clone(),
        reason,
    };
    if !path.exists() {
        let key = KeyPair::generate().map_err(|error| refuse(error.to_string()))?;
        let text = key.serialize_pem();
        files::replace(&path, &text, files::Access::Secret)
            .map_err(|error| refuse(error.to_string()))?;
    }
    let key = PrivateKeyDer::from_pem_file(&path)
        .map_err(|error| refuse(tls::describe(&error, "private key")))?;
    DevelopmentIssuer::new(key.secret_der(), Secret::new(header.to_owned()))
        .map_err(|error| refuse(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_is_its_owners_alone() {
        let data = tempfile::tempdir().unwrap();
        let first = open(data.path(), "a").unwrap().jwk_set();
        let second = open(data.path(), "a").unwrap().jwk_set();
        assert_eq!(first, second);
        let file = std::fs::metadata(data.path().join(FILE)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_flipped_bit_is_refused_or_changes_nothing() {
        let data = tempfile::tempdir().unwrap();
        let whole = open(data.path(), "a").unwrap().jwk_set();
        let path = data.path().join(FILE);
        let content = std::fs::read(&path).unwrap();
        for bit in 0..content.len() * 8 {
            let mut flipped = content.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).unwrap();
            if let Ok(issuer) = open(data.path(), "a") {
                assert_eq!(issuer.jwk_set(), whole, "bit {bit}");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_key_is_refused_without_its_text() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(FILE), "hush").unwrap();
        let error = open(data.path(), "a").unwrap_err().to_string();
        assert!(error.contains(FILE) && !error.contains("hush"), "{error}");
    }
}
