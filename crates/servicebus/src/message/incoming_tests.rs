//! Fields read from messages, and messages that are refused.

use amqp::message::{Properties as Fields, descriptor, encode_map_section};
use amqp::{Symbol, Value};
use bytes::BytesMut;

use super::*;

pub(super) const DATA: &[u8] = b"\x00\x53\x75\xa0\x02hi";

pub(super) fn messages(
    format: u32,
    payload: &Bytes,
    max_size: u64,
) -> Result<Vec<Incoming>, Error> {
    super::messages(
        format,
        payload,
        max_size,
        true,
        &mut MessageIds::new([0; 16]),
    )
}

/// A message in parts; what is absent is not written, but for an id.
#[derive(Default)]
struct TestMessage {
    header: Option<Header>,
    annotations: Vec<(Value, Value)>,
    properties: Option<Fields>,
    application: Vec<(Value, Value)>,
}

impl TestMessage {
    fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        if let Some(header) = &self.header {
            header.encode(&mut out);
        }
        if !self.annotations.is_empty() {
            encode_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, &self.annotations);
        }
        let mut properties = self.properties.clone().unwrap_or_default();
        properties.message_id.get_or_insert(Value::from("id"));
        properties.encode(&mut out);
        if !self.application.is_empty() {
            encode_map_section(
                &mut out,
                descriptor::APPLICATION_PROPERTIES,
                &self.application,
            );
        }
        out.extend_from_slice(DATA);
        out.freeze()
    }
}

fn check(message: &TestMessage) -> Result<Option<u64>, String> {
    let payload = message.encode();
    match messages(0, &payload, 1 << 20) {
        Ok(messages) => {
            assert_eq!(messages.len(), 1);
            assert_eq!(
                messages[0].payload, payload,
                "the message is passed on as it came"
            );
            Ok(messages[0].ttl_ms)
        }
        Err(error) => Err(error.condition.to_string()),
    }
}

fn ttl(ttl: u32, properties: Option<Fields>) -> TestMessage {
    TestMessage {
        header: Some(Header {
            ttl: Some(ttl),
            ..Header::default()
        }),
        properties,
        ..TestMessage::default()
    }
}

fn annotated(key: &'static str, value: Value) -> TestMessage {
    TestMessage {
        annotations: vec![(Value::Symbol(Symbol::new(key)), value)],
        ..TestMessage::default()
    }
}

#[test]
fn the_time_to_live_is_the_headers() {
    assert_eq!(check(&TestMessage::default()), Ok(None));
    assert_eq!(check(&ttl(60_000, None)), Ok(Some(60_000)));
    assert_eq!(check(&ttl(0, None)), Err("amqp:invalid-field".to_owned()));
}

#[test]
fn the_largest_time_to_live_means_what_the_properties_span() {
    let span = |creation, expiry| Fields {
        creation_time: creation,
        absolute_expiry_time: expiry,
        ..Fields::default()
    };
    let max = u64::from(u32::MAX);
    let table = [
        (
            span(Some(1_000), Some(1_000 + 9_000_000_000)),
            9_000_000_000,
        ),
        (span(None, Some(9_000_000_000)), max),
        (span(Some(1), None), max),
        (span(Some(2), Some(1)), max),
        (span(Some(i64::MIN), Some(i64::MAX)), max),
    ];
    for (properties, expected) in table {
        assert_eq!(check(&ttl(u32::MAX, Some(properties))), Ok(Some(expected)));
    }
    let expiry = span(Some(0), Some(5));
    assert_eq!(
        check(&ttl(7, Some(expiry))),
        Ok(Some(7)),
        "else only the header counts"
    );
}

#[test]
fn ids_of_128_characters_are_taken_and_longer_ones_refused() {
    let with = |length: usize, field: fn(&mut Fields, String)| {
        let mut properties = Fields::default();
        field(&mut properties, "ü".repeat(length));
        check(&TestMessage {
            properties: Some(properties),
            ..TestMessage::default()
        })
    };
    let fields: [fn(&mut Fields, String); 3] = [
        |properties, text| properties.message_id = Some(Value::String(text)),
        |properties, text| properties.group_id = Some(text),
        |properties, text| properties.reply_to_group_id = Some(text),
    ];
    for field in fields {
        assert_eq!(with(128, field), Ok(None));
        assert_eq!(
            with(129, field),
            Err("com.microsoft:argument-out-of-range".to_owned())
        );
    }
    for key in ["x-opt-partition-key", "x-opt-via-partition-key"] {
        assert_eq!(
            check(&annotated(key, Value::String("k".repeat(128)))),
            Ok(None)
        );
        let error = check(&annotated(key, Value::String("k".repeat(129))));
        assert_eq!(error, Err("com.microsoft:argument-out-of-range".to_owned()));
    }
}

