//! Each type of the standard, as bytes written by hand. [AMQP 1.6]

use amqp::{DecodeError, Symbol, Value};
use bytes::Bytes;

use crate::{decoded, encoded};

/// Both ways: the bytes are how we write the value.
fn check(bytes: &[u8], value: &Value) {
    assert_eq!(decoded(bytes).as_ref(), Ok(value), "decoding {bytes:02x?}");
    assert_eq!(encoded(value), bytes, "encoding {value:?}");
}

/// One way: others may write the value so, but we do not.
fn check_decodes(bytes: &[u8], value: &Value) {
    assert_eq!(decoded(bytes).as_ref(), Ok(value), "decoding {bytes:02x?}");
    assert_ne!(
        encoded(value),
        bytes,
        "{value:?} is written in another form"
    );
}

fn symbol(name: &'static str) -> Value {
    Value::Symbol(Symbol::new(name))
}

#[test]
fn null_and_booleans_are_a_single_byte() {
    check(b"\x40", &Value::Null);
    check(b"\x41", &Value::Bool(true));
    check(b"\x42", &Value::Bool(false));
    check_decodes(b"\x56\x01", &Value::Bool(true));
    check_decodes(b"\x56\x00", &Value::Bool(false));
}

#[test]
fn unsigned_integers_take_their_smallest_form() {
    check(b"\x50\xff", &Value::Ubyte(255));
    check(b"\x60\x01\x02", &Value::Ushort(0x0102));
    check(b"\x43", &Value::Uint(0));
    check(b"\x52\xff", &Value::Uint(255));
    check(b"\x70\x00\x00\x01\x00", &Value::Uint(256));
    check(b"\x70\xff\xff\xff\xff", &Value::Uint(u32::MAX));
    check(b"\x44", &Value::Ulong(0));
    check(b"\x53\x01", &Value::Ulong(1));
    check(b"\x80\x00\x00\x00\x00\x00\x00\x01\x00", &Value::Ulong(256));
    check_decodes(b"\x52\x00", &Value::Uint(0));
    check_decodes(b"\x70\x00\x00\x00\x07", &Value::Uint(7));
    check_decodes(b"\x80\x00\x00\x00\x00\x00\x00\x00\x07", &Value::Ulong(7));
}

#[test]
fn signed_integers_take_their_smallest_form() {
    check(b"\x51\xff", &Value::Byte(-1));
    check(b"\x61\xff\xfe", &Value::Short(-2));
    check(b"\x54\x80", &Value::Int(-128));
    check(b"\x71\xff\xff\xff\x7f", &Value::Int(-129));
    check(b"\x55\x7f", &Value::Long(127));
    check(b"\x81\x00\x00\x00\x00\x00\x00\x00\x80", &Value::Long(128));
    check_decodes(b"\x71\x00\x00\x00\x01", &Value::Int(1));
    check_decodes(b"\x81\xff\xff\xff\xff\xff\xff\xff\xff", &Value::Long(-1));
}

#[test]
fn fractions_are_ieee_754() {
    check(b"\x72\x3f\xc0\x00\x00", &Value::Float(1.5));
    check(
        b"\x82\xbf\xf8\x00\x00\x00\x00\x00\x00",
        &Value::Double(-1.5),
    );
    check(b"\x74\x01\x02\x03\x04", &Value::Decimal32([1, 2, 3, 4]));
    check(
        b"\x84\x01\x02\x03\x04\x05\x06\x07\x08",
        &Value::Decimal64([1, 2, 3, 4, 5, 6, 7, 8]),
    );
    let mut decimal = vec![0x94];
    decimal.extend_from_slice(&[9; 16]);
    check(&decimal, &Value::Decimal128([9; 16]));
}

#[test]
fn chars_timestamps_and_uuids_have_a_fixed_width() {
    check(b"\x73\x00\x01\xf6\x00", &Value::Char('\u{1f600}'));
    check(
        b"\x83\x00\x00\x01\x97\x00\x00\x00\x00",
        &Value::Timestamp(0x0197_0000_0000),
    );
    check(
        b"\x83\xff\xff\xff\xff\xff\xff\xff\xff",
        &Value::Timestamp(-1),
    );
    let mut uuid = vec![0x98];
    uuid.extend(0..16);
    check(
        &uuid,
        &Value::Uuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
    );
}

