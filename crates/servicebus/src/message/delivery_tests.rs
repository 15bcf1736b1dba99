//! Messages as they are delivered, byte for byte.

use amqp::message::{Properties, decode_map_section, descriptor, encode_map_section};
use amqp::{Symbol, Value};
use broker::{Additions, MessageState, Wall};
use bytes::Bytes;
use dialect::MessageIds;
use store::{EntityId, SequenceNumber};

use super::*;

#[path = "delivery/annotation_tests.rs"]
mod annotation_tests;

const TOKEN: LockToken = LockToken(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
const BODY: &[u8] = b"\x00\x53\x75\xa0\x02hi";
/// Properties with an id.
const ID: &[u8] = b"\x00\x53\x73\xc0\x04\x01\xa1\x01m";
/// Of entity and number.
const ID_OF_ITS_PLACE: &str = "00000000000000030000000000000102";
const NUMBER: i64 = 258;
const ENQUEUED: i64 = 1_700_000_000_000;
const UNTIL: i64 = 1_700_000_060_000;

fn browsed(payload: impl Into<Bytes>) -> Browsed {
    Browsed {
        entity: EntityId(3),
        number: SequenceNumber(258),
        enqueued_number: SequenceNumber(258),
        was_forwarded: false,
        was_scheduled: false,
        lock: None,
        enqueued: Wall(1_700_000_000_000),
        ttl_ms: None,
        expires: None,
        delivery_count: 0,
        acquired_count: 0,
        state: MessageState::Active,
        payload: payload.into(),
        additions: None,
    }
}

fn changed(changes: Vec<(String, Bytes)>) -> Option<Box<Additions>> {
    Some(Box::new(Additions {
        changes,
        ..Additions::default()
    }))
}

/// Received and deleted, or browsed.
const UNLOCKED: View = View::Link(None);

fn encoded(message: &Browsed, view: View) -> Bytes {
    let mut head = BytesMut::from(&b"left over"[..]);
    Bytes::from(encode(message, view, &mut head).concat())
}

fn lock() -> Lock {
    Lock {
        token: TOKEN,
        until: LockedUntil(UNTIL),
    }
}

fn locked() -> View {
    View::Link(Some(lock()))
}

fn section(message: &Bytes, part: fn(&Sections) -> std::ops::Range<usize>) -> Bytes {
    let sections = Sections::scan(message).expect("what we write scans");
    message.slice(part(&sections))
}

#[test]
fn rule_13_the_tag_is_the_token_as_dotnet_lays_out_a_guid() {
    let expected = [
        0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
        0xff,
    ];
    assert_eq!(tag(TOKEN), expected);
}

#[test]
fn rule_14_a_delivery_carries_its_token_as_a_uuid_in_standard_order() {
    let message = encoded(&browsed(BODY), locked());
    let section = section(&message, |sections| sections.delivery_annotations.clone());
    let map = decode_map_section(&section).expect("a map");
    let uuid = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
    assert_eq!(
        map,
        [(
            Value::Symbol(Symbol::new("x-opt-lock-token")),
            Value::Uuid(uuid)
        )]
    );
}

#[test]
fn a_delivery_is_these_bytes() {
    let message = encoded(&browsed([ID, BODY].concat()), locked());
    let mut expected = Vec::new();
    // Header: durable, priority, ttl and first-acquirer null, delivery-count 0.
    expected.extend_from_slice(b"\x00\x53\x70\xc0\x06\x05\x40\x40\x40\x40\x43");
    expected.extend_from_slice(b"\x00\x53\x71\xc1\x24\x02\xa3\x10x-opt-lock-token\x98");
    expected.extend_from_slice(&TOKEN.0.to_be_bytes());
    let mut entries = Vec::new();
    entries.extend_from_slice(b"\xa3\x13x-opt-enqueued-time\x83");
    entries.extend_from_slice(&ENQUEUED.to_be_bytes());
    entries.extend_from_slice(b"\xa3\x15x-opt-sequence-number\x81");
    entries.extend_from_slice(&NUMBER.to_be_bytes());
    entries.extend_from_slice(b"\xa3\x12x-opt-locked-until\x83");
    entries.extend_from_slice(&UNTIL.to_be_bytes());
    expected.extend_from_slice(b"\x00\x53\x72\xd1");
    expected.extend_from_slice(
        &u32::try_from(entries.len() + 4)
            .expect("short")
            .to_be_bytes(),
    );
    expected.extend_from_slice(&6_u32.to_be_bytes());
    expected.extend_from_slice(&entries);
    expected.extend_from_slice(ID);
    expected.extend_from_slice(BODY);
    assert_eq!(message, expected);
}

#[test]
fn the_header_keeps_what_the_sender_said_and_tells_count_and_time_to_live() {
    let mut payload = BytesMut::new();
    let sent = Header {
        durable: Some(true),
        priority: Some(9),
        ttl: Some(1),
        first_acquirer: Some(true),
        delivery_count: Some(77),
    };
    sent.encode(&mut payload);
    payload.extend_from_slice(BODY);
    let message = Browsed {
        ttl_ms: Some(5_000),
        delivery_count: 3,
        ..browsed(payload)
    };
    let header = section(&encoded(&message, locked()), |sections| {
        sections.header.clone()
    });
    let expected = Header {
        ttl: Some(5_000),
        delivery_count: Some(3),
        ..sent
    };
    assert_eq!(Header::decode(&header), Ok(expected));
}

#[test]
fn a_time_to_live_beyond_the_header_is_told_as_its_largest() {
    let message = Browsed {
        ttl_ms: Some(u64::MAX),
        ..browsed(BODY)
    };
    let header = section(&encoded(&message, UNLOCKED), |sections| {
        sections.header.clone()
    });
    assert_eq!(
        Header::decode(&header).expect("a header").ttl,
        Some(u32::MAX)
    );
}

/// A bare message with all its sections, in encodings that we would not write.
fn unusual_bare_message() -> Vec<u8> {
    let mut bare = Vec::new();
    // A list32 of properties: message-id as str32, then nothing.
    bare.extend_from_slice(
        b"\x00\x53\x73\xd0\x00\x00\x00\x0a\x00\x00\x00\x01\xb1\x00\x00\x00\x01m",
    );
    bare.extend_from_slice(
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x74\xc1\x06\x02\xa1\x01a\x70\x00\x00",
    );
    bare.truncate(bare.len() - 2);
    bare.extend_from_slice(b"\x00\x00\x00\x01");
    let size = bare.len();
    bare[size - 10] = 9;
    bare.extend_from_slice(BODY);
    bare.extend_from_slice(BODY);
    bare.extend_from_slice(b"\x00\x53\x78\xc1\x01\x00");
    bare
}

#[test]
fn a_bare_message_goes_out_byte_for_byte() {
    let bare = unusual_bare_message();
    let message = encoded(&browsed(bare.clone()), locked());
    let sections = Sections::scan(&message).expect("sound");
    assert_eq!(&message[sections.bare()], &bare[..]);
    assert!(!sections.footer.is_empty());
}

#[test]
fn an_expiring_message_expires_its_time_to_live_after_its_creation_and_keeps_the_rest() {
    let mut payload = BytesMut::new();
    let sent = Properties {
        message_id: Some(Value::Ulong(5)),
        user_id: Some(Bytes::from_static(b"u")),
        to: Some(Value::from("to")),
        subject: Some("s".to_owned()),
        reply_to: Some(Value::from("r")),
        correlation_id: Some(Value::Uuid([3; 16])),
        content_type: Some(Symbol::new("text/plain")),
        content_encoding: Some(Symbol::new("gzip")),
        absolute_expiry_time: Some(1),
        creation_time: Some(2),
        group_id: Some("g".to_owned()),
        group_sequence: Some(4),
        reply_to_group_id: Some("rg".to_owned()),
    };
    sent.encode(&mut payload);
    payload.extend_from_slice(BODY);
    let message = Browsed {
        ttl_ms: Some(10),
        ..browsed(payload)
    };
    let message = encoded(&message, locked());
    let properties = section(&message, |sections| sections.properties.clone());
    let expected = Properties {
        absolute_expiry_time: Some(2 + 10),
        ..sent
    };
    assert_eq!(Properties::decode(&properties), Ok(expected));
    assert_eq!(section(&message, |sections| sections.body.clone()), BODY);
}

#[test]
fn an_expiring_message_whose_sender_tells_no_creation_was_created_when_it_was_enqueued() {
    let message = Browsed {
        ttl_ms: Some(10),
        ..browsed(BODY)
    };
    let properties = section(&encoded(&message, UNLOCKED), |sections| {
        sections.properties.clone()
    });
    let expected = Properties {
        message_id: Some(Value::from(ID_OF_ITS_PLACE)),
        creation_time: Some(ENQUEUED),
        absolute_expiry_time: Some(ENQUEUED + 10),
        ..Properties::default()
    };
    assert_eq!(Properties::decode(&properties), Ok(expected));
}

#[test]
fn a_message_that_lives_for_ever_shows_its_times_as_they_were_sent() {
    let mut payload = BytesMut::new();
    let sent = Properties {
        message_id: Some(Value::from("m")),
        absolute_expiry_time: Some(3),
        ..Properties::default()
    };
    sent.encode(&mut payload);
    payload.extend_from_slice(BODY);
    let message = encoded(&browsed(payload), UNLOCKED);
    let properties = section(&message, |sections| sections.properties.clone());
    assert_eq!(Properties::decode(&properties), Ok(sent));
}

#[test]
fn changed_application_properties_are_merged_and_nothing_else_moves() {
    let bare = unusual_bare_message();
    let changes = vec![
        ("a".to_owned(), Bytes::from_static(b"\x54\x07")),
        (
            "DeadLetterReason".to_owned(),
            Bytes::from_static(b"\xa1\x03bad"),
        ),
    ];
    let message = encoded(
        &Browsed {
            additions: changed(changes),
            ..browsed(bare.clone())
        },
        locked(),
    );
    let application = section(&message, |sections| sections.application_properties.clone());
    let expected = [
        (Value::from("a"), Value::Int(7)),
        (Value::from("DeadLetterReason"), Value::from("bad")),
    ];
    assert_eq!(decode_map_section(&application).expect("a map"), expected);
    let before = Sections::scan(&bare).expect("sound");
    let after = Sections::scan(&message).expect("sound");
    assert_eq!(&message[after.properties], &bare[before.properties]);
    assert_eq!(&message[after.body.start..], &bare[before.body.start..]);
}

#[test]
fn changes_and_expiry_go_together_and_properties_come_first() {
    let changes = vec![("n".to_owned(), Bytes::from_static(b"\x40"))];
    let message = Browsed {
        additions: changed(changes),
        ttl_ms: Some(1),
        expires: Some(Wall(9)),
        ..browsed(BODY)
    };
    let message = encoded(&message, locked());
    let sections = Sections::scan(&message).expect("sections in order");
    assert!(!sections.properties.is_empty() && !sections.application_properties.is_empty());
    assert_eq!(&message[sections.body], BODY);
}

#[test]
fn a_message_without_a_body_goes_out_without_one() {
    for bare in [
        &b""[..],
        b"\x00\x53\x73\xc0\x03\x01\xa0\x00",
        b"\x00\x53\x78\xc1\x01\x00",
    ] {
        let message = encoded(&browsed(Bytes::copy_from_slice(bare)), locked());
        let sections = Sections::scan(&message).expect("sections in order");
        assert_eq!(sections.body_sections, 0, "{bare:x?}");
        assert!(message.ends_with(bare));
    }
}

proptest::proptest! {
    #[test]
    fn whatever_is_accepted_can_be_handed_out(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60),
        at in 0usize..80,
        expires in proptest::option::of(0u64..u64::MAX),
    ) {
        let mut payload = unusual_bare_message();
        let at = at.min(payload.len());
        let end = (at + bytes.len()).min(payload.len());
        payload[at..end].copy_from_slice(&bytes[..end - at]);
        let payload = Bytes::from(payload);
        let message = Browsed {
            ttl_ms: expires,
            expires: expires.map(Wall),
            additions: changed(vec![("n".to_owned(), Bytes::from_static(b"\x40"))]),
            ..browsed(payload.clone())
        };
        let out = encoded(&message, locked());
        if crate::message::incoming::messages(0, &payload, 1 << 20, true, &mut MessageIds::new([0; 16])).is_ok() {
            let sections = Sections::scan(&out).expect("what was accepted goes out as sections");
            let parts = [sections.message_annotations, sections.properties, sections.application_properties];
            for part in parts {
                let mut section = out.slice(part);
                if !section.is_empty() {
                    amqp::decode::take_value(&mut section).expect("sections stay sound");
                }
                proptest::prop_assert!(section.is_empty());
            }
        }
    }
}

