//! Access: the access rules of the namespace and of its entities, as one snapshot.
//! (docs/spec/entities.md#2.6)
//!
//! The rules of the namespace come from the configuration; those of queues and topics are stored
//! with the entity. Rights rest on a credential and are looked up at each check, so a replaced key
//! or a removed rule takes effect on open connections at once.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use broker::{AuthorizationRule, NamespaceDefinition, Wall};

use crate::certificate::{self, CertificateRule};
use crate::issuer::{Identity, Issuer, Locality};
use crate::rights::{AccessRule, AccessRules, Fingerprint, Rights, Secret};
use crate::token::VerifiedToken;
use crate::{jwt, scope};

/// Longest path that an entity can have, in bytes. (docs/spec/entities.md#4)
const MAX_PATH: usize = 260 * 4;

/// A valid login.
#[derive(Clone, Debug)]
pub struct Credential(Kind);

#[derive(Clone)]
enum Kind {
    /// The name of a rule and the fingerprint of one of its keys.
    Key { rule: String, key: Fingerprint },
    /// What an issuer says of a client.
    Identity(Arc<Identity>),
    /// The names in a verified certificate.
    Certificate(Arc<[String]>),
}

impl Credential {
    fn of_key(rule: &str, key: Fingerprint) -> Self {
        let rule = rule.to_owned();
        Self(Kind::Key { rule, key })
    }

    pub(crate) fn of_certificate(names: &[String]) -> Self {
        Self(Kind::Certificate(names.into()))
    }

    /// The name of the client: that of its rule, its subject and issuer, or its certificate's.
    #[must_use]
    pub fn client_name(&self) -> String {
        match &self.0 {
            Kind::Key { rule, .. } => rule.clone(),
            Kind::Identity(identity) => {
                let subject = identity.subject.as_deref().unwrap_or_default();
                format!("{subject} of {}", identity.issuer)
            }
            Kind::Certificate(names) => names.join(", "),
        }
    }

    /// Whether its rights are looked up at the path of what is done. Those of a key are looked up
    /// at the audience that a signature was given for.
    #[must_use]
    pub fn is_of_issuer(&self) -> bool {
        matches!(self.0, Kind::Identity(_))
    }

    /// Whether both are of one client of an issuer, which may say different things of it.
    #[must_use]
    pub fn is_of_same_subject(&self, other: &Self) -> bool {
        let subject =
            |identity: &Arc<Identity>| (identity.issuer.clone(), identity.subject.clone());
        match (&self.0, &other.0) {
            (Kind::Identity(one), Kind::Identity(other)) => subject(one) == subject(other),
            _ => false,
        }
    }

    /// Whether both are of an issuer, which says the same of them.
    #[must_use]
    pub fn has_identity_of(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Identity(one), Kind::Identity(other)) => one == other,
            _ => false,
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { rule, .. } => f.debug_tuple("Key").field(rule).finish_non_exhaustive(),
            Self::Identity(identity) => f.debug_tuple("Identity").field(identity).finish(),
            Self::Certificate(names) => f.debug_tuple("Certificate").field(names).finish(),
        }
    }
}

/// A snapshot of all rules. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Access {
    namespace: Arc<AccessRules>,
    /// By path in lower case; of entities that have some.
    entities: Arc<HashMap<String, Arc<[AccessRule]>>>,
}

impl Access {
    /// The rules of the namespace alone.
    #[must_use]
    pub fn new(rules: AccessRules) -> Self {
        Self {
            namespace: Arc::new(rules),
            entities: Arc::default(),
        }
    }

    /// Replaces the rules of the namespace; those of entities and the keys of issuers stay.
    pub fn replace(&mut self, mut rules: AccessRules) {
        rules.keep_issuer_keys(&self.namespace);
        self.namespace = Arc::new(rules);
    }

    /// Makes snapshots from now on differ from those before, as after [`replace`](Self::replace)
    /// with the same rules.
    pub(crate) fn renew(&mut self) {
        self.namespace = Arc::new((*self.namespace).clone());
    }

    /// Replaces the rules of an entity.
    pub(crate) fn set_entity(&mut self, path: &str, rules: &[AuthorizationRule]) {
        let key = path.to_lowercase();
        if rules.is_empty() {
            if self.entities.contains_key(&key) {
                Arc::make_mut(&mut self.entities).remove(&key);
            }
        } else {
            let rules = rules
                .iter()
                .map(|rule| of_entity(Some(path), rule))
                .collect();
            Arc::make_mut(&mut self.entities).insert(key, rules);
        }
    }

