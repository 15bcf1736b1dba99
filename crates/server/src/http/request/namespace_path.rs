//! Namespace path: `/$railbus/namespaces/NAME/…`, by which a client that manages the default
//! namespace works in another one.
//!
//! What a client finds below `/$railbus/` of its own namespace, such as `entities` and `counts`, is
//! there of the namespace NAME. Anything else below a namespace is a route of its own.

use hyper::Method;
use percent_encoding::percent_decode_str;

use crate::http::routes::OWN;
use crate::http::routes::Route;

/// A path, and whose it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamespacePath {
    /// None if it does not name a namespace.
    pub namespace: Option<String>,
    /// The path as clients of the namespace write it.
    pub path: String,
}

impl NamespacePath {
    /// What a path means to a request of this method.
    pub fn of(path: &str, method: &Method) -> Self {
        match named(path, method) {
            Some((name, path)) => Self {
                namespace: Some(name),
                path,
            },
            None => Self {
                namespace: None,
                path: path.to_owned(),
            },
        }
    }
}

fn named(path: &str, method: &Method) -> Option<(String, String)> {
    let rest = path.strip_prefix(OWN)?.strip_prefix("namespaces/")?;
    let (name, below) = rest.split_once('/')?;
    let path = format!("{OWN}{below}");
    let route = Route::of(&path, method)?;
    let name = percent_decode_str(name).decode_utf8().ok()?;
    route.is_of_namespace().then(|| (name.into_owned(), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, namespace: Option<&str>, own: &str) {
        let parsed = NamespacePath::of(&format!("{OWN}{path}"), &Method::GET);
        assert_eq!(parsed.namespace.as_deref(), namespace, "{path}");
        assert_eq!(parsed.path, format!("{OWN}{own}"));
    }

    #[test]
    fn what_a_namespace_has_is_below_its_path() {
        for own in [
            "overview",
            "counts",
            "events",
            "entities",
            "entities/a/b/messages",
            "entities/namespaces/shop/counts",
            "plan",
            "apply",
            "rules/test",
            "policies/user/ttl",
        ] {
            check(&format!("namespaces/shop/{own}"), Some("shop"), own);
            check(own, None, own);
        }
    }

    #[test]
    fn what_is_of_the_broker_or_has_a_route_of_its_own_is_not() {
        for path in [
            "namespaces",
            "namespaces/shop",
            "namespaces/shop/clock",
            "namespaces/shop/history",
            "namespaces/shop/session",
            "namespaces/shop/connections",
            "namespaces/shop/backups",
            "namespaces/shop/openapi.json",
            "namespaces/shop/messages/counts/history",
            "namespaces/shop/namespaces/other/counts",
        ] {
            check(path, None, path);
        }
    }
}
