//! Environment: what makes languages and tools trust the local authority, as commands of a shell.
//!
//! Most tools replace the system's certificates by those of one file, so the bundle has both. It
//! is written anew each time.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::command_error::CommandError;
use crate::serve::host_name::HostName;
use crate::tls::{Authority, files};

/// The file with all certificates, beside the authority's.
const BUNDLE: &str = "ca-bundle.pem";
/// Java's, which `keytool` makes.
const TRUST_STORE: &str = "ca-bundle.p12";
/// Characters of a line in PEM.
const LINE: usize = 64;

/// Variables that name a file with all certificates, and the programs that read them.
const OF_BUNDLE: [(&str, &str); 3] = [
    (
        "SSL_CERT_FILE",
        ".NET, Go, Rust, Ruby, PHP's streams and all that uses OpenSSL",
    ),
    (
        "REQUESTS_CA_BUNDLE",
        "Python's requests, and so the REST clients of azure-core",
    ),
    ("CURL_CA_BUNDLE", "curl"),
];

/// Variables that say where the system's certificates are, instead of the usual places.
const REPLACES_THE_SYSTEM: [&str; 2] = ["SSL_CERT_DIR", "SSL_CERT_FILE"];

/// Writes the bundle; returns the commands.
pub fn text(authority: &Authority, host: Option<&HostName>) -> Result<String, CommandError> {
    let certificate = authority.certificate_path();
    let certificate = std::path::absolute(&certificate).unwrap_or(certificate);
    let directory = certificate.parent().unwrap_or(Path::new("/"));
    let bundle = directory.join(BUNDLE);
    let own = std::fs::read_to_string(&certificate).map_err(|error| CommandError::Read {
        path: certificate.clone(),
        error,
    })?;
    let system = rustls_native_certs::load_native_certs().certs;
    let system: Vec<&[u8]> = system.iter().map(AsRef::as_ref).collect();
    let replaced = REPLACES_THE_SYSTEM.into_iter();
    let replaced = replaced.rev().find(|it| std::env::var_os(it).is_some());
    let text = bundle_of(own, &system, replaced)?;
    files::replace(&bundle, &text, files::Access::Public).map_err(|error| {
        let path = bundle.clone();
        CommandError::Write { path, error }
    })?;
    Ok(commands(
        &certificate,
        &bundle,
        &directory.join(TRUST_STORE),
        host,
    ))
}

/// The authority's certificate and those of the system, which `replaced` says where to read, if it
/// is set. The authority's own may be among the system's: a second run makes the same bundle.
fn bundle_of(
    own: String,
    system: &[&[u8]],
    replaced: Option<&'static str>,
) -> Result<String, CommandError> {
    let certificate: String = own.split_whitespace().collect();
    let encoded = system
        .iter()
        .map(|certificate| STANDARD.encode(certificate));
    let others: Vec<_> = encoded.filter(|it| !certificate.contains(it)).collect();
    if let (true, Some(variable)) = (others.is_empty(), replaced) {
        return Err(CommandError::NoSystemCertificates(variable));
    }
    Ok(others.iter().fold(own, |text, encoded| {
        let lines = encoded.as_bytes().chunks(LINE);
        let lines = lines.map(|line| String::from_utf8_lossy(line) + "\n");
        let lines: String = lines.collect();
        text + "-----BEGIN CERTIFICATE-----\n" + &lines + "-----END CERTIFICATE-----\n"
    }))
}