    /// Whether nothing has changed between two snapshots of one broker.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.namespace, &other.namespace)
            && Arc::ptr_eq(&self.entities, &other.entities)
    }

    /// Whether the only rule of the namespace is the public one for development.
    #[must_use]
    pub fn is_development(&self) -> bool {
        self.namespace.is_development
    }

    /// The credential of the public rule for development, while it is the only one.
    #[must_use]
    pub fn development_credential(&self) -> Option<Credential> {
        let rule = self
            .namespace
            .rules
            .first()
            .filter(|_| self.is_development())?;
        Some(Credential::of_key(
            &rule.name,
            rule.primary.fingerprint().clone(),
        ))
    }

    /// Whether a credential is that one.
    #[must_use]
    pub fn is_development_credential(&self, credential: &Credential) -> bool {
        let rule = self.namespace.rules.first();
        let rule = rule.filter(|_| self.is_development());
        rule.is_some_and(|rule| match &credential.0 {
            Kind::Key { rule: name, key } => *name == rule.name && rule.primary.matches(key),
            _ => false,
        })
    }

    /// The rules of a namespace with these keys and hosts of its own, where this one is the
    /// default one. The public rule for development and its issuer count in all of them; other
    /// rules, issuers and certificates are those of the default one alone.
    #[must_use]
    pub fn rules_of_namespace(&self, namespace: &Arc<NamespaceDefinition>) -> AccessRules {
        let default = &self.namespace;
        let (rules, issuers) = match default.is_development {
            true => (&default.rules[..], &default.issuers[..]),
            false => Default::default(),
        };
        let own = namespace.keys.iter().map(|key| of_entity(None, key));
        AccessRules {
            // Collected at once, so that thousands of namespaces take no room that they do not use.
            rules: rules.iter().cloned().chain(own).collect(),
            is_development: default.is_development,
            issuers: issuers.to_vec(),
            host_names: Arc::clone(&default.host_names),
            namespace: Some(Arc::clone(namespace)),
            ..AccessRules::default()
        }
    }

    /// Whether a rule of the namespace or of one of its entities has that name.
    #[must_use]
    pub fn has_key(&self, name: &str) -> bool {
        let of_entities = self.entities.values().flat_map(|rules| rules.iter());
        let mut rules = self.namespace.rules.iter().chain(of_entities);
        rules.any(|rule| rule.name == name)
    }

    /// Whether this broker's host is called `name`, in any case.
    #[must_use]
    pub fn is_own_host(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let mut names = self.namespace.host_names.iter();
        let namespace = self.namespace.namespace.as_ref();
        names.any(|own| *own == name) || namespace.is_some_and(|own| own.has_host(&name))
    }

    /// The rights of a client without a credential.
    #[must_use]
    pub fn anonymous(&self) -> Rights {
        self.namespace.anonymous
    }

    /// The credential for the name and a key of a rule, at whatever level. Each rule
    /// of that name is tried, and an unknown name costs a comparison too.
    #[must_use]
    pub fn log_in(&self, name: &str, key: &[u8]) -> Option<Credential> {
        let key = Fingerprint::of(key);
        let fits = |rule: &AccessRule| rule.either_key(|secret| secret.matches(&key));
        let of_entities = self.entities.values().flat_map(|rules| rules.iter());
        let rules = self.namespace.rules.iter().chain(of_entities);
        let (mut is_known, mut is_right) = (false, false);
        for rule in rules.filter(|rule| rule.name == name) {
            is_known = true;
            is_right |= fits(rule);
        }
        if !is_known {
            fits(&AccessRule::of_unknown_name());
        }
        is_right.then(|| Credential::of_key(name, key))
    }

    /// The credential for a signature of `path` by a key of the rule called `name`, if there is
    /// such a rule at the path or above it. `signs` checks the signature against one key.
    pub(crate) fn signer(
        &self,
        name: &str,
        path: &str,
        signs: impl Fn(&Secret) -> bool,
    ) -> Option<Credential> {
        let mut found = None;
        let mut try_rule = |rule: &AccessRule| {
            rule.either_key(|key| {
                let signs = signs(key);
                if signs {
                    found = Some(key.fingerprint().clone());
                }
                signs
            })
        };
        let mut is_known = false;
        for rule in self.rules_for(path).filter(|rule| rule.name == name) {
            is_known = true;
            try_rule(rule);
        }
        if !is_known {
            try_rule(&AccessRule::of_unknown_name());
            return None;
        }
        found.map(|key| Credential::of_key(name, key))
    }

    /// The rights of a credential at `path` now; a path is normalised and in lower case.
    #[must_use]
    pub fn rights(&self, credential: &Credential, path: &str) -> Rights {
        match &credential.0 {
            Kind::Key { rule, key } => self.rights_of_key(rule, key, path),
            Kind::Identity(identity) => self.rights_of_identity(identity, path),
            Kind::Certificate(names) => certificate::rights(self.certificate_rules(), names, path),
        }
    }

    fn rights_of_key(&self, rule: &str, key: &Fingerprint, path: &str) -> Rights {
        let named = self.rules_for(path).filter(|other| other.name == rule);
        named
            .filter(|rule| rule.either_key(|secret| secret.matches(key)))
            .fold(Rights::NONE, |sum, rule| sum.union(rule.rights))
    }

    /// None if the issuer, or the key that signed the token, is not trusted any more.
    fn rights_of_identity(&self, identity: &Identity, path: &str) -> Rights {
        let mut issuers = self.namespace.issuers.iter();
        let issuer = issuers.find(|issuer| issuer.name == identity.issuer);
        let issuer = issuer.filter(|issuer| issuer.keys.trusts(identity.key));
        issuer.map_or(Rights::NONE, |issuer| issuer.rights(identity, path))
    }

    /// Verifies a JSON Web Token for a client there.
    ///
    /// # Errors
    /// When it is not accepted.
    pub fn verify_jwt(
        &self,
        token: &str,
        locality: Locality,
        now: Wall,
    ) -> Result<VerifiedToken, jwt::Error> {
        let verified = jwt::verify(token, &self.namespace.issuers, locality, now)?;
        Ok(VerifiedToken {
            credential: Credential(Kind::Identity(Arc::new(verified.identity))),
            expires: verified.expires,
        })
    }

    /// The issuers whose tokens are accepted.
    #[must_use]
    pub fn issuers(&self) -> &[Issuer] {
        &self.namespace.issuers
    }

    pub(crate) fn certificate_rules(&self) -> &[CertificateRule] {
        &self.namespace.certificates
    }

    /// The rules at `path` and above it.
    fn rules_for<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a AccessRule> {
        let namespace = self.namespace.rules.iter();
        let entities = self_and_ancestors(path)
            .filter(|ancestor| scope::belongs(path, ancestor))
            .filter_map(|ancestor| self.entities.get(ancestor))
            .flat_map(|rules| rules.iter());
        namespace
            .filter(|rule| rule.applies_to(path))
            .chain(entities)
    }
}

