//! Typed values: those of correlation filters and of parameters. (docs/spec/admin.md#7)
//!
//! The local part of `i:type` gives a value's type; its namespace is one of two that clients mix
//! up. A value is returned with the type and the text that it was sent with.

use amqp::Value;
use broker::OriginalValue;
use entity::{Described, duration, time};
use uuid::Uuid;

use crate::xml::{Element, SCHEMA, SERIALIZATION, Writer};

/// Reads the value of an element.
///
/// # Errors
/// When the text is not valid for its type, or the type is unknown; the error says so.
pub(crate) fn parse(element: &Element) -> Result<Value, String> {
    parse_text(kind_of(element), &element.text)
}

/// The value of an element as it was written, if it would be written differently here. A time
/// without a zone is shown without one, and a `decimal` as what it was.
pub(crate) fn original(key: &str, element: &Element, value: &Value) -> Option<OriginalValue> {
    let (kind, text) = (kind_of(element), element.text.trim());
    let is_normal = match (kind, value) {
        ("string" | "boolean", _) | ("int", Value::Long(_)) => true,
        _ => shown(value) == (kind, text.to_owned()),
    };
    (!is_normal).then(|| OriginalValue {
        key: key.to_owned(),
        kind: kind.to_owned(),
        text: text.to_owned(),
    })
}

fn kind_of(element: &Element) -> &str {
    element.kind.as_deref().unwrap_or("string")
}

fn parse_text(kind: &str, whole: &str) -> Result<Value, String> {
    let text = whole.trim();
    let value = match kind {
        "string" => Some(Value::String(whole.to_owned())),
        "int" => integer(text),
        "long" => text.parse().ok().map(Value::Long),
        "short" => text.parse().ok().map(Value::Short),
        "byte" => text.parse().ok().map(Value::Byte),
        "unsignedByte" => text.parse().ok().map(Value::Ubyte),
        "unsignedShort" => text.parse().ok().map(Value::Ushort),
        "unsignedInt" => text.parse().ok().map(Value::Uint),
        "unsignedLong" => text.parse().ok().map(Value::Ulong),
        "float" => text.parse().ok().map(Value::Float),
        "double" | "decimal" => text.parse().ok().map(Value::Double),
        "boolean" => boolean(text).map(Value::Bool),
        "dateTime" => time::ticks(text).map(date_time),
        "duration" => duration::ticks(text).map(|ticks| Described::<&str>::Duration(ticks).into()),
        "char" => character(whole).map(Value::Char),
        "guid" => guid(text).map(Value::Uuid),
        "anyURI" => Some(Described::Uri(text).into()),
        _ => return Err(format!("the type '{kind}' is not known")),
    };
    value.ok_or_else(|| format!("'{text}' is no {kind}"))
}

/// Writes a value as an element, as it was written if it still has that value.
pub(crate) fn write(
    writer: &mut Writer,
    name: &str,
    value: &Value,
    original: Option<&OriginalValue>,
) {
    let original = original.filter(|it| parse_text(&it.kind, &it.text).as_ref() == Ok(value));
    let (kind, text) = match original {
        Some(original) => (&*original.kind, original.text.clone()),
        None => shown(value),
    };
    let namespace = match kind {
        "duration" | "char" | "guid" => SERIALIZATION,
        _ => SCHEMA,
    };
    let kind = format!("d6p1:{kind}");
    let attributes = [("i:type", &*kind), ("xmlns:d6p1", namespace)];
    writer.text_with(name, &attributes, text);
}

/// `true` and `false` in any case, and numbers.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// One SDK calls every integer so, also those that are none.
fn integer(text: &str) -> Option<Value> {
    let number = text.parse().ok().map(Value::Int);
    number.or_else(|| text.parse().ok().map(Value::Long))
}

fn date_time(ticks: i64) -> Value {
    match time::ms_of_ticks(ticks) {
        (ms, true) => Value::Timestamp(ms),
        _ => Described::<&str>::Time(ticks).into(),
    }
}

/// A character, or its number as .NET writes it.
fn character(text: &str) -> Option<char> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => Some(only),
        _ => char::from_u32(text.trim().parse().ok()?),
    }
}

