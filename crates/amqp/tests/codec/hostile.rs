//! Input that means harm: it is refused by a bound, never by a crash.

use amqp::decode::MAX_ELEMENTS;
use amqp::message::{Header, Properties, Sections, batch_parts, decode_map_section};
use amqp::performative::Performative;
use amqp::sasl::SaslFrame;
use amqp::validate::{self, MAX_DEPTH};
use amqp::{DecodeError, Value, decode, encode};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use crate::{decoded, encoded};

/// `head`, which says how much follows, around itself again and again.
fn nested(depth: usize, wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    (0..depth).fold(vec![0x40], |inner, _| wrap(&inner))
}

fn list32(inner: &[u8]) -> Vec<u8> {
    let size = u32::try_from(inner.len() + 4).unwrap();
    [&[0xd0], &size.to_be_bytes()[..], &[0, 0, 0, 1], inner].concat()
}

fn array32(inner: &[u8]) -> Vec<u8> {
    let size = u32::try_from(inner.len() + 4).unwrap();
    [&[0xf0], &size.to_be_bytes()[..], &[0, 0, 0, 1], inner].concat()
}

fn described(inner: &[u8]) -> Vec<u8> {
    [b"\x00\x53\x01", inner].concat()
}

#[test]
fn nesting_is_accepted_up_to_the_limit_and_not_beyond() {
    for wrap in [list32, array32, described] {
        let deepest = nested(MAX_DEPTH, wrap);
        assert!(decoded(&deepest).is_ok());
        assert_eq!(
            decoded(&wrap(&deepest)),
            Err(DecodeError::TooDeep(MAX_DEPTH))
        );
    }
}

#[test]
fn a_hundred_thousand_levels_are_refused_without_a_deep_stack() {
    let descriptors = b"\x00\x53\x01".repeat(100_000);
    assert_eq!(decoded(&descriptors), Err(DecodeError::TooDeep(MAX_DEPTH)));
    // Every list is as long as the whole input says: sizes fit, and only the depth is wrong.
    let total = 100_000 * 9;
    let lists: Vec<u8> = (0..100_000u32)
        .flat_map(|level| {
            let size = total - level * 9 - 5;
            [&[0xd0][..], &size.to_be_bytes(), &[0, 0, 0, 1]].concat()
        })
        .collect();
    assert_eq!(decoded(&lists), Err(DecodeError::TooDeep(MAX_DEPTH)));
    let arrays: Vec<u8> = lists
        .chunks(9)
        .flat_map(|head| [&[0xf0], &head[1..]].concat())
        .collect();
    assert_eq!(decoded(&arrays), Err(DecodeError::TooDeep(MAX_DEPTH)));
}

#[test]
fn arrays_of_nothing_are_bounded_in_count() {
    for element in [
        &b"\x40"[..],
        b"\x41",
        b"\x42",
        b"\x43",
        b"\x44",
        b"\x45",
        b"\x00\x53\x01\x40",
    ] {
        for count in [5_000u32, 60_000, 1 << 31, u32::MAX] {
            let size = u32::try_from(element.len() + 4).unwrap();
            let array = [
                &[0xf0][..],
                &size.to_be_bytes(),
                &count.to_be_bytes(),
                element,
            ]
            .concat();
            let error = decoded(&array).unwrap_err();
            assert!(
                matches!(error, DecodeError::TooMany { .. }),
                "{element:02x?}: {error}"
            );
        }
    }
    assert_eq!(
        decoded(b"\xf0\x00\x00\x00\x05\x00\x00\x01\x00\x41"),
        Ok(Value::Array(vec![Value::Bool(true); 256]))
    );
}

#[test]
fn many_arrays_of_nothing_are_bounded_together() {
    let arrays = b"\xe0\x02\xff\x40".repeat(200);
    let size = u32::try_from(arrays.len() + 4).unwrap();
    let list = [&[0xd0][..], &size.to_be_bytes(), &[0, 0, 0, 200], &arrays].concat();
    assert!(matches!(decoded(&list), Err(DecodeError::TooMany { .. })));
}

#[test]
fn a_long_descriptor_is_not_multiplied_by_an_array() {
    let name = [&b"\x00\xb3\x00\x00\x27\x10"[..], &[b'n'; 10_000]].concat();
    let count = 10_000u32;
    let body = [&count.to_be_bytes()[..], &name, &[0x50], &[0; 10_000]].concat();
    let size = u32::try_from(body.len()).unwrap();
    let array = [&[0xf0][..], &size.to_be_bytes(), &body].concat();
    assert!(matches!(decoded(&array), Err(DecodeError::TooMany { .. })));
}

#[test]
fn elements_are_counted_in_all() {
    let inner = encoded(&Value::List(vec![Value::Null; 10]));
    let list = encoded(&Value::List(vec![decoded(&inner).unwrap(); 10]));
    assert_eq!(validate::value(&list, 110), Ok(list.len()));
    let error = DecodeError::TooMany {
        count: 110,
        limit: 109,
    };
    assert_eq!(validate::value(&list, 109), Err(error));
    let many = encoded(&Value::List(vec![Value::Null; MAX_ELEMENTS + 1]));
    let error = DecodeError::TooMany {
        count: MAX_ELEMENTS + 1,
        limit: MAX_ELEMENTS,
    };
    assert_eq!(decoded(&many), Err(error));
}

