//! Resource: the entity, rule or list that a path names. (docs/spec/admin.md#3)
//!
//! Fixed segments match in any case, and one slash at the end is ignored. The path is decoded as a
//! whole, so an encoded slash separates segments like any other. No segment is dropped or resolved:
//! `a//b` and `a/../b` name only themselves, and no entity can have such a name.

use percent_encoding::percent_decode_str;

/// The resource that a path names. Names keep the case in which they were written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Resource {
    Namespace,
    Queues,
    Topics,
    /// A queue or a topic. Whether one may be called so is another question: clients ask for
    /// `$nservicebus-verification-queue` to learn their rights, and get the answer that it is
    /// missing.
    Entity {
        path: String,
    },
    /// A path of several segments of which one begins with `$`: nothing can be made there, and
    /// there is nothing to be asked for.
    Reserved {
        path: String,
    },
    Subscriptions {
        topic: String,
    },
    Subscription {
        topic: String,
        name: String,
    },
    Rules {
        topic: String,
        subscription: String,
    },
    Rule {
        topic: String,
        subscription: String,
        name: String,
    },
    /// A path that cannot be managed: a dead-letter queue, for one.
    Other,
}

impl Resource {
    /// The resource that a path names, whether it exists or not.
    pub(crate) fn parse(path: &str) -> Self {
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let path = decoded.strip_prefix('/').unwrap_or(&decoded);
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments: Vec<&str> = path.split('/').collect();
        match *segments {
            [""] => return Self::Other,
            [name] if name.eq_ignore_ascii_case("$namespaceinfo") => return Self::Namespace,
            [first, kind] if is_resources(first) && kind.eq_ignore_ascii_case("queues") => {
                return Self::Queues;
            }
            [first, kind] if is_resources(first) && kind.eq_ignore_ascii_case("topics") => {
                return Self::Topics;
            }
            [first, ..] if is_resources(first) => return Self::Other,
            _ => {}
        }
        if let Some(resource) = below_topic(&segments) {
            return resource;
        }
        let path = path.to_owned();
        match *segments {
            [_, .., last] if last.eq_ignore_ascii_case("$deadletterqueue") => Self::Other,
            [_, _, ..] if segments.iter().any(|segment| segment.starts_with('$')) => {
                Self::Reserved { path }
            }
            _ => Self::Entity { path },
        }
    }

    /// The path under which the broker knows an entity, if it is one.
    pub(crate) fn broker_path(&self) -> Option<String> {
        match self {
            Self::Entity { path } => Some(path.clone()),
            Self::Subscription { topic, name } => Some(subscription_path(topic, name)),
            _ => None,
        }
    }
}

fn is_resources(segment: &str) -> bool {
    segment.eq_ignore_ascii_case("$resources")
}

/// The path under which the broker knows a subscription.
pub(crate) fn subscription_path(topic: &str, name: &str) -> String {
    format!("{topic}/Subscriptions/{name}")
}

/// A resource below a topic: the last `Subscriptions` that has a topic before it counts, and a
/// topic's path has none.
fn below_topic(segments: &[&str]) -> Option<Resource> {
    let is = |segment: &str, name| segment.eq_ignore_ascii_case(name);
    let boundaries = (1..segments.len()).rev();
    let mut boundaries = boundaries.filter(|at| is(segments[*at], "subscriptions"));
    let at =
        boundaries.find(|at| !is(segments[at - 1], "subscriptions") && !is_name(segments, *at))?;
    let topic = segments[..at].join("/");
    Some(match segments[at + 1..] {
        [] => Resource::Subscriptions { topic },
        [name] => Resource::Subscription {
            topic,
            name: name.to_owned(),
        },
        [subscription, rules] if is(rules, "rules") => Resource::Rules {
            topic,
            subscription: subscription.to_owned(),
        },
        [subscription, rules, name] if is(rules, "rules") => Resource::Rule {
            topic,
            subscription: subscription.to_owned(),
            name: name.to_owned(),
        },
        _ => Resource::Other,
    })
}

/// Whether the segment is the name of a rule (`…/subscriptions/s/rules/subscriptions`).
fn is_name(segments: &[&str], at: usize) -> bool {
    let before = |back: usize, name: &str| {
        let segment = at.checked_sub(back).and_then(|at| segments.get(at));
        segment.is_some_and(|segment| segment.eq_ignore_ascii_case(name))
    };
    before(1, "rules") && before(3, "subscriptions")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let found = match Resource::parse(path) {
            Resource::Namespace => "namespace".to_owned(),
            Resource::Queues => "queues".to_owned(),
            Resource::Topics => "topics".to_owned(),
            Resource::Entity { path } => format!("entity {path}"),
            Resource::Reserved { path } => format!("reserved {path}"),
            Resource::Subscriptions { topic } => format!("subscriptions of {topic}"),
            Resource::Subscription { topic, name } => format!("{name} of {topic}"),
            Resource::Rules {
                topic,
                subscription,
            } => format!("rules of {subscription} of {topic}"),
            Resource::Rule {
                topic,
                subscription,
                name,
            } => {
                format!("rule {name} of {subscription} of {topic}")
            }
            Resource::Other => "other".to_owned(),
        };
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn paths_name_what_can_be_managed() {
        check("/$namespaceinfo", "namespace");
        check("/%24NamespaceInfo", "namespace");
        check("/$Resources/Queues", "queues");
        check("/$resources/topics/", "topics");
        check("/$Resources/others", "other");
        check("/$Resources", "other");
        check("/Orders", "entity Orders");
        check("/a/b%2Fc", "entity a/b/c");
        check("/t/Subscriptions", "subscriptions of t");
        check("/a/b/subscriptions/", "subscriptions of a/b");
        check("/t/SUBSCRIPTIONS/s", "s of t");
        check("/t/subscriptions/subscriptions", "subscriptions of t");
        check("/t/Subscriptions/s/Rules/", "rules of s of t");
        check(
            "/t/Subscriptions/s/rules/$Default",
            "rule $Default of s of t",
        );
        check(
            "/t/Subscriptions/s/rules/Subscriptions",
            "rule Subscriptions of s of t",
        );
        check("/subscriptions", "entity subscriptions");
        check("/", "other");
        check("/q/$DeadLetterQueue", "other");
        check("/t/Subscriptions/s/$DeadLetterQueue", "other");
        check("/t/Subscriptions/s/Rules/r/more", "other");
    }

    #[test]
    fn one_segment_that_begins_with_a_dollar_is_an_entity_that_can_not_be_there() {
        check(
            "/$nservicebus-verification-queue",
            "entity $nservicebus-verification-queue",
        );
        check("/%24x/", "entity $x");
        check("/$", "entity $");
        check("/$DeadLetterQueue", "entity $DeadLetterQueue");
        check("/t/Subscriptions/$s", "$s of t");
        check(
            "/t/Subscriptions/s/Rules/$DeadLetterQueue",
            "rule $DeadLetterQueue of s of t",
        );
        check("/a/$b", "reserved a/$b");
        check("/$a/b", "reserved $a/b");
        check("/$namespaceinfo/x", "reserved $namespaceinfo/x");
    }

    #[test]
    fn no_segment_is_dropped_or_resolved() {
        check("/a//b", "entity a//b");
        check("//a", "entity /a");
        check("/a//", "entity a/");
        check("/%2Fa%2F/", "entity /a/");
        check("/a/../b", "entity a/../b");
        check("/a/%2e%2E/b", "entity a/../b");
        check("/./a", "entity ./a");
        check("/t//Subscriptions/s", "s of t/");
        check("//", "other");
    }
}
