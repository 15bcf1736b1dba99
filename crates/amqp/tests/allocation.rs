//! The codec's allocations for received bytes, counted by the allocator itself.
//!
//! Framing, validator, hot path and section scanner: at most 4 times the bytes received and 64 KiB.
//! Decoded values: at most 128 times the bytes received and 64 KiB.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use allocation_counter::measure;
use amqp::message::{Header, Properties, Sections, batch_parts, decode_map_section};
use amqp::performative::Performative;
use amqp::sasl::SaslFrame;
use amqp::{
    DecodeError, DeliveryState, Disposition, Flow, Role, Transfer, Value, decode, encode, frame,
    validate,
};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

const FLAT: usize = 64 * 1024;

fn check(what: &str, factor: usize, received: usize, run: impl FnOnce()) {
    let info = measure(run);
    let limit = u64::try_from(factor * received + FLAT).unwrap();
    assert!(
        info.bytes_total <= limit,
        "{what} of {received} bytes: {info:?}"
    );
}

fn check_nothing(what: &str, run: impl FnOnce()) {
    let info = measure(run);
    assert_eq!(info.count_total, 0, "{what}: {info:?}");
}

fn written(write: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    write(&mut out);
    out.freeze()
}

/// One of each on the hot path, as they are in most frames.
fn hot() -> Vec<Performative> {
    let transfer = Transfer {
        handle: 1,
        delivery_id: Some(7),
        delivery_tag: Some(Bytes::from_static(&[3; 16])),
        message_format: Some(0),
        settled: Some(false),
        state: Some(DeliveryState::Accepted),
        ..Transfer::default()
    };
    let disposition = Disposition {
        role: Role::Receiver,
        first: 7,
        last: Some(900),
        settled: true,
        state: Some(DeliveryState::Released),
        batchable: false,
    };
    let flow = Flow {
        handle: Some(1),
        link_credit: Some(1_000),
        ..Flow::default()
    };
    vec![
        Performative::Transfer(transfer),
        Performative::Disposition(disposition),
        Performative::Flow(flow),
    ]
}

#[test]
fn the_hot_path_decodes_without_allocating() {
    for performative in hot() {
        // A clone makes the buffer shared, which is the one allocation a buffer has in its life.
        let mut body = written(|out| performative.encode(out));
        let _shared = body.clone();
        check_nothing("decoding", || {
            assert!(Performative::decode(&mut body).is_ok());
        });
    }
}

#[test]
fn the_hot_path_encodes_without_allocating_beyond_its_buffer() {
    let mut out = BytesMut::with_capacity(1024);
    for performative in hot() {
        check_nothing("encoding", || {
            out.clear();
            performative.encode(&mut out);
        });
    }
}

#[test]
fn framing_copies_nothing() {
    let mut stream = BytesMut::new();
    for channel in 0..1_000 {
        let start = frame::begin(&mut stream, frame::FrameType::Amqp, channel);
        stream.extend_from_slice(&[7; 100]);
        frame::finish(&mut stream, start);
    }
    let received = stream.len();
    check("framing", 0, received, || {
        while let Ok(Some(frame)) = frame::split(&mut stream, 512) {
            assert_eq!(frame.body.len(), 100);
        }
    });
}

#[test]
fn the_validator_and_the_section_scanner_allocate_nothing() {
    let list = written(|out| encode::value(out, &Value::List(vec![Value::from("x"); 10_000])));
    check_nothing("validating", || {
        assert_eq!(validate::value(&list, 10_000), Ok(list.len()));
        assert_eq!(validate::extent(&list), Ok(list.len()));
    });
    let message = b"\x00\x53\x75\xa0\x01x".repeat(10_000);
    check_nothing("scanning", || {
        assert!(Sections::scan(&message).is_ok());
    });
    let header = written(|out| Header::default().encode(out));
    check_nothing("reading a header", || {
        assert!(Header::decode(&header).is_ok());
    });
}

#[test]
fn lengths_that_lie_reserve_nothing() {
    let heads = [
        &b"\xd0\xff\xff\xff\xff\xff\xff\xff\xff"[..],
        b"\xd1\x00\x00\x00\x08\xff\xff\xff\xfe\x40\x40\x40\x40",
        b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40",
        b"\xb0\x7f\xff\xff\xff",
        b"\x00\x53\x40\xc0\x0b\x01\xf0\x00\x00\x00\x05\xff\xff\xff\xff\xa3",
        b"\x00\x53\x12\xd0\xff\xff\xff\xff\x00\x00\x00\x0e",
        b"\x00\x53\x74\xd1\x00\x00\x00\x08\x7f\xff\xff\xfe\x40\x40\x40\x40",
    ];
    for bytes in heads.map(Bytes::from_static) {
        check_nothing("refusing", || {
            assert!(decode::value(&bytes).is_err());
            assert!(SaslFrame::decode(&bytes).is_err());
            assert!(Performative::decode(&mut bytes.clone()).is_err());
            assert!(decode_map_section(&bytes).is_err());
        });
    }
}

#[test]
fn a_batch_allocates_by_its_parts_and_not_by_their_content() {
    let message = written(|out| {
        for _ in 0..100 {
            encode::descriptor(out, 0x75);
            encode::binary(out, &[1; 1_000]);
        }
    });
    let sections = Sections::scan(&message).unwrap();
    check("a batch", 0, message.len(), || {
        assert_eq!(
            batch_parts(&message, &sections, 100).map(|parts| parts.len()),
            Ok(100)
        );
    });
}

