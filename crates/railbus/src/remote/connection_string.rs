//! Connection string: the address of a broker and the credentials for it, in the format of Azure's
//! SDKs.
//!
//! Names are compared without regard to case, unknown ones are ignored, values may contain `=`.
//! Neither a key nor a signature is ever shown.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use access::{Secret, sign};
use broker::Wall;

use crate::serve::keys::{DEVELOPMENT_KEY, DEVELOPMENT_RULE};

/// Every port of a broker speaks everything, so AMQP's will do.
const PORT: u16 = 5_672;
/// AMQP's within TLS.
const TLS_PORT: u16 = 5_671;
/// How long a signature that is made here holds.
const VALIDITY: Duration = Duration::from_secs(5 * 60);

/// Why a connection string cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the connection string cannot be used: {0}")]
pub struct Error(&'static str);

/// Where a broker is and how to get in.
#[derive(Clone)]
pub struct ConnectionString {
    /// Host and port.
    pub authority: String,
    /// Whether connections use TLS: with `https` or `amqps`, and with `sb` unless the string has
    /// `UseDevelopmentEmulator=true`.
    pub tls: bool,
    credentials: Credentials,
}

#[derive(Clone)]
enum Credentials {
    None,
    Key { rule: String, key: Secret },
    Signature(String),
}

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionString")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl ConnectionString {
    /// A broker on this machine with everything by default.
    pub fn development() -> Self {
        Self {
            authority: format!("127.0.0.1:{PORT}"),
            tls: false,
            credentials: Credentials::Key {
                rule: DEVELOPMENT_RULE.to_owned(),
                key: Secret::new(DEVELOPMENT_KEY.to_owned()),
            },
        }
    }

    /// The broker at `address`, for what needs no right.
    pub fn anonymous(address: SocketAddr, tls: bool) -> Self {
        Self {
            authority: address.to_string(),
            tls,
            credentials: Credentials::None,
        }
    }

    /// Reads `text`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let value = |wanted: &str| {
            let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
            let mut values = pairs
                .filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim().to_owned());
            values.next()
        };
        let endpoint = value("Endpoint").ok_or(Error("there is no Endpoint in it"))?;
        let signature = value("SharedAccessSignature");
        let credentials = match (
            value("SharedAccessKeyName"),
            value("SharedAccessKey"),
            signature,
        ) {
            (Some(rule), Some(key), _) => Credentials::Key {
                rule,
                key: Secret::new(key),
            },
            (_, _, Some(signature)) => Credentials::Signature(signature),
            _ => {
                return Err(Error(
                    "there is neither SharedAccessKeyName with SharedAccessKey nor SharedAccessSignature in it",
                ));
            }
        };
        let is_emulator = value("UseDevelopmentEmulator");
        let is_emulator = is_emulator.is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let tls = is_tls(&endpoint, is_emulator);
        Ok(Self {
            authority: authority(&endpoint, if tls { TLS_PORT } else { PORT })?,
            tls,
            credentials,
        })
    }

    /// The host alone, without the brackets of an address.
    pub fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':');
        let host = host.map_or(&*self.authority, |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// What lets one in at `audience`, an entity's URL.
    pub fn token(&self, audience: &str) -> Option<String> {
        self.token_for(audience, VALIDITY)
    }

    /// The same with a validity, if it is signed here.
    pub fn token_for(&self, audience: &str, validity: Duration) -> Option<String> {
        match &self.credentials {
            Credentials::None => None,
            Credentials::Signature(signature) => Some(signature.clone()),
            Credentials::Key { rule, key } => Some(sign(audience, rule, key, expiry(validity))),
        }
    }

    /// The value of a request's `Authorization` header, if there is one.
    pub fn authorization(&self) -> Option<String> {
        self.token(&format!("http://{}/", self.authority))
    }
}

/// The expiry of a signature that is made now.
fn expiry(validity: Duration) -> Wall {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let expires = now.unwrap_or_default().saturating_add(validity).as_millis();
    Wall(u64::try_from(expires).unwrap_or(u64::MAX))
}

/// As Azure's SDKs understand it.
fn is_tls(endpoint: &str, is_emulator: bool) -> bool {
    let scheme = endpoint
        .split_once("://")
        .map_or("sb", |(scheme, _)| scheme);
    match &*scheme.to_ascii_lowercase() {
        "https" | "amqps" => true,
        "http" | "amqp" => false,
        _ => !is_emulator,
    }
}

