//! What a message carries comes back as it was sent, type by type.

use anyhow::{Context, Result};
use fe2o3_amqp::types::messaging::{
    AmqpSequence, AmqpValue, ApplicationProperties, Batch, Body, Data, Message, MessageAnnotations,
    MessageId, Properties,
};
use fe2o3_amqp::types::primitives::SimpleValue;
use serde_amqp::Value;
use serde_amqp::primitives::{Binary, Dec32, Dec64, Dec128, Symbol, Timestamp, Uuid};

use crate::queue::Queue;
use crate::support::{annotation, message};

fn every_type() -> Vec<SimpleValue> {
    vec![
        SimpleValue::Null,
        SimpleValue::Bool(true),
        SimpleValue::Bool(false),
        SimpleValue::Ubyte(u8::MAX),
        SimpleValue::Ushort(u16::MAX),
        SimpleValue::Uint(0),
        SimpleValue::Uint(255),
        SimpleValue::Uint(u32::MAX),
        SimpleValue::Ulong(0),
        SimpleValue::Ulong(255),
        SimpleValue::Ulong(u64::MAX),
        SimpleValue::Byte(i8::MIN),
        SimpleValue::Short(i16::MIN),
        SimpleValue::Int(-1),
        SimpleValue::Int(i32::MIN),
        SimpleValue::Long(-1),
        SimpleValue::Long(i64::MIN),
        SimpleValue::Float(1.5.into()),
        SimpleValue::Double(1.000_000_000_000_000_2.into()),
        SimpleValue::Decimal32(Dec32::from([0x22, 0x50, 0, 0])),
        SimpleValue::Decimal64(Dec64::from([0x22, 0x38, 0, 0, 0, 0, 0, 1])),
        SimpleValue::Decimal128(Dec128::from([7; 16])),
        SimpleValue::Char('☃'),
        SimpleValue::Timestamp(Timestamp::from_milliseconds(1_709_209_815_250)),
        SimpleValue::Uuid(Uuid::from([
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
        ])),
        SimpleValue::Binary(Binary::from((0..=255).collect::<Vec<u8>>())),
        SimpleValue::Binary(Binary::from(Vec::new())),
        SimpleValue::String("naïve ☃ 𝄞".into()),
        SimpleValue::String(String::new()),
        SimpleValue::String("s".repeat(300)),
        SimpleValue::Symbol(Symbol::from("a-symbol")),
    ]
}

#[tokio::test]
async fn application_properties_of_every_type_come_back_equal() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let mut properties = ApplicationProperties::default();
    for (number, value) in every_type().into_iter().enumerate() {
        properties.insert(format!("property {number}"), value);
    }
    let mut sent = message("body");
    sent.application_properties = Some(properties.clone());
    queue.send([sent]).await?;
    let received = queue.take(1).await?;
    assert_eq!(received[0].application_properties, Some(properties));
    queue.client.close().await
}

#[tokio::test]
async fn message_properties_come_back_equal() -> Result<()> {
    // Without a time to live the broker has nothing to write into the properties.
    let mut queue = Queue::cleared("forever").await?;
    let properties = Properties::builder()
        .message_id(MessageId::Uuid(Uuid::from([9; 16])))
        .user_id(Binary::from(b"user".to_vec()))
        .to("somewhere")
        .subject("orders".to_owned())
        .reply_to("the reply queue")
        .correlation_id(MessageId::Ulong(u64::MAX))
        .content_type("application/json")
        .content_encoding("gzip")
        .creation_time(Timestamp::from_milliseconds(1_709_209_815_250))
        .group_id("session".to_owned())
        .group_sequence(7)
        .reply_to_group_id("reply session".to_owned())
        .build();
    let mut sent = message("body");
    sent.properties = Some(properties.clone());
    sent.message_annotations = Some(
        MessageAnnotations::builder()
            .insert("x-opt-partition-key", "session")
            .build(),
    );
    queue.send([sent]).await?;
    let received = queue.take(1).await?;
    assert_eq!(received[0].properties, Some(properties));
    assert_eq!(
        annotation(&received[0], "x-opt-partition-key"),
        Some(&Value::from("session"))
    );
    queue.client.close().await
}

#[tokio::test]
async fn bodies_of_every_kind_come_back_equal() -> Result<()> {
    let sections = |sections: &[&[u8]]| {
        Body::Data(
            sections
                .iter()
                .map(|one| Data(Binary::from(one.to_vec())))
                .collect::<Batch<_>>(),
        )
    };
    let list = |values: &[i32]| AmqpSequence(values.iter().copied().map(Value::Int).collect());
    let bodies: Vec<Body<Value>> = vec![
        sections(&[b"one section"]),
        sections(&[b"two", b"sections"]),
        Body::Value(AmqpValue(Value::from("text"))),
        Body::Value(AmqpValue(Value::Null)),
        Body::Sequence(
            [list(&[1, 2]), list(&[3])]
                .into_iter()
                .collect::<Batch<_>>(),
        ),
    ];
    let mut queue = Queue::cleared("plain").await?;
    for body in bodies {
        queue
            .send([Message::builder().body(body.clone()).build()])
            .await?;
        let received = queue.take(1).await?.pop().context("one message")?;
        assert_eq!(format!("{:?}", received.body), format!("{body:?}"));
    }
    queue.client.close().await
}
