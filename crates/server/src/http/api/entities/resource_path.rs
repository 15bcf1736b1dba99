//! Resource path: the entity or rule that a path below `/$railbus/entities` names.
//!
//! Segments are decoded one by one, so an escaped slash is a part of a name. No segment is dropped
//! or resolved: `a//b` and `a/../b` name nothing but themselves, and no entity can have such a
//! name.

use percent_encoding::percent_decode_str;

use crate::namespaces::namespace::SUBSCRIPTIONS;

/// What a path names. Words between names have no case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ResourcePath {
    Everything,
    /// A queue or a topic.
    Entity(String),
    Subscription {
        topic: String,
        name: String,
    },
    Rules {
        /// Its path.
        subscription: String,
    },
    Rule {
        /// Its path.
        subscription: String,
        name: String,
    },
}

impl ResourcePath {
    /// What `path` names, which begins with a slash or is empty.
    pub fn parse(path: &str) -> Result<Self, String> {
        let path = path.strip_prefix('/').unwrap_or(path);
        if path.is_empty() {
            return Ok(Self::Everything);
        }
        let segments = path.split('/').map(|segment| {
            let text = percent_decode_str(segment).decode_utf8();
            text.map_err(|_| "the path is not UTF-8".to_owned())
        });
        let segments: Vec<_> = segments.collect::<Result<_, _>>()?;
        let is = |segment: &str, word: &str| segment.eq_ignore_ascii_case(word);
        let path_of = |topic: &[_], name: &str| format!("{}{SUBSCRIPTIONS}{name}", topic.join("/"));
        Ok(match &segments[..] {
            [topic @ .., subscriptions, subscription, rules]
                if is(subscriptions, "subscriptions")
                    && is(rules, "rules")
                    && !topic.is_empty() =>
            {
                let subscription = path_of(topic, subscription);
                Self::Rules { subscription }
            }
            [topic @ .., subscriptions, subscription, rules, name]
                if is(subscriptions, "subscriptions")
                    && is(rules, "rules")
                    && !topic.is_empty() =>
            {
                Self::Rule {
                    subscription: path_of(topic, subscription),
                    name: name.clone().into_owned(),
                }
            }
            [topic @ .., subscriptions, name]
                if is(subscriptions, "subscriptions") && !topic.is_empty() =>
            {
                Self::Subscription {
                    topic: topic.join("/"),
                    name: name.clone().into_owned(),
                }
            }
            path => Self::Entity(path.join("/")),
        })
    }

    /// The path of an entity with messages.
    pub fn messages(&self) -> Result<String, String> {
        match self {
            Self::Entity(_) | Self::Subscription { .. } => Ok(self.entity().unwrap_or_default()),
            _ => Err("only queues and subscriptions have messages".to_owned()),
        }
    }

    /// The path of the entity, as the broker knows it.
    pub fn entity(&self) -> Option<String> {
        match self {
            Self::Everything => None,
            Self::Entity(path) => Some(path.clone()),
            Self::Subscription { topic, name } => Some(format!("{topic}{SUBSCRIPTIONS}{name}")),
            Self::Rules { subscription } | Self::Rule { subscription, .. } => {
                Some(subscription.clone())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: ResourcePath) {
        assert_eq!(ResourcePath::parse(path), Ok(expected), "{path}");
    }

    #[test]
    fn a_path_names_what_files_name() {
        let entity = |path: &str| ResourcePath::Entity(path.to_owned());
        check("", ResourcePath::Everything);
        check("/", ResourcePath::Everything);
        check("/orders", entity("orders"));
        check("/a/b/c", entity("a/b/c"));
        check("/subscriptions/a", entity("subscriptions/a"));
        for path in ["a//b", "/a", "a/", "a/../b", "./a"] {
            check(&format!("/{path}"), entity(path));
        }
        check("/a%2F%2Fb", entity("a//b"));
        check("/a%2F..%2Fb", entity("a/../b"));
        let subscription = ResourcePath::Subscription {
            topic: "a/b".to_owned(),
            name: "s".to_owned(),
        };
        check("/a/b/subscriptions/s", subscription);
        let subscription = "t/Subscriptions/s".to_owned();
        check(
            "/t/Subscriptions/s/RULES",
            ResourcePath::Rules {
                subscription: subscription.clone(),
            },
        );
        check(
            "/t/Subscriptions/s/rules/%24Default%20one",
            ResourcePath::Rule {
                subscription,
                name: "$Default one".to_owned(),
            },
        );
        let subscription = ResourcePath::Subscription {
            topic: "t".to_owned(),
            name: "a/b".to_owned(),
        };
        check("/t/Subscriptions/a%2Fb", subscription);
        assert!(ResourcePath::parse("/%ff").is_err());
    }
}
