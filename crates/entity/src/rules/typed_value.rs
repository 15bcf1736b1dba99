//! Typed values: the values of application properties, in JSON and TOML.
//!
//! A text is a string, a whole number a long (a ulong beyond its range), a fraction a double; true
//! and false are booleans. Any other type stands beside the value: `{"type": "int", "value": 5}`,
//! by AMQP's names and those of the types that Service Bus describes. (docs/spec/amqp.md#4.2)

use std::fmt;

use amqp::{Symbol, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use crate::described::Described;
use crate::{duration, time};

/// How the toml crate hands over a date and time of TOML.
const TOML_DATETIME: &str = "$__toml_private_datetime";

const TYPES: &str = "null, boolean, ubyte, ushort, uint, ulong, byte, short, int, long, float, double, char, \
                     timestamp, uuid, binary, string, symbol, duration, datetime-offset and uri";

/// Types that are written as texts.
const TEXTS: [&str; 9] = [
    "char",
    "timestamp",
    "uuid",
    "binary",
    "string",
    "symbol",
    "duration",
    "datetime-offset",
    "uri",
];

/// A value of a message's or a filter's property.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedValue(pub Value);

impl<'de> Deserialize<'de> for TypedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true, false, or {\"type\": ..., \"value\": ...}")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Long(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Ulong(value), Value::Long))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Value, M::Error> {
        let (mut kind, mut value) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                TOML_DATETIME => {
                    let text = map.next_value::<String>()?;
                    return of_type("timestamp", &Json::String(text)).map_err(M::Error::custom);
                }
                "type" => kind = Some(map.next_value::<String>()?),
                "value" => value = Some(map.next_value::<Json>()?),
                _ => return Err(M::Error::unknown_field(&key, &["type", "value"])),
            }
        }
        let kind = kind.ok_or_else(|| M::Error::missing_field("type"))?;
        of_type(&kind, &value.unwrap_or(Json::Null)).map_err(M::Error::custom)
    }
}

/// The value that `json` is as a `kind`.
fn of_type(kind: &str, json: &Json) -> Result<Value, String> {
    let wrong = || format!("{json} is no {kind}");
    let value = match kind {
        "null" => json.is_null().then_some(Value::Null),
        "boolean" => json.as_bool().map(Value::Bool),
        "ubyte" => unsigned(json).map(Value::Ubyte),
        "ushort" => unsigned(json).map(Value::Ushort),
        "uint" => unsigned(json).map(Value::Uint),
        "ulong" => unsigned(json).map(Value::Ulong),
        "byte" => signed(json).map(Value::Byte),
        "short" => signed(json).map(Value::Short),
        "int" => signed(json).map(Value::Int),
        "long" => signed(json).map(Value::Long),
        "float" => double(json).and_then(narrow).map(Value::Float),
        "double" => double(json).map(Value::Double),
        _ if TEXTS.contains(&kind) => match json.as_str() {
            Some(text) => of_text(kind, text)?,
            None => None,
        },
        _ => {
            return Err(format!("`{kind}` is no type of values; these are: {TYPES}"));
        }
    };
    value.ok_or_else(wrong)
}

/// The value of a type that is written as a text; none if the text is not of that type.
fn of_text(kind: &str, text: &str) -> Result<Option<Value>, String> {
    let mut characters = text.chars();
    Ok(match kind {
        "string" => Some(Value::from(text)),
        "symbol" => text
            .is_ascii()
            .then(|| Value::Symbol(Symbol::from(text.to_owned()))),
        "char" => match (characters.next(), characters.next()) {
            (Some(character), None) => Some(Value::Char(character)),
            _ => None,
        },
        "uuid" => {
            let uuid = uuid::Uuid::try_parse(text).ok();
            uuid.map(|uuid| Value::Uuid(uuid.into_bytes()))
        }
        "binary" => {
            let bytes = BASE64.decode(text).ok();
            bytes.map(|bytes| Value::Binary(bytes.into()))
        }
        "timestamp" => time::ms(text).map(Value::Timestamp),
        "datetime-offset" => {
            let ticks = time::ticks_with_zone(text);
            ticks.map(|ticks| Described::<&str>::Time(ticks).into())
        }
        "duration" => {
            let ticks = duration::parse_ticks(text)?;
            Some(Described::<&str>::Duration(ticks).into())
        }
        "uri" => Some(Described::Uri(text).into()),
        _ => None,
    })
}

