//! Routes: the paths below `/$railbus/`, and their methods.
//!
//! The document of the interface, `openapi.json`, lists exactly these routes; a test compares the
//! two. A path below `/$railbus/entities/` that ends in `/messages`, `/reasons`, `/receivers`,
//! `/message-sessions`, `/session-state`, `/explain`, `/settle`, `/purge` or `/redrive` is that
//! route with the methods of the route. With any other method it is a queue or topic of that name,
//! and so it is if the word is the name of a subscription or a rule. A path whose last slash is
//! escaped is always an entity.

use access::Operation;
use hyper::Method;

/// Where the counters are.
pub const METRICS: &str = "/metrics";
/// The health check; it needs no credentials and no TLS.
pub const HEALTH: &str = "/health";
/// The prefix of our own interface, beside the contracts.
pub const OWN: &str = "/$railbus/";
/// Where a browser signs in.
pub const SESSION: &str = "/$railbus/session";

/// One thing that can be asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Route {
    /// What this interface is.
    Document,
    /// The session of a browser, which is answered before rights are checked.
    Session,
    Overview,
    Counts,
    Events,
    Connections,
    Connection,
    /// All entities.
    Entities,
    /// A queue, a topic or a subscription.
    Entity,
    Rules,
    Rule,
    Messages,
    Reasons,
    Receivers,
    /// The sessions of an entity.
    Sessions,
    SessionState,
    Explain,
    Settle,
    Purge,
    Redrive,
    Plan,
    Apply,
    TestRule,
    Clock,
    Backups,
    /// All policies.
    Policies,
    Policy,
    /// All namespaces.
    Namespaces,
    Namespace,
    NamespaceReset,
    NamespaceClock,
    /// The fault rules of a namespace.
    Faults,
    /// What has happened to messages of a namespace.
    History,
    MessageHistory,
    /// The snapshots of a namespace.
    Snapshots,
    Snapshot,
    Restore,
    Fork,
}

impl Route {
    /// What a path means to a request of this method, whether the method is allowed there or not.
    pub fn of(path: &str, method: &Method) -> Option<Self> {
        let rest = path.strip_prefix(OWN)?;
        Some(match rest {
            "openapi.json" => Self::Document,
            "session" => Self::Session,
            "overview" => Self::Overview,
            "counts" => Self::Counts,
            "events" => Self::Events,
            "connections" | "connections/" => Self::Connections,
            rest if rest.starts_with("connections/") => Self::Connection,
            "plan" => Self::Plan,
            "apply" => Self::Apply,
            "rules/test" => Self::TestRule,
            "clock" => Self::Clock,
            "backups" => Self::Backups,
            "policies" | "policies/" => Self::Policies,
            rest if rest.starts_with("policies/") => Self::Policy,
            "namespaces" | "namespaces/" => Self::Namespaces,
            rest if let Some(name) = rest.strip_prefix("namespaces/") => {
                match name.split_once('/') {
                    Some((_, "reset")) => Self::NamespaceReset,
                    Some((_, "clock")) => Self::NamespaceClock,
                    Some((_, "faults")) => Self::Faults,
                    Some((_, "history")) => Self::History,
                    Some((_, rest)) if is_message_history(rest) => Self::MessageHistory,
                    Some((_, "snapshots" | "snapshots/")) => Self::Snapshots,
                    Some((_, rest)) if rest.starts_with("snapshots/") => Self::Snapshot,
                    Some((_, "restore")) => Self::Restore,
                    Some((_, "fork")) => Self::Fork,
                    _ => Self::Namespace,
                }
            }
            rest => Self::of_entity(rest.strip_prefix("entities")?, method)?,
        })
    }

