//! The types that the fields of a message may have, in messages and batches. [AMQP 3.2]

use bytes::Bytes;

use super::BATCH_FORMAT;
use super::tests::{DATA, PROPERTIES, batch, messages};

/// One value of each type, encoded.
const TYPES: [(&str, &[u8]); 17] = [
    ("null", b"\x40"),
    ("boolean", b"\x41"),
    ("ubyte", b"\x50\x01"),
    ("ushort", b"\x60\x00\x01"),
    ("uint", b"\x52\x01"),
    ("ulong", b"\x53\x01"),
    ("int", b"\x54\x01"),
    ("long", b"\x55\x01"),
    ("float", b"\x72\x00\x00\x00\x00"),
    ("timestamp", b"\x83\x00\x00\x00\x00\x00\x00\x00\x01"),
    ("uuid", b"\x980123456789abcdef"),
    ("binary", b"\xa0\x01a"),
    ("string", b"\xa1\x01a"),
    ("symbol", b"\xa3\x01a"),
    ("list", b"\x45"),
    ("map", b"\xc1\x01\x00"),
    ("array", b"\xe0\x02\x00\x50"),
];

/// Of a section that is a list of `fields`, which fields may have which types.
fn check_types(descriptor: u8, allowed: &[(&str, &str)]) {
    for (position, (name, types)) in allowed.iter().enumerate() {
        for (kind, value) in TYPES {
            let mut list = vec![NULL_FIELD; position];
            list.push(value);
            let items = list.concat();
            let mut section = vec![0x00, 0x53, descriptor, 0xc0];
            section.push(u8::try_from(items.len() + 1).expect("short"));
            section.push(u8::try_from(list.len()).expect("short"));
            section.extend_from_slice(&items);
            let message = Bytes::from([&section, DATA].concat());
            let in_batch = batch(std::slice::from_ref(&message));
            let is_allowed = kind == "null" || types.split(' ').any(|allowed| allowed == kind);
            for (format, payload) in [(0, &message), (BATCH_FORMAT, &in_batch)] {
                let expected = if is_allowed {
                    Ok(1)
                } else {
                    Err("amqp:decode-error".to_owned())
                };
                let taken = messages(format, payload, 1 << 20);
                let taken = taken.map(|taken| taken.len());
                let taken = taken.map_err(|error| error.condition.to_string());
                assert_eq!(taken, expected, "{name} as {kind}");
            }
        }
    }
}

const NULL_FIELD: &[u8] = b"\x40";

#[test]
fn each_field_of_properties_has_a_type_that_the_standard_allows() {
    let (id, text) = ("ulong uuid binary string symbol", "string symbol");
    check_types(
        0x73,
        &[
            ("message-id", id),
            ("user-id", "binary"),
            ("to", text),
            ("subject", text),
            ("reply-to", text),
            ("correlation-id", id),
            ("content-type", text),
            ("content-encoding", text),
            ("absolute-expiry-time", "timestamp"),
            ("creation-time", "timestamp"),
            ("group-id", text),
            ("group-sequence", "uint"),
            ("reply-to-group-id", text),
        ],
    );
}

#[test]
fn each_field_of_a_header_has_a_type_that_the_standard_allows() {
    check_types(
        0x70,
        &[
            ("durable", "boolean"),
            ("priority", "ubyte"),
            ("ttl", "uint"),
            ("first-acquirer", "boolean"),
            ("delivery-count", "uint"),
        ],
    );
}

#[test]
fn a_key_of_annotations_is_a_symbol_or_an_ulong() {
    for descriptor in [0x71, 0x72] {
        for (kind, key) in TYPES {
            let mut section = vec![0x00, 0x53, descriptor, 0xc1];
            section.push(u8::try_from(key.len() + 2).expect("short"));
            section.push(2);
            section.extend_from_slice(key);
            section.push(0x41);
            let message = Bytes::from([&section, PROPERTIES, DATA].concat());
            let taken = messages(0, &message, 1 << 20).map_err(|error| error.condition.to_string());
            let is_allowed = matches!(kind, "symbol" | "string" | "ulong");
            assert_eq!(taken.is_ok(), is_allowed, "{kind}");
        }
    }
}