/// `path` and the paths above it by whole segments, as far as they can be an entity's.
fn self_and_ancestors(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(index, _)| index);
    ends.chain([path.len()])
        .take_while(|end| *end <= MAX_PATH)
        .filter_map(|end| path.get(..end))
}

/// A rule that is stored, for an entity or the whole namespace.
fn of_entity(path: Option<&str>, rule: &AuthorizationRule) -> AccessRule {
    AccessRule {
        name: rule.key_name.clone(),
        primary: Secret::new(rule.primary_key.clone()),
        secondary: Some(Secret::new(rule.secondary_key.clone())),
        rights: Rights {
            send: rule.send,
            listen: rule.listen,
            manage: rule.manage,
        },
        entity: path.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a rule of the queue `orders` gives rights at a path.
    fn check(path: &str, expected: bool) {
        let mut access = Access::default();
        let rule = AuthorizationRule {
            send: false,
            listen: false,
            ..AuthorizationRule::of_key("owner".to_owned(), "the-key-of-orders".to_owned())
        };
        access.set_entity("Orders", &[rule]);
        let credential = access.log_in("owner", b"the-key-of-orders").unwrap();
        let rights = access.rights(&credential, path);
        assert_eq!(rights.manage, expected, "{path}");
    }

    #[test]
    fn a_rule_of_an_entity_holds_for_what_is_the_entitys() {
        for path in [
            "orders",
            "orders/$deadletterqueue",
            "orders/$transfer/$deadletterqueue",
            "orders/subscriptions/all/$deadletterqueue",
            "orders/messages/head",
        ] {
            check(path, true);
        }
    }

    #[test]
    fn a_rule_of_an_entity_does_not_hold_for_an_entity_below_it() {
        for path in [
            "",
            "orders2",
            "orders/eu",
            "orders/eu/messages",
            "orders/messages/eu",
            "others",
        ] {
            check(path, false);
        }
    }
}