#[test]
fn texts_and_binaries_have_a_size_of_one_byte_up_to_255() {
    check(
        b"\xa0\x03\x00\x01\x02",
        &Value::Binary(Bytes::from_static(&[0, 1, 2])),
    );
    check(b"\xa1\x02\xc3\xa9", &Value::from("é"));
    check(b"\xa3\x05queue", &symbol("queue"));
    check(b"\xa1\x00", &Value::from(""));
    check_decodes(
        b"\xb0\x00\x00\x00\x01\x07",
        &Value::Binary(Bytes::from_static(&[7])),
    );
    check_decodes(b"\xb1\x00\x00\x00\x01x", &Value::from("x"));
    check_decodes(b"\xb3\x00\x00\x00\x01x", &symbol("x"));
}

#[test]
fn texts_and_binaries_have_a_size_of_four_bytes_from_256_on() {
    let content = "y".repeat(256);
    let wire = |code: u8| [&[code, 0, 0, 1, 0], content.as_bytes()].concat();
    check(&wire(0xb0), &Value::Binary(Bytes::from(content.clone())));
    check(&wire(0xb1), &Value::String(content.clone()));
    check(&wire(0xb3), &Value::Symbol(content.clone().into()));
}

#[test]
fn lists_are_never_the_empty_form() {
    check(b"\xc0\x01\x00", &Value::List(vec![]));
    check(
        b"\xc0\x03\x02\x40\x41",
        &Value::List(vec![Value::Null, Value::Bool(true)]),
    );
    check_decodes(b"\x45", &Value::List(vec![]));
    check_decodes(
        b"\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x43",
        &Value::List(vec![Value::Uint(0)]),
    );
}

#[test]
fn a_list_that_outgrows_the_compact_form_is_written_in_full() {
    let by_size = [
        &b"\xd0\x00\x00\x01\x05\x00\x00\x00\x01\xa0\xff"[..],
        &[0; 255],
    ]
    .concat();
    check(
        &by_size,
        &Value::List(vec![Value::Binary(Bytes::from_static(&[0; 255]))]),
    );
    let by_count = [&b"\xd0\x00\x00\x01\x04\x00\x00\x01\x00"[..], &[0x40; 256]].concat();
    check(&by_count, &Value::List(vec![Value::Null; 256]));
    let just_fits = [&b"\xc0\xff\xfe"[..], &[0x40; 254]].concat();
    check(&just_fits, &Value::List(vec![Value::Null; 254]));
}

#[test]
fn maps_keep_their_order() {
    check(b"\xc1\x01\x00", &Value::Map(vec![]));
    check(
        b"\xc1\x0a\x04\xa3\x01b\x52\x01\xa3\x01a\x40",
        &Value::Map(vec![
            (symbol("b"), Value::Uint(1)),
            (symbol("a"), Value::Null),
        ]),
    );
    check_decodes(
        b"\xd1\x00\x00\x00\x06\x00\x00\x00\x02\x43\x44",
        &Value::Map(vec![(Value::Uint(0), Value::Ulong(0))]),
    );
}

#[test]
fn arrays_share_one_constructor() {
    check(
        b"\xe0\x04\x02\x56\x01\x00",
        &Value::Array(vec![Value::Bool(true), Value::Bool(false)]),
    );
    check(
        b"\xe0\x07\x02\xa3\x01a\x02bc",
        &Value::Array(vec![symbol("a"), symbol("bc")]),
    );
    check(
        b"\xe0\x06\x01\x71\x00\x00\x00\x05",
        &Value::Array(vec![Value::Int(5)]),
    );
    check(b"\xe0\x02\x03\x40", &Value::Array(vec![Value::Null; 3]));
    check(b"\xe0\x02\x00\x40", &Value::Array(vec![]));
    check_decodes(b"\xe0\x01\x00", &Value::Array(vec![]));
    check_decodes(
        b"\xe0\x02\x02\x41",
        &Value::Array(vec![Value::Bool(true); 2]),
    );
    check_decodes(
        b"\xe0\x04\x02\x54\xff\x01",
        &Value::Array(vec![Value::Int(-1), Value::Int(1)]),
    );
    check_decodes(
        b"\xf0\x00\x00\x00\x09\x00\x00\x00\x02\x60\x00\x01\x00\x02",
        &Value::Array(vec![Value::Ushort(1), Value::Ushort(2)]),
    );
}

