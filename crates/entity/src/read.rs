//! Reading: definitions of entities as files and our own interface write them.
//!
//! Every key but the name is optional, and null is the same as absent. An unknown key is an error,
//! and so is one that comes twice.

use std::fmt;

use broker::{EntityDescription, EntityKind, RuleDescription, SubscriptionSettings};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::definition::{QueueDefinition, SubscriptionDefinition, TopicDefinition};
use crate::name::{EntityPath, SubscriptionName};
use crate::property::{Given, Property, Slot, ValueRefusal};
use crate::retry_backoff;
use crate::rule_config::RuleConfig;
use crate::table::named;

impl<'de> Deserialize<'de> for QueueDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = deserializer.deserialize_map(Reader(EntityKind::Queue))?;
        Ok(Self {
            path: read.name,
            settings: read.description.settings,
        })
    }
}

impl<'de> Deserialize<'de> for TopicDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = deserializer.deserialize_map(Reader(EntityKind::Topic))?;
        Ok(Self {
            path: read.name,
            settings: read.description.settings,
            subscriptions: read.subscriptions,
        })
    }
}

impl<'de> Deserialize<'de> for SubscriptionDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = deserializer.deserialize_map(Reader(EntityKind::Subscription))?;
        let rules: Vec<_> = read.rules.into_iter().map(RuleDescription::from).collect();
        let dead_lettering = read
            .description
            .dead_lettering_on_filter_evaluation_exceptions;
        Ok(Self {
            name: read.name,
            settings: SubscriptionSettings {
                queue: read.description.settings,
                dead_lettering_on_filter_evaluation_exceptions: dead_lettering,
            },
            rules: (!rules.is_empty()).then_some(rules),
        })
    }
}

/// What a definition says.
#[derive(Default)]
struct Definition {
    name: String,
    description: EntityDescription,
    subscriptions: Vec<SubscriptionDefinition>,
    rules: Vec<RuleConfig>,
}

/// Reads a definition of a kind.
struct Reader(EntityKind);

impl Reader {
    /// The key of what a kind of entity has below it.
    fn below(&self) -> Option<&'static str> {
        match self.0 {
            EntityKind::Queue => None,
            EntityKind::Topic => Some("subscriptions"),
            EntityKind::Subscription => Some("rules"),
        }
    }

    fn unknown(&self, key: &str) -> Refused {
        let keys = named(self.0).map(|(name, _)| name).chain(self.below());
        let keys: Vec<_> = keys.map(|key| format!("`{key}`")).collect();
        let keys = keys.join(", ");
        Refused(format!(
            "unknown field `{key}`, expected one of `name`, {keys}"
        ))
    }
}

/// Refuses a key where its value is read, so that the error has the path of the value.
struct Refused(String);

impl<'de> DeserializeSeed<'de> for Refused {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
        Err(D::Error::custom(self.0))
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Definition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {}", self.0)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Definition, M::Error> {
        let mut read = Definition::default();
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                map.next_value_seed(Refused(format!("duplicate field `{key}`")))?;
            }
            let property = named(self.0).find(|(name, _)| *name == key);
            match (&*key, property) {
                (_, Some((_, property))) => map.next_value_seed(ValueReader {
                    property,
                    description: &mut read.description,
                })?,
                ("name", None) if self.0 == EntityKind::Subscription => {
                    read.name = map.next_value::<SubscriptionName>()?.into_string();
                }
                ("name", None) => read.name = map.next_value::<EntityPath>()?.into_string(),
                ("subscriptions", None) if self.0 == EntityKind::Topic => {
                    read.subscriptions = map.next_value()?;
                }
                ("rules", None) if self.0 == EntityKind::Subscription => {
                    read.rules = map.next_value()?;
                }
                _ => map.next_value_seed(self.unknown(&key))?,
            }
            seen.push(key);
        }
        if !seen.iter().any(|key| key == "name") {
            return Err(M::Error::missing_field("name"));
        }
        Ok(read)
    }
}

