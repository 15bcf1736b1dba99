//! Names of entities, checked when they are read. (docs/spec/entities.md#1.1)
//!
//! The broker decides which names are valid; here a valid name becomes a type. An error quotes the
//! name, since a file has no request that would show it.

use serde::Deserialize;
use serde::de::Error as _;

/// The longest part of a host's name.
const LONGEST_LABEL: usize = 63;

/// A queue's or topic's path, checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EntityPath(String);

impl EntityPath {
    /// Checks `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let checked = broker::check_path(text).map_err(|error| error.to_string());
        checked.map(|()| Self(text.to_owned()))
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
        let checked = broker::check_subscription_name(text).map_err(|error| error.to_string());
        checked.map(|()| Self(text.to_owned()))
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

    /// Why a file is refused that has `name`.
    fn refusal<T: for<'de> Deserialize<'de>>(name: &str) -> Option<String> {
        let read = serde_json::from_value::<T>(name.into());
        read.err().map(|error| error.to_string())
    }

    #[test]
    fn names_are_what_the_broker_takes() {
        for name in ["orders", "a/b/c", "~", "-a_", ".a./_b-", &"x".repeat(260)] {
            assert_eq!(refusal::<EntityPath>(name), None, "{name}");
        }
        for name in ["all", "~all~", "-", &"x".repeat(50)] {
            assert_eq!(refusal::<SubscriptionName>(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_that_is_refused_stands_in_the_error() {
        let names = [
            "/a",
            "a/",
            "a//b",
            "a/../b",
            ".",
            "a b",
            "a!b",
            "$management",
            "ä",
        ];
        for name in names {
            let expected = format!("'{name}' contains character(s) that is not allowed");
            let refused = refusal::<EntityPath>(name).unwrap();
            assert!(refused.starts_with(&expected), "{refused}");
        }
        for name in ["a/b", "..", "$Default"] {
            let expected = format!("'{name}' contains character(s) that is not allowed");
            let refused = refusal::<SubscriptionName>(name).unwrap();
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }

    #[test]
    fn a_name_of_the_wrong_length_is_refused_with_the_right_one() {
        let path = |length| refusal::<EntityPath>(&"x".repeat(length)).unwrap();
        assert!(
            path(261).contains("has 1 to 260 characters"),
            "{}",
            path(261)
        );
        assert!(path(0).contains("has 1 to 260 characters"), "{}", path(0));
        let name = |length| refusal::<SubscriptionName>(&"x".repeat(length)).unwrap();
        assert!(name(51).contains("has 1 to 50 characters"), "{}", name(51));
    }
}