/// A message of a publisher of RabbitMQ's dialect, with the id that the broker gave it as an
/// annotation.
fn with_given_id(properties: &Properties) -> Browsed {
    let mut payload = BytesMut::new();
    let key = Value::Symbol(Symbol::from(broker::GIVEN_ID));
    let annotations = [(key, Value::String("given".to_owned()))];
    encode_map_section(&mut payload, descriptor::MESSAGE_ANNOTATIONS, &annotations);
    if *properties != Properties::default() {
        properties.encode(&mut payload);
    }
    payload.extend_from_slice(BODY);
    browsed(payload)
}

#[test]
fn an_id_among_the_annotations_is_shown_among_the_properties() {
    let subject = Some("subject".to_owned());
    for sent in [
        Properties::default(),
        Properties {
            subject,
            ..Properties::default()
        },
    ] {
        for (view, ttl_ms) in [
            (locked(), None),
            (View::Deferred(None), Some(1_000)),
            (View::Peek(LockedUntil::UNLOCKED), Some(1_000)),
            (View::Peek(LockedUntil::UNLOCKED), None),
        ] {
            let message = Browsed {
                ttl_ms,
                ..with_given_id(&sent)
            };
            let shown = encoded(&message, view);
            let properties = section(&shown, |sections| sections.properties.clone());
            let properties = Properties::decode(&properties).expect("properties");
            let expected = Properties {
                message_id: Some(Value::String("given".to_owned())),
                creation_time: properties.creation_time.filter(|_| ttl_ms.is_some()),
                absolute_expiry_time: ttl_ms.and(properties.absolute_expiry_time),
                ..sent.clone()
            };
            assert_eq!(properties, expected);
            assert!(shown.ends_with(BODY));
            let annotations = section(&shown, |it| it.message_annotations.clone());
            let annotations = decode_map_section(&annotations).expect("a map");
            assert_eq!(amqp::value::lookup(&annotations, broker::GIVEN_ID), None);
        }
    }
}