/// Reads the value of a property into a description.
struct ValueReader<'a> {
    property: &'static Property,
    description: &'a mut EntityDescription,
}

impl ValueReader<'_> {
    fn set<E: Error>(self, given: Given<'_>) -> Result<(), E> {
        let set = self.property.set(self.description, given);
        set.map_err(|refusal| match refusal {
            ValueRefusal::Value(text) => E::custom(text),
            ValueRefusal::Type(expected) => {
                let unexpected = match given {
                    Given::Flag(flag) => Unexpected::Bool(flag),
                    Given::Number(number) => match i64::try_from(number) {
                        Ok(number) => Unexpected::Signed(number),
                        Err(_) => Unexpected::Other("a number"),
                    },
                    Given::Text(text) => Unexpected::Str(text),
                    Given::RetryBackoff(_) => Unexpected::Map,
                };
                E::invalid_type(unexpected, &expected)
            }
        })
    }
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut any = EntityDescription::default();
        f.write_str((self.property.slot)(&mut any).expected())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.set(Given::Flag(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.set(Given::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.set(Given::Number(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.set(Given::Text(value))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<(), M::Error> {
        if !matches!(
            (self.property.slot)(self.description),
            Slot::RetryBackoff(_)
        ) {
            return Err(M::Error::invalid_type(Unexpected::Map, &self));
        }
        let table = retry_backoff::Table::deserialize(MapAccessDeserializer::new(map))?;
        let backoff = table.read().map_err(M::Error::custom)?;
        self.set(Given::RetryBackoff(backoff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T: for<'de> Deserialize<'de>>(json: &str) -> String {
        let read: Result<T, _> = serde_json::from_str(json);
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn a_key_that_another_kind_has_is_refused_with_those_that_there_are() {
        let error = refusal::<TopicDefinition>(r#"{"name": "t", "lock-duration": "PT1M"}"#);
        let expected = "unknown field `lock-duration`, expected one of `name`, `max-size";
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("`subscriptions`"), "{error}");
        let error = refusal::<QueueDefinition>(r#"{"name": "q", "subscriptions": []}"#);
        assert!(
            error.starts_with("unknown field `subscriptions`"),
            "{error}"
        );
        let error = refusal::<SubscriptionDefinition>(r#"{"name": "s", "max-message-size": 5}"#);
        assert!(error.contains("`rules`"), "{error}");
    }

    #[test]
    fn a_key_that_comes_twice_or_a_missing_name_is_refused() {
        let twice = r#"{"name": "q", "status": "active", "status": "active"}"#;
        let error = refusal::<QueueDefinition>(twice);
        assert!(error.starts_with("duplicate field `status`"), "{error}");
        let error = refusal::<QueueDefinition>("{}");
        assert!(error.starts_with("missing field `name`"), "{error}");
    }

    #[test]
    fn a_value_of_another_type_is_refused_with_the_type() {
        for (value, expected) in [
            (r#""lock-duration": 5"#, "integer `5`, expected a string"),
            (
                r#""requires-session": "no""#,
                "string \"no\", expected a boolean",
            ),
            (
                r#""max-delivery-count": true"#,
                "boolean `true`, expected a whole",
            ),
            (
                r#""max-delivery-count": 1.5"#,
                "floating point `1.5`, expected a whole",
            ),
            (r#""forward-to": []"#, "sequence, expected a string"),
        ] {
            let error = refusal::<QueueDefinition>(&format!(r#"{{"name": "q", {value}}}"#));
            assert!(
                error.starts_with(&format!("invalid type: {expected}")),
                "{error}"
            );
        }
        assert!(refusal::<QueueDefinition>("5").contains("expected a queue"));
    }

    #[test]
    fn null_is_the_same_as_absent() {
        let json = r#"{"name": "q", "lock-duration": null, "expiry": null}"#;
        let read: QueueDefinition = serde_json::from_str(json).unwrap();
        assert_eq!(read.settings, broker::QueueSettings::default());
    }
}
