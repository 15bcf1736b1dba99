//! Signing key: signs the tokens of the development issuer. (docs/spec/admin.md#2.4)
//!
//! ES256 with a key in PKCS #8. Random numbers are an argument.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SecureRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::key_set::KeySet;

/// Bytes of the digest of the public key that name it.
const ID_BYTES: usize = 16;

/// The key cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("it is no ECDSA key of the curve P-256 in PKCS #8")]
pub struct InvalidKey;

/// The system has no random numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomNumbers;

/// A key that signs.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
}

impl SigningKey {
    /// The key of a PKCS #8 document.
    ///
    /// # Errors
    /// When it is not one, or is of another type.
    pub fn from_pkcs8(document: &[u8], random: &dyn SecureRandom) -> Result<Self, InvalidKey> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, random);
        let pair = pair.map_err(|_| InvalidKey)?;
        let digest = Sha256::digest(pair.public_key());
        let id = URL_SAFE_NO_PAD.encode(&digest[..ID_BYTES]);
        Ok(Self { pair, id })
    }

    /// The JWK set that verifies its signatures.
    #[must_use]
    pub fn jwk_set(&self) -> Json {
        // One byte says that both coordinates follow whole.
        let point = self.pair.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at(point.len() / 2);
        json!({"keys": [{
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        }]})
    }

    /// The same, ready to verify.
    ///
    /// # Panics
    /// Never: the set is well-formed.
    #[must_use]
    pub fn key_set(&self) -> KeySet {
        let text = self.jwk_set().to_string();
        KeySet::parse(text.as_bytes()).expect("a set with an ES256 key")
    }

    /// A JSON Web Token with these claims.
    ///
    /// # Errors
    /// When there are no random numbers.
    pub fn sign(
        &self,
        claims: &Json,
        random: &dyn SecureRandom,
    ) -> Result<String, NoRandomNumbers> {
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": self.id});
        let encoded = |part: &Json| URL_SAFE_NO_PAD.encode(part.to_string());
        let message = format!("{}.{}", encoded(&header), encoded(claims));
        let signature = self.pair.sign(random, message.as_bytes());
        let signature = signature.map_err(|_| NoRandomNumbers)?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
