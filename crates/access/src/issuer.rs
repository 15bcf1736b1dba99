//! Issuer: a party whose JSON Web Tokens are accepted, and the rights that they give.
//! (docs/spec/amqp.md#2.8)
//!
//! The rights of a token follow from its claims, and from the grants and keys of its issuer at the
//! time of each check. So a grant that is removed, or a key that is withdrawn, counts on open
//! connections at once. Keys are loaded by the server; what is here says only from where.

use std::path::PathBuf;
use std::sync::Arc;

use crate::key_set::{IssuerKeys, KeyDigest};
use crate::rights::Rights;
use crate::scope;

/// The resource that Azure's SDKs ask a token for.
pub const SERVICE_BUS_AUDIENCE: &str = "https://servicebus.azure.net";
/// The development issuer, as its tokens name it. (docs/spec/admin.md#2.4)
pub const DEVELOPMENT_ISSUER: &str = "urn:railbus:development";

/// Where a client is, as far as that decides which issuers count for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Locality {
    /// On this machine, and connected by a listener that only this machine can reach.
    Loopback,
    /// Anywhere.
    Network,
}

/// Where the keys of an issuer come from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeySource {
    /// The URL of a discovery document of OpenID Connect, which names the URL of the keys.
    Discovery(String),
    /// The URL of a JWK set.
    Url(String),
    /// A file with a JWK set.
    File(PathBuf),
    /// Known from the start.
    Fixed,
}

/// What a token has to say for a grant to apply.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GrantClaim {
    /// One of `roles`.
    Role(String),
    /// One of `scp`.
    Scope(String),
    /// One of `groups`.
    Group(String),
    /// `sub`.
    Subject(String),
}

/// Rights for tokens with a claim.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grant {
    /// Compared exactly.
    pub claim: GrantClaim,
    /// The rights.
    pub rights: Rights,
    /// `None` for the whole namespace, else the path of an entity.
    pub entity: Option<String>,
}

impl Grant {
    /// The grants of an issuer that is given none: the roles of Azure, and rights by their names.
    #[must_use]
    pub fn usual() -> Vec<Self> {
        let send = Rights {
            send: true,
            ..Rights::NONE
        };
        let listen = Rights {
            listen: true,
            ..Rights::NONE
        };
        let values = [
            ("Azure Service Bus Data Sender", send),
            ("Send", send),
            ("Azure Service Bus Data Receiver", listen),
            ("Listen", listen),
            ("Azure Service Bus Data Owner", Rights::ALL),
            ("Manage", Rights::ALL),
        ];
        let grant = |claim, rights| Self {
            claim,
            rights,
            entity: None,
        };
        let both = |(value, rights): (&str, Rights)| {
            [
                grant(GrantClaim::Role(value.to_owned()), rights),
                grant(GrantClaim::Scope(value.to_owned()), rights),
            ]
        };
        values.into_iter().flat_map(both).collect()
    }

    fn applies(&self, identity: &Identity, path: &str) -> bool {
        let is_claimed = match &self.claim {
            GrantClaim::Role(role) => identity.roles.contains(role),
            GrantClaim::Scope(scope) => identity.scopes.contains(scope),
            GrantClaim::Group(group) => identity.groups.contains(group),
            GrantClaim::Subject(subject) => identity.subject.as_ref() == Some(subject),
        };
        is_claimed && scope::is_within(path, self.entity.as_deref())
    }
}

/// One issuer.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The text of the claim `iss`.
    pub name: String,
    /// Accepted audiences, without slashes at the end.
    pub audiences: Vec<String>,
    /// Tolerance for the times in tokens, in milliseconds.
    pub leeway_ms: u64,
    /// Which rights its tokens give.
    pub grants: Vec<Grant>,
    /// Whether its tokens count for clients on loopback only.
    pub is_for_loopback: bool,
    /// Where its keys come from.
    pub source: KeySource,
    /// The keys, once loaded.
    pub keys: Arc<IssuerKeys>,
}

impl Issuer {
    /// Whether its tokens count for a client there.
    pub(crate) fn serves(&self, locality: Locality) -> bool {
        !self.is_for_loopback || locality == Locality::Loopback
    }

