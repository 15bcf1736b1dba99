//! Rights: shared access rules, their keys, and what they allow. (docs/spec/entities.md#2.6)
//!
//! A key's text is compared in constant time and never printed: [`Secret`] has no `Display`, its
//! `Debug` prints nothing, and only this file can read it. Keys and signatures of clients are
//! compared by `equal` and nothing else; `cargo xtask tidy` checks this.

use std::fmt;
use std::sync::Arc;

use broker::NamespaceDefinition;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::certificate::CertificateRule;
use crate::issuer::Issuer;
use crate::scope;

/// A subset of Send, Listen and Manage.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rights {
    /// Send messages.
    pub send: bool,
    /// Receive, settle and browse messages.
    pub listen: bool,
    /// Create, change and delete entities; implies the other two.
    pub manage: bool,
}

impl Rights {
    /// Nothing is allowed.
    pub const NONE: Self = Self {
        send: false,
        listen: false,
        manage: false,
    };
    /// Everything is allowed.
    pub const ALL: Self = Self {
        send: true,
        listen: true,
        manage: true,
    };

    /// The rights that either allows.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self {
            send: self.send || other.send,
            listen: self.listen || other.listen,
            manage: self.manage || other.manage,
        }
    }

    /// Whether `need` is met. Manage implies the other two.
    #[must_use]
    pub const fn allow(self, required_right: RequiredRight) -> bool {
        match required_right {
            RequiredRight::Nothing => true,
            RequiredRight::Send => self.send || self.manage,
            RequiredRight::Listen => self.listen || self.manage,
            RequiredRight::SendOrListen => self.send || self.listen || self.manage,
            RequiredRight::Manage => self.manage,
        }
    }
}

/// The right that a link, an operation or a request requires. (docs/spec/amqp.md#2.6)
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequiredRight {
    /// No right, as for `$cbs`, which grants rights.
    Nothing,
    /// To send messages.
    Send,
    /// To browse, receive and settle messages.
    Listen,
    /// Either right, as for a management node; its operations require more.
    SendOrListen,
    /// To see and change entities.
    Manage,
}

impl RequiredRight {
    /// The claim as error texts name it.
    #[must_use]
    pub const fn claim(self) -> &'static str {
        match self {
            Self::Nothing => "None",
            Self::Send => "Send",
            Self::Listen => "Listen",
            Self::SendOrListen => "Send,Listen",
            Self::Manage => "Manage",
        }
    }
}

/// Whether two secrets are the same, in a time that does not depend on where they differ. Lengths
/// are no secret: digests and signatures all have one length.
fn equal(ours: &[u8; 32], shown: &[u8]) -> Choice {
    #[cfg(test)]
    COMPARED.set(COMPARED.get() + ours.len());
    ours.as_slice().ct_eq(shown)
}

#[cfg(test)]
thread_local! {
    /// Bytes of secrets that were compared on this thread.
    static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The digest of a key. Digests are of equal length, so comparing them reveals
/// not even the length of a key.
#[derive(Clone)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of the text of a key.
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(..)")
    }
}

/// A key. Its text is never shown by `Debug` and has no `Display`, and keys are not compared with
/// `==`:
///
/// ```compile_fail,E0369
/// let key = |text: &str| access::Secret::new(text.to_owned());
/// assert!(key("a") == key("a"));
/// ```
#[derive(Clone)]
pub struct Secret {
    text: String,
    fingerprint: Fingerprint,
}

impl Secret {
    /// Wraps the text of a key.
    #[must_use]
    pub fn new(text: String) -> Self {
        let fingerprint = Fingerprint::of(text.as_bytes());
        Self { text, fingerprint }
    }

    pub(crate) fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Whether `candidate` is of this key. Takes as long whatever it is; an empty key fits nothing.
    pub(crate) fn matches(&self, candidate: &Fingerprint) -> bool {
        bool::from(equal(&self.fingerprint.0, &candidate.0) & self.is_usable())
    }

    /// Whether `shown` is this key, in constant time; nothing is an empty key.
    #[must_use]
    pub fn is(&self, shown: &[u8]) -> bool {
        self.matches(&Fingerprint::of(shown))
    }

    fn is_usable(&self) -> Choice {
        Choice::from(u8::from(!self.text.is_empty()))
    }

    /// Whether `signature` is the HMAC-SHA256 of `text` under this key, in constant time. The key
    /// is its text's bytes, never decoded. (docs/spec/amqp.md#2.5)
    #[must_use]
    pub fn signed(&self, text: &[u8], signature: &[u8]) -> bool {
        bool::from(equal(&self.sign(text), signature) & self.is_usable())
    }

    /// The HMAC-SHA256 of `text` under this key.
    pub(crate) fn sign(&self, text: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.text.as_bytes())
            .expect("HMAC takes keys of every length");
        mac.update(text);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A named rule with its keys.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Its name: `SharedAccessKeyName`, or the user of SASL PLAIN.
    pub name: String,
    /// Either key will do.
    pub primary: Secret,
    /// The other key, so that keys can be rotated.
    pub secondary: Option<Secret>,
    /// The rights of its holder.
    pub rights: Rights,
    /// `None` for the whole namespace, else the path of an entity.
    pub entity: Option<String>,
}

impl AccessRule {
    /// Stands in for a name that no rule has; nothing is ever accepted from it.
    pub(crate) fn of_unknown_name() -> Self {
        Self {
            name: String::new(),
            primary: Secret::new("nobody".to_owned()),
            secondary: None,
            rights: Rights::NONE,
            entity: None,
        }
    }

    /// Whether `test` holds for one of the keys. Both are always tried, so that time does not tell
    /// which.
    pub(crate) fn either_key(&self, mut test: impl FnMut(&Secret) -> bool) -> bool {
        let primary = test(&self.primary);
        let secondary = test(self.secondary.as_ref().unwrap_or(&self.primary));
        primary | secondary
    }

    /// Whether the rule holds at `path`, which is normalised and in lower case.
    pub(crate) fn applies_to(&self, path: &str) -> bool {
        scope::is_within(path, self.entity.as_deref())
    }
}

/// The rules of the namespace, from its configuration.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    /// In no particular order; names are unique per entity.
    pub rules: Vec<AccessRule>,
    /// The rights of a client without a credential.
    pub anonymous: Rights,
    /// Whether the only rule is the public one for development, so that a listener on loopback asks
    /// no request of HTTP for it.
    pub is_development: bool,
    /// The issuers of JSON Web Tokens; each name is there once.
    pub issuers: Vec<Issuer>,
    /// The rights of clients by the names in their TLS certificates.
    pub certificates: Vec<CertificateRule>,
    /// The names of this broker's hosts, in lower case, without ports: those of its certificate and
    /// of its settings. A token's resource may be one of them. (docs/spec/amqp.md#2.5)
    pub host_names: Arc<[String]>,
    /// Whose rules they are, if not the default namespace's: its hosts are the broker's too.
    pub namespace: Option<Arc<NamespaceDefinition>>,
}

impl AccessRules {
    /// Takes over the keys that `before` has of the same issuers, so that tokens stay good.
    pub fn keep_issuer_keys(&mut self, before: &Self) {
        for issuer in &mut self.issuers {
            let mut known = before.issuers.iter();
            if let Some(known) = known.find(|known| known.has_keys_of(issuer)) {
                issuer.keys = Arc::clone(&known.keys);
            }
        }
    }
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;