#[test]
fn a_message_id_of_any_type_is_taken() {
    for id in [
        Value::Ulong(7),
        Value::Uuid([1; 16]),
        Value::Binary(Bytes::from_static(&[2; 128])),
    ] {
        let properties = Fields {
            message_id: Some(id),
            ..Fields::default()
        };
        assert_eq!(
            check(&TestMessage {
                properties: Some(properties),
                ..TestMessage::default()
            }),
            Ok(None)
        );
    }
}

#[test]
fn a_partition_key_must_equal_the_session_id() {
    let message = |session: &str| TestMessage {
        properties: Some(Fields {
            group_id: Some(session.to_owned()),
            ..Fields::default()
        }),
        ..annotated("x-opt-partition-key", Value::from("one"))
    };
    assert_eq!(check(&message("one")), Ok(None));
    assert_eq!(check(&message("ONE")), Ok(None), "one session");
    assert_eq!(check(&message("two")), Err("amqp:not-allowed".to_owned()));
    assert_eq!(check(&message("")), Ok(None), "no session");
}

#[test]
fn a_scheduled_time_is_a_timestamp_or_a_number_and_whether_it_has_come_is_the_brokers_to_say() {
    let scheduled = |time| {
        let message = annotated("x-opt-scheduled-enqueue-time", time);
        match messages(0, &message.encode(), 1 << 20) {
            Ok(messages) => Ok(messages[0].scheduled),
            Err(error) => Err(error.condition.to_string()),
        }
    };
    for time in [Value::Timestamp(7), Value::Long(7)] {
        assert_eq!(scheduled(time), Ok(Some(Wall(7))));
    }
    for time in [Value::Timestamp(-1), Value::Null] {
        assert_eq!(scheduled(time), Ok(None));
    }
    let late = Value::Timestamp(i64::MAX);
    assert_eq!(scheduled(late), Ok(Some(Wall(i64::MAX.unsigned_abs()))));
    for time in [Value::from("soon"), Value::Bool(true)] {
        let error = Err("com.microsoft:argument-error".to_owned());
        assert_eq!(scheduled(time), error);
    }
}

/// (docs/spec/amqp.md#13.5)
#[test]
fn a_delivery_time_schedules_a_message_that_has_no_scheduled_time() {
    let delayed = |others: &[(&str, Value)], has_delays| {
        let mut message = annotated("x-opt-delivery-time", Value::Long(7));
        for (key, value) in others {
            let key = Value::Symbol(Symbol::from((*key).to_owned()));
            message.annotations.push((key, value.clone()));
        }
        let mut ids = MessageIds::new([0; 16]);
        let messages = super::messages(0, &message.encode(), 1 << 20, has_delays, &mut ids);
        messages.expect("sound")[0].scheduled
    };
    assert_eq!(delayed(&[], true), Some(Wall(7)));
    assert_eq!(delayed(&[], false), None);
    let scheduled = ("x-opt-scheduled-enqueue-time", Value::Timestamp(9));
    assert_eq!(delayed(&[scheduled], true), Some(Wall(9)));
    let wrong = annotated("x-opt-delivery-time", Value::from("soon")).encode();
    let error = messages(0, &wrong, 1 << 20).expect_err("it is no time");
    assert_eq!(error.condition.as_str(), "com.microsoft:argument-error");
}

#[test]
fn properties_beyond_the_quotas_are_refused() {
    let property = |key: &str, size| (Value::from(key), Value::String("x".repeat(size)));
    let one = TestMessage {
        application: vec![property("a", 33_000)],
        ..TestMessage::default()
    };
    assert_eq!(
        check(&one),
        Err("com.microsoft:argument-out-of-range".to_owned())
    );
    let fits = TestMessage {
        application: vec![property("a", 30_000), property("b", 30_000)],
        ..TestMessage::default()
    };
    assert_eq!(check(&fits), Ok(None));
    let all = ["a", "b", "c"].map(|key| property(key, 30_000)).to_vec();
    let all = TestMessage {
        application: all,
        ..TestMessage::default()
    };
    assert_eq!(
        check(&all),
        Err("com.microsoft:argument-out-of-range".to_owned())
    );
}

#[test]
fn a_message_beyond_the_limit_is_refused_by_size() {
    let payload = TestMessage::default().encode();
    let size = payload.len() as u64;
    assert!(messages(0, &payload, size).is_ok());
    let error = messages(0, &payload, size - 1).expect_err("one byte too many");
    assert_eq!(error.condition, "amqp:link:message-size-exceeded");
}

