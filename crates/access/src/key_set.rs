//! Key set: the public keys by which an issuer's tokens are verified. [RFC 7517]
//!
//! A set comes from a JWK set as text. Keys that cannot verify a signature of the closed list of
//! algorithms are left out: symmetric keys, keys for encryption, other types and curves. So a
//! public key is never taken for the secret of an HMAC. A set may have no key: its issuer has
//! withdrawn all of them.
//!
//! Invariant: a key verifies only the algorithms of its own type, curve and `alg`.

use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use broker::Wall;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::jwt_signature;

/// The algorithms of RSA keys.
const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// Why a text is no set of keys.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// Not JSON, or without a list called `keys`.
    #[error("it is not a JWK set: {0}")]
    Malformed(String),
}

/// The digest of a public key, by which the key is known again in a later set.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    fn of(key: &DecodingKey) -> Self {
        let digest = match key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => Sha256::new()
                .chain_update((n.len() as u64).to_be_bytes())
                .chain_update(n)
                .chain_update(e),
            DecodingKeyKind::SecretOrDer(point) => Sha256::new().chain_update(point),
        };
        Self(digest.finalize().into())
    }
}

/// One key.
#[derive(Clone, Debug)]
pub(crate) struct VerificationKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(crate) key: DecodingKey,
    pub(crate) digest: KeyDigest,
}

impl VerificationKey {
    /// The key of a JWK; `None` if it cannot verify signatures.
    fn of(jwk: &Jwk) -> Option<Self> {
        if !matches!(
            jwk.common.public_key_use,
            None | Some(PublicKeyUse::Signature)
        ) {
            return None;
        }
        let of_type: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => RSA,
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => &[Algorithm::ES256],
                EllipticCurve::P384 => &[Algorithm::ES384],
                _ => return None,
            },
            _ => return None,
        };
        let named = jwk.common.key_algorithm;
        let fits = |algorithm: &Algorithm| match named {
            None => true,
            Some(named) => Algorithm::from_str(&named.to_string()).ok() == Some(*algorithm),
        };
        let algorithms: Vec<_> = of_type.iter().copied().filter(fits).collect();
        let key = DecodingKey::from_jwk(jwk).ok()?;
        let digest = KeyDigest::of(&key);
        (!algorithms.is_empty()).then(|| Self {
            id: jwk.common.key_id.clone(),
            algorithms,
            key,
            digest,
        })
    }

    /// Whether the key may verify a signature of this algorithm.
    pub(crate) fn fits(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }
}

/// The keys of one issuer.
#[derive(Clone, Debug)]
pub struct KeySet {
    keys: Vec<VerificationKey>,
}

impl KeySet {
    /// Reads a JWK set.
    ///
    /// # Errors
    /// When it is not one.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<serde_json::Value>,
        }
        jwt_signature::install();
        let document: Document =
            serde_json::from_slice(text).map_err(|error| Error::Malformed(error.to_string()))?;
        // One key that is not understood does not spoil the others. [RFC 7517 5]
        let jwks = document.keys.into_iter();
        let jwks = jwks.filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let keys = jwks.filter_map(|jwk| VerificationKey::of(&jwk)).collect();
        Ok(Self { keys })
    }

    /// Whether it has no key that can verify an accepted algorithm.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn has(&self, key: KeyDigest) -> bool {
        self.keys.iter().any(|known| known.digest == key)
    }

    /// The keys that a token may be signed by: those of its key id, or the only one.
    pub(crate) fn candidates(&self, id: Option<&str>) -> Vec<&VerificationKey> {
        match id {
            Some(id) => {
                let keys = self.keys.iter();
                keys.filter(|key| key.id.as_deref() == Some(id)).collect()
            }
            None if self.keys.len() == 1 => self.keys.iter().collect(),
            None => Vec::new(),
        }
    }
}

/// What is known of an issuer's keys.
#[derive(Clone, Debug)]
struct State {
    keys: Option<Arc<KeySet>>,
    /// An unknown key id is a reason to load the keys again from then on.
    reload_from: Wall,
}

/// The keys of an issuer, as far as they are loaded. All snapshots of the access rules share them,
/// and a load replaces them here.
#[derive(Debug)]
pub struct IssuerKeys(RwLock<State>);

/// What is found for a token's key id.
pub(crate) enum Lookup {
    /// The keys were never loaded, or should be loaded again since this one is unknown.
    NotLoaded,
    /// Possibly without a key of that id.
    Loaded(Arc<KeySet>),
}

impl IssuerKeys {
    /// Keys that are yet to be loaded.
    #[must_use]
    pub fn missing() -> Self {
        Self::with(None, Wall(0))
    }

    /// Keys that never change.
    #[must_use]
    pub fn fixed(keys: KeySet) -> Self {
        Self::with(Some(Arc::new(keys)), Wall(u64::MAX))
    }

    fn with(keys: Option<Arc<KeySet>>, reload_from: Wall) -> Self {
        Self(RwLock::new(State { keys, reload_from }))
    }

