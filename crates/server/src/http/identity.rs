//! Identity: the development issuer as programs on this machine ask it for tokens.
//! (docs/spec/admin.md#2.4)
//!
//! It answers as a managed identity of App Service or of a virtual machine does, and as a token
//! endpoint of OAuth 2.0 for client credentials. It is on while the development key is the only
//! rule, and answers clients on loopback. No web page gets a token: a request with an origin is
//! refused here, and one for a [host elsewhere](super::request::origin) before. For everyone else
//! its paths are ordinary ones.

mod managed;
mod oauth;

use std::sync::Arc;

use admin::query::fields;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, HeaderValue, ORIGIN};
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;

use super::request::transport::Transport;
use super::response::answer;
use super::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;

/// Says that a request is one for a token, and holds what admits the program.
const IDENTITY_HEADER: &str = "x-identity-header";
/// Longest form that asks for a token.
const MAX_FORM: usize = 64 << 10;

/// What a request asks the issuer for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Call {
    /// A token, as a managed identity of App Service.
    AppService,
    /// A token, as a managed identity of a virtual machine.
    VirtualMachine,
    /// A token for client credentials.
    Token,
    /// The discovery document.
    Discovery,
    /// The keys that verify its tokens.
    Keys,
}

impl Call {
    fn of<T>(request: &Request<T>) -> Option<Self> {
        let path = request.uri().path().replace("//", "/");
        let below_tenant = path.strip_prefix('/')?.split_once('/');
        Some(match (request.method(), below_tenant?) {
            (&Method::GET, ("msi", "token")) => {
                let is_asked = request.headers().contains_key(IDENTITY_HEADER);
                return is_asked.then_some(Self::AppService);
            }
            (&Method::GET, ("metadata", "identity/oauth2/token")) => Self::VirtualMachine,
            (&Method::POST, (_, "oauth2/v2.0/token")) => Self::Token,
            (&Method::GET, (_, "v2.0/.well-known/openid-configuration")) => Self::Discovery,
            (&Method::GET, (_, "discovery/v2.0/keys")) => Self::Keys,
            _ => return None,
        })
    }
}

/// Whether a request is for the issuer.
pub fn is_call<T>(request: &Request<T>, server: &NamespaceView, transport: Transport) -> bool {
    let is_local = transport.locality() == access::Locality::Loopback;
    let is_on =
        || server.development_issuer.is_some() && server.directory().access().is_development();
    Call::of(request).is_some() && is_local && is_on()
}

/// Answers a request for the issuer.
pub async fn respond(
    request: Request<Incoming>,
    server: &Arc<NamespaceView>,
    transport: Transport,
) -> Response {
    let (Some(call), Some(issuer)) = (Call::of(&request), &server.development_issuer) else {
        return answer::not_found();
    };
    if request.headers().contains_key(ORIGIN) {
        let text = "the request does not come from a program of this machine";
        return managed::fault(StatusCode::BAD_REQUEST, text);
    }
    let now = server.clock.moment().wall;
    let mut response = match call {
        Call::AppService => managed::app_service(&request, issuer, now),
        Call::VirtualMachine => managed::virtual_machine(&request, issuer, now),
        Call::Token => oauth::token(request, server, issuer, now).await,
        Call::Discovery => oauth::discovery(&request, transport),
        Call::Keys => answer::json(StatusCode::OK, issuer.jwk_set().to_string()),
    };
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}

/// The value of a field in a query or a form.
fn field(text: &str, name: &str) -> Option<String> {
    let (_, value) = fields(text).find(|(key, _)| *key == name)?;
    let value = value.replace('+', " ");
    let value = percent_decode_str(&value).decode_utf8().ok()?;
    Some(value.into_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, expected: Option<Call>) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("X-IDENTITY-HEADER", "a").body(()).unwrap();
        assert_eq!(Call::of(&request), expected, "{method} {path}");
    }

    #[test]
    fn the_paths_of_the_protocols_are_known() {
        check("GET", "/msi/token?resource=a", Some(Call::AppService));
        check("POST", "/msi/token", None);
        let metadata = "metadata/identity/oauth2/token?resource=a";
        check("GET", &format!("/{metadata}"), Some(Call::VirtualMachine));
        check("GET", &format!("//{metadata}"), Some(Call::VirtualMachine));
        check("POST", "/any/oauth2/v2.0/token", Some(Call::Token));
        check("GET", "/any/oauth2/v2.0/token", None);
        let discovery = "/any/v2.0/.well-known/openid-configuration";
        check("GET", discovery, Some(Call::Discovery));
        check("GET", "/any/discovery/v2.0/keys", Some(Call::Keys));
        for path in [
            "/",
            "/orders",
            "/msi",
            "/msi/token/x",
            "/orders/messages/head",
        ] {
            check("GET", path, None);
        }
    }

    #[test]
    fn without_its_header_the_path_is_one_of_an_entity() {
        let request = Request::get("/msi/token?resource=a").body(()).unwrap();
        assert_eq!(Call::of(&request), None);
    }

    #[test]
    fn a_field_is_found_with_its_escapes() {
        let form = "a=1&resource=https%3A%2F%2Fb.c%2F&empty=&d=x+y";
        assert_eq!(field(form, "resource").as_deref(), Some("https://b.c/"));
        assert_eq!(field(form, "d").as_deref(), Some("x y"));
        assert_eq!(field(form, "empty"), None);
        assert_eq!(field(form, "source"), None);
    }
}
