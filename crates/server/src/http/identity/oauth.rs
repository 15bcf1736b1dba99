//! OAuth: tokens for client credentials, and where they are had. [RFC 6749 4.4]
//!
//! Any client id will do. The secret is what admits a program to the managed identity too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::Wall;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{HeaderMap, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};

use super::{MAX_FORM, answer, field};
use crate::credentials::development_issuer::{DevelopmentIssuer, LIFE_SECONDS};
use crate::http::request::transport::Transport;
use crate::http::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;

/// What stands behind the resource in a scope.
const DEFAULT: &str = "/.default";
/// Scopes of OpenID Connect, which the library for Java sends along; a client has none of them.
const OPENID: [&str; 3] = ["openid", "profile", "offline_access"];

/// Why a client gets no token, as the standard names it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TokenError {
    InvalidRequest,
    UnsupportedGrantType,
    InvalidClient,
    InvalidScope,
}

/// A request for a token.
#[derive(Debug, Eq, PartialEq)]
struct Asked {
    client_id: String,
    resource: String,
}

/// The answer to a form with client credentials.
pub async fn token(
    request: Request<Incoming>,
    server: &NamespaceView,
    issuer: &DevelopmentIssuer,
    now: Wall,
) -> Response {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_FORM).collect();
    let body = tokio::time::timeout(server.limits().handshake, body).await;
    let Ok(Ok(body)) = body else {
        return refused(TokenError::InvalidRequest);
    };
    let form = String::from_utf8(body.to_bytes().to_vec()).unwrap_or_default();
    let asked = read(&form, &head.headers, |secret| issuer.admits(secret));
    let asked = match asked {
        Ok(asked) => asked,
        Err(refusal) => return refused(refusal),
    };
    match issuer.issue(&asked.resource, &asked.client_id, now) {
        Ok(token) => {
            let body = json!({
                "token_type": "Bearer", "expires_in": LIFE_SECONDS, "ext_expires_in": LIFE_SECONDS,
                "access_token": token.text,
            });
            answer::json(StatusCode::OK, body.to_string())
        }
        Err(error) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn read(
    form: &str,
    headers: &HeaderMap,
    admits: impl Fn(&[u8]) -> bool,
) -> Result<Asked, TokenError> {
    let grant = field(form, "grant_type").ok_or(TokenError::InvalidRequest)?;
    if grant != "client_credentials" {
        return Err(TokenError::UnsupportedGrantType);
    }
    let (client_id, shown) = basic(headers)
        .or_else(|| Some((field(form, "client_id")?, field(form, "client_secret")?)))
        .ok_or(TokenError::InvalidClient)?;
    if !admits(shown.as_bytes()) {
        return Err(TokenError::InvalidClient);
    }
    let scope = field(form, "scope").ok_or(TokenError::InvalidScope)?;
    let resource = resource(&scope).ok_or(TokenError::InvalidScope)?;
    Ok(Asked {
        resource: resource.to_owned(),
        client_id,
    })
}

/// The one resource that a scope names.
fn resource(scope: &str) -> Option<&str> {
    let mut scopes = scope.split(' ').filter(|it| !OPENID.contains(it));
    let resource = scopes.next()?.strip_suffix(DEFAULT)?;
    (scopes.next().is_none() && !resource.is_empty()).then_some(resource)
}

/// The client's name and secret in a header; both are escaped. [RFC 6749 2.3.1]
fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let encoded = header.strip_prefix("Basic ")?;
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, shown) = text.split_once(':')?;
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((plain(name), plain(shown)))
}

fn refused(refusal: TokenError) -> Response {
    let (status, error, text) = match refusal {
        TokenError::InvalidRequest => (
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "The body is a form with grant_type, client_id, client_secret and scope.",
        ),
        TokenError::UnsupportedGrantType => (
            StatusCode::BAD_REQUEST,
            "unsupported_grant_type",
            "The only grant type is client_credentials.",
        ),
        TokenError::InvalidClient => (
            StatusCode::UNAUTHORIZED,
            "invalid_client",
            "The client secret is not what `railbus identity env` prints.",
        ),
        TokenError::InvalidScope => (
            StatusCode::BAD_REQUEST,
            "invalid_scope",
            "The scope is a resource and /.default, as https://servicebus.azure.net/.default.",
        ),
    };
    let body = json!({"error": error, "error_description": text});
    answer::json(status, body.to_string())
}

/// The discovery document, with the addresses by which the client has come.
///
/// Libraries refuse an issuer that is not at the address that they asked. The token of a client is
/// no ID token, so it may name its issuer otherwise: by a name that no address changes.
pub fn discovery<T>(request: &Request<T>, transport: Transport) -> Response {
    let base = base(request, transport.is_tls);
    answer::json(StatusCode::OK, document(&base).to_string())
}

