//! Requests to `/$railbus/entities`, and the paths there.

use hyper::Method;
use hyper::header::HeaderName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::arguments::BrokerArguments;
use crate::command_error::CommandError;
use crate::remote::runtime::runtime;
use crate::remote::{Call, Remote};

/// Where entities are.
const ENTITIES: &str = "/$railbus/entities";
/// What names may be written with as they are.
pub const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// One request, but for where the broker is.
#[derive(Debug)]
pub struct Request {
    method: Method,
    path: String,
    headers: &'static [(HeaderName, &'static str)],
    body: Option<Map<String, Value>>,
}

impl Request {
    pub fn new(
        method: Method,
        path: String,
        headers: &'static [(HeaderName, &'static str)],
        body: Option<Map<String, Value>>,
    ) -> Self {
        Self {
            method,
            path,
            headers,
            body,
        }
    }

    /// Asks for what is at a path below all entities.
    pub fn get(path: String) -> Self {
        Self::new(Method::GET, path, &[], None)
    }

    pub fn delete(path: String) -> Self {
        Self::new(Method::DELETE, path, &[], None)
    }

    pub fn post(path: String, body: Map<String, Value>) -> Self {
        Self::new(Method::POST, path, &[], Some(body))
    }

    /// Sends it and returns the broker's response.
    pub fn send(self, broker: &BrokerArguments) -> Result<Value, CommandError> {
        let remote = Remote::new(broker)?;
        let path = format!("{ENTITIES}{}", self.path);
        let call = Call {
            method: self.method,
            path: &path,
            headers: self.headers,
            body: self.body.map(|body| Value::Object(body).to_string()),
        };
        Ok(runtime()?.block_on(remote.call(call))?)
    }
}

/// A queue's or a topic's, or that of a subscription written as a whole. Nothing of it is left out:
/// what cannot be a name is for the broker to refuse.
pub fn path_of(entity: &str) -> String {
    let segments = entity.split('/');
    let mut path: String = segments
        .map(|segment| format!("/{}", utf8_percent_encode(segment, &PLAIN)))
        .collect();
    // A queue of such a name, unless it is a subscription's.
    let slash = path.rfind('/').filter(|slash| *slash > 0);
    if let Some(slash) = slash.filter(|slash| is_ambiguous(&path, *slash)) {
        path.replace_range(slash..=slash, "%2F");
    }
    path
}

/// Whether what stands behind the last slash means messages, or nothing, to the broker.
fn is_ambiguous(path: &str, slash: usize) -> bool {
    let (above, name) = path.split_at(slash);
    let below_topic = above.to_ascii_lowercase().ends_with("/subscriptions");
    let routes = [
        "/messages",
        "/reasons",
        "/receivers",
        "/message-sessions",
        "/session-state",
        "/explain",
        "/settle",
        "/purge",
        "/redrive",
    ];
    name == "/" || routes.contains(&name) && !below_topic
}

pub fn subscription_path(topic: &str, name: &str) -> String {
    let name = utf8_percent_encode(name, &PLAIN);
    format!("{}/Subscriptions/{name}", path_of(topic))
}

pub fn rule_path(topic: &str, subscription: &str, name: &str) -> String {
    let name = utf8_percent_encode(name, &PLAIN);
    format!("{}/Rules/{name}", subscription_path(topic, subscription))
}

/// Refuses what is something else than the command is about.
pub fn check_kind(found: &Value, wanted: &'static str, path: &str) -> Result<(), CommandError> {
    match found.get("kind").and_then(Value::as_str) {
        Some(kind) if kind != wanted => Err(CommandError::Kind {
            path: path.to_owned(),
            kind: kind.to_owned(),
            wanted,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_slashes_between_them_are_not() {
        assert_eq!(path_of("a/b.c"), "/a/b.c");
        assert_eq!(path_of("t/Subscriptions/s"), "/t/Subscriptions/s");
        assert_eq!(path_of("50%"), "/50%25");
        assert_eq!(path_of("a/messages"), "/a%2Fmessages");
        assert_eq!(path_of("messages"), "/messages");
        assert_eq!(path_of("~a-/_b."), "/%7Ea-/_b.");
        assert_eq!(subscription_path("t", "purge"), "/t/Subscriptions/purge");
        let subscription = "t/subscriptions/purge";
        assert_eq!(path_of(subscription), format!("/{subscription}"));
        assert_eq!(
            rule_path("t", "s", "$Default one"),
            "/t/Subscriptions/s/Rules/%24Default%20one"
        );
    }

    #[test]
    fn what_can_not_be_a_name_is_sent_as_it_is() {
        assert_eq!(path_of("a//b"), "/a//b");
        assert_eq!(path_of("a/../b"), "/a/../b");
        assert_eq!(path_of("/a"), "//a");
        assert_eq!(path_of("a/"), "/a%2F");
        assert_eq!(path_of("/"), "/%2F");
        assert_eq!(subscription_path("t", "a/b"), "/t/Subscriptions/a%2Fb");
        assert_eq!(rule_path("t", "s", "a/b"), "/t/Subscriptions/s/Rules/a%2Fb");
    }

    #[test]
    fn what_is_of_another_kind_is_refused() {
        let found = serde_json::json!({"kind": "topic"});
        assert!(check_kind(&found, "topic", "a").is_ok());
        let refusal = check_kind(&found, "queue", "a").unwrap_err().to_string();
        assert_eq!(refusal, "a is a topic, not a queue: use `railbus topic`");
    }
}