#[test]
fn malformed_sections_are_decode_errors() {
    let cases: [&[u8]; 13] = [
        // Properties with a byte behind their last field, and with a field too many.
        b"\x00\x53\x73\xc0\x03\x01\x40\x40",
        b"\x00\x53\x73\xc0\x0f\x0e\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40",
        // A character that is none, and a symbol that is not ASCII.
        b"\x00\x53\x72\xc1\x09\x02\xa3\x01a\x73\xff\xff\xff\xff",
        b"\x00\x53\x72\xc1\x06\x02\xa3\x02\xc3\xbc\x40",
        b"\x00\x53\x99\x40",
        b"\x00\x53\x75\xa0\x05hi",
        b"\x00\x53\x72\xc1\x03\x02\xa3\x05",
        // An annotation map with a key and no value.
        b"\x00\x53\x72\xc1\x04\x01\xa3\x01a",
        // A property that is no UTF-8.
        b"\x00\x53\x73\xc0\x04\x01\xa1\x01\xff",
        // Application properties keyed by a number.
        b"\x00\x53\x74\xc1\x03\x02\x43\x43",
        // A map inside an annotation that claims more than it has.
        b"\x00\x53\x72\xc1\x07\x02\xa3\x01a\xc1\x05\x02",
        b"\x00\x53\x70\x40",
        b"\x00",
    ];
    for payload in cases {
        let error = messages(0, &Bytes::from_static(payload), 1 << 20);
        assert_eq!(
            error.map_err(|error| error.condition.to_string()),
            Err("amqp:decode-error".to_owned()),
            "{payload:x?}"
        );
    }
}

#[test]
fn an_unknown_message_format_is_refused() {
    let error = messages(1, &TestMessage::default().encode(), 1 << 20).expect_err("format 1");
    assert_eq!(error.condition, "amqp:not-implemented");
}

pub(super) const PROPERTIES: &[u8] = b"\x00\x53\x73\xc0\x05\x01\xa1\x02id";
const DELIVERY_ANNOTATIONS: &[u8] = b"\x00\x53\x71\xc1\x05\x02\xa3\x01a\x40";
const FOOTER: &[u8] = b"\x00\x53\x78\xc1\x01\x00";

/// The payload of the one message that these sections make.
fn taken(sections: &[&[u8]]) -> Result<Bytes, String> {
    let payload = Bytes::from(sections.concat());
    let messages = messages(0, &payload, 1 << 20).map_err(|error| error.condition.to_string())?;
    assert_eq!(messages.len(), 1);
    Ok(messages[0].payload.clone())
}

/// The message id that a message was given.
fn id_of(payload: &Bytes) -> Option<Value> {
    let sections = Sections::scan(payload).expect("sections in order");
    let properties = payload.slice(sections.properties);
    Fields::decode(&properties).expect("sound").message_id
}

#[test]
fn sections_in_another_order_are_put_into_their_places() {
    let ordered = [DELIVERY_ANNOTATIONS, PROPERTIES, DATA, FOOTER];
    let expected = Ok(Bytes::from(ordered.concat()));
    assert_eq!(taken(&ordered), expected);
    // The Python SDK writes delivery annotations last, rhea the footer before the body.
    assert_eq!(
        taken(&[PROPERTIES, DATA, FOOTER, DELIVERY_ANNOTATIONS]),
        expected
    );
    assert_eq!(
        taken(&[DELIVERY_ANNOTATIONS, PROPERTIES, FOOTER, DATA]),
        expected
    );
}

#[test]
fn a_section_that_stands_twice_is_a_decode_error() {
    let refused = Err("amqp:decode-error".to_owned());
    assert_eq!(taken(&[PROPERTIES, PROPERTIES, DATA]), refused);
    assert_eq!(
        taken(&[DELIVERY_ANNOTATIONS, DATA, DELIVERY_ANNOTATIONS]),
        refused
    );
    assert_eq!(taken(&[DATA, PROPERTIES, DATA]), refused);
}

#[test]
fn messages_of_batches_may_have_their_sections_in_any_order_too() {
    let mixed = Bytes::from([PROPERTIES, DATA, DELIVERY_ANNOTATIONS].concat());
    let ordered = Bytes::from([DELIVERY_ANNOTATIONS, PROPERTIES, DATA].concat());
    // The envelope's own sections as well.
    let mut envelope = BytesMut::from(&batch(&[mixed])[..]);
    envelope.extend_from_slice(DELIVERY_ANNOTATIONS);
    let taken = messages(BATCH_FORMAT, &envelope.freeze(), 1 << 20).expect("sound");
    assert_eq!(taken[0].payload, ordered);
    let twice = Bytes::from([DATA, PROPERTIES, PROPERTIES].concat());
    let sound = Bytes::from_static(DATA);
    let error = messages(BATCH_FORMAT, &batch(&[sound, twice]), 1 << 20).expect_err("all of it");
    assert_eq!(error.condition, "amqp:decode-error");
}

