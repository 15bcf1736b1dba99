//! Client certificate: the names in the certificate that a client has shown in the TLS handshake.
//! (docs/spec/amqp.md#1.3)
//!
//! rustls has verified it by the authorities of the configuration before anything here is called.

use rustls::ServerConnection;
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Tag, Tagged};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// The names, possibly none; `None` if the client has shown no certificate.
pub fn names(session: &ServerConnection) -> Option<Vec<String>> {
    let certificate = session.peer_certificates()?.first()?;
    Some(names_in(certificate))
}

/// The DNS names. Of a certificate without any, the common name of its subject.
fn names_in(der: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(der) else {
        return Vec::new();
    };
    let certificate = certificate.tbs_certificate;
    let names = match certificate.get::<SubjectAltName>() {
        Ok(Some((_, names))) => names.0.iter().filter_map(dns_name).collect(),
        // A name may stand where it cannot be read.
        Err(_) => return Vec::new(),
        Ok(None) => Vec::new(),
    };
    if !names.is_empty() {
        return names;
    }
    let parts = certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let common = parts.filter(|part| part.oid == COMMON_NAME);
    common.filter_map(text).collect()
}

fn dns_name(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    }
}

fn text(part: &AttributeTypeAndValue) -> Option<String> {
    let is_text = matches!(
        part.value.tag(),
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String
    );
    let text = std::str::from_utf8(part.value.value()).ok()?;
    is_text.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn check(dns_names: &[&str], common: Option<&str>, expected: &[&str]) {
        let dns_names = dns_names.iter().map(|name| (*name).to_owned());
        let mut params = CertificateParams::new(dns_names.collect::<Vec<_>>()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(common) = common {
            params.distinguished_name.push(DnType::CommonName, common);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        assert_eq!(names_in(certificate.der()), expected);
    }

    #[test]
    fn the_common_name_counts_where_there_is_no_dns_name() {
        check(
            &["a.example", "b.example"],
            Some("c"),
            &["a.example", "b.example"],
        );
        check(&[], Some("orders worker"), &["orders worker"]);
        check(&["127.0.0.1"], Some("worker"), &["worker"]);
        check(&[], None, &[]);
    }

    #[test]
    fn what_is_no_certificate_has_no_name() {
        assert!(names_in(b"").is_empty());
        assert!(names_in(&[0x30, 0x80, 0xff]).is_empty());
    }
}
