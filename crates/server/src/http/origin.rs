//! Origin: where a page was loaded from whose script sends a request. [RFC 6454]

use std::net::IpAddr;

use hyper::Uri;
use hyper::header::HeaderValue;

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
    use super::*;

    fn value(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
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
