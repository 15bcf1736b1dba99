//! Trace context: what the sender of a message says of its trace, by W3C's `traceparent`.
//!
//! Azure's SDKs write it as the application properties `traceparent` and `Diagnostic-Id`; the first
//! one wins. The properties are read and never changed.

use amqp::items::{self, Items};
use amqp::message::Sections;

/// The bytes of a `traceparent` of version 00.
const LENGTH: usize = 55;
/// The flag of a sampled trace.
const SAMPLED: u32 = 1;

/// A trace and the span of the sender in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceContext {
    pub trace: u128,
    pub parent: u64,
    /// Whether the sender was sampled.
    pub is_sampled: bool,
}

impl TraceContext {
    /// The text of the context in an encoded message that has these sections.
    pub fn text_in<'a>(payload: &'a [u8], sections: &Sections) -> Option<&'a str> {
        let section = payload.get(sections.application_properties.clone())?;
        let mut found = None;
        let mut entries = Items::of(section).ok()?;
        while let Ok(Some((key, value))) = entries.next_entry() {
            match items::text(key) {
                Some("traceparent") => return items::text(value),
                // A name that came as a header of HTTP is in lower case.
                Some(key) if key.eq_ignore_ascii_case("Diagnostic-Id") => {
                    found = items::text(value);
                }
                _ => {}
            }
        }
        found
    }

    /// Whether a text has the flag of a sampled trace where a context has it. It may be none.
    pub fn has_flag(text: &str) -> bool {
        let last = text.as_bytes().get(LENGTH - 1).copied().map(char::from);
        last.and_then(|digit| digit.to_digit(16))
            .is_some_and(|flags| flags & SAMPLED == SAMPLED)
    }

    /// `00-TRACE-PARENT-FLAGS`. Later versions may be longer.
    pub fn parse(text: &str) -> Option<Self> {
        let (text, more) = text.split_at_checked(LENGTH)?;
        let is_lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        let mut parts = text.split('-');
        let (version, trace, parent, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_whole = more.is_empty() || (version != "00" && more.starts_with('-'));
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
            is_sampled: u32::from_str_radix(flags, 16).ok()? & SAMPLED == SAMPLED,
        };
        (context.trace != 0 && context.parent != 0).then_some(context)
    }
}

#[cfg(test)]
mod tests {
    use amqp::Value;
    use amqp::message::{descriptor, encode_map_section};
    use bytes::BytesMut;

    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
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
        let text = TraceContext::text_in(&message, &sections);
        let found = text.and_then(TraceContext::parse);
        let flag = text.is_some_and(TraceContext::has_flag);
        assert!(flag || found.is_none_or(|found| !found.is_sampled));
        assert_eq!(found, expected, "{properties:?}");
    }

    #[test]
    fn either_property_has_the_context_and_traceparent_wins() {
        let other = "00-11111111111111111111111111111111-2222222222222222-01";
        check(&[("a", "b"), ("traceparent", TEXT)], Some(CONTEXT));
        check(&[("Diagnostic-Id", TEXT), ("a", "b")], Some(CONTEXT));
        let both = [("Diagnostic-Id", other), ("traceparent", TEXT)];
        check(&both, Some(CONTEXT));
    }

    #[test]
    fn a_sender_says_whether_it_was_sampled() {
        let unsampled = TEXT.replace("-01", "-00");
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
            &TEXT[1..],
            &format!("{TEXT}-x"),
            &TEXT.replace("00-", "ff-"),
            &TEXT.to_uppercase(),
            &TEXT.replace('b', "g"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319cb-7ad6b7169203331-01",
        ] {
            check(&[("traceparent", text)], None);
        }
        let later = format!("{}-more", TEXT.replacen("00-", "01-", 1));
        check(&[("traceparent", &later)], Some(CONTEXT));
    }
}