/// Values that cost much more memory than bytes.
fn costly() -> Vec<Bytes> {
    let list = |item: &[u8], count: u32| {
        let size = u32::try_from(item.len()).unwrap() * count + 4;
        [
            &[0xd0][..],
            &size.to_be_bytes(),
            &count.to_be_bytes(),
            &item.repeat(count as usize),
        ]
        .concat()
    };
    let map = |item: &[u8]| [&[0xd1], &list(item, 20_000)[1..]].concat();
    let array = |constructor: &[u8], element: &[u8], count: u32| {
        let body = [constructor, &element.repeat(count as usize)].concat();
        let size = u32::try_from(body.len() + 4).unwrap();
        [
            &[0xf0][..],
            &size.to_be_bytes(),
            &count.to_be_bytes(),
            &body,
        ]
        .concat()
    };
    let costly = [
        list(b"\x40", 60_000),
        list(b"\x45", 60_000),
        list(b"\xe0\x01\x00", 20_000),
        list(b"\x00\x44\x40", 20_000),
        list(b"\x00\x44\x00\x44\x40", 10_000),
        list(b"\x00\xa3\x00\xa3\x00", 20_000),
        list(b"\xe0\x02\x03\x40", 300),
        map(b"\x40"),
        map(b"\xa1\x00"),
        array(b"\x40", b"", 1_000),
        array(b"\x00\x44\x40", b"", 340),
        array(b"\x00\x44\x50", b"\x01", 60_000),
        array(b"\x00\x44\x50", b"\x01", 1_000),
        array(b"\x00\xa3\x01s\x50", b"\x01", 300),
        array(b"\xa1", b"\x00", 60_000),
        array(b"\xc0", b"\x01\x00", 20_000),
        array(b"\xc0", b"\x02\x01\x40", 20_000),
        array(b"\xe0", b"\x01\x00", 20_000),
    ];
    costly.map(Bytes::from).into()
}

#[test]
fn decoded_values_stay_in_proportion_to_their_bytes() {
    for (index, bytes) in costly().into_iter().enumerate() {
        assert!(
            validate::value(&bytes, usize::MAX).is_ok(),
            "number {index} is costly, not unsound"
        );
        check(&format!("value {index}"), 128, bytes.len(), || {
            assert!(decode::value(&bytes).is_ok());
        });
    }
}

/// A `list8` of `count` values with a numeric descriptor.
fn described_list(descriptor: u8, count: u8, fields: &[u8]) -> Vec<u8> {
    let size = u8::try_from(fields.len() + 1).unwrap();
    [&[0x00, 0x53, descriptor, 0xc0, size, count][..], fields].concat()
}

#[test]
fn an_attach_full_of_costly_values_stays_in_proportion_too() {
    // Each of them alone may claim what arrays have free; together they may not.
    let array = b"\xf0\x00\x00\x00\x05\x00\x00\x03\xe8\x40";
    let map = [&b"\xc1\x0c\x02\x43"[..], array].concat();
    let attach_with = |filter: &[u8]| {
        let fields = [&array[..], b"\x40\x40\x40\x40\x40\x40", filter].concat();
        let source = described_list(0x28, 8, &fields);
        let fields = [&b"\xa1\x01n\x43\x41\x40\x40"[..], &source].concat();
        Bytes::from(described_list(0x12, 6, &fields))
    };
    let (one, two) = (attach_with(b"\x40"), attach_with(&map));
    assert!(Performative::decode(&mut one.clone()).is_ok());
    check("attach", 128, two.len(), || {
        let refused = Performative::decode(&mut two.clone());
        assert!(matches!(refused, Err(DecodeError::TooMany { .. })));
    });
}

/// Bytes in which descriptors and format codes are common.
fn likely_bytes() -> impl Strategy<Value = Bytes> {
    let likely = vec![
        0x00, 0x01, 0x02, 0x03, 0x24, 0x40, 0x41, 0x44, 0x45, 0x50, 0x53, 0xa0, 0xa1, 0xa3, 0xc0,
        0xc1, 0xd0, 0xe0, 0xf0, 0xff,
    ];
    prop::collection::vec(prop::sample::select(likely), 0..64).prop_map(Bytes::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn no_bytes_allocate_out_of_proportion(
        bytes in likely_bytes(),
        descriptor in prop_oneof![0x10..0x19u8, 0x40..0x45u8, 0x70..0x79u8],
        count in 0..15u8,
    ) {
        let size = u8::try_from(bytes.len() + 1).unwrap();
        let head = [0x00, 0x53, descriptor, 0xc0, size, count];
        let described = Bytes::from([&head[..], &bytes].concat());
        for input in [bytes, described] {
            check("anything", 128, input.len(), || {
                let _ = decode::value(&input);
                let _ = Performative::decode(&mut input.clone());
                let _ = SaslFrame::decode(&input);
                let _ = Properties::decode(&input);
                let _ = decode_map_section(&input);
            });
            check_nothing("scanning anything", || {
                let _ = Sections::scan(&input);
                let _ = Header::decode(&input);
                let _ = validate::value(&input, decode::MAX_ELEMENTS);
            });
        }
    }
}
