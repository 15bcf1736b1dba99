//! Every written value is read back as the same value.

use amqp::items::{self, Item};
use amqp::message::{self, Header, Properties, descriptor};
use amqp::performative::Performative;
use amqp::sasl::SaslFrame;
use amqp::{Value, validate};
use bytes::Bytes;
use proptest::prelude::*;

use crate::{decoded, encoded, generate, written};

proptest! {
    #[test]
    fn every_value_survives(value in generate::value()) {
        let bytes = encoded(&value);
        prop_assert_eq!(validate::value(&bytes, 100_000), Ok(bytes.len()));
        prop_assert_eq!(validate::extent(&bytes), Ok(bytes.len()));
        prop_assert_eq!(decoded(&bytes), Ok(value));
    }

    #[test]
    fn every_item_is_read_as_it_is_decoded(value in generate::value()) {
        let bytes = encoded(&value);
        prop_assert_eq!(items::extent(&bytes), Ok(bytes.len()));
        match items::read(&bytes).unwrap() {
            Item::Text(text) => prop_assert_eq!(value.as_text(), Some(text)),
            Item::Binary(content) => {
                prop_assert_eq!(value, Value::Binary(Bytes::copy_from_slice(content)));
            }
            Item::Scalar(scalar) => prop_assert_eq!(value, scalar),
            Item::Described(descriptor, inner) => {
                let pair = (decoded(descriptor).unwrap(), decoded(inner).unwrap());
                prop_assert_eq!(value, Value::Described(Box::new(pair)));
            }
            Item::Compound => {
                prop_assert!(matches!(value, Value::List(_) | Value::Map(_) | Value::Array(_)));
            }
        }
    }

    #[test]
    fn any_item_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if items::read(&bytes).is_ok_and(|item| matches!(item, Item::Scalar(_))) {
            prop_assert!(decoded(&bytes).is_ok());
        }
    }

    #[test]
    fn every_performative_survives_and_leaves_the_payload(
        performative in generate::performative(),
        payload in generate::binary(),
    ) {
        let body = written(|out| {
            performative.encode(out);
            out.extend_from_slice(&payload);
        });
        let mut rest = body.clone();
        prop_assert_eq!(Performative::decode(&mut rest), Ok(performative));
        prop_assert_eq!(rest, payload);
    }

    #[test]
    fn every_sasl_frame_survives(frame in generate::sasl()) {
        let body = written(|out| frame.encode(out));
        prop_assert_eq!(SaslFrame::decode(&body), Ok(frame));
    }

    #[test]
    fn every_header_survives(header in generate::header()) {
        let section = written(|out| header.encode(out));
        prop_assert_eq!(Header::decode(&section), Ok(header));
    }

    #[test]
    fn all_properties_survive(properties in generate::properties()) {
        let section = written(|out| properties.encode(out));
        prop_assert_eq!(Properties::decode(&section), Ok(properties));
    }

    #[test]
    fn every_map_section_survives(map in generate::fields(), value in generate::value()) {
        let mut map = map;
        map.push((Value::from("any value"), value));
        for descriptor in [
            descriptor::DELIVERY_ANNOTATIONS,
            descriptor::MESSAGE_ANNOTATIONS,
            descriptor::APPLICATION_PROPERTIES,
            descriptor::FOOTER,
        ] {
            let section = written(|out| message::encode_map_section(out, descriptor, &map));
            prop_assert_eq!(message::decode_map_section(&section), Ok(map.clone()));
        }
    }

    #[test]
    fn what_is_cut_short_anywhere_is_refused(performative in generate::performative()) {
        let body = written(|out| performative.encode(out));
        for end in 0..body.len() {
            let mut cut = body.slice(..end);
            prop_assert!(Performative::decode(&mut cut).is_err(), "cut at {}", end);
            prop_assert_eq!(cut.len(), end, "untouched after an error");
        }
    }

    #[test]
    fn a_value_cut_short_anywhere_is_refused(value in generate::value()) {
        let bytes = encoded(&value);
        for end in 0..bytes.len() {
            prop_assert!(decoded(&bytes[..end]).is_err(), "cut at {}", end);
        }
    }

    #[test]
    fn a_sasl_frame_cut_short_anywhere_is_refused(frame in generate::sasl()) {
        let body = written(|out| frame.encode(out));
        for end in 0..body.len() {
            prop_assert!(SaslFrame::decode(&body.slice(..end)).is_err(), "cut at {}", end);
        }
    }
}

#[test]
fn lists_and_maps_can_be_written_item_by_item() {
    let bytes = written(|out| {
        let list = amqp::encode::list32_begin(out);
        amqp::encode::long(out, 5);
        let map = amqp::encode::map32_begin(out);
        amqp::encode::symbol(out, "x-opt-sequence-number");
        amqp::encode::long(out, 1 << 40);
        amqp::encode::symbol(out, "x-opt-enqueued-time");
        amqp::encode::timestamp(out, 77);
        amqp::encode::map32_finish(out, map, 2);
        let compact = amqp::encode::map_begin(out, 1);
        amqp::encode::uuid(out, &[1; 16]);
        amqp::encode::binary(out, &[2; 300]);
        amqp::encode::map_finish(out, compact);
        amqp::encode::list32_finish(out, list, 3);
    });
    let annotations = vec![
        (
            Value::Symbol("x-opt-sequence-number".into()),
            Value::Long(1 << 40),
        ),
        (
            Value::Symbol("x-opt-enqueued-time".into()),
            Value::Timestamp(77),
        ),
    ];
    let uuid = vec![(
        Value::Uuid([1; 16]),
        Value::Binary(Bytes::from_static(&[2; 300])),
    )];
    let list = vec![Value::Long(5), Value::Map(annotations), Value::Map(uuid)];
    assert_eq!(decoded(&bytes), Ok(Value::List(list)));
}
