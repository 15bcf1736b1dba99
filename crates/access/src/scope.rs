//! Scope: the path that a right is given for, in one form. (docs/spec/amqp.md#2.4, #3.1)
//!
//! Clients write the same path in many ways: relative, with a leading slash, as a whole URI, with
//! percent escapes, in any case. Rights are looked up by the normalised path in lower case.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The last segment of the path of a management node.
pub const MANAGEMENT: &str = "$management";
/// The last segment of the path of a dead-letter queue.
pub const DEAD_LETTER: &str = "$deadletterqueue";
/// The segment before it in the path of a transfer dead-letter queue.
pub const TRANSFER: &str = "$transfer";

/// The path of an audience or of a token's resource: normalised, in lower case, without
/// `/$management`, nor the query of a request that was signed whole.
#[must_use]
pub fn of_uri(uri: &str) -> String {
    let uri = uri.split('?').next().unwrap_or_default();
    let path = normalise(uri).to_lowercase();
    match strip_segment(&path, MANAGEMENT) {
        // The namespace's own node is not the namespace.
        Some("") | None => path,
        Some(entity) => entity.to_owned(),
    }
}

/// The path of a token's resource. One without a scheme is a path, or the name of this broker's
/// host alone, with or without a port, which stands for the namespace. (docs/spec/amqp.md#2.5)
pub(crate) fn of_resource(resource: &str, is_own_host: impl Fn(&str) -> bool) -> String {
    if resource.contains("://") {
        return of_uri(resource);
    }
    let path = resource.split('?').next().unwrap_or_default();
    let path = path.trim_matches('/');
    if !path.contains('/') && is_own_host(without_port(path)) {
        return String::new();
    }
    let path = of_request(path);
    match strip_segment(&path, MANAGEMENT) {
        Some("") | None => path,
        Some(entity) => entity.to_owned(),
    }
}

/// A host without its port, and an address of IPv6 without its brackets.
fn without_port(authority: &str) -> &str {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
        _ => authority,
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// The path of an HTTP request: it has no scheme and no host.
#[must_use]
pub fn of_request(path: &str) -> String {
    let path = percent_decode_str(path.trim_matches('/')).decode_utf8_lossy();
    path.to_lowercase()
}

/// Whether `ancestor` is `path` or stands above it, by whole segments; both normalised and in one
/// case. `orders` does not cover `orders2`.
#[must_use]
pub fn covers(ancestor: &str, path: &str) -> bool {
    match path.strip_prefix(ancestor) {
        None => false,
        Some(rest) => ancestor.is_empty() || rest.is_empty() || rest.starts_with('/'),
    }
}

/// Whether `path` is of the entity at `entity`: itself, a subqueue, a subscription of it, or its
/// messages over HTTP. What else stands below is an entity of its own (`orders/messages/new`). Both
/// normalised and in lower case.
#[must_use]
pub fn belongs(path: &str, entity: &str) -> bool {
    const OWN: [&str; 3] = [DEAD_LETTER, TRANSFER, "subscriptions"];
    let Some(rest) = path.strip_prefix(entity) else {
        return false;
    };
    let segments: Vec<&str> = rest.split('/').collect();
    match *segments {
        [""] | ["", "messages"] | ["", "messages", "head"] | ["", "messages", _, _] => true,
        ["", next, ..] => OWN.contains(&next),
        _ => false,
    }
}

/// Whether `path` is of an entity as configured, in any case; without one all paths are.
pub(crate) fn is_within(path: &str, entity: Option<&str>) -> bool {
    entity.is_none_or(|entity| belongs(path, &entity.to_lowercase()))
}

/// Without scheme, authority, outer slashes and escapes. An authority without a scheme is known by
/// the colon of its port, which no name has.
#[must_use]
pub fn normalise(address: &str) -> Cow<'_, str> {
    let (authority, behind) = match address.split_once("://") {
        Some((_, rest)) => (true, rest),
        None => {
            let first = address.split('/').next().unwrap_or_default();
            (first.contains(':'), address)
        }
    };
    let path = if authority {
        behind.split_once('/').map_or("", |(_, path)| path)
    } else {
        behind
    };
    percent_decode_str(path.trim_matches('/')).decode_utf8_lossy()
}

/// `path` without its last segment, if that is `segment` in any case.
#[must_use]
pub fn strip_segment<'a>(path: &'a str, segment: &str) -> Option<&'a str> {
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    last.eq_ignore_ascii_case(segment).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_loses_scheme_host_port_case_and_management() {
        let table = [
            ("sb://host:5672/Orders", "orders"),
            ("amqps://host/orders/$management", "orders"),
            (
                "amqp://host/orders/$DeadLetterQueue",
                "orders/$deadletterqueue",
            ),
            ("wss://host/orders/", "orders"),
            ("amqps://host/", ""),
            ("amqps://host", ""),
            // The node, not all that is in the namespace.
            ("amqps://host/$management", "$management"),
            ("orders", "orders"),
        ];
        for (uri, expected) in table {
            assert_eq!(of_uri(uri), expected, "{uri}");
        }
    }

    #[test]
    fn a_resource_without_a_scheme_is_the_name_of_the_broker_or_a_path() {
        let is_own_host = |name: &str| name.eq_ignore_ascii_case("own.example") || name == "::1";
        let table = [
            ("own.example", ""),
            ("OWN.example:5672/", ""),
            ("[::1]:5672", ""),
            ("own.example/orders", "own.example/orders"),
            ("other.example", "other.example"),
            ("other.example:5672", "other.example:5672"),
            ("Orders", "orders"),
            ("orders:1", "orders:1"),
            ("/orders/$management?a=b", "orders"),
            ("sb://other.example:5672/orders", "orders"),
            ("https://other.example", ""),
        ];
        for (resource, expected) in table {
            assert_eq!(of_resource(resource, is_own_host), expected, "{resource}");
        }
    }

    #[test]
    fn an_entity_has_its_subqueues_subscriptions_and_messages_and_no_other_entity() {
        let own = [
            "orders",
            "orders/$deadletterqueue",
            "orders/$transfer/$deadletterqueue/messages/head",
            "orders/subscriptions/s/messages/7/token",
            "orders/messages",
            "orders/messages/head",
            "orders/messages/7/token",
        ];
        for path in own {
            assert!(belongs(path, "orders"), "{path}");
        }
        let others = [
            "",
            "orders2",
            "orders/new",
            "orders/new/messages",
            "orders/messages/new",
            "orders/messages/a/b/c",
        ];
        for path in others {
            assert!(!belongs(path, "orders"), "{path}");
        }
    }

    #[test]
    fn a_path_covers_what_is_below_it_by_whole_segments() {
        assert!(covers("", "orders"));
        assert!(covers("orders", "orders"));
        assert!(covers("orders", "orders/$deadletterqueue"));
        assert!(!covers("orders", "orders2"));
        assert!(!covers("orders/a", "orders"));
        assert!(!covers("orders2", "orders"));
    }
}
