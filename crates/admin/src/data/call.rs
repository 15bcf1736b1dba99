//! Call: a request for messages, parsed from its method and its path alone.

use std::time::Duration;

use broker::{LockToken, Subqueue};
use http::{Method, Uri};
use percent_encoding::percent_decode_str;

use crate::query::fields;
use uuid::Uuid;

/// How long a receive waits that does not say so. (docs/spec/admin.md#11)
const TIMEOUT: Duration = Duration::from_secs(60);
/// As long as it can wait.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The action of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// One message, or several in a batch.
    Send,
    /// The next message, locked.
    PeekLock,
    /// The next message, removed.
    ReceiveAndDelete,
    /// A locked message is removed.
    Complete(LockToken),
    /// A locked message is unlocked.
    Unlock(LockToken),
    /// A lock is renewed.
    Renew(LockToken),
    /// A lock is settled or renewed whose token is none.
    NoLock,
    /// Messages are read without locking them, which is not supported.
    Browse,
}

/// A request for messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Call {
    /// The path of the queue, topic or subscription, in the case in which it was written.
    pub entity: String,
    /// Which of its subqueues.
    pub subqueue: Subqueue,
    /// The action.
    pub action: Action,
    /// How long a receive waits.
    pub timeout: Duration,
}

impl Call {
    /// Parses a request; `None` if its path is not one of messages.
    #[must_use]
    pub fn parse(method: &Method, uri: &Uri) -> Option<Self> {
        let path = percent_decode_str(uri.path()).decode_utf8_lossy();
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let is = |segment: &str, name: &str| segment.eq_ignore_ascii_case(name);
        let (place, action) = match *segments {
            [ref place @ .., messages] if is(messages, "messages") => match *method {
                Method::POST => (place, Action::Send),
                Method::GET => (place, Action::Browse),
                _ => return None,
            },
            [ref place @ .., messages, head] if is(messages, "messages") && is(head, "head") => {
                match *method {
                    Method::POST => (place, Action::PeekLock),
                    Method::DELETE => (place, Action::ReceiveAndDelete),
                    Method::GET => (place, Action::Browse),
                    _ => return None,
                }
            }
            // The token alone names the lock; the number or id before it is for people.
            [ref place @ .., messages, _, token] if is(messages, "messages") => {
                let action: fn(LockToken) -> Action = match *method {
                    Method::DELETE => Action::Complete,
                    Method::PUT => Action::Unlock,
                    Method::POST => Action::Renew,
                    _ => return None,
                };
                let token = Uuid::parse_str(token).map(|token| LockToken(token.as_u128()));
                (place, token.map_or(Action::NoLock, action))
            }
            _ => return None,
        };
        let (entity, subqueue) = subqueue(place)?;
        Some(Self {
            entity,
            subqueue,
            action,
            timeout: timeout(uri.query().unwrap_or_default()),
        })
    }
}

impl Call {
    /// Whether the request is one of management if there is no such entity: a rule or the
    /// subscription that it belongs to may be called `messages`. Management never uses POST, and
    /// has nothing at the path of the next message or of a lock. (docs/spec/admin.md#11)
    #[must_use]
    pub fn needs_entity(&self, method: &Method) -> bool {
        *method != Method::POST && matches!(self.action, Action::Browse | Action::NoLock)
    }
}

fn subqueue(segments: &[&str]) -> Option<(String, Subqueue)> {
    let is = |segment: &str, name: &str| segment.eq_ignore_ascii_case(name);
    let (entity, subqueue) = match segments {
        [entity @ .., transfer, dead] if is(transfer, "$transfer") && is(dead, DEAD_LETTER) => {
            (entity, Subqueue::TransferDeadLetter)
        }
        [entity @ .., dead] if is(dead, DEAD_LETTER) => (entity, Subqueue::DeadLetter),
        entity => (entity, Subqueue::Main),
    };
    let is_own = entity.first().is_none_or(|first| first.starts_with('$'));
    (!is_own).then(|| (entity.join("/"), subqueue))
}

const DEAD_LETTER: &str = "$deadletterqueue";

