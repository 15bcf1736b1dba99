//! The codec against another implementation: each reads the output of the other as the same value.

use amqp::message::{Header, Properties, Sections};
use amqp::performative::{Performative, ReceiverSettleMode, SenderSettleMode};
use amqp::sasl::SaslFrame;
use amqp::{Symbol, Value};
use bytes::Bytes;
use fe2o3_amqp_types as theirs;
use proptest::prelude::*;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;

use crate::{decoded, encoded, generate, performative, written};

/// Reads `bytes` with the other implementation as a `T`, and returns how that writes it.
fn through_theirs<T>(bytes: &[u8]) -> Result<Vec<u8>, String>
where
    T: serde_amqp::serde::de::DeserializeOwned + serde_amqp::serde::Serialize,
{
    let value: T = serde_amqp::from_slice(bytes).map_err(|error| error.to_string())?;
    serde_amqp::to_vec(&value).map_err(|error| error.to_string())
}

/// An element whose size the other implementation gets right: in arrays it counts characters.
fn sized_right(element: &Value) -> bool {
    !matches!(element, Value::String(text) if !text.is_ascii())
}

/// Values that the other implementation can hold: keys are distinct, and arrays hold no arrays.
fn shared_value() -> impl Strategy<Value = Value> {
    let array = |element: BoxedStrategy<Value>| {
        let element = element.prop_filter("its size would be wrong", sized_right);
        prop::collection::vec(element, 1..5).prop_map(Value::Array)
    };
    let arrays = generate::scalars().into_iter().skip(1).map(array);
    let map = generate::fields().prop_map(Value::Map).boxed();
    prop_oneof![
        4 => generate::scalar(),
        2 => map.clone(),
        2 => proptest::strategy::Union::new(arrays),
        2 => prop::collection::vec(prop_oneof![generate::scalar(), map], 1..6)
            .prop_map(Value::List),
        1 => (any::<u64>(), generate::scalar())
            .prop_map(|(code, value)| Value::described(code, value)),
    ]
}

/// The other implementation leaves out a settlement mode that is the default.
fn without_default_modes(mut performative: Performative) -> Performative {
    if let Performative::Attach(attach) = &mut performative {
        attach
            .snd_settle_mode
            .take_if(|mode| *mode == SenderSettleMode::Mixed);
        attach
            .rcv_settle_mode
            .take_if(|mode| *mode == ReceiverSettleMode::First);
    }
    performative
}

proptest! {
    #[test]
    fn every_value_survives_the_other_implementation(value in shared_value()) {
        let back = through_theirs::<serde_amqp::Value>(&encoded(&value));
        prop_assert_eq!(back.map(|bytes| decoded(&bytes)), Ok(Ok(value)));
    }

    #[test]
    fn every_performative_survives_the_other_implementation(
        sent in generate::plain_performative(),
    ) {
        let bytes = written(|out| sent.encode(out));
        let back = through_theirs::<theirs::performatives::Performative>(&bytes);
        prop_assert_eq!(back.map(|bytes| performative(&bytes)), Ok(Ok(without_default_modes(sent))));
    }

    #[test]
    fn every_sasl_frame_survives_the_other_implementation(frame in generate::sasl()) {
        use theirs::sasl;
        let bytes = written(|out| frame.encode(out));
        let back = match &frame {
            SaslFrame::Mechanisms(_) => through_theirs::<sasl::SaslMechanisms>(&bytes),
            SaslFrame::Init { .. } => through_theirs::<sasl::SaslInit>(&bytes),
            SaslFrame::Challenge(_) => through_theirs::<sasl::SaslChallenge>(&bytes),
            SaslFrame::Response(_) => through_theirs::<sasl::SaslResponse>(&bytes),
            SaslFrame::Outcome { .. } => through_theirs::<sasl::SaslOutcome>(&bytes),
        };
        let back = back.map(|bytes| SaslFrame::decode(&Bytes::from(bytes)));
        prop_assert_eq!(back, Ok(Ok(frame)));
    }

    #[test]
    fn all_properties_survive_the_other_implementation(properties in generate::properties()) {
        let bytes = written(|out| properties.encode(out));
        let back = through_theirs::<theirs::messaging::Properties>(&bytes);
        let back = back.map(|bytes| Properties::decode(&Bytes::from(bytes)));
        prop_assert_eq!(back, Ok(Ok(properties)));
    }
}

