//! Finding a message's sections, and reading those that are not forwarded as they came. [AMQP 3.2]

use amqp::message::{
    self, BodyKind, Header, Properties, Sections, batch_parts, decode_map_section,
};
use amqp::{DecodeError, Symbol, Value};
use bytes::Bytes;
use proptest::prelude::*;

use crate::{generate, written};

const HEADER: &[u8] = b"\x00\x53\x70\xc0\x02\x01\x41";
const DELIVERY_ANNOTATIONS: &[u8] = b"\x00\x53\x71\xc1\x01\x00";
const MESSAGE_ANNOTATIONS: &[u8] = b"\x00\x53\x72\xd1\x00\x00\x00\x04\x00\x00\x00\x00";
const PROPERTIES: &[u8] = b"\x00\x53\x73\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x40";
const APPLICATION_PROPERTIES: &[u8] = b"\x00\x53\x74\xc1\x06\x02\xa1\x01k\xa1\x00";
const DATA: &[u8] = b"\x00\x53\x75\xa0\x02hi";
const SEQUENCE: &[u8] = b"\x00\x53\x76\x45";
const VALUE: &[u8] = b"\x00\x53\x77\xa1\x02hi";
const FOOTER: &[u8] = b"\x00\x53\x78\xc1\x01\x00";

fn scan(sections: &[&[u8]]) -> Result<Sections, DecodeError> {
    Sections::scan(&sections.concat())
}

#[test]
fn every_section_is_found_where_it_lies() {
    let all = [
        HEADER,
        DELIVERY_ANNOTATIONS,
        MESSAGE_ANNOTATIONS,
        PROPERTIES,
        APPLICATION_PROPERTIES,
        DATA,
        FOOTER,
    ];
    let message = all.concat();
    let found = Sections::scan(&message).unwrap();
    let ranges = [
        &found.header,
        &found.delivery_annotations,
        &found.message_annotations,
        &found.properties,
        &found.application_properties,
        &found.body,
        &found.footer,
    ];
    for (range, section) in ranges.into_iter().zip(all) {
        assert_eq!(&message[range.clone()], section);
    }
    assert_eq!((found.body_kind, found.body_sections), (BodyKind::Data, 1));
    assert_eq!(
        &message[found.bare()],
        [PROPERTIES, APPLICATION_PROPERTIES, DATA, FOOTER].concat()
    );
}

#[test]
fn absent_sections_are_empty_ranges_where_they_would_stand() {
    let found = scan(&[MESSAGE_ANNOTATIONS, DATA]).unwrap();
    let (annotations, end) = (
        MESSAGE_ANNOTATIONS.len(),
        MESSAGE_ANNOTATIONS.len() + DATA.len(),
    );
    assert_eq!(
        (found.header.clone(), found.delivery_annotations.clone()),
        (0..0, 0..0)
    );
    assert_eq!(found.properties, annotations..annotations);
    assert_eq!(found.footer, end..end);
    assert_eq!(found.bare(), annotations..end);
}

#[test]
fn a_message_may_be_empty_or_have_no_body() {
    assert_eq!(scan(&[]), Ok(Sections::default()));
    let found = scan(&[HEADER]).unwrap();
    assert_eq!((found.body_kind, found.bare()), (BodyKind::None, 7..7));
}

#[test]
fn data_and_sequences_repeat_and_values_stand_alone() {
    for (section, kind) in [(DATA, BodyKind::Data), (SEQUENCE, BodyKind::Sequence)] {
        let found = scan(&[PROPERTIES, section, section, section, FOOTER]).unwrap();
        assert_eq!((found.body_kind, found.body_sections), (kind, 3));
        assert_eq!(found.body.len(), 3 * section.len());
    }
    assert_eq!(
        scan(&[VALUE]).map(|found| found.body_kind),
        Ok(BodyKind::Value)
    );
    for (sections, at_fault) in [
        ([VALUE, VALUE], 0x77),
        ([DATA, SEQUENCE], 0x76),
        ([DATA, VALUE], 0x77),
        ([VALUE, DATA], 0x75),
    ] {
        assert_eq!(
            scan(&sections),
            Err(DecodeError::UnexpectedDescriptor(at_fault))
        );
    }
}

