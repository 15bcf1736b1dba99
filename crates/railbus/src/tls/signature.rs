//! Signature: whether a certificate is, to the bit, what the local authority has signed.
//!
//! All keys of the authority are on the curve P-256, and sign with ECDSA and SHA-256.

use std::path::Path;

use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use x509_cert::Certificate;
use x509_cert::der::Encode;

use super::Error;
use super::certificate_info;

/// Whether the certificate in a file is signed by the key of the one in another.
pub fn is_signed_by(certificate: &Path, authority: &Path) -> Result<bool, Error> {
    let (_, certificate) = certificate_info::first(certificate)?;
    let (_, authority) = certificate_info::first(authority)?;
    Ok(verify(&certificate, &authority))
}

fn verify(certificate: &Certificate, authority: &Certificate) -> bool {
    let signed = &certificate.tbs_certificate;
    let Ok(bytes) = signed.to_der() else {
        return false;
    };
    let key = &authority.tbs_certificate.subject_public_key_info;
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.subject_public_key.raw_bytes());
    // The algorithm is named twice, and the second time outside of what is signed.
    let (inside, outside) = (&signed.signature, &certificate.signature_algorithm);
    inside == outside
        && key
            .verify(&bytes, certificate.signature.raw_bytes())
            .is_ok()
}
