//! Authorization: checks the Authorization header of an HTTP request. (docs/spec/admin.md#2.1)
//!
//! The header holds a shared access signature, as over `$cbs`, Bearer with a JSON Web Token, or
//! Basic with the name and key of a rule. Each failure is a reason for a 401, and no reason names a
//! rule or a key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::Wall;

use crate::access::{Access, Credential};
use crate::issuer::Locality;
use crate::operation::Operation;
use crate::rights::RequiredRight;
use crate::{jwt, scope, token};

const BASIC: &str = "Basic ";
const BEARER: &str = "Bearer ";

/// Why a request is not authorized.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unauthorized {
    /// There is no header.
    #[error(
        "MissingToken: The request needs the {} right: an Authorization header with a shared access signature, \
         or Basic with a rule's name and key.", .0.claim()
    )]
    Missing(RequiredRight),
    /// Another scheme, or not decodable.
    #[error(
        "MalformedToken: The Authorization header is neither a shared access signature nor Bearer nor Basic."
    )]
    Malformed,
    /// No rule of that name has that key.
    #[error("InvalidSignature: The rule's name or its key is wrong.")]
    Key,
    /// A signature that is not accepted.
    #[error("{0}")]
    Token(#[from] token::Error),
    /// A JSON Web Token that is not accepted.
    #[error("{0}")]
    Jwt(#[from] jwt::Error),
    /// A key of more than one namespace, where nothing else chooses one.
    #[error(
        "AmbiguousNamespace: More than one namespace has a key of that name; connect by the host name of one."
    )]
    SeveralNamespaces,
    /// Known, but not allowed.
    #[error("UnauthorizedAccess: The {} claim is required.", .0.claim())]
    Claim(RequiredRight),
}

impl Unauthorized {
    /// The sub-code of the reason in answers of management. (docs/spec/admin.md#2.1, #8.3)
    #[must_use]
    pub const fn sub_code(&self) -> u32 {
        match self {
            Self::Claim(_) | Self::SeveralNamespaces => 40_100,
            Self::Missing(_) => 40_102,
            Self::Key => 40_103,
            Self::Malformed => 40_105,
            Self::Token(error) => error.sub_code(),
            Self::Jwt(error) => error.sub_code(),
        }
    }

    /// Whether the same request may be allowed soon.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        *self == Self::Jwt(jwt::Error::KeysNotLoaded)
    }
}

/// Whether a sub-code says that a key may have been guessed: a credential was shown, and no key has
/// made it. What is expired or meant for another audience was made by a right key.
#[must_use]
pub const fn is_guess(sub_code: u32) -> bool {
    matches!(sub_code, 40_103 | 40_105)
}

/// The name of the key that a header's value shows, if it shows one.
#[must_use]
pub fn key_name(authorization: &str) -> Option<String> {
    if let Some(credentials) = behind(BASIC, authorization) {
        let decoded = STANDARD.decode(credentials.trim()).ok()?;
        let name = decoded.split(|byte| *byte == b':').next()?;
        return String::from_utf8(name.to_vec()).ok();
    }
    let bearer = behind(BEARER, authorization).map(str::trim);
    token::key_name(bearer.unwrap_or(authorization))
}

/// The path of the URI that a header's value, a shared access signature, is for.
#[must_use]
pub fn audience(authorization: &str) -> Option<String> {
    let bearer = behind(BEARER, authorization).map(str::trim);
    let resource = token::resource(bearer.unwrap_or(authorization))?;
    resource.contains("://").then(|| scope::of_uri(&resource))
}

impl Access {
    /// Whether `authorization`, a header's value, allows an operation at `path` to a client there.
    /// Without a header the anonymous rights apply.
    ///
    /// # Errors
    /// When it does not.
    pub fn check(
        &self,
        authorization: Option<&str>,
        operation: Operation,
        path: &str,
        locality: Locality,
        now: Wall,
    ) -> Result<(), Unauthorized> {
        let required_right = operation.required_right();
        let path = scope::of_request(path);
        let rights = match authorization {
            None if self.anonymous().allow(required_right) => return Ok(()),
            None => return Err(Unauthorized::Missing(required_right)),
            Some(text) => self.rights(&self.sign_in(text, &path, locality, now)?.0, &path),
        };
        if rights.union(self.anonymous()).allow(required_right) {
            Ok(())
        } else {
            Err(Unauthorized::Claim(required_right))
        }
    }

