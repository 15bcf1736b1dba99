//! Names of entities. (Entities contract 1.1)

use serde::Deserialize;
use serde::de::Error as _;

/// The longest path of a queue or topic.
const LONGEST: usize = 260;
/// The longest name of a subscription.
const LONGEST_SUBSCRIPTION: usize = 50;
/// The longest part of a host's name.
const LONGEST_LABEL: usize = 63;

/// A queue's or topic's path, checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EntityPath(String);

impl EntityPath {
    /// Checks `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let problem = problem(text);
        match problem {
            None => Ok(Self(text.to_owned())),
            Some(problem) => Err(format!("`{text}` is not a name: {problem}")),
        }
    }

    /// The path, consumed.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// A subscription's name, checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SubscriptionName(String);

impl SubscriptionName {
    /// Checks `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = |problem| Err(format!("`{text}` is not a name: {problem}"));
        if text.len() > LONGEST_SUBSCRIPTION {
            refuse("it must have 1 to 50 characters")
        } else if text.contains('/') {
            refuse("no `/` may be in it")
        } else if let Some(problem) = problem(text) {
            refuse(problem)
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// The name, consumed.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// A label for the namespace, checked: as a part of a host's name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamespaceName(String);

impl NamespaceName {
    /// The label, consumed.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<'de> Deserialize<'de> for NamespaceName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fits = (1..=LONGEST_LABEL).contains(&text.len());
        if fits && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Ok(Self(text));
        }
        let message = format!(
            "`{text}` is not a label: it must have 1 to {LONGEST_LABEL} letters, digits and `-`"
        );
        Err(D::Error::custom(message))
    }
}

fn problem(text: &str) -> Option<&'static str> {
    let edge = |text: Option<char>| text.is_some_and(|c| c.is_ascii_alphanumeric());
    if text.is_empty() || text.len() > LONGEST {
        Some("it must have 1 to 260 characters")
    } else if !text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/'))
    {
        Some("only letters, digits, `.`, `-`, `_` and `/` may be in it")
    } else if !edge(text.chars().next()) || !edge(text.chars().next_back()) {
        Some("it must begin and end with a letter or digit")
    } else if text.contains("//") {
        Some("a segment between two `/` is empty")
    } else if text
        .split('/')
        .any(|segment| segment.eq_ignore_ascii_case("subscriptions"))
    {
        Some("`subscriptions` stands for those of a topic")
    } else if text
        .split('/')
        .skip(1)
        .any(|segment| segment.eq_ignore_ascii_case("messages"))
    {
        Some("`messages` stands for those of an entity")
    } else {
        None
    }
}

impl<'de> Deserialize<'de> for SubscriptionName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for EntityPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_queues_are_accepted() {
        for name in [
            "orders",
            "a",
            "7",
            "a/b/c",
            "Orders_2.in-1",
            &"x".repeat(260),
        ] {
            assert!(EntityPath::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_that_service_bus_would_refuse_are_refused() {
        let names = [
            "",
            "/a",
            "a/",
            "a//b",
            "-a",
            "a.",
            "a b",
            "a?b",
            "a#",
            "$management",
            "a/$DeadLetterQueue",
            "ä",
        ];
        for name in names.into_iter().chain([&*"x".repeat(261)]) {
            assert!(EntityPath::parse(name).is_err(), "{name}");
        }
    }
}