    fn of_entity(path: &str, method: &Method) -> Option<Self> {
        if !path.is_empty() && !path.starts_with('/') {
            return None;
        }
        let segments: Vec<_> = path.split('/').filter(|it| !it.is_empty()).collect();
        let is = |segment: &str, word: &str| segment.eq_ignore_ascii_case(word);
        Some(match (&segments[..], method) {
            ([], _) => Self::Entities,
            ([_, .., below, _, rules], _) if is(below, "subscriptions") && is(rules, "rules") => {
                Self::Rules
            }
            ([_, .., below, _, rules, _], _)
                if is(below, "subscriptions") && is(rules, "rules") =>
            {
                Self::Rule
            }
            ([_, .., below, _], _) if is(below, "subscriptions") => Self::Entity,
            ([_, .., "messages"], &Method::GET | &Method::HEAD | &Method::POST) => Self::Messages,
            ([_, .., "reasons"], &Method::GET | &Method::HEAD) => Self::Reasons,
            ([_, .., "receivers"], &Method::GET | &Method::HEAD) => Self::Receivers,
            ([_, .., "message-sessions"], &Method::GET | &Method::HEAD) => Self::Sessions,
            ([_, .., "session-state"], &Method::GET | &Method::HEAD) => Self::SessionState,
            ([_, .., "explain"], &Method::GET | &Method::HEAD) => Self::Explain,
            ([_, .., "settle"], &Method::POST) => Self::Settle,
            ([_, .., "purge"], &Method::POST) => Self::Purge,
            ([_, .., "redrive"], &Method::POST) => Self::Redrive,
            _ => Self::Entity,
        })
    }

    /// Whether it is about the whole broker, and so for clients of the default namespace alone.
    pub fn is_of_broker(self) -> bool {
        matches!(
            self,
            Self::Connections
                | Self::Connection
                | Self::Clock
                | Self::Backups
                | Self::Namespaces
                | Self::Namespace
                | Self::NamespaceReset
                | Self::NamespaceClock
                | Self::Faults
                | Self::Snapshots
                | Self::Snapshot
                | Self::Restore
                | Self::Fork
        )
    }

    /// Whether it is about what a namespace has, and so is below the path of a namespace too.
    pub fn is_of_namespace(self) -> bool {
        let has_own_place = matches!(
            self,
            Self::Document | Self::Session | Self::History | Self::MessageHistory
        );
        !self.is_of_broker() && !has_own_place
    }

    /// The methods that it can be asked for with.
    pub fn allowed(self) -> &'static str {
        match self {
            Self::Document
            | Self::Overview
            | Self::Counts
            | Self::Events
            | Self::Entities
            | Self::Rules
            | Self::Reasons
            | Self::Receivers
            | Self::Sessions
            | Self::SessionState
            | Self::Explain
            | Self::Connections
            | Self::Policies
            | Self::Namespaces
            | Self::History
            | Self::MessageHistory => "GET, HEAD",
            Self::Connection | Self::Snapshot => "DELETE",
            Self::Session => "POST, DELETE",
            Self::Messages | Self::Snapshots => "GET, HEAD, POST",
            Self::Policy | Self::Namespace => "GET, HEAD, PUT, DELETE",
            Self::Faults => "GET, HEAD, POST, PUT, DELETE",
            Self::Entity | Self::Rule => "GET, HEAD, PUT, PATCH, DELETE",
            Self::Clock | Self::NamespaceClock => "GET, HEAD, POST",
            Self::Settle
            | Self::Purge
            | Self::Redrive
            | Self::Plan
            | Self::Apply
            | Self::TestRule
            | Self::Backups
            | Self::NamespaceReset
            | Self::Restore
            | Self::Fork => "POST",
        }
    }

    /// Whether it works on many messages.
    pub fn is_bulk(self) -> bool {
        matches!(self, Self::Purge | Self::Redrive)
    }

    /// Whether a request may change entities, rules, policies, connections, the clock or the disk.
    pub fn changes(self) -> bool {
        !matches!(
            self,
            Self::Document
                | Self::Plan
                | Self::TestRule
                | Self::Messages
                | Self::Settle
                | Self::Purge
                | Self::Redrive
                | Self::Session
                | Self::Overview
                | Self::Counts
                | Self::Events
                | Self::Connections
                | Self::Reasons
                | Self::Receivers
                | Self::Sessions
                | Self::SessionState
                | Self::Explain
                | Self::History
                | Self::MessageHistory
        )
    }

    /// What a request of this method is, for its right.
    pub fn operation(self, method: &Method) -> Operation {
        let is_read = [Method::GET, Method::HEAD].contains(method);
        match self {
            Self::Overview
            | Self::Counts
            | Self::Events
            | Self::Entities
            | Self::Entity
            | Self::Rules
            | Self::Rule
            | Self::Messages
            | Self::Reasons
            | Self::Receivers
            | Self::Sessions
            | Self::SessionState
            | Self::Explain
            | Self::History
            | Self::MessageHistory
                if is_read =>
            {
                Operation::Observe
            }
            Self::Messages => Operation::Submit,
            _ => Operation::Operate,
        }
    }

    /// Whether it can be asked for with this one.
    pub fn allows(self, method: &Method) -> bool {
        let mut allowed = self.allowed().split(", ");
        allowed.any(|allowed| allowed == method.as_str())
    }
}