/// `8-4-4-4-12` hexadecimal digits.
fn guid(text: &str) -> Option<[u8; 16]> {
    let uuid = Uuid::try_parse(text).ok();
    // Braces and other forms are longer or shorter.
    uuid.filter(|_| text.len() == 36).map(Uuid::into_bytes)
}

/// A value's type and text.
fn shown(value: &Value) -> (&'static str, String) {
    match value {
        Value::String(text) => ("string", text.clone()),
        Value::Symbol(symbol) => ("string", symbol.as_str().to_owned()),
        Value::Int(number) => ("int", number.to_string()),
        Value::Long(number) => ("long", number.to_string()),
        Value::Short(number) => ("short", number.to_string()),
        Value::Byte(number) => ("byte", number.to_string()),
        Value::Ubyte(number) => ("unsignedByte", number.to_string()),
        Value::Ushort(number) => ("unsignedShort", number.to_string()),
        Value::Uint(number) => ("unsignedInt", number.to_string()),
        Value::Ulong(number) => ("unsignedLong", number.to_string()),
        Value::Float(number) => ("float", float((*number).into(), format!("{number:?}"))),
        Value::Double(number) => ("double", float(*number, format!("{number:?}"))),
        Value::Bool(value) => ("boolean", value.to_string()),
        Value::Timestamp(ms) => {
            let text = time::text_of_ms(*ms);
            ("dateTime", text.unwrap_or_else(|| time::NEVER.to_owned()))
        }
        Value::Char(character) => ("char", u32::from(*character).to_string()),
        Value::Uuid(uuid) => ("guid", Uuid::from_bytes(*uuid).to_string()),
        other => match Described::of(other) {
            Some(Described::Duration(ticks)) => ("duration", duration::text_of_ticks(ticks)),
            Some(Described::Time(ticks)) => {
                let text = time::text_of_ticks(ticks);
                ("dateTime", text.unwrap_or_else(|| time::NEVER.to_owned()))
            }
            Some(Described::Uri(text)) => ("anyURI", text.to_owned()),
            None => match other {
                Value::Described(pair) => shown(&pair.1),
                // A rule made over AMQP may compare with what has no text; nothing could equal it.
                other => ("string", format!("{other:?}")),
            },
        },
    }
}

fn float(number: f64, text: String) -> String {
    if number.is_infinite() {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}INF");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(kind: &str, text: &str) -> Element {
        Element {
            kind: Some(kind.to_owned()),
            text: text.to_owned(),
            ..Element::default()
        }
    }

    fn comes_back(kind: &str, text: &str) {
        let value = parse(&element(kind, text)).unwrap();
        assert_eq!(shown(&value), (kind, text.to_owned()).clone(), "{value:?}");
    }

    #[test]
    fn values_come_back_with_their_types() {
        comes_back("string", " two  words ");
        comes_back("int", "-5");
        comes_back("long", "9223372036854775807");
        comes_back("short", "-7");
        comes_back("byte", "-8");
        comes_back("unsignedByte", "255");
        comes_back("unsignedShort", "65535");
        comes_back("unsignedInt", "4294967295");
        comes_back("unsignedLong", "18446744073709551615");
        comes_back("float", "1.5");
        comes_back("double", "-0.25");
        comes_back("double", "INF");
        comes_back("boolean", "true");
        comes_back("dateTime", "2020-07-05T11:12:13Z");
        comes_back("dateTime", "2020-07-05T11:12:13.1234567Z");
        comes_back("duration", "P1DT2H3M4.5678901S");
        comes_back("char", "65");
        comes_back("guid", "0f8fad5b-d9cb-469f-a165-70867728950e");
        comes_back("anyURI", "http://example.org/a?b=c");
    }

    #[test]
    fn what_is_none_of_its_type_is_refused() {
        for (kind, text) in [
            ("int", "9223372036854775808"),
            ("int", "x"),
            ("boolean", "yes"),
            ("dateTime", "yesterday"),
            ("duration", "1 day"),
            ("guid", "0f8fad5b"),
            ("guid", "+f8fad5b-d9cb-469f-a165-70867728950e"),
            ("char", ""),
            ("unknown", "x"),
        ] {
            assert!(parse(&element(kind, text)).is_err(), "{kind} {text}");
        }
    }
}
