//! Filters of rules, in JSON and TOML: `true`, `false`, `{"sql": "..."}` or `{"correlation":
//! {...}}`. (docs/spec/entities.md#17.3)

use std::collections::BTreeMap;
use std::fmt;

use broker::{Correlation, FilterDescription};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::TypedValue;

/// What a rule selects. Everything, unless told otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter(pub FilterDescription);

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            FilterDescription::True => serializer.serialize_bool(true),
            FilterDescription::False => serializer.serialize_bool(false),
            FilterDescription::Sql(text) => Condition::Sql(text.clone()).serialize(serializer),
            FilterDescription::Correlation(fields) => {
                let fields = CorrelationFields::from((**fields).clone());
                Condition::Correlation(fields).serialize(serializer)
            }
        }
    }
}

struct Reader;

/// A filter that is more than true or false.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Condition {
    Sql(String),
    Correlation(CorrelationFields),
}

/// What has to be equal, as far as it is there. (docs/spec/entities.md#17.4)
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CorrelationFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(alias = "label", skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    properties: BTreeMap<String, TypedValue>,
}

impl<'de> Visitor<'de> for Reader {
    type Value = FilterDescription;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, {\"sql\": \"...\"} or {\"correlation\": {...}}")
    }

    fn visit_bool<E>(self, everything: bool) -> Result<FilterDescription, E> {
        Ok(if everything {
            FilterDescription::True
        } else {
            FilterDescription::False
        })
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<FilterDescription, M::Error> {
        Ok(
            match Condition::deserialize(MapAccessDeserializer::new(map))? {
                Condition::Sql(text) => FilterDescription::Sql(text),
                Condition::Correlation(fields) => fields.into(),
            },
        )
    }
}

impl From<CorrelationFields> for Correlation {
    fn from(fields: CorrelationFields) -> Self {
        let properties = fields.properties.into_iter();
        Self {
            content_type: fields.content_type,
            correlation_id: fields.correlation_id,
            label: fields.subject,
            message_id: fields.message_id,
            reply_to: fields.reply_to,
            reply_to_session_id: fields.reply_to_session_id,
            session_id: fields.session_id,
            to: fields.to,
            properties: properties
                .map(|(name, TypedValue(value))| (name, value))
                .collect(),
        }
    }
}

impl From<Correlation> for CorrelationFields {
    fn from(fields: Correlation) -> Self {
        let properties = fields.properties.into_iter();
        Self {
            content_type: fields.content_type,
            correlation_id: fields.correlation_id,
            message_id: fields.message_id,
            reply_to: fields.reply_to,
            reply_to_session_id: fields.reply_to_session_id,
            session_id: fields.session_id,
            subject: fields.label,
            to: fields.to,
            properties: properties
                .map(|(name, value)| (name, TypedValue(value)))
                .collect(),
        }
    }
}

impl From<CorrelationFields> for FilterDescription {
    fn from(fields: CorrelationFields) -> Self {
        Self::Correlation(Box::new(fields.into()))
    }
}

#[cfg(test)]
mod tests {
    use amqp::Value;

    use super::*;

    fn read(json: &str) -> Result<FilterDescription, String> {
        let filter: Result<Filter, _> = serde_json::from_str(json);
        filter
            .map(|filter| filter.0)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_kind_of_filter_is_read() {
        assert_eq!(read("true"), Ok(FilterDescription::True));
        assert_eq!(read("false"), Ok(FilterDescription::False));
        assert_eq!(
            read(r#"{"sql": "a = 1"}"#),
            Ok(FilterDescription::Sql("a = 1".to_owned()))
        );
        let fields = r#"{"content-type": "1", "correlation-id": "2", "subject": "3",
            "message-id": "4", "reply-to": "5", "reply-to-session-id": "6", "session-id": "7",
            "to": "8", "properties": {"b": {"type": "int", "value": 5}, "a": "x"}}"#;
        let some = |text: &str| Some(text.to_owned());
        let expected = Correlation {
            content_type: some("1"),
            correlation_id: some("2"),
            label: some("3"),
            message_id: some("4"),
            reply_to: some("5"),
            reply_to_session_id: some("6"),
            session_id: some("7"),
            to: some("8"),
            properties: vec![
                ("a".to_owned(), Value::from("x")),
                ("b".to_owned(), Value::Int(5)),
            ],
        };
        assert_eq!(
            read(&format!(r#"{{"correlation": {fields}}}"#)),
            Ok(FilterDescription::Correlation(Box::new(expected)))
        );
        let label = read(r#"{"correlation": {"label": "3"}}"#);
        assert_eq!(label, read(r#"{"correlation": {"subject": "3"}}"#));
    }

    #[test]
    fn anything_else_is_refused() {
        let check = |json: &str, part: &str| {
            let error = read(json).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check("5", "expected true, false");
        check(r#""a = 1""#, "expected true, false");
        check(r#"{"sqll": "a = 1"}"#, "unknown variant `sqll`");
        check(r#"{"sql": "a = 1", "correlation": {}}"#, "");
        check(
            r#"{"correlation": {"color": "red"}}"#,
            "unknown field `color`",
        );
        check(r#"{"correlation": {"to": 5}}"#, "expected a string");
        check(r#"{"correlation": {"properties": {"a": []}}}"#, "sequence");
    }
}