/// Whether what stands behind a namespace is the history of a message.
fn is_message_history(rest: &str) -> bool {
    let id = rest.strip_prefix("messages/");
    let id = id.and_then(|rest| rest.strip_suffix("/history"));
    id.is_some_and(|id| !id.is_empty() && !id.contains('/'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value as Json;

    use super::*;
    use crate::http::api::document::DOCUMENT;

    const ALL: [Route; 38] = [
        Route::Document,
        Route::Session,
        Route::Overview,
        Route::Counts,
        Route::Events,
        Route::Connections,
        Route::Connection,
        Route::Entities,
        Route::Entity,
        Route::Rules,
        Route::Rule,
        Route::Messages,
        Route::Reasons,
        Route::Receivers,
        Route::Sessions,
        Route::SessionState,
        Route::Explain,
        Route::Settle,
        Route::Purge,
        Route::Redrive,
        Route::Plan,
        Route::Apply,
        Route::TestRule,
        Route::Clock,
        Route::Backups,
        Route::Policies,
        Route::Policy,
        Route::Namespaces,
        Route::Namespace,
        Route::NamespaceReset,
        Route::NamespaceClock,
        Route::Faults,
        Route::History,
        Route::MessageHistory,
        Route::Snapshots,
        Route::Snapshot,
        Route::Restore,
        Route::Fork,
    ];

    /// As the document writes it. A route that is new has to be in `ALL` too.
    fn template(route: Route) -> &'static str {
        match route {
            Route::Document => "/$railbus/openapi.json",
            Route::Session => "/$railbus/session",
            Route::Overview => "/$railbus/overview",
            Route::Counts => "/$railbus/counts",
            Route::Events => "/$railbus/events",
            Route::Connections => "/$railbus/connections",
            Route::Connection => "/$railbus/connections/{id}",
            Route::Entities => "/$railbus/entities",
            Route::Entity => "/$railbus/entities/{path}",
            Route::Rules => "/$railbus/entities/{path}/Rules",
            Route::Rule => "/$railbus/entities/{path}/Rules/{rule}",
            Route::Messages => "/$railbus/entities/{path}/messages",
            Route::Reasons => "/$railbus/entities/{path}/reasons",
            Route::Receivers => "/$railbus/entities/{path}/receivers",
            Route::Sessions => "/$railbus/entities/{path}/message-sessions",
            Route::SessionState => "/$railbus/entities/{path}/session-state",
            Route::Explain => "/$railbus/entities/{path}/explain",
            Route::Settle => "/$railbus/entities/{path}/settle",
            Route::Purge => "/$railbus/entities/{path}/purge",
            Route::Redrive => "/$railbus/entities/{path}/redrive",
            Route::Plan => "/$railbus/plan",
            Route::Apply => "/$railbus/apply",
            Route::TestRule => "/$railbus/rules/test",
            Route::Clock => "/$railbus/clock",
            Route::Backups => "/$railbus/backups",
            Route::Policies => "/$railbus/policies",
            Route::Policy => "/$railbus/policies/{layer}/{name}",
            Route::Namespaces => "/$railbus/namespaces",
            Route::Namespace => "/$railbus/namespaces/{name}",
            Route::NamespaceReset => "/$railbus/namespaces/{name}/reset",
            Route::NamespaceClock => "/$railbus/namespaces/{name}/clock",
            Route::Faults => "/$railbus/namespaces/{name}/faults",
            Route::History => "/$railbus/namespaces/{name}/history",
            Route::MessageHistory => "/$railbus/namespaces/{name}/messages/{id}/history",
            Route::Snapshots => "/$railbus/namespaces/{name}/snapshots",
            Route::Snapshot => "/$railbus/namespaces/{name}/snapshots/{snapshot}",
            Route::Restore => "/$railbus/namespaces/{name}/restore",
            Route::Fork => "/$railbus/namespaces/{name}/fork",
        }
    }

    /// GET goes with HEAD, which no document writes down.
    fn methods(route: Route) -> Vec<String> {
        let methods = route.allowed().split(", ").map(str::to_lowercase);
        let mut methods: Vec<_> = methods.filter(|method| method != "head").collect();
        methods.sort();
        methods
    }

    #[test]
    fn the_document_has_every_route_and_method_and_no_other() {
        let document: Json = serde_json::from_str(&DOCUMENT).unwrap();
        let paths = document["paths"].as_object().unwrap().iter();
        let written: BTreeMap<_, Vec<_>> = paths
            .map(|(path, item)| {
                let item = item.as_object().unwrap().keys();
                let methods = item.filter(|key| *key != "parameters");
                (path.clone(), methods.cloned().collect())
            })
            .collect();
        let answered: BTreeMap<_, _> = ALL
            .into_iter()
            .map(|route| (template(route).to_owned(), methods(route)))
            .collect();
        assert_eq!(written, answered);
    }

    #[test]
    fn a_path_of_the_document_is_the_route_of_its_methods() {
        for route in ALL {
            for path in ["orders", "a/b", "events/Subscriptions/all"] {
                let is_rule = matches!(route, Route::Rules | Route::Rule);
                if is_rule && !path.contains("Subscriptions") {
                    continue;
                }
                let asked = template(route).replace("{path}", path);
                let asked = asked.replace("{rule}", "big");
                for method in methods(route) {
                    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                    assert_eq!(Route::of(&asked, &method), Some(route), "{method} {asked}");
                    assert!(route.allows(&method));
                }
            }
        }
    }

    fn check(method: &Method, path: &str, expected: Option<Route>) {
        assert_eq!(Route::of(path, method), expected, "{method} {path}");
    }

    #[test]
    fn what_is_no_route_is_not_found() {
        let none = ["", "entitiesx", "Plan", "rules", "snapshots", "openapi"];
        for path in none {
            check(&Method::GET, &format!("{OWN}{path}"), None);
        }
        check(&Method::GET, "/health", None);
    }

    #[test]
    fn an_entity_may_be_called_as_what_is_done_to_messages() {
        let path = |rest: &str| format!("{OWN}entities/{rest}");
        check(&Method::PUT, &path("a/messages"), Some(Route::Entity));
        check(&Method::GET, &path("a/purge"), Some(Route::Entity));
        check(&Method::GET, &path("messages"), Some(Route::Entity));
        check(&Method::GET, &path("a%2Fmessages"), Some(Route::Entity));
        check(&Method::GET, &path("a/messages"), Some(Route::Messages));
        check(&Method::POST, &path("purge"), Some(Route::Entity));
        check(&Method::POST, &path("a"), Some(Route::Entity));
        check(&Method::GET, &path("/"), Some(Route::Entities));
        let below = |name: &str| path(&format!("t/subscriptions/{name}"));
        check(&Method::GET, &below("messages"), Some(Route::Entity));
        check(&Method::POST, &below("purge"), Some(Route::Entity));
        check(&Method::GET, &below("s/messages"), Some(Route::Messages));
        check(&Method::POST, &below("s/redrive"), Some(Route::Redrive));
        check(&Method::GET, &below("s/rules/messages"), Some(Route::Rule));
    }
}