fn unsigned<T: TryFrom<u64>>(json: &Json) -> Option<T> {
    json.as_u64()?.try_into().ok()
}

fn signed<T: TryFrom<i64>>(json: &Json) -> Option<T> {
    json.as_i64()?.try_into().ok()
}

/// What JSON cannot write is a text.
fn double(json: &Json) -> Option<f64> {
    match json.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => json.as_f64(),
    }
}

/// The nearest float; none beyond its range.
#[expect(
    clippy::cast_possible_truncation,
    reason = "precision is what a float lacks"
)]
fn narrow(double: f64) -> Option<f32> {
    let float = double as f32;
    (float.is_finite() || !double.is_finite()).then_some(float)
}

/// A duration, as clients write it.
pub(super) fn duration_of(ms: i64) -> Value {
    Described::<&str>::Duration(ms.saturating_mul(duration::TICKS_PER_MS)).into()
}

impl Serialize for TypedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Long(value) => serializer.serialize_i64(*value),
            Value::Double(value) if value.is_finite() => serializer.serialize_f64(*value),
            Value::String(text) => serializer.serialize_str(text),
            other => {
                let (kind, value) = encode_typed(other).ok_or_else(|| {
                    S::Error::custom("a list, map, array or decimal has no form here")
                })?;
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", kind)?;
                map.serialize_entry("value", &value)?;
                map.end()
            }
        }
    }
}

/// The type of a value by name, and what stands beside it.
fn encode_typed(value: &Value) -> Option<(&'static str, Json)> {
    Some(match value {
        Value::Ubyte(value) => ("ubyte", (*value).into()),
        Value::Ushort(value) => ("ushort", (*value).into()),
        Value::Uint(value) => ("uint", (*value).into()),
        Value::Ulong(value) => ("ulong", (*value).into()),
        Value::Byte(value) => ("byte", (*value).into()),
        Value::Short(value) => ("short", (*value).into()),
        Value::Int(value) => ("int", (*value).into()),
        Value::Float(value) => ("float", number(f64::from(*value))),
        Value::Double(value) => ("double", number(*value)),
        Value::Char(value) => ("char", value.to_string().into()),
        Value::Timestamp(ms) => ("timestamp", time::text_of_ms(*ms)?.into()),
        Value::Uuid(bytes) => (
            "uuid",
            uuid::Uuid::from_bytes(*bytes)
                .hyphenated()
                .to_string()
                .into(),
        ),
        Value::Binary(bytes) => ("binary", BASE64.encode(bytes).into()),
        Value::Symbol(name) => ("symbol", name.as_str().into()),
        other => match Described::of(other)? {
            Described::Duration(ticks) => ("duration", duration::text_of_ticks(ticks).into()),
            Described::Time(ticks) => ("datetime-offset", time::text_of_ticks(ticks)?.into()),
            Described::Uri(text) => ("uri", text.into()),
        },
    })
}

fn number(value: f64) -> Json {
    let text = || {
        let name = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        Json::String(name.to_owned())
    };
    serde_json::Number::from_f64(value).map_or_else(text, Json::Number)
}

