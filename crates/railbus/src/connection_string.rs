//! Connection string: where a broker is and what lets one in, as Azure's SDKs write it.
//!
//! Names are compared without regard to case, unknown ones are ignored, values may contain `=`.
//! Neither a key nor a signature is ever shown.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use broker::Wall;
use servicebus::{Secret, sign};

use crate::keys::{DEVELOPMENT_KEY, DEVELOPMENT_RULE};

/// Every port of a broker speaks everything, so AMQP's will do.
const PORT: u16 = 5_672;
/// How long a signature that is made here holds.
const VALIDITY: Duration = Duration::from_secs(5 * 60);

/// Why a connection string can not be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the connection string can not be used: {0}")]
pub struct Error(&'static str);

/// Where a broker is and how to get in.
#[derive(Clone)]
pub struct ConnectionString {
    /// Host and port.
    pub authority: String,
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
            credentials: Credentials::Key {
                rule: DEVELOPMENT_RULE.to_owned(),
                key: Secret::new(DEVELOPMENT_KEY.to_owned()),
            },
        }
    }

    /// The broker at `address`, for what needs no right.
    pub fn stranger(address: SocketAddr) -> Self {
        Self {
            authority: address.to_string(),
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
        Ok(Self {
            authority: authority(&endpoint)?,
            credentials,
        })
    }

    /// What a request's `Authorization` header says, if there is one.
    pub fn authorization(&self) -> Option<String> {
        match &self.credentials {
            Credentials::None => None,
            Credentials::Signature(signature) => Some(signature.clone()),
            Credentials::Key { rule, key } => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let expires = now.unwrap_or_default().saturating_add(VALIDITY).as_millis();
                let expires = Wall(u64::try_from(expires).unwrap_or(u64::MAX));
                let resource = format!("http://{}/", self.authority);
                Some(sign(&resource, rule, key, expires))
            }
        }
    }
}

/// Host and port of `sb://host[:port]/`.
fn authority(endpoint: &str) -> Result<String, Error> {
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
        None => Ok(format!("{authority}:{PORT}")),
        Some((_, port)) if port.parse::<u16>().is_ok() => Ok(authority.to_owned()),
        Some(_) => Err(Error("its Endpoint has a port that is none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(endpoint: &str, expected: Result<&str, &str>) {
        let text = format!("Endpoint={endpoint};SharedAccessKeyName=n;SharedAccessKey=k=;");
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
    fn a_key_signs_and_a_signature_is_taken_as_it_is() {
        let text = "Endpoint=sb://h;sharedaccesskeyname=root key;SharedAccessKey=a=b=;X=1";
        let connection = ConnectionString::parse(text).unwrap();
        let authorization = connection.authorization().unwrap();
        assert!(
            authorization.starts_with("SharedAccessSignature sr=http%3A%2F%2Fh%3A5672%2F&sig="),
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
            "the connection string can not be used: there is no Endpoint in it"
        );
        let error = ConnectionString::parse("Endpoint=sb://h;SharedAccessKey=hush").unwrap_err();
        assert!(error.0.contains("SharedAccessKeyName"), "{error}");
        let connection =
            ConnectionString::parse("Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessKey=hush");
        assert!(!format!("{connection:?}").contains("hush"));
    }
}