/// Host and port of `sb://host[:port]/`.
fn authority(endpoint: &str, port: u16) -> Result<String, Error> {
    let rest = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() {
        return Err(Error("its Endpoint names no host"));
    }
    // An IPv6 address has colons, within brackets.
    let host_ends = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    match authority[host_ends..].rsplit_once(':') {
        None => Ok(format!("{authority}:{port}")),
        Some((_, port)) if port.parse::<u16>().is_ok() => Ok(authority.to_owned()),
        Some(_) => Err(Error("its Endpoint has a port that is none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(endpoint: &str, expected: Result<&str, &str>) {
        let text = format!(
            "Endpoint={endpoint};SharedAccessKeyName=n;SharedAccessKey=k=;UseDevelopmentEmulator=true"
        );
        match ConnectionString::parse(&text) {
            Ok(connection) => assert_eq!(Ok(connection.authority.as_str()), expected),
            Err(error) => assert_eq!(Err(error.0), expected),
        }
    }

    #[test]
    fn an_endpoint_names_host_and_port() {
        check("sb://localhost:5672", Ok("localhost:5672"));
        check("sb://localhost:7000/", Ok("localhost:7000"));
        check("sb://broker.example/", Ok("broker.example:5672"));
        check("sb://[::1]", Ok("[::1]:5672"));
        check("sb://[::1]:99/", Ok("[::1]:99"));
        check("sb:///", Err("its Endpoint names no host"));
        check("sb://host:x", Err("its Endpoint has a port that is none"));
    }

    #[test]
    fn tls_is_spoken_as_the_sdks_would() {
        let check = |endpoint: &str, rest: &str, authority: &str, tls: bool| {
            let text =
                format!("Endpoint={endpoint};SharedAccessKeyName=n;SharedAccessKey=k;{rest}");
            let connection = ConnectionString::parse(&text).unwrap();
            assert_eq!((&*connection.authority, connection.tls), (authority, tls));
        };
        check("sb://h", "", "h:5671", true);
        check("sb://h", "UseDevelopmentEmulator=true", "h:5672", false);
        check("sb://h:7/", "usedevelopmentemulator=false", "h:7", true);
        check("http://h", "", "h:5672", false);
        check(
            "https://h:5300",
            "UseDevelopmentEmulator=true",
            "h:5300",
            true,
        );
        let host = |endpoint: &str| {
            let text = format!("Endpoint={endpoint};SharedAccessKeyName=n;SharedAccessKey=k");
            ConnectionString::parse(&text).unwrap().host().to_owned()
        };
        assert_eq!(host("sb://broker.example:5671"), "broker.example");
        assert_eq!(host("sb://[::1]:5671"), "::1");
    }

    #[test]
    fn a_key_signs_and_a_signature_is_taken_as_it_is() {
        let text = "Endpoint=sb://h;sharedaccesskeyname=root key;SharedAccessKey=a=b=;X=1";
        let connection = ConnectionString::parse(text).unwrap();
        let authorization = connection.authorization().unwrap();
        assert!(
            authorization.starts_with("SharedAccessSignature sr=http%3A%2F%2Fh%3A5671%2F&sig="),
            "{authorization}"
        );
        assert!(
            authorization.ends_with("&skn=root%20key"),
            "{authorization}"
        );
        let text = "Endpoint=sb://h;SharedAccessSignature=SharedAccessSignature sr=x&sig=y";
        let connection = ConnectionString::parse(text).unwrap();
        assert_eq!(
            connection.authorization().unwrap(),
            "SharedAccessSignature sr=x&sig=y"
        );
    }

    #[test]
    fn what_is_missing_is_named_and_a_key_is_not_shown() {
        let error = ConnectionString::parse("hello").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the connection string cannot be used: there is no Endpoint in it"
        );
        let error = ConnectionString::parse("Endpoint=sb://h;SharedAccessKey=hush").unwrap_err();
        assert!(error.0.contains("SharedAccessKeyName"), "{error}");
        let connection =
            ConnectionString::parse("Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessKey=hush");
        assert!(!format!("{connection:?}").contains("hush"));
    }
}