#[test]
fn a_header_is_read_by_the_other_implementation_as_it_was_meant() {
    let header = Header {
        durable: Some(true),
        priority: Some(7),
        ttl: Some(60_000),
        first_acquirer: Some(true),
        delivery_count: Some(3),
    };
    let bytes = written(|out| header.encode(out));
    let read: theirs::messaging::Header = serde_amqp::from_slice(&bytes).unwrap();
    assert!(read.durable && read.first_acquirer);
    assert_eq!(
        (read.priority.0, read.ttl, read.delivery_count),
        (7, Some(60_000), 3)
    );
    let back = serde_amqp::to_vec(&read).unwrap();
    assert_eq!(Header::decode(&back), Ok(header));
}

#[test]
fn values_mean_the_same_to_the_other_implementation() {
    use serde_amqp::Value as Theirs;
    for (ours, theirs) in [
        (Value::Null, Theirs::Null),
        (Value::Bool(true), Theirs::Bool(true)),
        (Value::Ubyte(200), Theirs::Ubyte(200)),
        (Value::Ushort(50_000), Theirs::Ushort(50_000)),
        (Value::Uint(70_000), Theirs::Uint(70_000)),
        (Value::Ulong(1 << 60), Theirs::Ulong(1 << 60)),
        (Value::Byte(-3), Theirs::Byte(-3)),
        (Value::Short(-300), Theirs::Short(-300)),
        (Value::Int(-70_000), Theirs::Int(-70_000)),
        (Value::Long(-5), Theirs::Long(-5)),
        (Value::Float(1.25), Theirs::Float(1.25.into())),
        (Value::Double(-1.25), Theirs::Double((-1.25).into())),
        (Value::Char('x'), Theirs::Char('x')),
        (Value::Timestamp(99), Theirs::Timestamp(99.into())),
        (Value::Uuid([3; 16]), Theirs::Uuid([3; 16].into())),
        (Value::from("text"), Theirs::String("text".to_owned())),
        (
            Value::Symbol(Symbol::new("name")),
            Theirs::Symbol("name".into()),
        ),
        (
            Value::List(vec![Value::Uint(0)]),
            Theirs::List(vec![Theirs::Uint(0)]),
        ),
        (
            Value::described(0x77, Value::Bool(false)),
            Theirs::Described(Box::new(Described {
                descriptor: Descriptor::Code(0x77),
                value: Theirs::Bool(false),
            })),
        ),
    ] {
        assert_eq!(
            serde_amqp::from_slice::<Theirs>(&encoded(&ours)).unwrap(),
            theirs
        );
        assert_eq!(decoded(&serde_amqp::to_vec(&theirs).unwrap()), Ok(ours));
    }
}

#[test]
fn a_message_of_the_other_implementation_is_scanned() {
    use theirs::messaging::message::__private::Serializable;
    use theirs::messaging::{Data, Message};
    let message = Message::builder()
        .header(theirs::messaging::Header {
            durable: true,
            ..Default::default()
        })
        .properties(
            theirs::messaging::Properties::builder()
                .message_id("id-1".to_owned())
                .build(),
        )
        .data(Data(vec![1, 2, 3].into()))
        .build();
    let bytes = Bytes::from(serde_amqp::to_vec(&Serializable(message)).unwrap());
    let sections = Sections::scan(&bytes).unwrap();
    let header = Header::decode(&bytes[sections.header.clone()]).unwrap();
    assert_eq!(header.durable, Some(true));
    let properties = Properties::decode(&bytes.slice(sections.properties.clone())).unwrap();
    assert_eq!(properties.message_id, Some(Value::from("id-1")));
    assert_eq!(
        &bytes[sections.body.clone()],
        b"\x00\x53\x75\xa0\x03\x01\x02\x03"
    );
    assert_eq!(sections.bare().end, bytes.len());
}