#[test]
fn sizes_and_counts_of_all_ones_are_refused() {
    for code in [0xb0, 0xb1, 0xb3, 0xd0, 0xd1, 0xf0] {
        let bytes = [&[code][..], &[0xff; 8], &[0x40; 16]].concat();
        assert!(decoded(&bytes).is_err(), "{code:#x}");
        assert!(validate::extent(&bytes).is_err(), "{code:#x}");
        for descriptor in [0x10, 0x12, 0x14, 0x40, 0x70, 0x74, 0x75, 0x77] {
            refuse_everywhere(&[&[0x00, 0x53, descriptor][..], &bytes].concat());
        }
    }
    for code in [0xd0, 0xd1, 0xf0] {
        // The size is right, and only the count is not.
        let bytes = [
            &[code, 0, 0, 0, 6, 0xff, 0xff, 0xff, 0xff][..],
            &[0x40, 0x40],
        ]
        .concat();
        assert!(decoded(&bytes).is_err(), "{code:#x}");
    }
}

#[test]
fn a_size_inside_may_not_pass_the_enclosing_one() {
    let sneaky = b"\xc0\x05\x01\xc0\x0a\x01\x40\x40\x40\x40\x40\x40\x40\x40\x40";
    assert_eq!(decoded(sneaky), Err(DecodeError::CutShort("list")));
    let string = b"\xc1\x05\x02\xa1\x0a\x40\x40abcdefghijkl";
    assert_eq!(decoded(string), Err(DecodeError::CutShort("map")));
}

#[test]
fn an_empty_size_has_no_room_for_its_count() {
    for bytes in [
        &b"\xc0\x00"[..],
        b"\xe0\x00",
        b"\xd0\x00\x00\x00\x03\x00\x00\x00",
    ] {
        assert!(
            matches!(decoded(bytes), Err(DecodeError::CutShort(_))),
            "{bytes:02x?}"
        );
    }
}

/// Every parser refuses `bytes`.
fn refuse_everywhere(bytes: &[u8]) {
    let shared = Bytes::copy_from_slice(bytes);
    assert!(Performative::decode(&mut shared.clone()).is_err());
    assert!(SaslFrame::decode(&shared).is_err());
    assert!(Sections::scan(bytes).is_err());
    assert!(Header::decode(bytes).is_err());
    assert!(Properties::decode(&shared).is_err());
    assert!(decode_map_section(&shared).is_err());
}

/// Bytes that get further than random ones do: descriptors and format codes are common in them.
fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
    let likely = vec![
        0x00, 0x01, 0x02, 0x10, 0x14, 0x24, 0x40, 0x41, 0x43, 0x45, 0x50, 0x53, 0x70, 0x75, 0x77,
        0x80, 0xa0, 0xa1, 0xa3, 0xc0, 0xc1, 0xd0, 0xd1, 0xe0, 0xf0, 0xff,
    ];
    let byte = prop_oneof![3 => prop::sample::select(likely), 1 => any::<u8>()];
    prop::collection::vec(byte, 0..64)
}

/// Starts that lead into every decoder.
fn described_bytes() -> impl Strategy<Value = Vec<u8>> {
    let descriptor = prop_oneof![0x10..0x19u8, 0x40..0x45u8, 0x70..0x79u8];
    let list = prop::sample::select(vec![0xc0u8, 0xc1, 0xa0, 0xd0]);
    (descriptor, list, 0..15u8, likely_bytes()).prop_map(|(descriptor, list, count, rest)| {
        let size = u8::try_from(rest.len() + 1).unwrap();
        [&[0x00, 0x53, descriptor, list, size, count][..], &rest].concat()
    })
}

fn parse_everything(bytes: &[u8]) {
    let shared = Bytes::copy_from_slice(bytes);
    let validated = validate::value(bytes, MAX_ELEMENTS);
    if let Ok(size) = validated {
        assert!(size <= bytes.len());
    }
    if let Ok(value) = amqp::decode::value(&shared) {
        assert_eq!(validated, Ok(bytes.len()));
        // Our form may be the smaller one, and then pay for fewer array elements.
        let again = amqp::decode::value(&encoded(&value));
        assert!(
            matches!(again, Ok(_) | Err(DecodeError::TooMany { .. })),
            "{again:?}"
        );
    }
    let _ = validate::extent(bytes);
    let _ = Performative::decode(&mut shared.clone());
    let _ = SaslFrame::decode(&shared);
    let _ = Header::decode(bytes);
    let _ = Properties::decode(&shared);
    let _ = decode_map_section(&shared);
    if let Ok(sections) = Sections::scan(bytes) {
        assert_eq!(sections.footer.end, bytes.len());
        let _ = batch_parts(&shared, &sections, 100);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        parse_everything(&bytes);
    }

    #[test]
    fn likely_bytes_never_panic(bytes in likely_bytes()) {
        parse_everything(&bytes);
    }

    #[test]
    fn described_bytes_never_panic(bytes in described_bytes()) {
        parse_everything(&bytes);
    }
}

#[test]
fn empty_lists_nest_as_deep_as_other_lists() {
    check_deepest(b"\x45", 31);
    check_deepest(b"\x00\x53\x01\x45", 30);
    check_deepest(b"\xe0\x02\x02\x45", 30);
    check_deepest(b"\xe0\x05\x02\x00\x53\x01\x45", 29);
}

/// `inner` can be read and written anew within `lists` lists, and not be read within more.
fn check_deepest(inner: &[u8], lists: usize) {
    let nested = |lists: usize| {
        let mut value = inner.to_vec();
        for _ in 0..lists {
            let size = u8::try_from(value.len() + 1).unwrap();
            value.splice(0..0, [0xc0, size, 1]);
        }
        Bytes::from(value)
    };
    let value = decode::value(&nested(lists)).unwrap();
    let mut again = BytesMut::new();
    encode::value(&mut again, &value);
    assert_eq!(decode::value(&again.freeze()).unwrap(), value);
    let refused = decode::value(&nested(lists + 1));
    assert!(matches!(refused, Err(DecodeError::TooDeep(MAX_DEPTH))));
}
