//! JWT: verifies a JSON Web Token of a trusted issuer. (docs/spec/amqp.md#2.8)
//!
//! The checks are made in the contract's order, so the first failure is the answer. The library
//! verifies the signature and that the header's algorithm fits the key. The times are compared
//! here, because the library reads the clock and here time is an argument.
//!
//! Invariant: nothing of a token but the name of its issuer is used before its signature is good.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use broker::Wall;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};

use crate::issuer::{Identity, Issuer, Locality};
use crate::jwt_claims::{self, Claims};
use crate::jwt_signature;
use crate::key_set::{KeyDigest, KeySet, Lookup};

/// The user of SASL PLAIN whose password is a token. (docs/spec/amqp.md#1.3)
pub const SASL_USER: &str = "$jwt";
/// Whether a text has the form of a token, in which no key is made: three parts of base64url, of
/// which the first is an object. (docs/spec/rabbitmq.md#2)
#[must_use]
pub fn has_form(text: &[u8]) -> bool {
    let is_base64url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let parts: Vec<_> = text.split(|byte| *byte == b'.').collect();
    let are_parts = parts.iter().all(|part| part.iter().all(is_base64url));
    text.starts_with(b"eyJ") && are_parts && parts.len() == 3
}

/// Longest token that is looked at.
const MAX_TOKEN: usize = 32 << 10;

/// How long a token counts at most, in milliseconds; then it has to be shown again.
const MAX_LIFE_MS: u64 = 24 * 60 * 60 * 1_000;

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// Not three parts, no JSON, or an algorithm that is not accepted or does not fit the key.
    #[error("MalformedToken: The token is malformed.")]
    Malformed,
    /// Its issuer is not one of the trusted ones.
    #[error("IssuerNotFound: The token's issuer is not trusted.")]
    Issuer,
    /// No key of its issuer has signed it.
    #[error("InvalidSignature: The token has an invalid signature.")]
    Signature,
    /// It does not say when it ends.
    #[error("InvalidToken: The token has no expiration time.")]
    NoExpiry,
    /// Its time is over.
    #[error("ExpiredToken: The token is expired.")]
    Expired,
    /// Its time has not come.
    #[error("InvalidToken: The token is not valid yet.")]
    NotYet,
    /// It is for another service.
    #[error("InvalidAudience: The token has an invalid audience.")]
    Audience,
    /// The keys of its issuer are not there, or have to be loaded again. It may be good later.
    #[error("The keys of the token's issuer are not loaded. Please try again.")]
    KeysNotLoaded,
}

impl Error {
    /// The sub-code in answers of management. (docs/spec/admin.md#8.3)
    #[must_use]
    pub const fn sub_code(self) -> u32 {
        match self {
            Self::NotYet => 40_100,
            Self::Signature => 40_103,
            Self::Audience => 40_104,
            Self::Malformed => 40_105,
            Self::Expired => 40_106,
            Self::NoExpiry => 40_108,
            Self::Issuer => 40_109,
            Self::KeysNotLoaded => 50_002,
        }
    }
}

/// The identity in a good token, and until when it counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VerifiedJwt {
    /// Its claims.
    pub identity: Identity,
    /// Its end and the tolerance of its issuer, at most a day from now.
    pub expires: Wall,
}

/// The part of a header that is used here.
struct Head {
    algorithm: Algorithm,
    key_id: Option<String>,
}

/// Checks `token` for a client there.
///
/// # Errors
/// When it is not accepted.
pub fn verify(
    token: &str,
    issuers: &[Issuer],
    locality: Locality,
    now: Wall,
) -> Result<VerifiedJwt, Error> {
    let head = read_head(token)?;
    let name = jwt_claims::issuer(token).ok_or(Error::Malformed)?;
    let mut issuers = issuers.iter().filter(|issuer| issuer.serves(locality));
    let issuer = issuers.find(|issuer| name.as_ref() == Some(&issuer.name));
    let issuer = issuer.ok_or(Error::Issuer)?;
    let keys = match issuer.keys.look_up(head.key_id.as_deref(), now) {
        Lookup::NotLoaded => return Err(Error::KeysNotLoaded),
        Lookup::Loaded(keys) => keys,
    };
    let (claims, key) = verify_signature(token, &head, &keys)?;
    let expires = check_times(&claims, issuer.leeway_ms, now)?;
    check_audience(&claims, &issuer.audiences)?;
    Ok(VerifiedJwt {
        expires,
        identity: claims.into_identity(key),
    })
}

/// Three parts in base64url, of which the first names an accepted algorithm. Extensions that must
/// be understood are not. [RFC 7515 4.1.11]
fn read_head(token: &str) -> Result<Head, Error> {
    if token.len() > MAX_TOKEN {
        return Err(Error::Malformed);
    }
    let parts: Vec<_> = token.split('.').collect();
    let is_base64 = |part: &&str| URL_SAFE_NO_PAD.decode(part).is_ok();
    if parts.len() != 3 || !parts.iter().all(is_base64) {
        return Err(Error::Malformed);
    }
    let header = decode_header(token).map_err(|_| Error::Malformed)?;
    if header.crit.is_some() || !jwt_signature::is_accepted(header.alg) {
        return Err(Error::Malformed);
    }
    Ok(Head {
        algorithm: header.alg,
        key_id: header.kid,
    })
}

/// The claims and the key of the set that has signed them.
fn verify_signature(token: &str, head: &Head, keys: &KeySet) -> Result<(Claims, KeyDigest), Error> {
    let candidates = keys.candidates(head.key_id.as_deref());
    if candidates.is_empty() {
        return Err(Error::Signature);
    }
    let fitting = candidates
        .into_iter()
        .filter(|key| key.fits(head.algorithm));
    let mut error = Error::Malformed;
    for key in fitting {
        match decode::<Claims>(token, &key.key, &signature_alone(head.algorithm)) {
            Ok(verified) => return Ok((verified.claims, key.digest)),
            Err(_) => error = Error::Signature,
        }
    }
    Err(error)
}

/// The library checks the signature and the algorithm, not the claims.
fn signature_alone(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

/// Until when the token counts.
fn check_times(claims: &Claims, leeway_ms: u64, now: Wall) -> Result<Wall, Error> {
    let expires = claims.expires.ok_or(Error::NoExpiry)?;
    let expires = Wall(expires.0.saturating_add(leeway_ms));
    if now >= expires {
        return Err(Error::Expired);
    }
    match claims.not_before {
        Some(start) if now.0.saturating_add(leeway_ms) < start.0 => Err(Error::NotYet),
        _ => Ok(expires.min(Wall(now.0.saturating_add(MAX_LIFE_MS)))),
    }
}

fn check_audience(claims: &Claims, accepted: &[String]) -> Result<(), Error> {
    let bare = |audience: &str| audience.trim_end_matches('/').to_owned();
    let mut audiences = claims.audiences.iter().map(|audience| bare(audience));
    let is_accepted = |audience: String| accepted.iter().any(|name| bare(name) == audience);
    match audiences.any(is_accepted) {
        true => Ok(()),
        false => Err(Error::Audience),
    }
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