    /// Replaces the keys. An unknown key id causes no other load before `reload_from`. Returns
    /// whether a key is withdrawn: rights that rest on its tokens are gone.
    pub fn replace(&self, keys: KeySet, reload_from: Wall) -> bool {
        let keys = Arc::new(keys);
        let new = State {
            keys: Some(Arc::clone(&keys)),
            reload_from,
        };
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *state, new);
        let mut known = old.keys.iter().flat_map(|old| &old.keys);
        known.any(|key| !keys.has(key.digest))
    }

    /// Whether tokens that this key has signed are good.
    pub(crate) fn trusts(&self, key: KeyDigest) -> bool {
        self.read().keys.is_some_and(|keys| keys.has(key))
    }

    /// Keeps the keys after they could not be loaded.
    pub fn keep(&self, reload_from: Wall) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        state.reload_from = reload_from;
    }

    /// Whether there are keys.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.read().keys.is_some()
    }

    pub(crate) fn look_up(&self, id: Option<&str>, now: Wall) -> Lookup {
        let State { keys, reload_from } = self.read();
        match keys {
            None => Lookup::NotLoaded,
            Some(keys) if keys.candidates(id).is_empty() && now >= reload_from => Lookup::NotLoaded,
            Some(keys) => Lookup::Loaded(keys),
        }
    }

    fn read(&self) -> State {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(
        clippy::needless_pass_by_value,
        reason = "what is expected is written in place"
    )]
    fn check(text: &str, expected: Result<usize, Error>) {
        let found = KeySet::parse(text.as_bytes()).map(|set| set.keys.len());
        assert_eq!(found, expected, "{text}");
    }

    const RSA_KEY: &str = r#"{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB"}"#;

    #[test]
    fn a_text_that_is_no_set_of_keys_is_refused() {
        for text in ["", "{}", "[]", "<html>", r#"{"keys":{}}"#] {
            let error = KeySet::parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, Error::Malformed(_)), "{text}: {error}");
        }
    }

    #[test]
    fn keys_that_verify_nothing_here_are_left_out() {
        let useless = [
            r#"{"kty":"oct","kid":"a","k":"c2VjcmV0"}"#,
            r#"{"kty":"RSA","kid":"a","use":"enc","n":"AQAB","e":"AQAB"}"#,
            r#"{"kty":"RSA","kid":"a","alg":"HS256","n":"AQAB","e":"AQAB"}"#,
            r#"{"kty":"EC","crv":"P-521","x":"AQAB","y":"AQAB"}"#,
            r#"{"kty":"OKP","crv":"Ed25519","x":"AQAB"}"#,
            r#"{"kty":"from the future"}"#,
            "7",
        ];
        for key in useless {
            check(&format!(r#"{{"keys":[{key}]}}"#), Ok(0));
            check(&format!(r#"{{"keys":[{key},{RSA_KEY}]}}"#), Ok(1));
        }
        check(r#"{"keys":[]}"#, Ok(0));
    }

    #[test]
    fn a_token_without_a_key_id_is_of_the_only_key() {
        let set = |keys: &str| KeySet::parse(format!(r#"{{"keys":[{keys}]}}"#).as_bytes()).unwrap();
        let one = set(RSA_KEY);
        assert_eq!(one.candidates(None).len(), 1);
        assert_eq!(one.candidates(Some("a")).len(), 1);
        assert_eq!(one.candidates(Some("b")).len(), 0);
        let two = set(&format!("{RSA_KEY},{RSA_KEY}"));
        assert_eq!(two.candidates(None).len(), 0);
        assert_eq!(two.candidates(Some("a")).len(), 2);
    }

    #[test]
    fn an_unknown_key_id_asks_for_another_load_when_one_is_due() {
        let set = || KeySet::parse(format!(r#"{{"keys":[{RSA_KEY}]}}"#).as_bytes()).unwrap();
        let keys = IssuerKeys::missing();
        assert!(matches!(
            keys.look_up(Some("a"), Wall(5)),
            Lookup::NotLoaded
        ));
        keys.replace(set(), Wall(10));
        assert!(matches!(
            keys.look_up(Some("a"), Wall(50)),
            Lookup::Loaded(_)
        ));
        assert!(matches!(
            keys.look_up(Some("b"), Wall(9)),
            Lookup::Loaded(_)
        ));
        assert!(matches!(
            keys.look_up(Some("b"), Wall(10)),
            Lookup::NotLoaded
        ));
        keys.keep(Wall(20));
        assert!(matches!(
            keys.look_up(Some("b"), Wall(10)),
            Lookup::Loaded(_)
        ));
    }

    #[test]
    fn a_set_without_a_key_takes_the_known_ones_away() {
        let set = |keys: &str| KeySet::parse(format!(r#"{{"keys":[{keys}]}}"#).as_bytes()).unwrap();
        let other = r#"{"kty":"RSA","kid":"a","n":"AQAC","e":"AQAB"}"#;
        let same = r#"{"kty":"RSA","kid":"b","n":"AQAB","e":"AQAB"}"#;
        let keys = IssuerKeys::missing();
        let key = set(RSA_KEY).keys[0].digest;
        assert!(!keys.trusts(key), "not loaded");
        assert!(!keys.replace(set(RSA_KEY), Wall(10)));
        assert!(keys.trusts(key));
        assert!(!keys.replace(set(&format!("{same},{other}")), Wall(10)));
        assert!(keys.trusts(key), "another id, and the same key");
        assert!(keys.replace(set(other), Wall(10)));
        assert!(!keys.trusts(key), "the same id, and another key");
        assert!(keys.replace(set(""), Wall(10)));
        assert!(matches!(
            keys.look_up(Some("a"), Wall(5)),
            Lookup::Loaded(_)
        ));
        assert!(keys.is_loaded());
    }
}