#[test]
fn sections_out_of_order_repeated_or_unknown_are_refused() {
    for (sections, at_fault) in [
        ([PROPERTIES, HEADER], 0x70),
        ([HEADER, HEADER], 0x70),
        ([DATA, APPLICATION_PROPERTIES], 0x74),
        ([FOOTER, FOOTER], 0x78),
        ([FOOTER, DATA], 0x75),
        ([MESSAGE_ANNOTATIONS, DELIVERY_ANNOTATIONS], 0x71),
        ([HEADER, b"\x00\x53\x79\x40"], 0x79),
        ([HEADER, b"\x00\x53\x24\x45"], 0x24),
        (
            [HEADER, b"\x00\x80\xff\xff\xff\xff\xff\xff\xff\xff\x40"],
            u64::MAX,
        ),
    ] {
        assert_eq!(
            scan(&sections),
            Err(DecodeError::UnexpectedDescriptor(at_fault))
        );
    }
}

#[test]
fn a_body_does_not_go_on_behind_the_footer() {
    let error = Err(DecodeError::UnexpectedDescriptor(0x75));
    assert_eq!(scan(&[DATA, FOOTER, DATA]), error);
}

#[test]
fn descriptors_in_wide_and_symbolic_form_are_understood() {
    let wide = b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x70\x45";
    let symbolic = [b"\x00\xa3\x10amqp:data:binary", &DATA[3..]].concat();
    let found = scan(&[wide, &symbolic]).unwrap();
    assert_eq!((found.header, found.body_kind), (0..11, BodyKind::Data));
    assert_eq!(
        scan(&[b"\x00\xa3\x04what\x40"]),
        Err(DecodeError::UnknownDescriptor)
    );
}

#[test]
fn a_value_body_is_skipped_whatever_it_is() {
    for content in [
        &b"\x40"[..],
        b"\x43",
        b"\x83\0\0\0\0\0\0\0\0",
        b"\x98\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\xc0\x01\x00",
        b"\xd1\x00\x00\x00\x04\x00\x00\x00\x00",
        b"\xe0\x02\x03\x40",
        b"\x00\x53\x31\x00\xa3\x01x\xb1\x00\x00\x00\x01y",
    ] {
        let found = scan(&[b"\x00\x53\x77", content, FOOTER]).unwrap();
        assert_eq!(found.body, 0..3 + content.len(), "{content:02x?}");
    }
}

#[test]
fn a_section_of_another_type_than_its_own_is_refused() {
    for section in [
        &b"\x00\x53\x70\xc1\x01\x00"[..],
        b"\x00\x53\x72\xc0\x01\x00",
        b"\x00\x53\x72\x45",
        b"\x00\x53\x75\xa1\x00",
        b"\x00\x53\x75\x40",
        b"\x00\x53\x76\xa0\x00",
    ] {
        assert_eq!(
            scan(&[section]),
            Err(DecodeError::WrongType("section")),
            "{section:02x?}"
        );
    }
}

#[test]
fn a_header_or_properties_of_a_wrong_kind_are_refused_by_field() {
    assert_eq!(
        Header::decode(DATA),
        Err(DecodeError::UnexpectedDescriptor(0x75))
    );
    let header = b"\x00\x53\x70\xc0\x03\x01\x52\x01";
    assert_eq!(
        Header::decode(header),
        Err(DecodeError::WrongType("durable"))
    );
    let six = b"\x00\x53\x70\xc0\x07\x06\x40\x40\x40\x40\x40\x40";
    assert_eq!(
        Header::decode(six),
        Err(DecodeError::TooMany { count: 6, limit: 5 })
    );
    let properties = Bytes::from_static(b"\x00\x53\x73\xc0\x03\x01\xc0\x00");
    assert_eq!(
        Properties::decode(&properties),
        Err(DecodeError::WrongType("message-id"))
    );
}

#[test]
fn ids_keep_the_type_that_they_came_in_if_the_standard_allows_it() {
    let with = |id: Value| Properties {
        message_id: Some(id),
        ..Properties::default()
    };
    for id in [
        Value::Ulong(7),
        Value::Uuid([1; 16]),
        Value::from("text"),
        Value::Binary(Bytes::from_static(b"bin")),
    ] {
        let section = written(|out| with(id.clone()).encode(out));
        assert_eq!(Properties::decode(&section), Ok(with(id)));
    }
    for id in [
        Value::Int(-1),
        Value::Bool(true),
        Value::List(Vec::new()),
        Value::Map(Vec::new()),
    ] {
        let section = written(|out| with(id.clone()).encode(out));
        let refused = Err(DecodeError::WrongType("message-id"));
        assert_eq!(Properties::decode(&section), refused, "{id:?}");
    }
}