/// What to paste into a shell.
fn commands(own: &Path, bundle: &Path, store: &Path, host: Option<&HostName>) -> String {
    let mut text = String::new();
    let mut say = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    if let Some(host) = host {
        say("# A line for the hosts file (/etc/hosts, or C:\\Windows\\System32\\drivers\\etc\\hosts):".to_owned());
        say(format!("# 127.0.0.1 {host}"));
    }
    for (variable, reader) in OF_BUNDLE {
        say(format!("# {reader}"));
        say(export(variable, bundle));
    }
    say("# Node.js, which keeps its own certificates beside this one".to_owned());
    say(export("NODE_EXTRA_CA_CERTS", own));
    say("# The command line of Railbus".to_owned());
    say(export("RAILBUS_CA", bundle));
    say(
        "# PHP's curl reads no variable: add this line to its php.ini, or pass it by php -d:"
            .to_owned(),
    );
    say(format!("#   openssl.cafile={}", quoted(bundle)));
    let (own, store) = (quoted(own), quoted(store));
    say("# Python's azure-servicebus reads no variable: pass connection_verify, or add the certificate once to the".to_owned());
    say("# certificates of its environment:".to_owned());
    say(format!("#   cat {own} >> \"$(python3 -m certifi)\""));
    say("# Java needs a trust store, which is made once:".to_owned());
    say(format!(
        "#   keytool -importkeystore -noprompt -srckeystore \"$JAVA_HOME/lib/security/cacerts\" -srcstorepass changeit \\\n\
         #     -destkeystore {store} -deststoretype PKCS12 -deststorepass changeit\n\
         #   keytool -importcert -noprompt -alias railbus -file {own} -keystore {store} -storepass changeit\n\
         #   export JAVA_TOOL_OPTIONS=\"-Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStorePassword=changeit\"",
        store.trim_matches('\'')
    ));
    text
}

fn export(variable: &str, path: &Path) -> String {
    format!("export {variable}={}", quoted(path))
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted(Path::new("/a b")), "'/a b'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }

    #[test]
    fn the_bundle_begins_with_the_authority_and_each_certificate_is_whole() {
        let own = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let system: [&[u8]; 2] = [&[1; 100], &[2; 100]];
        let text = bundle_of(own.to_owned(), &system, None).unwrap();
        assert!(text.starts_with(own));
        let count = |what: &str| text.matches(what).count();
        assert_eq!(
            count("-----BEGIN CERTIFICATE-----\n"),
            count("-----END CERTIFICATE-----\n")
        );
        assert_eq!(count("-----BEGIN CERTIFICATE-----\n"), 3);
        assert!(text.lines().all(|line| line.len() <= LINE));
    }

    #[test]
    fn a_bundle_that_counts_as_the_systems_makes_the_same_bundle_again() {
        let own = bundle_of(String::new(), &[&[7; 100]], None).unwrap();
        let system: [&[u8]; 2] = [&[1; 100], &[2; 100]];
        let first = bundle_of(own.clone(), &system, None).unwrap();
        let read: [&[u8]; 3] = [&[7; 100], &[1; 100], &[2; 100]];
        let second = bundle_of(own, &read, Some("SSL_CERT_FILE")).unwrap();
        assert_eq!(second, first);
    }

    #[test]
    fn a_variable_that_hides_the_systems_certificates_is_refused() {
        let own = bundle_of(String::new(), &[&[7; 100]], None).unwrap();
        for hidden in [&[][..], &[&[7; 100][..]]] {
            let refused = bundle_of(own.clone(), hidden, Some("SSL_CERT_FILE"));
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("SSL_CERT_FILE"), "{text}");
            // A system may have none.
            assert_eq!(bundle_of(own.clone(), hidden, None).unwrap(), own);
        }
    }

    #[test]
    fn only_comments_and_exports_are_printed() {
        let host: HostName = "shop.servicebus.windows.net".parse().unwrap();
        let text = commands(
            Path::new("/t/ca.pem"),
            Path::new("/t/b.pem"),
            Path::new("/t/b.p12"),
            Some(&host),
        );
        let is_known = |line: &str| line.starts_with('#') || line.starts_with("export ");
        assert!(text.lines().all(is_known), "{text}");
        assert!(
            text.contains("# 127.0.0.1 shop.servicebus.windows.net\n"),
            "{text}"
        );
        assert!(text.contains("export SSL_CERT_FILE='/t/b.pem'\n"), "{text}");
        assert!(
            text.contains("export NODE_EXTRA_CA_CERTS='/t/ca.pem'\n"),
            "{text}"
        );
        assert!(text.contains("#   openssl.cafile='/t/b.pem'\n"), "{text}");
    }
}
