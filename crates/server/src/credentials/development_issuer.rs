//! Development issuer: makes the tokens of programs on this machine. (docs/spec/admin.md#2.4)
//!
//! It is trusted while the only rule is the development key, by clients on loopback, and it gives
//! no more than that key does. Its key lasts with the data directory, and so do its tokens.

use std::fmt;
use std::sync::Arc;

use access::issuer::{DEVELOPMENT_ISSUER, SERVICE_BUS_AUDIENCE};
use access::signing_key::{InvalidKey, NoRandomNumbers, SigningKey};
use access::{AccessRules, Grant, Issuer, IssuerKeys, KeySource, Secret};
use broker::Wall;
use ring::rand::SystemRandom;
use serde_json::{Value as Json, json};

/// How long a token is good.
pub const LIFE_SECONDS: u64 = 24 * 60 * 60;
/// The role that its tokens have.
const ROLE: &str = "Azure Service Bus Data Owner";
/// The client that a token is for if the program names none.
pub const CLIENT_ID: &str = "7a11b05e-0000-4000-8000-000000000001";
/// The directory of clients, which has no name.
const TENANT_ID: &str = "00000000-0000-0000-0000-000000000000";
/// Tolerance for the times in tokens. (docs/spec/amqp.md#2.8)
const LEEWAY_MS: u64 = 60_000;

/// The issuer.
#[derive(Clone)]
pub struct DevelopmentIssuer {
    key: Arc<SigningKey>,
    /// What programs show to get a token.
    header: Secret,
}

/// A token that was made.
pub struct IssuedToken {
    pub text: String,
    /// Seconds since 1970.
    pub from: u64,
    pub expires: u64,
}

impl DevelopmentIssuer {
    /// An issuer with this key, in PKCS #8, that gives tokens to programs that show `header`.
    ///
    /// # Errors
    /// When the key cannot be used.
    pub fn new(key: &[u8], header: Secret) -> Result<Self, InvalidKey> {
        let key = SigningKey::from_pkcs8(key, &SystemRandom::new())?;
        Ok(Self {
            key: Arc::new(key),
            header,
        })
    }

    /// Whether a program may have a token.
    pub fn admits(&self, shown: &[u8]) -> bool {
        self.header.is(shown)
    }

    /// The JWK set of its key.
    pub fn jwk_set(&self) -> Json {
        self.key.jwk_set()
    }

    /// A token for a resource and a client.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn issue(
        &self,
        resource: &str,
        client_id: &str,
        now: Wall,
    ) -> Result<IssuedToken, NoRandomNumbers> {
        let from = now.0 / 1_000;
        let expires = from + LIFE_SECONDS;
        let claims = json!({
            "iss": DEVELOPMENT_ISSUER, "aud": resource, "iat": from, "nbf": from, "exp": expires,
            "oid": client_id, "sub": client_id, "appid": client_id, "tid": TENANT_ID,
            "roles": [ROLE],
        });
        let text = self.key.sign(&claims, &SystemRandom::new())?;
        Ok(IssuedToken {
            text,
            from,
            expires,
        })
    }

    /// The issuer as access rules know it.
    fn trusted(&self) -> Issuer {
        Issuer {
            name: DEVELOPMENT_ISSUER.to_owned(),
            audiences: vec![SERVICE_BUS_AUDIENCE.to_owned()],
            leeway_ms: LEEWAY_MS,
            grants: Grant::usual(),
            is_for_loopback: true,
            source: KeySource::Fixed,
            keys: Arc::new(IssuerKeys::fixed(self.key.key_set())),
        }
    }
}

impl fmt::Debug for DevelopmentIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DevelopmentIssuer(..)")
    }
}

/// Adds the issuer to rules that have the development key alone.
pub fn join(rules: &mut AccessRules, issuer: Option<&DevelopmentIssuer>) {
    if let Some(issuer) = issuer
        && rules.is_development
    {
        rules.issuers.push(issuer.trusted());
    }
}
