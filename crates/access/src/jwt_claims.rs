//! JWT claims: the part of a token's payload that is used here.
//!
//! Claims that several issuers write in different ways are read in each of them: one value or a
//! list, and scopes as `scp` or `scope`. A claim of another type makes the token malformed, so a
//! time that is no number is never taken for a time that is not there.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use broker::Wall;
use serde::{Deserialize, Deserializer};

use crate::issuer::Identity;
use crate::key_set::KeyDigest;

/// The claims. A token is a credential, so they have no `Debug`.
#[derive(Deserialize)]
pub(crate) struct Claims {
    #[serde(rename = "iss")]
    issuer: Option<String>,
    #[serde(rename = "sub")]
    subject: Option<String>,
    #[serde(rename = "aud", default, deserialize_with = "one_or_more")]
    pub(crate) audiences: Vec<String>,
    #[serde(rename = "exp", default, deserialize_with = "time")]
    pub(crate) expires: Option<Wall>,
    #[serde(rename = "nbf", default, deserialize_with = "time")]
    pub(crate) not_before: Option<Wall>,
    #[serde(default, deserialize_with = "one_or_more")]
    roles: Vec<String>,
    #[serde(default, deserialize_with = "one_or_more")]
    groups: Vec<String>,
    #[serde(rename = "scp", default, deserialize_with = "one_or_more")]
    scopes_of_azure: Vec<String>,
    #[serde(rename = "scope", default, deserialize_with = "one_or_more")]
    scopes: Vec<String>,
}

impl Claims {
    /// The claims that rights rest on, signed by this key.
    pub(crate) fn into_identity(self, key: KeyDigest) -> Identity {
        let scopes = self.scopes_of_azure.iter().chain(&self.scopes);
        let scopes = scopes.flat_map(|scopes| scopes.split_ascii_whitespace());
        Identity {
            scopes: scopes.map(str::to_owned).collect(),
            issuer: self.issuer.unwrap_or_default(),
            subject: self.subject,
            roles: self.roles,
            groups: self.groups,
            key,
        }
    }
}

/// The issuer that a token names, which decides by whose keys it is verified. `None` if the payload
/// is not an object with readable claims.
pub(crate) fn issuer(token: &str) -> Option<Option<String>> {
    let payload = token.split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Some(claims.issuer)
}

/// A text, a list of texts, or null.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Values {
        One(String),
        More(Vec<String>),
    }
    Ok(match Option::<Values>::deserialize(deserializer)? {
        None => Vec::new(),
        Some(Values::One(value)) => vec![value],
        Some(Values::More(values)) => values,
    })
}

/// Seconds since 1970, possibly with a fraction; a time before is that. [RFC 7519 2]
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Wall>, D::Error> {
    let seconds = Option::<f64>::deserialize(deserializer)?;
    // The cast saturates.
    Ok(seconds.map(|seconds| Wall((seconds * 1_000.0) as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: &str) -> Option<Claims> {
        serde_json::from_str(payload).ok()
    }

    #[test]
    fn roles_scopes_and_groups_come_in_several_forms() {
        for payload in [
            r#"{"iss":"i","roles":["a","b"],"scp":"c d","groups":["e"]}"#,
            r#"{"iss":"i","roles":["a","b"],"scope":"c  d","groups":"e"}"#,
            r#"{"iss":"i","roles":["a","b"],"scp":["c","d"],"groups":["e"],"other":{}}"#,
            r#"{"iss":"i","roles":["a","b"],"scp":"c","scope":"d","groups":["e"],"aud":null}"#,
        ] {
            let identity = read(payload).unwrap().into_identity(KeyDigest::default());
            assert_eq!(identity.issuer, "i");
            assert_eq!(identity.roles, ["a", "b"], "{payload}");
            assert_eq!(identity.scopes, ["c", "d"], "{payload}");
            assert_eq!(identity.groups, ["e"], "{payload}");
        }
        let one = read(r#"{"roles":"a b"}"#)
            .unwrap()
            .into_identity(KeyDigest::default());
        assert_eq!(one.roles, ["a b"]);
    }

    #[test]
    fn a_time_is_a_number() {
        let expires = |text: &str| {
            let claims = read(&format!(r#"{{"exp":{text}}}"#));
            claims.map(|claims| claims.expires.map(|time| time.0))
        };
        assert_eq!(expires("1700000000"), Some(Some(1_700_000_000_000)));
        assert_eq!(expires("1.5"), Some(Some(1_500)));
        assert_eq!(expires("-5"), Some(Some(0)));
        assert_eq!(expires("1e300"), Some(Some(u64::MAX)));
        assert_eq!(expires("null"), Some(None));
        assert_eq!(expires("\"1700000000\""), None);
        assert_eq!(expires("{}"), None);
        assert_eq!(expires("[1]"), None);
    }
}