    /// The name of the client that shows `authorization` for a request at `path`, if it is valid.
    #[must_use]
    pub fn client_name(
        &self,
        authorization: &str,
        path: &str,
        locality: Locality,
        now: Wall,
    ) -> Option<String> {
        let path = scope::of_request(path);
        let credential = self.sign_in(authorization, &path, locality, now);
        credential
            .ok()
            .map(|(credential, _)| credential.client_name())
    }

    /// Whether `credential` allows an operation at `path` now.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_credential(
        &self,
        credential: &Credential,
        operation: Operation,
        path: &str,
    ) -> Result<(), Unauthorized> {
        let required_right = operation.required_right();
        match self
            .rights(credential, &scope::of_request(path))
            .allow(required_right)
        {
            true => Ok(()),
            false => Err(Unauthorized::Claim(required_right)),
        }
    }

    /// The credential that a header's value gives for `path`, and when it expires.
    ///
    /// # Errors
    /// When it gives none.
    pub fn sign_in(
        &self,
        authorization: &str,
        path: &str,
        locality: Locality,
        now: Wall,
    ) -> Result<(Credential, Option<Wall>), Unauthorized> {
        if let Some(credentials) = behind(BASIC, authorization) {
            return Ok((self.credential_of_key(credentials)?, None));
        }
        let bearer = behind(BEARER, authorization).map(str::trim);
        let shown = bearer.unwrap_or(authorization);
        let verified = if token::is_signature(shown) {
            token::verify(shown, path, self, now)?
        } else {
            let token = bearer.or_else(|| bare_token(authorization));
            self.verify_jwt(token.ok_or(Unauthorized::Malformed)?, locality, now)?
        };
        Ok((verified.credential, Some(verified.expires)))
    }

    /// The credential for a rule's name and key, encoded as Basic has it.
    fn credential_of_key(&self, credentials: &str) -> Result<Credential, Unauthorized> {
        let decoded = STANDARD
            .decode(credentials.trim())
            .map_err(|_| Unauthorized::Malformed)?;
        let decoded = String::from_utf8(decoded).map_err(|_| Unauthorized::Malformed)?;
        let (name, key) = decoded.split_once(':').ok_or(Unauthorized::Malformed)?;
        self.log_in(name, key.as_bytes()).ok_or(Unauthorized::Key)
    }
}

/// What follows a scheme, in any case.
fn behind<'a>(scheme: &str, authorization: &'a str) -> Option<&'a str> {
    let (shown, credentials) = authorization.split_at_checked(scheme.len())?;
    shown.eq_ignore_ascii_case(scheme).then_some(credentials)
}

