//! Property: one application property, as a header. (docs/spec/admin.md#11)
//!
//! Strings are in double quotes with JSON's escapes, numbers and booleans are bare, times are
//! quoted as HTTP writes them; durations, URIs and GUIDs are quoted text. Any other text is a
//! string as it is. Header names have no case, so the names of properties in headers become lower
//! case.

use amqp::Value;
use entity::{Described, duration, time};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use super::broker_properties::parse_time;

/// Headers that are never properties, besides those that begin as below.
const STANDARD: [&str; 30] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "authorization",
    "brokerproperties",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "host",
    "if-match",
    "if-none-match",
    "keep-alive",
    "location",
    "origin",
    "pragma",
    "referer",
    "server",
    "te",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];
const PREFIXES: [&str; 6] = [
    "access-control-",
    "proxy-",
    "sec-",
    "servicebus",
    "x-forwarded-",
    "x-ms-",
];

/// Whether a header has a meaning of its own.
fn is_standard(name: &str) -> bool {
    STANDARD.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The properties among headers. Of headers that come several times the first one counts.
pub(super) fn read_all(headers: &HeaderMap) -> Vec<(Value, Value)> {
    let names = headers.keys().map(HeaderName::as_str);
    let names = names.filter(|name| !is_standard(name));
    let properties = names.filter_map(|name| {
        let text = String::from_utf8_lossy(headers.get(name)?.as_bytes());
        Some((Value::from(name), read(text.trim())))
    });
    properties.collect()
}

fn read(text: &str) -> Value {
    if let Some(inner) = quoted(text) {
        return parse_http_time(&inner).map_or(Value::String(inner), Value::Timestamp);
    }
    if let Ok(flag) = text.parse() {
        return Value::Bool(flag);
    }
    if let Ok(number) = text.parse() {
        return Value::Long(number);
    }
    let number = text.parse().ok();
    match number.filter(|number: &f64| number.is_finite()) {
        Some(number) => Value::Double(number),
        None => Value::from(text),
    }
}

fn quoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    Some(serde_json::from_str(text).unwrap_or_else(|_| inner.to_owned()))
}

/// Only texts that end so, since clients send strings that happen to be times of another form.
fn parse_http_time(text: &str) -> Option<i64> {
    let time = text.ends_with(" GMT").then(|| parse_time(text)).flatten()?;
    Some(time.as_millisecond())
}

/// A property as a header; `None` if its name is no header's, or one that has another meaning.
pub(super) fn write(name: &str, value: &Value) -> Option<(HeaderName, HeaderValue)> {
    let header = HeaderName::try_from(name).ok()?;
    let shown = HeaderValue::try_from(text(value)?).ok()?;
    (!is_standard(header.as_str())).then_some((header, shown))
}

fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => flag.to_string(),
        Value::Timestamp(time) => quote(&http_time(*time)?),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Ulong(number) => number.to_string(),
        Value::Uuid(bytes) => quote(&uuid::Uuid::from_bytes(*bytes).to_string()),
        Value::Char(character) => quote(&character.to_string()),
        Value::Described(_) => match Described::of(value)? {
            Described::Time(ticks) => quote(&http_time(time::ms_of_ticks(ticks).0)?),
            Described::Duration(ticks) => quote(&duration::text_of_ticks(ticks)),
            Described::Uri(text) => quote(text),
        },
        value => match (value.as_text(), value.as_integer()) {
            (Some(text), _) => quote(text),
            (None, Some(number)) => number.to_string(),
            (None, None) => return None,
        },
    })
}

fn quote(text: &str) -> String {
    ascii(&serde_json::Value::from(text).to_string())
}

/// JSON with nothing but ASCII in it, as headers need it.
pub(super) fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, ' '..='~') {
            out.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// As HTTP writes times, to the second. [RFC 9110 5.6.7]
pub(super) fn http_time(millis: i64) -> Option<String> {
    let time = Timestamp::from_millisecond(millis).ok()?;
    DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&time)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_by_how_it_is_written() {
        let table = [
            (r#""x""#, Value::from("x")),
            (r#""say \"hi\"""#, Value::from(r#"say "hi""#)),
            (r#""C:\work""#, Value::from(r"C:\work")),
            ("17", Value::Long(17)),
            ("-1.5", Value::Double(-1.5)),
            ("true", Value::Bool(true)),
            ("plain text", Value::from("plain text")),
            ("NaN", Value::from("NaN")),
            (
                r#""Wed, 01 Jul 2026 12:00:00 GMT""#,
                Value::Timestamp(1_782_907_200_000),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for value in [
            Value::from("Grüße \u{1f980}\n"),
            Value::Long(-3),
            Value::Double(2.5),
            Value::Bool(false),
            Value::Timestamp(1_782_907_200_000),
        ] {
            let (name, shown) = write("Some-Name", &value).unwrap();
            assert_eq!(name, "some-name");
            assert_eq!(read(shown.to_str().unwrap()), value);
        }
    }

    #[test]
    fn the_types_of_service_bus_are_quoted() {
        let ticks = time::ticks("2026-07-01T14:00:00.5+02:00").unwrap();
        let table: [(Value, &str); 4] = [
            (
                Described::<&str>::Time(ticks).into(),
                r#""Wed, 01 Jul 2026 12:00:00 GMT""#,
            ),
            (
                Described::<&str>::Duration(905_000_000).into(),
                r#""PT1M30.5S""#,
            ),
            (Described::Uri("https://a/b?c").into(), r#""https://a/b?c""#),
            (
                Value::Uuid([0x11; 16]),
                r#""11111111-1111-1111-1111-111111111111""#,
            ),
        ];
        for (value, expected) in table {
            let (_, shown) = write("some-name", &value).unwrap();
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn headers_with_a_meaning_of_their_own_are_no_properties() {
        let mut headers = HeaderMap::new();
        for name in [
            "host",
            "authorization",
            "x-ms-retrypolicy",
            "traceparent",
            "priority",
        ] {
            let name = HeaderName::from_static(name);
            headers.insert(name, HeaderValue::from_static("1"));
        }
        assert_eq!(
            read_all(&headers),
            [(Value::from("priority"), Value::Long(1))]
        );
        assert_eq!(write("Content-Length", &Value::Long(1)), None);
        assert_eq!(write("no header", &Value::Long(1)), None);
    }
}
