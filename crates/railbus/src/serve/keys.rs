//! Keys: the access rules of clients, and the key that the ready line shows.
//!
//! Without configured rules, issuers and certificates the well-known development key of the
//! official emulator is accepted, but only while no other machine can reach the broker. A
//! configured key is never shown.

use std::net::SocketAddr;
use std::sync::Arc;

use access::{AccessRule, AccessRules, CertificateRule, Rights, Secret};

use crate::command_error::CommandError;
use crate::config::{Auth, AuthCertificate, AuthRule, Right};

/// The emulator's rule.
pub const DEVELOPMENT_RULE: &str = "RootManageSharedAccessKey";
/// The emulator's key, which is public.
pub const DEVELOPMENT_KEY: &str = "SAS_KEY_VALUE";

/// The access rules, and the key for the ready line.
#[derive(Clone, Debug)]
pub struct Keys {
    pub rules: AccessRules,
    /// None if there are issuers or certificates alone.
    pub shown: Option<ConnectionKey>,
}

/// The end of the connection string.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConnectionKey {
    pub rule: String,
    /// The development key, or a text in the place of a configured one.
    pub key: String,
    /// When the rule holds for one entity only.
    pub entity: Option<String>,
}

impl Keys {
    /// The keys for a broker that listens on `listen`.
    pub fn new(
        auth: &Auth,
        listen: &[SocketAddr],
        allow_development_key: bool,
    ) -> Result<Self, CommandError> {
        match auth.rules.iter().max_by_key(|rule| prominence(rule)) {
            Some(prominent) => Ok(Self::configured(auth, Some(prominent))),
            None if !auth.issuers.is_empty() || !auth.certificates.is_empty() => {
                Ok(Self::configured(auth, None))
            }
            None => {
                let public = listen.iter().find(|address| !address.ip().is_loopback());
                match public {
                    Some(&address) if !allow_development_key => {
                        Err(CommandError::DevelopmentKey(address))
                    }
                    _ => Ok(Self::development(auth)),
                }
            }
        }
    }

    fn configured(auth: &Auth, prominent: Option<&AuthRule>) -> Self {
        let shown = prominent.map(|prominent| ConnectionKey {
            rule: prominent.name.clone(),
            key: format!("<key of {}>", prominent.name),
            entity: prominent
                .entity
                .clone()
                .map(crate::config::EntityPath::into_string),
        });
        Self {
            rules: AccessRules {
                rules: auth.rules.iter().map(rule).collect(),
                anonymous: Right::all(&auth.anonymous),
                is_development: false,
                issuers: Vec::new(),
                certificates: auth.certificates.iter().map(certificate).collect(),
                host_names: Arc::default(),
                namespace: None,
            },
            shown,
        }
    }

    fn development(auth: &Auth) -> Self {
        let rule = AccessRule {
            name: DEVELOPMENT_RULE.to_owned(),
            primary: Secret::new(DEVELOPMENT_KEY.to_owned()),
            secondary: None,
            rights: Rights::ALL,
            entity: None,
        };
        let shown = ConnectionKey {
            rule: DEVELOPMENT_RULE.to_owned(),
            key: DEVELOPMENT_KEY.to_owned(),
            entity: None,
        };
        Self {
            rules: AccessRules {
                rules: vec![rule],
                anonymous: Right::all(&auth.anonymous),
                is_development: true,
                issuers: Vec::new(),
                certificates: Vec::new(),
                host_names: Arc::default(),
                namespace: None,
            },
            shown: Some(shown),
        }
    }
}

/// The rule that can do most is the one to show.
fn prominence(rule: &AuthRule) -> (bool, usize) {
    let Rights {
        send,
        listen,
        manage,
    } = Right::all(&rule.rights);
    (
        rule.entity.is_none(),
        [send, listen, manage]
            .into_iter()
            .filter(|&right| right)
            .count(),
    )
}

fn certificate(rule: &AuthCertificate) -> CertificateRule {
    let entity = rule.entity.clone();
    CertificateRule {
        name: rule.name.clone(),
        rights: Right::all(&rule.rights),
        entity: entity.map(crate::config::EntityPath::into_string),
    }
}

fn rule(rule: &AuthRule) -> AccessRule {
    AccessRule {
        name: rule.name.clone(),
        primary: Secret::new(rule.primary_key.clone()),
        secondary: rule.secondary_key.clone().map(Secret::new),
        rights: Right::all(&rule.rights),
        entity: rule
            .entity
            .clone()
            .map(crate::config::EntityPath::into_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(rules: &[(&str, Right)]) -> Auth {
        let rules = rules.iter().map(|(name, right)| AuthRule {
            name: (*name).to_owned(),
            primary_key: "hush".to_owned(),
            secondary_key: None,
            rights: vec![*right],
            entity: None,
        });
        Auth {
            anonymous: Vec::new(),
            rules: rules.collect(),
            ..Auth::default()
        }
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_development_key_is_for_loopback_only() {
        let auth = Auth::default();
        let loopback = addresses(&["127.0.0.1:5672", "[::1]:5672", "127.3.2.1:1"]);
        assert_eq!(
            Keys::new(&auth, &loopback, false)
                .unwrap()
                .shown
                .unwrap()
                .key,
            "SAS_KEY_VALUE"
        );
        let public = addresses(&["127.0.0.1:5672", "0.0.0.0:5672"]);
        let refusal = Keys::new(&auth, &public, false).unwrap_err().to_string();
        assert!(
            refusal.starts_with("0.0.0.0:5672 is not a loopback address"),
            "{refusal}"
        );
        assert!(refusal.contains("--allow-development-key"), "{refusal}");
        assert!(Keys::new(&auth, &public, true).is_ok());
    }

    #[test]
    fn a_configured_key_replaces_the_development_key_and_is_never_shown() {
        let auth = auth(&[("sender", Right::Send), ("owner", Right::Manage)]);
        let keys = Keys::new(&auth, &addresses(&["0.0.0.0:5672"]), false).unwrap();
        assert_eq!(keys.rules.rules.len(), 2);
        let shown = keys.shown.as_ref().unwrap();
        assert_eq!(shown.rule, "owner");
        assert_eq!(shown.key, "<key of owner>");
        assert!(!format!("{keys:?}").contains("hush"));
    }

    #[test]
    fn with_issuers_there_is_no_development_key() {
        let mut auth = Auth::default();
        auth.issuers.push(crate::config::AuthIssuer {
            issuer: "https://issuer.example".to_owned(),
            audiences: Vec::new(),
            discovery: None,
            jwks_url: None,
            jwks_file: None,
            leeway: None,
            grants: Vec::new(),
        });
        let keys = Keys::new(&auth, &addresses(&["0.0.0.0:5672"]), false).unwrap();
        assert!(!keys.rules.is_development && keys.rules.rules.is_empty());
        assert_eq!(keys.shown, None);
    }
}