/// Plain values as they are written in expressions, others as in JSON.
impl fmt::Display for TypedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
        match &self.0 {
            Value::String(value) => f.write_str(&text(value)),
            Value::Null => f.write_str("NULL"),
            _ => match serde_json::to_value(self) {
                Ok(Json::Object(object)) => {
                    let part = |name| object.get(name).map(Json::to_string).unwrap_or_default();
                    let kind = object
                        .get("type")
                        .and_then(Json::as_str)
                        .unwrap_or_default();
                    write!(f, "{kind} {}", part("value"))
                }
                Ok(json) => write!(f, "{json}"),
                Err(_) => write!(f, "{:?}", self.0),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Value, String> {
        serde_json::from_str(json)
            .map(|TypedValue(value)| value)
            .map_err(|error| error.to_string())
    }

    fn check(json: &str, expected: &Value) {
        assert_eq!(read(json).as_ref(), Ok(expected), "{json}");
        let text = serde_json::to_string(&TypedValue(expected.clone())).unwrap();
        assert_eq!(read(&text).as_ref(), Ok(expected), "{text}");
    }

    #[test]
    fn plain_values_have_the_types_that_a_config_json_gives_them() {
        check("\"a\"", &Value::from("a"));
        check("5", &Value::Long(5));
        check("-5", &Value::Long(-5));
        check("18446744073709551615", &Value::Ulong(u64::MAX));
        check("1.5", &Value::Double(1.5));
        check("true", &Value::Bool(true));
        check("null", &Value::Null);
    }

    #[test]
    fn a_type_beside_the_value_decides() {
        let typed = |kind: &str, value: &str, expected: &Value| {
            check(
                &format!(r#"{{"type": "{kind}", "value": {value}}}"#),
                expected,
            );
            check(
                &format!(r#"{{"value": {value}, "type": "{kind}"}}"#),
                expected,
            );
        };
        typed("boolean", "false", &Value::Bool(false));
        typed("ubyte", "255", &Value::Ubyte(255));
        typed("ushort", "65535", &Value::Ushort(65_535));
        typed("uint", "1", &Value::Uint(1));
        typed("ulong", "1", &Value::Ulong(1));
        typed("byte", "-128", &Value::Byte(-128));
        typed("short", "-1", &Value::Short(-1));
        typed("int", "5", &Value::Int(5));
        typed("long", "5", &Value::Long(5));
        typed("float", "0.5", &Value::Float(0.5));
        typed("double", "5", &Value::Double(5.0));
        typed("double", "\"-Infinity\"", &Value::Double(f64::NEG_INFINITY));
        typed("char", "\"\u{e4}\"", &Value::Char('\u{e4}'));
        typed(
            "timestamp",
            "\"1970-01-01T00:00:01.5Z\"",
            &Value::Timestamp(1_500),
        );
        typed(
            "uuid",
            "\"00010203-0405-0607-0809-0a0b0c0d0e0f\"",
            &Value::Uuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        );
        typed("binary", "\"AQI=\"", &Value::Binary(vec![1, 2].into()));
        typed("symbol", "\"s\"", &Value::Symbol("s".into()));
        typed(
            "duration",
            "\"PT1.5S\"",
            &Described::<&str>::Duration(15_000_000).into(),
        );
        typed(
            "datetime-offset",
            "\"0001-01-02T00:00:00Z\"",
            &Described::<&str>::Time(864_000_000_000).into(),
        );
        typed("uri", "\"a:b\"", &Described::Uri("a:b").into());
        check(r#"{"type": "null"}"#, &Value::Null);
    }

    #[test]
    fn a_value_that_is_not_of_its_type_is_refused() {
        let error = |json: &str| read(json).unwrap_err();
        let check = |json: &str, part: &str| {
            let error = error(json);
            assert!(error.contains(part), "{error}");
        };
        check(r#"{"type": "ubyte", "value": 256}"#, "256 is no ubyte");
        check(r#"{"type": "int", "value": "5"}"#, "\"5\" is no int");
        check(r#"{"type": "int"}"#, "null is no int");
        check(r#"{"type": "float", "value": 1e300}"#, "is no float");
        check(r#"{"type": "char", "value": "ab"}"#, "\"ab\" is no char");
        check(r#"{"type": "uuid", "value": 5}"#, "5 is no uuid");
        check(r#"{"type": "symbol", "value": "ä"}"#, "is no symbol");
        check(
            r#"{"type": "timestamp", "value": "noon"}"#,
            "is no timestamp",
        );
        check(r#"{"type": "duration", "value": "1h"}"#, "ISO 8601");
        check(r#"{"type": "duration", "value": 5}"#, "5 is no duration");
        check(r#"{"type": "boolean", "value": "true"}"#, "is no boolean");
        check(
            r#"{"type": "number", "value": 5}"#,
            "`number` is no type of values",
        );
        check(
            r#"{"type": "number", "value": "5"}"#,
            "`number` is no type of values",
        );
        check(r#"{"value": 5}"#, "missing field `type`");
        check(r#"{"type": "int", "valeu": 5}"#, "unknown field `valeu`");
        check("[]", "invalid type: sequence");
    }

    #[test]
    fn a_value_is_shown_as_in_an_expression_or_with_its_type() {
        let show = |value| TypedValue(value).to_string();
        assert_eq!(show(Value::from("it's")), "'it''s'");
        assert_eq!(show(Value::Long(5)), "5");
        assert_eq!(show(Value::Double(5.0)), "5.0");
        assert_eq!(show(Value::Int(5)), "int 5");
        assert_eq!(show(Value::Null), "NULL");
        assert_eq!(
            show(Value::Timestamp(0)),
            "timestamp \"1970-01-01T00:00:00Z\""
        );
    }
}