#[test]
fn keys_may_be_texts_or_symbols_and_numbers_only_in_annotations() {
    let map = vec![(Value::Ulong(1), Value::Null)];
    let annotations = written(|out| message::encode_map_section(out, 0x72, &map));
    assert_eq!(decode_map_section(&annotations), Ok(map.clone()));
    let properties = written(|out| message::encode_map_section(out, 0x74, &map));
    assert_eq!(
        decode_map_section(&properties),
        Err(DecodeError::WrongType("key"))
    );
    let map = vec![(Value::Symbol(Symbol::new("k")), Value::Null)];
    let properties = written(|out| message::encode_map_section(out, 0x74, &map));
    assert_eq!(decode_map_section(&properties), Ok(map));
    let not_a_map = Bytes::from_static(b"\x00\x53\x72\x40");
    assert_eq!(
        decode_map_section(&not_a_map),
        Err(DecodeError::WrongType("section"))
    );
    let data = Bytes::from_static(DATA);
    assert_eq!(
        decode_map_section(&data),
        Err(DecodeError::UnexpectedDescriptor(0x75))
    );
}

#[test]
fn a_batch_has_a_part_per_data_section() {
    let envelope = Bytes::from([PROPERTIES, DATA, b"\x00\x53\x75\xb0\x00\x00\x00\x01x"].concat());
    let sections = Sections::scan(&envelope).unwrap();
    let parts = batch_parts(&envelope, &sections, 2).unwrap();
    assert_eq!(parts, [&b"hi"[..], b"x"]);
    let too_many = DecodeError::TooMany { count: 2, limit: 1 };
    assert_eq!(batch_parts(&envelope, &sections, 1), Err(too_many));
}

#[test]
fn a_batch_without_a_body_is_empty_and_one_of_another_body_is_refused() {
    let empty = Bytes::from_static(PROPERTIES);
    let sections = Sections::scan(&empty).unwrap();
    assert_eq!(batch_parts(&empty, &sections, 10), Ok(vec![]));
    let value = Bytes::from_static(VALUE);
    let sections = Sections::scan(&value).unwrap();
    assert_eq!(
        batch_parts(&value, &sections, 10),
        Err(DecodeError::WrongType("body"))
    );
}

#[test]
fn sections_of_another_message_do_no_harm() {
    let long = Bytes::from([DATA, DATA].concat());
    let sections = Sections::scan(&long).unwrap();
    let short = Bytes::from_static(b"\x00");
    assert_eq!(
        batch_parts(&short, &sections, 10),
        Err(DecodeError::CutShort("message"))
    );
}

proptest! {
    #[test]
    fn any_message_is_cut_back_into_its_sections(
        header in proptest::option::of(generate::header()),
        annotations in proptest::option::of(generate::fields()),
        properties in proptest::option::of(generate::properties()),
        body in generate::value(),
    ) {
        let message = written(|out| {
            if let Some(header) = &header {
                header.encode(out);
            }
            if let Some(annotations) = &annotations {
                message::encode_map_section(out, 0x72, annotations);
            }
            if let Some(properties) = &properties {
                properties.encode(out);
            }
            amqp::encode::descriptor(out, 0x77);
            amqp::encode::value(out, &body);
        });
        let found = Sections::scan(&message).unwrap();
        prop_assert_eq!(found.bare().end, message.len());
        let read = (!found.header.is_empty())
            .then(|| Header::decode(&message[found.header.clone()]).unwrap());
        prop_assert_eq!(read, header);
        let section = message.slice(found.message_annotations.clone());
        let read = (!section.is_empty()).then(|| decode_map_section(&section).unwrap());
        prop_assert_eq!(read, annotations);
        let section = message.slice(found.properties.clone());
        let read = (!section.is_empty()).then(|| Properties::decode(&section).unwrap());
        prop_assert_eq!(read, properties);
        for end in 0..message.len() {
            // A cut between sections leaves a shorter message; one inside a section is refused.
            if let Ok(cut) = Sections::scan(&message[..end]) {
                prop_assert_eq!(cut.footer.end, end);
            }
        }
    }
}
