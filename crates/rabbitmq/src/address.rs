//! Address: the node that RabbitMQ's address forms name. (docs/spec/rabbitmq.md#4)
//!
//! Each name in an address is percent-encoded UTF-8; `+` is itself. Every form is refused that is
//! not one of version 2.

use std::fmt::Write;

use access::scope::{DEAD_LETTER, TRANSFER, strip_segment};
use broker::Subqueue;
use percent_encoding::percent_decode_str;

/// The node of requests.
pub(crate) const MANAGEMENT: &str = "/management";
/// The default exchange, as clients may name it.
pub(crate) const DEFAULT_EXCHANGE: &str = "amq.default";
const QUEUES: &str = "/queues/";
const EXCHANGES: &str = "/exchanges/";

/// A node for messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Address {
    /// A queue by its name, which the default exchange routes to.
    Queue(String),
    Exchange {
        name: String,
        key: String,
    },
}

/// Why a text is no address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum AddressError {
    /// It begins as one.
    Bad(String),
    Unknown(String),
    /// It begins as one of a queue that is read from.
    BadSource(String),
}

/// Whether an address is RabbitMQ's.
pub(crate) fn is_ours(address: &str) -> bool {
    address == MANAGEMENT || address.starts_with(QUEUES) || address.starts_with(EXCHANGES)
}

impl Address {
    /// The node that a target or a message's `to` names.
    pub(crate) fn of_target(address: &str) -> Result<Self, AddressError> {
        let bad = || AddressError::Bad(address.to_owned());
        if let Some(name) = address.strip_prefix(QUEUES) {
            let name = decoded(name).filter(|name| !name.is_empty());
            return name.map(Self::Queue).ok_or_else(bad);
        }
        let Some(rest) = address.strip_prefix(EXCHANGES) else {
            return Err(AddressError::Unknown(address.to_owned()));
        };
        let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, key) = decoded(name).zip(decoded(key)).ok_or_else(bad)?;
        match name.as_str() {
            "" | DEFAULT_EXCHANGE => Err(bad()),
            _ => Ok(Self::Exchange { name, key }),
        }
    }

    /// The queue that a source names.
    pub(crate) fn of_source(address: &str) -> Result<String, AddressError> {
        let Some(name) = address.strip_prefix(QUEUES) else {
            return Err(AddressError::Unknown(address.to_owned()));
        };
        decoded(name).ok_or_else(|| AddressError::BadSource(address.to_owned()))
    }
}

/// One segment of an address without its escapes.
pub(crate) fn decoded(segment: &str) -> Option<String> {
    let bytes = segment.as_bytes();
    let is_hex = |place: usize| bytes.get(place).is_some_and(u8::is_ascii_hexdigit);
    let is_escape = |place: usize| is_hex(place + 1) && is_hex(place + 2);
    let mut escapes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    if bytes.contains(&b'/') || !escapes.all(|(place, _)| is_escape(place)) {
        return None;
    }
    let name = percent_decode_str(segment).decode_utf8().ok()?;
    Some(name.into_owned())
}

/// A name as it stands in a path: only letters, digits and `-._~` bare.
pub(crate) fn encoded(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string takes everything");
        }
        text
    })
}

/// The address of a queue.
pub(crate) fn queue_address(name: &str) -> String {
    format!("{QUEUES}{}", encoded(name))
}

/// The entity and the subqueue of a queue's name: `q/$DeadLetterQueue` is the dead letters of `q`.
pub(crate) fn entity_of(name: &str) -> (&str, Subqueue) {
    let Some(parent) = strip_segment(name, DEAD_LETTER) else {
        return (name, Subqueue::Main);
    };
    match strip_segment(parent, TRANSFER) {
        None => (parent, Subqueue::DeadLetter),
        Some(parent) => (parent, Subqueue::TransferDeadLetter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_and_a_plus_stays() {
        let exchange = |name: &str, key: &str| {
            let (name, key) = (name.to_owned(), key.to_owned());
            Ok(Address::Exchange { name, key })
        };
        let cases = [
            ("/queues/a%2Fb", Ok(Address::Queue("a/b".to_owned()))),
            ("/queues/a+b", Ok(Address::Queue("a+b".to_owned()))),
            ("/queues/ä%E2%82%AC", Ok(Address::Queue("ä€".to_owned()))),
            ("/exchanges/amq.direct/a%2fb", exchange("amq.direct", "a/b")),
            ("/exchanges/x!$&'()*,;=:@", exchange("x!$&'()*,;=:@", "")),
            ("/exchanges/x/", exchange("x", "")),
        ];
        for (text, expected) in cases {
            assert_eq!(Address::of_target(text), expected, "{text}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "/queues/",
            "/queues/a/b",
            "/queues/%2",
            "/queues/%FF",
            "/exchanges/",
            "/exchanges/amq.default/a",
            "/exchanges/a/b/c",
        ] {
            let bad = AddressError::Bad(text.to_owned());
            assert_eq!(Address::of_target(text), Err(bad), "{text}");
        }
        for text in ["/queue/a", "a", "/exchange/x/k", "/topic/k", "/queues", ""] {
            let unknown = AddressError::Unknown(text.to_owned());
            assert_eq!(Address::of_target(text), Err(unknown), "{text}");
        }
    }

    #[test]
    fn a_name_is_encoded_by_its_bytes() {
        assert_eq!(encoded("a b/ä~"), "a%20b%2F%C3%A4~");
    }
}