#[test]
fn a_message_without_an_id_gets_one_that_no_duplicate_is_found_by() {
    for sections in [&[DATA][..], &[b"\x00\x53\x73\x45", DATA], &[DATA, FOOTER]] {
        let payload = Bytes::from(sections.concat());
        let messages = messages(0, &payload, 1 << 20).expect("sound");
        assert_eq!(messages[0].message_id, None);
        let Some(Value::String(id)) = id_of(&messages[0].payload) else {
            panic!("no id");
        };
        assert_eq!(id.len(), 32);
    }
}

#[test]
fn an_id_of_any_type_stays_the_empty_text_too() {
    for id in [
        Value::from(""),
        Value::from("own"),
        Value::Ulong(0),
        Value::Uuid([0; 16]),
        Value::Binary(Bytes::new()),
    ] {
        let message = TestMessage {
            properties: Some(Fields {
                message_id: Some(id.clone()),
                ..Fields::default()
            }),
            ..TestMessage::default()
        };
        let payload = message.encode();
        assert_eq!(taken(&[&payload]), Ok(payload.clone()));
        assert_eq!(id_of(&payload), Some(id));
    }
}

#[test]
fn each_message_of_a_batch_gets_an_id_of_its_own() {
    let parts = [DATA, PROPERTIES, DATA].map(Bytes::from_static);
    let messages = messages(BATCH_FORMAT, &batch(&parts), 1 << 20).expect("sound");
    let ids: Vec<_> = messages.iter().map(|it| id_of(&it.payload)).collect();
    assert!(ids.iter().all(Option::is_some));
    assert_ne!(ids[0], ids[2]);
    assert_eq!(ids[1], Some(Value::from("id")));
}

#[test]
fn a_message_as_large_as_may_be_is_taken_without_an_id() {
    let payload = Bytes::from_static(DATA);
    let taken = messages(0, &payload, payload.len() as u64).expect("it is not too large");
    let growth = taken[0].payload.len() - payload.len();
    assert!(growth as u64 <= broker::MAX_GROWTH);
}

pub(super) fn batch(parts: &[Bytes]) -> Bytes {
    let mut out = BytesMut::new();
    // An envelope's own sections say what the first message says, and are ignored.
    Fields {
        message_id: Some(Value::from("envelope")),
        ..Fields::default()
    }
    .encode(&mut out);
    for part in parts {
        out.extend_from_slice(b"\x00\x53\x75");
        amqp::encode::binary(&mut out, part);
    }
    out.freeze()
}

#[test]
fn a_batch_becomes_its_messages_in_order() {
    let parts = [
        ttl(1, None).encode(),
        ttl(2, None).encode(),
        TestMessage::default().encode(),
    ];
    let messages = messages(BATCH_FORMAT, &batch(&parts), 1 << 20).expect("sound");
    let payloads: Vec<&Bytes> = messages.iter().map(|message| &message.payload).collect();
    assert_eq!(payloads, parts.iter().collect::<Vec<_>>());
    assert_eq!(
        messages
            .iter()
            .map(|message| message.ttl_ms)
            .collect::<Vec<_>>(),
        [Some(1), Some(2), None]
    );
}

#[test]
fn a_batch_with_one_bad_message_is_refused_whole() {
    let parts = [TestMessage::default().encode(), ttl(0, None).encode()];
    let error = messages(BATCH_FORMAT, &batch(&parts), 1 << 20).expect_err("the second");
    assert_eq!(error.condition, "amqp:invalid-field");
    let parts = [TestMessage::default().encode(), Bytes::from_static(b"\x07")];
    let error = messages(BATCH_FORMAT, &batch(&parts), 1 << 20).expect_err("the second");
    assert_eq!(error.condition, "amqp:decode-error");
}

#[test]
fn an_empty_batch_holds_no_messages() {
    assert_eq!(messages(BATCH_FORMAT, &batch(&[]), 1 << 20), Ok(Vec::new()));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let payload = Bytes::from(bytes);
        let _ = messages(0, &payload, 1 << 20);
        let _ = messages(BATCH_FORMAT, &payload, 1 << 20);
    }

    #[test]
    fn no_broken_message_makes_the_reader_panic(at in 0usize..200, byte in proptest::num::u8::ANY) {
        let properties = Fields { message_id: Some(Value::Ulong(1)), group_id: Some("g".into()), ..Fields::default() };
        let message = TestMessage {
            application: vec![(Value::from("a"), Value::List(vec![Value::Int(1)]))],
            ..TestMessage { properties: Some(properties), ..annotated("x-opt-partition-key", Value::from("g")) }
        };
        let mut bytes = message.encode().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = messages(0, &Bytes::from(bytes), 1 << 20);
    }
}
