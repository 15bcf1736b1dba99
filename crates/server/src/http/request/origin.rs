//! Origin: whether a request may come from the script of a page that was loaded elsewhere.
//!
//! A browser names where the page is from by `Origin` [RFC 6454], and leaves the header out if the
//! page is of the host that it asks. Anyone can make a name of his own lead to this machine (DNS
//! rebinding), so on loopback `Host` has to be a name of this machine while no secret is needed.

use std::net::IpAddr;

use access::{Access, Rights};
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Request, Uri};

use crate::http::request::transport::Transport;
use crate::http::routes::HEALTH;
use crate::namespaces::namespace_view::NamespaceView;

/// Whether a request has to be refused for the host that it names: a web page may have sent it, and
/// this listener would ask it for no secret.
pub fn names_other_host<T>(
    request: &Request<T>,
    server: &NamespaceView,
    transport: Transport,
) -> bool {
    let directory = server.directory();
    let access = directory.access();
    transport.is_loopback
        && request.uri().path() != HEALTH
        && needs_no_secret(server)
        && !names_this_machine(request.headers(), access)
}

/// Whether a client without a secret has rights in the namespace of the request, or in the default
/// one, in which the connection within a WebSocket begins. The development key is no secret.
pub fn needs_no_secret(server: &NamespaceView) -> bool {
    let needs_none =
        |access: &Access| access.is_development() || access.anonymous() != Rights::NONE;
    needs_none(server.directory().access()) || needs_none(server.default_directory().access())
}

/// Whether the host of a request is a loopback name or address, or one of the broker's own names.
pub fn names_this_machine(headers: &HeaderMap, access: &Access) -> bool {
    let host = headers.get(HOST);
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    authority.is_some_and(|authority| {
        let host = authority.host();
        is_loopback_host(host) || access.is_own_host(host)
    })
}

/// Whether it is a page of this machine.
pub fn is_loopback(origin: &HeaderValue) -> bool {
    uri(origin).is_some_and(|uri| uri.host().is_some_and(is_loopback_host))
}

/// Whether it is a page of the server that the request names.
pub fn is_of(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let host = host.and_then(|host| host.to_str().ok());
    let origin = uri(origin);
    let authority = origin.as_ref().and_then(Uri::authority);
    matches!((authority, host), (Some(authority), Some(host)) if authority.as_str().eq_ignore_ascii_case(host))
}

fn uri(origin: &HeaderValue) -> Option<Uri> {
    let uri = Uri::try_from(origin.as_bytes()).ok()?;
    uri.scheme().is_some().then_some(uri)
}

/// Whether a host name or address is one of this machine's own.
pub fn is_loopback_host(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use access::AccessRules;

    use super::*;

    fn value(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
    }

    #[test]
    fn a_host_is_one_of_this_machine_by_its_name_or_as_the_configuration_has_it() {
        let access = Access::new(AccessRules {
            host_names: ["shop.example".to_owned()].into(),
            ..AccessRules::default()
        });
        let names = |host| {
            let headers = HeaderMap::from_iter([(HOST, value(host))]);
            names_this_machine(&headers, &access)
        };
        for host in ["localhost:5672", "127.0.0.1", "[::1]:80", "Shop.example:1"] {
            assert!(names(host), "{host}");
        }
        for host in ["", "evil.example:5672", "localhost.evil.example", "a b"] {
            assert!(!names(host), "{host}");
        }
        assert!(!names_this_machine(&HeaderMap::new(), &access));
    }

    #[test]
    fn a_page_of_this_machine_is_known_by_its_host() {
        for origin in [
            "http://localhost:3000",
            "https://LOCALHOST",
            "http://a.localhost",
            "http://127.0.0.1:1",
            "http://[::1]:80",
        ] {
            assert!(is_loopback(&value(origin)), "{origin}");
        }
        for origin in [
            "null",
            "",
            "localhost",
            "http://localhost.example",
            "http://evil.example",
            "http://10.0.0.1",
        ] {
            assert!(!is_loopback(&value(origin)), "{origin}");
        }
    }

    #[test]
    fn a_page_of_the_same_server_has_its_host_and_port() {
        let host = value("Broker:5671");
        assert!(is_of(&value("https://broker:5671"), Some(&host)));
        assert!(!is_of(&value("https://broker"), Some(&host)));
        assert!(!is_of(&value("null"), Some(&host)));
        assert!(!is_of(&value("https://broker:5671"), None));
    }
}