/// The address of the tenant, as the client has asked for it.
fn base<T>(request: &Request<T>, is_tls: bool) -> String {
    let host = request.headers().get(HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if is_tls { "https" } else { "http" };
    let path = request.uri().path();
    let tenant = path.split('/').nth(1).unwrap_or_default();
    format!("{scheme}://{host}/{tenant}")
}

fn document(base: &str) -> Json {
    json!({
        "issuer": format!("{base}/v2.0"),
        "token_endpoint": format!("{base}/oauth2/v2.0/token"),
        "authorization_endpoint": format!("{base}/oauth2/v2.0/authorize"),
        "jwks_uri": format!("{base}/discovery/v2.0/keys"),
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "response_types_supported": ["token"],
        "subject_types_supported": ["pairwise"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    const SCOPE: &str = "scope=https%3A%2F%2Fservicebus.azure.net%2F.default";

    fn check(form: &str, basic: Option<&str>, expected: Result<(&str, &str), TokenError>) {
        let mut headers = HeaderMap::new();
        if let Some(text) = basic {
            let value = format!("Basic {}", STANDARD.encode(text));
            headers.insert(AUTHORIZATION, HeaderValue::from_str(&value).unwrap());
        }
        let asked = read(form, &headers, |secret| secret == b"hush");
        let found = asked
            .as_ref()
            .map(|it| (it.client_id.as_str(), it.resource.as_str()));
        assert_eq!(found.map_err(|refusal| *refusal), expected, "{form}");
    }

    #[test]
    fn a_client_with_the_secret_gets_a_token_for_the_resource_of_its_scope() {
        let grant = "grant_type=client_credentials";
        let good = Ok(("me", "https://servicebus.azure.net"));
        let shown = "client_id=me&client_secret=hush";
        check(&format!("{grant}&{shown}&{SCOPE}"), None, good);
        check(&format!("{grant}&{SCOPE}"), Some("me:hush"), good);
        let double = "scope=https%3A%2F%2Fservicebus.azure.net%2F%2F.default";
        let expected = Ok(("me", "https://servicebus.azure.net/"));
        check(&format!("{grant}&{shown}&{double}"), None, expected);
    }

    #[test]
    fn scopes_of_openid_stand_beside_the_resource_in_any_order() {
        let good = Some("https://servicebus.azure.net");
        let scope = "https://servicebus.azure.net/.default";
        for (scope, expected) in [
            (scope.to_owned(), good),
            (format!("openid profile offline_access {scope}"), good),
            (format!("{scope} offline_access profile openid"), good),
            (format!("openid {scope} profile"), good),
            ("openid profile offline_access".to_owned(), None),
            (format!("{scope} {scope}"), None),
            (format!("https://vault.azure.net/.default {scope}"), None),
            (format!("email {scope}"), None),
            (format!("{scope} Orders.Write"), None),
            (format!("{scope}  openid"), None),
            ("openid /.default".to_owned(), None),
        ] {
            assert_eq!(resource(&scope), expected, "{scope}");
        }
    }

    #[test]
    fn a_client_is_told_what_is_wrong() {
        let grant = "grant_type=client_credentials";
        let shown = "client_id=me&client_secret=hush";
        check("", None, Err(TokenError::InvalidRequest));
        let code = format!("grant_type=authorization_code&{shown}&{SCOPE}");
        check(&code, None, Err(TokenError::UnsupportedGrantType));
        let nobody = format!("{grant}&{SCOPE}");
        check(&nobody, None, Err(TokenError::InvalidClient));
        check(&nobody, Some("me:wrong"), Err(TokenError::InvalidClient));
        let wrong = format!("{grant}&client_id=me&client_secret=wrong&{SCOPE}");
        check(&wrong, None, Err(TokenError::InvalidClient));
        let none = format!("{grant}&{shown}");
        check(&none, None, Err(TokenError::InvalidScope));
        let other = format!("{grant}&{shown}&scope=openid");
        check(&other, None, Err(TokenError::InvalidScope));
    }

    #[test]
    fn the_discovery_document_has_the_addresses_that_the_client_has_asked() {
        let path = "/any-tenant/v2.0/.well-known/openid-configuration";
        let request = Request::get(path).header(HOST, "localhost:5671");
        let request = request.body(()).unwrap();
        let plain = base(&request, false);
        assert_eq!(plain, "http://localhost:5671/any-tenant");
        let document = document(&base(&request, true));
        for (name, below) in [
            ("issuer", "v2.0"),
            ("token_endpoint", "oauth2/v2.0/token"),
            ("authorization_endpoint", "oauth2/v2.0/authorize"),
            ("jwks_uri", "discovery/v2.0/keys"),
        ] {
            let expected = format!("https://localhost:5671/any-tenant/{below}");
            assert_eq!(document[name], expected, "{name}");
        }
    }
}