/// As an older version has stored it, and as a rule's action leaves it.
#[test]
fn a_message_without_any_id_has_that_of_its_place_in_each_view() {
    let subject = Properties {
        subject: Some("subject".to_owned()),
        ..Properties::default()
    };
    let mut with_subject = BytesMut::new();
    subject.encode(&mut with_subject);
    with_subject.extend_from_slice(BODY);
    for (sent, payload) in [
        (Properties::default(), Bytes::from_static(BODY)),
        (subject, with_subject.freeze()),
    ] {
        for view in [
            locked(),
            UNLOCKED,
            View::Deferred(Some(lock())),
            View::Peek(LockedUntil::UNLOCKED),
        ] {
            let shown = encoded(&browsed(payload.clone()), view);
            let properties = section(&shown, |sections| sections.properties.clone());
            let expected = Properties {
                message_id: Some(Value::from(ID_OF_ITS_PLACE)),
                ..sent.clone()
            };
            assert_eq!(Properties::decode(&properties), Ok(expected));
            assert!(shown.ends_with(BODY));
        }
    }
}

#[test]
fn an_id_of_the_sender_counts_before_one_that_was_given() {
    let sent = Properties {
        message_id: Some(Value::Ulong(7)),
        ..Properties::default()
    };
    let shown = encoded(&with_given_id(&sent), locked());
    let properties = section(&shown, |sections| sections.properties.clone());
    let properties = Properties::decode(&properties).expect("properties");
    assert_eq!(properties, sent);
}