#[test]
fn arrays_hold_compound_and_described_elements() {
    check_decodes(
        b"\xe0\x08\x02\xc0\x02\x01\x43\x02\x01\x40",
        &Value::Array(vec![
            Value::List(vec![Value::Uint(0)]),
            Value::List(vec![Value::Null]),
        ]),
    );
    check_decodes(
        b"\xe0\x05\x01\xe0\x02\x07\x41",
        &Value::Array(vec![Value::Array(vec![Value::Bool(true); 7])]),
    );
    let described = |n| Value::described(5, Value::Ubyte(n));
    check(
        b"\xe0\x07\x02\x00\x53\x05\x50\x01\x02",
        &Value::Array(vec![described(1), described(2)]),
    );
}

#[test]
fn elements_without_a_common_constructor_become_a_list() {
    let mixed = Value::Array(vec![Value::Null, Value::Bool(true)]);
    assert_eq!(encoded(&mixed), &b"\xc0\x03\x02\x40\x41"[..]);
    let descriptors_differ = Value::Array(vec![
        Value::described(1, Value::Null),
        Value::described(2, Value::Null),
    ]);
    assert_eq!(
        encoded(&descriptors_differ),
        &b"\xc0\x09\x02\x00\x53\x01\x40\x00\x53\x02\x40"[..]
    );
    let inner = Value::Array(vec![mixed.clone(), mixed]);
    assert_eq!(encoded(&inner)[0], 0xc0);
}

#[test]
fn descriptors_are_numbers_or_symbols() {
    check(
        b"\x00\x53\x24\xc0\x01\x00",
        &Value::described(0x24, Value::List(vec![])),
    );
    check(b"\x00\x53\x00\x40", &Value::described(0, Value::Null));
    check(
        b"\x00\x80\x00\x00\x00\x13\x70\x00\x00\x0c\xa1\x01s",
        &Value::described(0x13_7000_000c, Value::from("s")),
    );
    check(
        b"\x00\xa3\x01d\x00\x53\x01\x41",
        &Value::Described(Box::new((
            symbol("d"),
            Value::described(1, Value::Bool(true)),
        ))),
    );
    check_decodes(
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x05\x40",
        &Value::described(5, Value::Null),
    );
}

#[test]
fn unsound_contents_are_refused_by_what_is_wrong() {
    for (bytes, error) in [
        (&b"\xa1\x01\xff"[..], DecodeError::NotUtf8),
        (b"\xa3\x02\xc3\xa9", DecodeError::NotAscii),
        (b"\x73\x00\x00\xd8\x00", DecodeError::NotChar(0xd800)),
        (b"\x56\x02", DecodeError::OutOfRange("boolean")),
        (b"\xc1\x02\x01\x40", DecodeError::OddMap),
        (b"\x40\x40", DecodeError::Trailing(1)),
        (b"\xc0\x03\x01\x40\x40", DecodeError::Trailing(1)),
        (b"\x46", DecodeError::UnknownFormat(0x46)),
        (b"\xe0\x03\x01\x46\x00", DecodeError::UnknownFormat(0x46)),
        (b"\x00\xc0\x01\x00\x40", DecodeError::BadDescriptor(0xc0)),
        (b"\x00\x00\x40\x40\x40", DecodeError::BadDescriptor(0x00)),
        (b"", DecodeError::CutShort("input")),
        (b"\xc0\x02\x01\x70", DecodeError::CutShort("list")),
    ] {
        assert_eq!(decoded(bytes), Err(error), "{bytes:02x?}");
    }
}

#[test]
fn a_value_is_split_off_the_front_of_what_follows_it() {
    let mut input = Bytes::from_static(b"\x52\x07rest");
    assert_eq!(amqp::decode::take_value(&mut input), Ok(Value::Uint(7)));
    assert_eq!(input, &b"rest"[..]);
}

#[test]
fn decoded_binaries_share_the_buffer_they_came_in() {
    let input = Bytes::from_static(b"\xa0\x03abc");
    let Ok(Value::Binary(content)) = amqp::decode::value(&input) else {
        panic!("not a binary");
    };
    assert_eq!(content.as_ptr(), input[2..].as_ptr());
}