/// In seconds. What is no number means nothing.
fn timeout(query: &str) -> Duration {
    let mut fields = fields(query);
    let seconds = fields.find(|(name, _)| name.eq_ignore_ascii_case("timeout"));
    let seconds = seconds.and_then(|(_, value)| value.parse().ok());
    seconds
        .map_or(TIMEOUT, Duration::from_secs)
        .min(MAX_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: &str = "9c4d0b2e-8f3a-4c66-9a65-3a0d1a6a2b11";

    fn parse(method: &str, path: &str) -> Option<Call> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        Call::parse(&method, &path.parse().unwrap())
    }

    fn check(method: &str, path: &str, entity: &str, subqueue: Subqueue, action: Action) {
        let call = parse(method, path).unwrap();
        assert_eq!(
            (call.entity.as_str(), call.subqueue, call.action),
            (entity, subqueue, action),
            "{method} {path}"
        );
    }

    #[test]
    fn requests_of_the_contract_are_understood() {
        let token = LockToken(Uuid::parse_str(GUID).unwrap().as_u128());
        let main = Subqueue::Main;
        check("POST", "/orders/messages", "orders", main, Action::Send);
        check("POST", "/a/b%2Fc/Messages/", "a/b/c", main, Action::Send);
        check("POST", "/q/messages/head", "q", main, Action::PeekLock);
        check(
            "DELETE",
            "/q/messages/head",
            "q",
            main,
            Action::ReceiveAndDelete,
        );
        let located = format!("/t/Subscriptions/s/messages/17/{GUID}");
        let subscription = "t/Subscriptions/s";
        check(
            "DELETE",
            &located,
            subscription,
            main,
            Action::Complete(token),
        );
        check("PUT", &located, subscription, main, Action::Unlock(token));
        check("POST", &located, subscription, main, Action::Renew(token));
        let dead = "/q/$DeadLetterQueue/messages/head";
        check("POST", dead, "q", Subqueue::DeadLetter, Action::PeekLock);
        let transfer = "/q/$transfer/$deadletterqueue/messages/head";
        let subqueue = Subqueue::TransferDeadLetter;
        check("POST", transfer, "q", subqueue, Action::PeekLock);
        check(
            "GET",
            "/q/messages?PeekOnly=true",
            "q",
            main,
            Action::Browse,
        );
    }

    #[test]
    fn other_paths_are_not_of_messages() {
        for (method, path) in [
            ("PUT", "/q/messages"),
            ("DELETE", "/messages"),
            ("POST", "/messages"),
            ("POST", "/$management/messages"),
            ("PUT", "/q/messages/head"),
            ("DELETE", "/q"),
            ("GET", "/q/messages/17/9c4d0b2e-8f3a-4c66-9a65-3a0d1a6a2b11"),
        ] {
            assert_eq!(parse(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn a_token_that_is_no_guid_names_no_lock() {
        for method in ["DELETE", "PUT", "POST"] {
            let main = Subqueue::Main;
            check(method, "/q/messages/17/18", "q", main, Action::NoLock);
        }
    }

    #[test]
    fn what_may_be_managed_needs_an_entity() {
        let needs_entity = |method: &str, path: &str| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            parse(method.as_str(), path).unwrap().needs_entity(&method)
        };
        let lock = format!("/q/messages/17/{GUID}");
        assert!(needs_entity("GET", "/nowhere/messages"));
        assert!(needs_entity("GET", "/t/subscriptions/s/rules/messages"));
        assert!(needs_entity("PUT", "/t/subscriptions/messages/rules/r"));
        assert!(!needs_entity("POST", "/nowhere/messages"));
        assert!(!needs_entity("POST", "/q/messages/17/18"));
        assert!(!needs_entity("DELETE", "/nowhere/messages/head"));
        assert!(!needs_entity("PUT", &lock));
    }

    #[test]
    fn a_receive_waits_as_long_as_it_says() {
        let timeout = |query: &str| {
            let call = parse("POST", &format!("/q/messages/head{query}"));
            call.unwrap().timeout.as_secs()
        };
        assert_eq!(timeout(""), 60);
        assert_eq!(timeout("?timeout=5"), 5);
        assert_eq!(timeout("?api-version=2015-01&timeout=0"), 0);
        assert_eq!(timeout("?timeout=soon"), 60);
        assert_eq!(timeout("?timeout=18446744073709551615"), 86_400);
    }
}