    /// The rights of an identity of this issuer at `path`, which is normalised and in lower case.
    pub(crate) fn rights(&self, identity: &Identity, path: &str) -> Rights {
        let grants = self.grants.iter();
        grants
            .filter(|grant| grant.applies(identity, path))
            .fold(Rights::NONE, |sum, grant| sum.union(grant.rights))
    }

    /// Whether the keys of `other` are this issuer's too.
    #[must_use]
    pub fn has_keys_of(&self, other: &Self) -> bool {
        self.name == other.name && self.source == other.source
    }
}

/// The claims of a verified token that rights rest on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Identity {
    /// The name of its issuer.
    pub issuer: String,
    /// The claim `sub`.
    pub subject: Option<String>,
    /// The claim `roles`.
    pub roles: Vec<String>,
    /// The claim `scp`, split at spaces.
    pub scopes: Vec<String>,
    /// The claim `groups`.
    pub groups: Vec<String>,
    /// The key that has signed the token.
    pub key: KeyDigest,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(grants: Vec<Grant>) -> Issuer {
        Issuer {
            name: "https://issuer.example".to_owned(),
            audiences: Vec::new(),
            leeway_ms: 0,
            grants,
            is_for_loopback: false,
            source: KeySource::Fixed,
            keys: Arc::new(IssuerKeys::missing()),
        }
    }

    /// What rights the letters of `expected` stand for.
    fn letters(rights: Rights) -> String {
        let letters = [
            (rights.send, 's'),
            (rights.listen, 'l'),
            (rights.manage, 'm'),
        ];
        let has = letters.into_iter().filter(|(has, _)| *has);
        has.map(|(_, letter)| letter).collect()
    }

    #[test]
    fn the_roles_of_azure_give_their_rights_without_any_grant() {
        let issuer = issuer(Grant::usual());
        let table = [
            ("Azure Service Bus Data Sender", "s"),
            ("Send", "s"),
            ("Azure Service Bus Data Receiver", "l"),
            ("Listen", "l"),
            ("Azure Service Bus Data Owner", "slm"),
            ("Manage", "slm"),
            ("manage", ""),
            ("Owner", ""),
        ];
        for (value, expected) in table {
            let values = vec![value.to_owned()];
            let by_role = Identity {
                roles: values.clone(),
                ..Identity::default()
            };
            let by_scope = Identity {
                scopes: values.clone(),
                ..Identity::default()
            };
            let by_group = Identity {
                groups: values,
                ..Identity::default()
            };
            assert_eq!(letters(issuer.rights(&by_role, "orders")), expected);
            assert_eq!(letters(issuer.rights(&by_scope, "orders")), expected);
            assert_eq!(letters(issuer.rights(&by_group, "orders")), "");
        }
    }

    #[test]
    fn a_grant_gives_its_rights_at_its_entity_and_rights_add_up() {
        let grant = |claim, rights, entity: Option<&str>| Grant {
            claim,
            rights,
            entity: entity.map(str::to_owned),
        };
        let send = Rights {
            send: true,
            ..Rights::NONE
        };
        let listen = Rights {
            listen: true,
            ..Rights::NONE
        };
        let issuer = issuer(vec![
            grant(GrantClaim::Role("worker".to_owned()), send, Some("Orders")),
            grant(GrantClaim::Group("g1".to_owned()), listen, Some("orders")),
            grant(GrantClaim::Subject("me".to_owned()), listen, Some("events")),
            grant(GrantClaim::Scope("send".to_owned()), send, None),
        ]);
        let worker = Identity {
            roles: vec!["worker".to_owned()],
            groups: vec!["g1".to_owned(), "g2".to_owned()],
            subject: Some("me".to_owned()),
            ..Identity::default()
        };
        let at = |path: &str| letters(issuer.rights(&worker, path));
        assert_eq!(at("orders"), "sl");
        assert_eq!(at("orders/$deadletterqueue"), "sl");
        assert_eq!(at("orders2"), "");
        assert_eq!(at("orders/eu"), "");
        assert_eq!(at("events/subscriptions/all"), "l");
        assert_eq!(at(""), "");
    }
}
