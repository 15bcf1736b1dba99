//! `[[auth.issuers]]`: whose JSON Web Tokens are accepted, and which rights they give.
//! (docs/spec/amqp.md#2.8)

use std::path::PathBuf;

use entity::{EntityPath, Millis};
use serde::Deserialize;

use super::Error;
use super::choice::Right;
use super::railbus_toml::RailbusToml;
use super::toml_file::TomlFile;

/// One of `[[auth.issuers]]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AuthIssuer {
    /// The text of the claim `iss`.
    pub issuer: String,
    /// Accepted values of the claim `aud`.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// The URL of the discovery document, if it is not the usual one.
    pub discovery: Option<String>,
    /// The URL of the JWK set.
    pub jwks_url: Option<String>,
    /// A file with the JWK set, relative to this file.
    pub jwks_file: Option<PathBuf>,
    /// Tolerance for the times in tokens.
    pub leeway: Option<Millis<0, 600_000>>,
    #[serde(default)]
    pub grants: Vec<AuthGrant>,
}

/// One of `[[auth.issuers.grants]]`: rights for tokens with one claim.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AuthGrant {
    pub role: Option<String>,
    pub scope: Option<String>,
    pub group: Option<String>,
    pub subject: Option<String>,
    pub rights: Vec<Right>,
    /// The queue or topic it holds for; the whole namespace otherwise.
    pub entity: Option<EntityPath>,
}

impl AuthGrant {
    /// The values that are there.
    pub fn claims(&self) -> impl Iterator<Item = &str> {
        let claims = [&self.role, &self.scope, &self.group, &self.subject];
        claims.into_iter().flatten().map(String::as_str)
    }
}

/// Checks what no type says.
pub fn check(file: &TomlFile<'_, RailbusToml>) -> Result<(), Error> {
    let issuers = &file.value.auth.issuers;
    for (index, issuer) in issuers.iter().enumerate() {
        let refuse = |key: &str, message: String| {
            Err(file.error(format!("auth.issuers[{index}].{key}"), message))
        };
        if issuer.issuer.is_empty() {
            return refuse("issuer", "the name of an issuer is not empty".to_owned());
        }
        if let Some(first) = issuers[..index]
            .iter()
            .position(|other| other.issuer == issuer.issuer)
        {
            let name = &issuer.issuer;
            let message = format!("the issuer `{name}` is there already, as auth.issuers[{first}]");
            return refuse("issuer", message);
        }
        if let Err((key, message)) = check_source(issuer) {
            return refuse(key, message);
        }
        for (grant, number) in issuer.grants.iter().zip(0..) {
            if grant.rights.is_empty() {
                let message = "a grant has at least one right".to_owned();
                return refuse(&format!("grants[{number}].rights"), message);
            }
            let mut claims = grant.claims();
            let is_one = claims.next().is_some_and(|claim| !claim.is_empty());
            if !is_one || claims.next().is_some() {
                let message = "a grant has exactly one of role, scope, group and subject";
                return refuse(&format!("grants[{number}]"), message.to_owned());
            }
        }
    }
    Ok(())
}

/// Keys come from one place, and over the network only by TLS.
fn check_source(issuer: &AuthIssuer) -> Result<(), (&'static str, String)> {
    let file = issuer.jwks_file.as_ref().map(|_| "jwks-file");
    let urls = [
        ("discovery", &issuer.discovery),
        ("jwks-url", &issuer.jwks_url),
    ];
    let given = urls.iter().filter(|(_, url)| url.is_some());
    let mut given = given.map(|(key, _)| *key).chain(file);
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        let message = format!("keys come from one place, and {first} is there too");
        return Err((second, message));
    }
    for (key, url) in urls {
        let Some(url) = url else { continue };
        if !server::is_fetchable(url) {
            let message = format!("`{url}` is not a URL of https, nor one of http on this machine");
            return Err((key, message));
        }
    }
    let by_name = issuer.discovery.is_none() && issuer.jwks_url.is_none() && file.is_none();
    if by_name && !server::is_fetchable(&issuer.issuer) {
        let message = format!(
            "`{}` is not a URL of https, so the keys need discovery, jwks-url or jwks-file",
            issuer.issuer
        );
        return Err(("issuer", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::read_railbus_toml;

    fn check(text: &str, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("railbus.toml");
        std::fs::write(&file, text).unwrap();
        let result = read_railbus_toml(&file).map(drop);
        let found = result.map_or_else(|error| error.to_string(), |()| String::new());
        let found = found.replace(&format!("{}/", directory.path().display()), "");
        assert_eq!(found, expected, "{text}");
    }

    const ISSUER: &str = "[[auth.issuers]]\nissuer = 'https://issuer.example'\n";

    #[test]
    fn an_issuer_needs_no_more_than_its_name() {
        check(ISSUER, "");
        check(
            &format!(
                "{ISSUER}audiences = ['a']\nleeway = 'PT0S'\njwks-url = 'https://issuer.example/keys'\n\
                 [[auth.issuers.grants]]\nrole = 'worker'\nrights = ['send', 'listen']\nentity = 'orders'\n\
                 [[auth.issuers.grants]]\nsubject = 'me'\nrights = ['manage']\n"
            ),
            "",
        );
        check(
            "[[auth.issuers]]\nissuer = 'any name'\njwks-file = 'keys.json'\n",
            "",
        );
    }

    #[test]
    fn an_issuer_that_cannot_be_used_is_refused_with_line_and_path() {
        check(
            "[[auth.issuers]]\nissuer = 'any name'\n",
            "railbus.toml:2: auth.issuers[0].issuer: `any name` is not a URL of https, so the keys need discovery, \
             jwks-url or jwks-file",
        );
        check(
            &format!("{ISSUER}{ISSUER}"),
            "railbus.toml:4: auth.issuers[1].issuer: the issuer `https://issuer.example` is there already, as \
             auth.issuers[0]",
        );
        check(
            &format!("{ISSUER}jwks-url = 'http://issuer.example/keys'\n"),
            "railbus.toml:3: auth.issuers[0].jwks-url: `http://issuer.example/keys` is not a URL of https, nor one \
             of http on this machine",
        );
        check(
            &format!("{ISSUER}discovery = 'https://a'\njwks-file = 'b'\n"),
            "railbus.toml:4: auth.issuers[0].jwks-file: keys come from one place, and discovery is there too",
        );
        check(
            &format!("{ISSUER}leeway = 'PT1H'\n"),
            "railbus.toml:3: auth.issuers[0].leeway: PT1H is above the maximum of PT10M",
        );
    }

    #[test]
    fn a_grant_has_one_claim_and_some_right() {
        let grant = |text: &str| format!("{ISSUER}[[auth.issuers.grants]]\n{text}");
        check(
            &grant("role = 'a'\nrights = []\n"),
            "railbus.toml:5: auth.issuers[0].grants[0].rights: a grant has at least one right",
        );
        for text in [
            "rights = ['send']\n",
            "role = ''\nrights = ['send']\n",
            "role = 'a'\nscope = 'b'\nrights = ['send']\n",
        ] {
            check(
                &grant(text),
                "railbus.toml:3: auth.issuers[0].grants[0]: a grant has exactly one of role, scope, group and subject",
            );
        }
    }
}