/// A JSON Web Token without a scheme, as the administration clients of Go and Java send it
/// (azservicebus 1.11.0, azure-messaging-servicebus 7.17.20).
fn bare_token(authorization: &str) -> Option<&str> {
    let is_token = !authorization.contains(' ') && authorization.matches('.').count() == 2;
    is_token.then_some(authorization)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessRule, AccessRules, Rights, Secret};

    const NOW: Wall = Wall(1_700_000_000_000);
    const PATH: &str = "/$railbus/clock";

    fn access() -> Access {
        let rule = |name: &str, rights, entity: Option<&str>| AccessRule {
            name: name.to_owned(),
            primary: Secret::new(format!("{name}-key")),
            secondary: Some(Secret::new(format!("{name}-second"))),
            rights,
            entity: entity.map(str::to_owned),
        };
        let send = Rights {
            send: true,
            ..Rights::NONE
        };
        Access::new(AccessRules {
            rules: vec![
                rule("root", Rights::ALL, None),
                rule("sender", send, None),
                rule("owner", Rights::ALL, Some("orders")),
            ],
            ..AccessRules::default()
        })
    }

    fn basic(text: &str) -> String {
        format!("basic {}", STANDARD.encode(text))
    }

    fn check(authorization: Option<&str>) -> Result<(), Unauthorized> {
        access().check(
            authorization,
            Operation::Operate,
            PATH,
            Locality::Network,
            NOW,
        )
    }

    #[test]
    fn either_key_of_a_rule_with_manage_will_do() {
        assert_eq!(check(Some(&basic("root:root-key"))), Ok(()));
        assert_eq!(check(Some(&basic("root:root-second"))), Ok(()));
    }

    #[test]
    fn a_signature_of_such_a_rule_will_do_until_it_expires() {
        let key = Secret::new("root-key".to_owned());
        let token = token::sign("http://localhost:5672/", "root", &key, Wall(NOW.0 + 60_000));
        assert_eq!(check(Some(&token)), Ok(()));
        let later = Wall(NOW.0 + 60_000);
        let late = access().check(
            Some(&token),
            Operation::Operate,
            PATH,
            Locality::Network,
            later,
        );
        let expired = token::Error::Expired(Wall(NOW.0 + 60_000));
        assert_eq!(late, Err(Unauthorized::Token(expired)));
    }

    #[test]
    fn a_signature_behind_bearer_is_taken_as_that_signature() {
        let key = Secret::new("root-key".to_owned());
        let token = token::sign("http://localhost/", "root", &key, Wall(NOW.0 + 60_000));
        assert_eq!(check(Some(&format!("bearer {token}"))), Ok(()));
    }

    #[test]
    fn a_signature_for_the_whole_address_of_a_request_will_do() {
        let key = Secret::new("root-key".to_owned());
        let address = "https://localhost:5300/%24railbus/clock?api-version=2021-05&a=/b";
        let token = token::sign(address, "root", &key, Wall(NOW.0 + 60_000));
        assert_eq!(check(Some(&token)), Ok(()));
        let other = token::sign(
            "https://localhost/other?a=b",
            "root",
            &key,
            Wall(NOW.0 + 60_000),
        );
        let refused = check(Some(&other)).unwrap_err();
        assert_eq!(refused.sub_code(), 40_104);
    }

    #[test]
    fn wrong_credentials_are_refused() {
        assert_eq!(
            check(None),
            Err(Unauthorized::Missing(RequiredRight::Manage))
        );
        assert_eq!(
            check(Some("Bearer x.y.z")),
            Err(Unauthorized::Jwt(jwt::Error::Malformed))
        );
        assert_eq!(
            check(Some("x.y.z")),
            Err(Unauthorized::Jwt(jwt::Error::Malformed))
        );
        assert_eq!(check(Some("Digest x")), Err(Unauthorized::Malformed));
        assert_eq!(check(Some("Digest x.y.z")), Err(Unauthorized::Malformed));
        assert_eq!(check(Some("x.y")), Err(Unauthorized::Malformed));
        assert_eq!(check(Some("Basic %%%")), Err(Unauthorized::Malformed));
        assert_eq!(
            check(Some(&basic("root-key"))),
            Err(Unauthorized::Malformed)
        );
        assert_eq!(check(Some(&basic("root:wrong"))), Err(Unauthorized::Key));
        assert_eq!(check(Some(&basic("nobody:nobody"))), Err(Unauthorized::Key));
        assert_eq!(check(Some(&basic("root:"))), Err(Unauthorized::Key));
        let key = Secret::new("wrong".to_owned());
        let forged = token::sign("http://localhost/", "root", &key, Wall(NOW.0 + 60_000));
        assert_eq!(
            check(Some(&forged)),
            Err(Unauthorized::Token(token::Error::Signature))
        );
    }

    #[test]
    fn what_no_key_has_made_is_a_guess_and_what_is_late_or_elsewhere_is_not() {
        let wrong = Secret::new("wrong".to_owned());
        let right = Secret::new("root-key".to_owned());
        let later = Wall(NOW.0 + 60_000);
        let guesses = [
            basic("root:wrong"),
            basic("nobody:nobody"),
            "Bearer x.y.z".to_owned(),
            token::sign("http://localhost/", "root", &wrong, later),
            // Whether its key is right shows before its time does.
            token::sign("http://localhost/", "root", &wrong, NOW),
        ];
        for shown in guesses {
            let refused = check(Some(&shown)).unwrap_err();
            assert!(is_guess(refused.sub_code()), "{refused}");
        }
        let others = [
            None,
            Some(basic("sender:sender-key")),
            Some(token::sign("http://localhost/", "root", &right, NOW)),
            Some(token::sign("http://h/other", "root", &right, later)),
        ];
        for shown in others {
            let refused = check(shown.as_deref()).unwrap_err();
            assert!(!is_guess(refused.sub_code()), "{refused}");
        }
        for error in [
            jwt::Error::Issuer,
            jwt::Error::Expired,
            jwt::Error::NotYet,
            jwt::Error::Audience,
            jwt::Error::NoExpiry,
            jwt::Error::KeysNotLoaded,
        ] {
            assert!(!is_guess(error.sub_code()), "{error}");
        }
    }

    #[test]
    fn rights_that_are_less_or_elsewhere_are_not_enough() {
        assert_eq!(
            check(Some(&basic("sender:sender-key"))),
            Err(Unauthorized::Claim(RequiredRight::Manage))
        );
        assert_eq!(
            check(Some(&basic("owner:owner-key"))),
            Err(Unauthorized::Claim(RequiredRight::Manage))
        );
    }
}
