//! Filters of rules, in JSON and TOML: `true`, `false`, `{"sql": "..."}` or `{"correlation":
//! {...}}`. (docs/spec/entities.md#17.3)

use std::collections::BTreeMap;
use std::fmt;

use broker::{Correlation, CorrelationField, FilterDescription};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
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
            FilterDescription::Sql(text) | FilterDescription::Selector(text) => {
                Condition::Sql(text.clone()).serialize(serializer)
            }
            FilterDescription::Correlation(fields) => {
                let fields = CorrelationFields((**fields).clone());
                Condition::Correlation(fields).serialize(serializer)
            }
        }
    }
}

struct Reader;

/// A filter that is more than true or false.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Condition {
    Sql(String),
    Correlation(CorrelationFields),
}

/// What has to be equal, as far as it is there. (docs/spec/entities.md#17.4)
#[derive(Clone, Debug, Default)]
pub struct CorrelationFields(Correlation);

const PROPERTIES: &str = "properties";

/// What a field is called in our own files: the label is the subject.
fn name_of(field: &CorrelationField) -> &'static str {
    match field.key {
        "label" => "subject",
        key => key,
    }
}

impl Serialize for CorrelationFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for field in CorrelationField::ALL {
            if let Some(text) = field.of(&self.0) {
                map.serialize_entry(name_of(field), text)?;
            }
        }
        if !self.0.properties.is_empty() {
            let properties = self.0.properties.iter();
            let properties = properties.map(|(name, value)| (name, TypedValue(value.clone())));
            let properties: BTreeMap<_, _> = properties.collect();
            map.serialize_entry(PROPERTIES, &properties)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for CorrelationFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsReader).map(Self)
    }
}

struct FieldsReader;

impl<'de> Visitor<'de> for FieldsReader {
    type Value = Correlation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields of a correlation filter")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Correlation, M::Error> {
        let mut read = Correlation::default();
        let mut seen = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let mut fields = CorrelationField::ALL.iter();
            let field = fields.find(|field| [name_of(field), field.key].contains(&&*key));
            let name = field.map_or(PROPERTIES, name_of);
            if field.is_none() && key != PROPERTIES {
                return Err(unknown(&key));
            }
            if seen.contains(&name) {
                return Err(M::Error::custom(format!("duplicate field `{name}`")));
            }
            seen.push(name);
            match field {
                Some(field) => *(field.slot)(&mut read) = map.next_value()?,
                None => {
                    let properties: BTreeMap<String, TypedValue> = map.next_value()?;
                    let properties = properties.into_iter();
                    read.properties = properties.map(|(name, value)| (name, value.0)).collect();
                }
            }
        }
        Ok(read)
    }
}

fn unknown<E: Error>(key: &str) -> E {
    let names = CorrelationField::ALL
        .iter()
        .map(name_of)
        .chain([PROPERTIES]);
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    E::custom(format!("unknown field `{key}`, expected one of {names}"))
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

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<FilterDescription, M::Error> {
        // A text, so that the path of an error inside names it.
        let filter = match map.next_key::<String>()?.as_deref() {
            Some("sql") => FilterDescription::Sql(map.next_value()?),
            Some("correlation") => map.next_value::<CorrelationFields>()?.into(),
            Some(other) => return Err(M::Error::unknown_variant(other, &["sql", "correlation"])),
            None => return Err(M::Error::invalid_length(0, &self)),
        };
        if map.next_key::<IgnoredAny>()?.is_some() {
            return Err(M::Error::custom(
                "a filter is either `sql` or `correlation`",
            ));
        }
        Ok(filter)
    }
}

impl From<CorrelationFields> for FilterDescription {
    fn from(fields: CorrelationFields) -> Self {
        Self::Correlation(Box::new(fields.0))
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
            "unknown field `color`, expected one of `correlation-id`, `message-id`",
        );
        check(
            r#"{"correlation": {"subject": "a", "label": "b"}}"#,
            "duplicate field `subject`",
        );
        check(r#"{"correlation": {"to": 5}}"#, "expected a string");
        check(r#"{"correlation": {"properties": {"a": []}}}"#, "sequence");
    }
}
