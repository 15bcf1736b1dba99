//! Trace context: what the sender of a message says of its trace, by W3C's `traceparent`.
//!
//! Azure's SDKs write it as the application properties `traceparent` and `Diagnostic-Id`; the first
//! one wins. The properties are read and never changed.

use amqp::message::Sections;
use amqp::validate;

/// The bytes of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// A trace and the span of the sender in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceContext {
    pub trace: u128,
    pub parent: u64,
    /// Whether the sender was sampled.
    pub is_sampled: bool,
}

impl TraceContext {
    /// The context in an encoded message that has these sections.
    pub fn of_message(payload: &[u8], sections: &Sections) -> Option<Self> {
        let section = payload.get(sections.application_properties.clone())?;
        let mut found = None;
        let mut items = items(section)?;
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            match text(key) {
                Some(b"traceparent") => {
                    found = text(value);
                    break;
                }
                // A name that came as a header of HTTP is in lower case.
                Some(key) if key.eq_ignore_ascii_case(b"Diagnostic-Id") => found = text(value),
                _ => {}
            }
        }
        Self::parse(found?)
    }

    /// `00-TRACE-PARENT-FLAGS`. Later versions may be longer.
    fn parse(text: &[u8]) -> Option<Self> {
        let (text, more) = text.split_at_checked(LENGTH)?;
        let text = std::str::from_utf8(text).ok()?;
        let is_lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        let mut parts = text.split('-');
        let (version, trace, parent, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_whole = more.is_empty() || (version != "00" && more.starts_with(b"-"));
        let lengths = [version.len(), trace.len(), parent.len(), flags.len()];
        if lengths != [2, 32, 16, 2] || version == "ff" || !is_whole {
            return None;
        }
        if !text.bytes().all(is_lower_hex) {
            return None;
        }
        let context = Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            parent: u64::from_str_radix(parent, 16).ok()?,
            is_sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
        };
        (context.trace != 0 && context.parent != 0).then_some(context)
    }
}

/// The encoded items of a section that is a described map.
fn items(section: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let descriptor = validate::extent(section.get(1..)?).ok()?;
    let mut rest = match section.get(1 + descriptor..)? {
        [0xc1, _, _, rest @ ..] | [0xd1, _, _, _, _, _, _, _, _, rest @ ..] => rest,
        _ => &[],
    };
    Some(std::iter::from_fn(move || {
        let (item, after) = rest.split_at_checked(validate::extent(rest).ok()?)?;
        rest = after;
        (!item.is_empty()).then_some(item)
    }))
}

/// The bytes of an encoded string.
pub fn text(item: &[u8]) -> Option<&[u8]> {
    match item {
        [0xa1, _, text @ ..] | [0xb1, _, _, _, _, text @ ..] => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use amqp::Value;
    use amqp::message::{descriptor, encode_map_section};
    use bytes::BytesMut;

    use super::*;

    const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const CONTEXT: TraceContext = TraceContext {
        trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
        parent: 0xb7ad_6b71_6920_3331,
        is_sampled: true,
    };

    fn message(properties: &[(&str, &str)]) -> BytesMut {
        let properties: Vec<_> = properties
            .iter()
            .map(|&(key, value)| (Value::from(key), Value::from(value)))
            .collect();
        let mut message = BytesMut::new();
        let descriptor = descriptor::APPLICATION_PROPERTIES;
        encode_map_section(&mut message, descriptor, &properties);
        amqp::encode::descriptor(&mut message, 0x75);
        amqp::encode::value(&mut message, &Value::Binary(vec![1, 2, 3].into()));
        message
    }

    fn check(properties: &[(&str, &str)], expected: Option<TraceContext>) {
        let message = message(properties);
        let sections = Sections::scan(&message).unwrap();
        let found = TraceContext::of_message(&message, &sections);
        assert_eq!(found, expected, "{properties:?}");
    }

    #[test]
    fn either_property_has_the_context_and_traceparent_wins() {
        let other = "00-11111111111111111111111111111111-2222222222222222-01";
        check(&[("a", "b"), ("traceparent", SAMPLED)], Some(CONTEXT));
        check(&[("Diagnostic-Id", SAMPLED), ("a", "b")], Some(CONTEXT));
        let both = [("Diagnostic-Id", other), ("traceparent", SAMPLED)];
        check(&both, Some(CONTEXT));
    }

    #[test]
    fn a_sender_says_whether_it_was_sampled() {
        let unsampled = SAMPLED.replace("-01", "-00");
        let context = TraceContext {
            is_sampled: false,
            ..CONTEXT
        };
        check(&[("traceparent", &unsampled)], Some(context));
        check(&[("a", "b")], None);
    }

    #[test]
    fn a_malformed_context_is_none() {
        for text in [
            "",
            "00",
            &SAMPLED[1..],
            &format!("{SAMPLED}-x"),
            &SAMPLED.replace("00-", "ff-"),
            &SAMPLED.to_uppercase(),
            &SAMPLED.replace('b', "g"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319cb-7ad6b7169203331-01",
        ] {
            check(&[("traceparent", text)], None);
        }
        let later = format!("{}-more", SAMPLED.replacen("00-", "01-", 1));
        check(&[("traceparent", &later)], Some(CONTEXT));
    }
}
