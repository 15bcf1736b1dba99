//! Token: verifies a shared access signature. (docs/spec/amqp.md#2.5)
//!
//! The signature is checked over the resource text exactly as it was received, since encoders
//! differ; a few re-encodings are tried too. Every candidate and both keys are always tried, and an
//! unknown key name costs as much as a known one, so the time reveals nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::Wall;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::access::{Access, Credential};
use crate::rights::Secret;
use crate::scope;

/// What a shared access signature begins with.
pub const PREFIX: &str = "SharedAccessSignature ";
/// Longest token that is looked at: the work of checking grows with its length.
const MAX_TOKEN: usize = 8 << 10;

/// The characters that `encodeURIComponent` does not escape.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The credential of a valid token, and its expiry.
#[derive(Clone, Debug)]
pub struct VerifiedToken {
    /// Of the key or the issuer that signed it.
    pub credential: Credential,
    /// From then on it gives no right.
    pub expires: Wall,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// A field is missing, repeated or not readable.
    #[error("MalformedToken: The token is not a shared access signature with sr, sig, se and skn.")]
    Malformed,
    /// No rule of that name at the audience or above it has that key.
    #[error("InvalidSignature: The token has an invalid signature.")]
    Signature,
    /// Its time is over.
    #[error("ExpiredToken: The token is expired. Expiration time: '{}'.", date(*.0))]
    Expired(Wall),
    /// It was signed for another path.
    #[error("InvalidAudience: The token's resource does not cover the audience.")]
    Audience,
}

impl Error {
    /// The sub-code in answers of management. (docs/spec/admin.md#8.3)
    #[must_use]
    pub const fn sub_code(self) -> u32 {
        match self {
            Self::Signature => 40_103,
            Self::Audience => 40_104,
            Self::Malformed => 40_105,
            Self::Expired(_) => 40_106,
        }
    }
}

/// A time to the second, at most the last that a date can say.
fn date(at: Wall) -> String {
    let last = Timestamp::MAX.as_second();
    let seconds = i64::try_from(at.0 / 1_000).unwrap_or(last).min(last);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// Whether `text` looks like a shared access signature.
#[must_use]
pub fn is_signature(text: &str) -> bool {
    text.get(..PREFIX.len())
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

/// A shared access signature for `resource` by the key of the rule called `rule`, as a client makes
/// it.
#[must_use]
pub fn sign(resource: &str, rule: &str, key: &Secret, expires: Wall) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, COMPONENT).to_string();
    let (resource, expiry) = (encoded(resource), expires.0 / 1_000);
    let signature = STANDARD.encode(key.sign(format!("{resource}\n{expiry}").as_bytes()));
    let (signature, rule) = (encoded(&signature), encoded(rule));
    format!("{PREFIX}sr={resource}&sig={signature}&se={expiry}&skn={rule}")
}

/// Checks `token` for `audience`, a [scope](scope::of_uri).
///
/// # Errors
/// When it is not accepted.
pub fn verify(
    token: &str,
    audience: &str,
    access: &Access,
    now: Wall,
) -> Result<VerifiedToken, Error> {
    let fields = Fields::split(token).ok_or(Error::Malformed)?;
    let expires = fields.expires().ok_or(Error::Malformed)?;
    let credential = signer(&fields, audience, access).ok_or(Error::Signature)?;
    if expires <= now {
        return Err(Error::Expired(expires));
    }
    let resource = scope::of_resource(&decoded(fields.resource), |name| access.is_own_host(name));
    if !scope::covers(&resource, audience) {
        return Err(Error::Audience);
    }
    Ok(VerifiedToken {
        credential,
        expires,
    })
}

/// The name of the key that a shared access signature says it is made with.
#[must_use]
pub fn key_name(token: &str) -> Option<String> {
    Fields::split(token).map(|fields| decoded(fields.key_name))
}

/// What a shared access signature says it is for.
#[must_use]
pub fn resource(token: &str) -> Option<String> {
    Fields::split(token).map(|fields| decoded(fields.resource))
}

/// A token's parts, still encoded.
struct Fields<'a> {
    resource: &'a str,
    signature: &'a str,
    expiry: &'a str,
    key_name: &'a str,
}

impl<'a> Fields<'a> {
    /// Fields come in any order; one that is missing or repeated makes the token malformed.
    fn split(token: &'a str) -> Option<Self> {
        let (prefix, rest) = token.split_at_checked(PREFIX.len())?;
        if token.len() > MAX_TOKEN || !prefix.eq_ignore_ascii_case(PREFIX) {
            return None;
        }
        let [mut sr, mut sig, mut se, mut skn] = [None; 4];
        for field in rest.split('&') {
            let (name, value) = field.split_once('=')?;
            let slot = match name.trim().to_ascii_lowercase().as_str() {
                "sr" => &mut sr,
                "sig" => &mut sig,
                "se" => &mut se,
                "skn" => &mut skn,
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return None;
            }
        }
        Some(Self {
            resource: sr?,
            signature: sig?,
            expiry: se?,
            key_name: skn?,
        })
    }

    /// Seconds in the token, milliseconds here; too far ahead is for ever.
    fn expires(&self) -> Option<Wall> {
        let seconds: u64 = self.expiry.trim().parse().ok()?;
        Some(Wall(seconds.saturating_mul(1_000)))
    }
}

/// The credential of the key that signed the token, by a rule at the audience or above it. A name
/// with a plus sign may be one with a space.
fn signer(fields: &Fields<'_>, audience: &str, access: &Access) -> Option<Credential> {
    let signature = STANDARD
        .decode(percent_decode_str(fields.signature).collect::<Vec<u8>>())
        .unwrap_or_default();
    let texts = signed_texts(fields);
    let signs = |key: &Secret| {
        texts.iter().fold(false, |signed, text| {
            signed | key.signed(text.as_bytes(), &signature)
        })
    };
    let name = decoded(fields.key_name);
    let spaced = decoded(&fields.key_name.replace('+', " "));
    let found = access.signer(&name, audience, signs);
    if spaced == name {
        return found;
    }
    found.or(access.signer(&spaced, audience, signs))
}

/// The texts that may have been signed: the resource as received, then as other encoders write
/// it.
fn signed_texts(fields: &Fields<'_>) -> [String; 4] {
    let encoded = utf8_percent_encode(&decoded(fields.resource), COMPONENT).to_string();
    [
        fields.resource.to_owned(),
        recase(fields.resource, str::make_ascii_lowercase),
        recase(fields.resource, str::make_ascii_uppercase),
        encoded,
    ]
    .map(|resource| format!("{resource}\n{}", fields.expiry))
}

/// `text` with the hex digits of its escapes in another case.
fn recase(text: &str, case: impl Fn(&mut str)) -> String {
    let mut parts = text.split('%');
    let mut recased = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut part = part.to_owned();
        if let Some(digits) = part.get_mut(..2) {
            case(digits);
        }
        recased.push('%');
        recased.push_str(&part);
    }
    recased
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
