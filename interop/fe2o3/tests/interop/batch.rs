//! The Service Bus batch: one transfer of format 0x80013700 whose data sections are whole messages.

use anyhow::{Context, Result, ensure};
use fe2o3_amqp::Sendable;
use fe2o3_amqp::types::messaging::message::__private::Serializable;
use fe2o3_amqp::types::messaging::{Batch, Body, Data, Header, Message};
use serde_amqp::primitives::Binary;

use crate::queue::Queue;
use crate::send::assert_are_assigned;
use crate::support::{id, ids, message, sequence_number};

const BATCH_FORMAT: u32 = 0x8001_3700;

fn batch_of(messages: Vec<Message<Data>>) -> Result<Sendable<Batch<Data>>> {
    let mut sections = Vec::new();
    for one in messages {
        sections.push(Data(Binary::from(serde_amqp::to_vec(&Serializable(one))?)));
    }
    let envelope = Message::builder().data_batch(Batch::new(sections)).build();
    Ok(Sendable::builder()
        .message(envelope)
        .message_format(BATCH_FORMAT)
        .build())
}

#[tokio::test]
async fn a_batch_arrives_whole_and_in_order() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let sent: Vec<_> = (0..10)
        .map(|number| message(format!("part {number}")))
        .collect();
    let expected = ids(&sent);
    let mut sender = queue.sender().await?;
    let outcome = sender.send(batch_of(sent)?).await?;
    ensure!(outcome.is_accepted(), "the batch ended {outcome:?}");
    let received = queue.take(10).await?;
    assert_eq!(ids(&received), expected);
    let first = sequence_number(&received[0])?;
    for (one, number) in received.iter().zip(first..) {
        assert_eq!(sequence_number(one)?, number);
    }
    queue.client.close().await
}

/// How an empty data section is encoded.
const EMPTY_DATA: &[u8] = b"\x00\x53\x75\xa0\x00";

#[tokio::test]
async fn messages_of_a_batch_get_ids_and_no_bodies() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let bare = || {
        Message::builder()
            .header(Header::default())
            .data(Vec::new())
            .build()
    };
    let mut batch = batch_of(vec![bare(), bare()])?;
    // The client encodes none without a body.
    let second = batch.message.body.last_mut().context("two messages")?;
    let without = second.0.strip_suffix(EMPTY_DATA).context("an empty body")?;
    *second = Data(Binary::from(without.to_vec()));
    let mut sender = queue.sender().await?;
    let outcome = sender.send(batch).await?;
    ensure!(outcome.is_accepted(), "the batch ended {outcome:?}");
    let peeked = queue.peek().await?;
    let received = queue.take(2).await?;
    assert_are_assigned(&ids(&received));
    for messages in [&peeked, &received] {
        assert!(matches!(messages[0].body, Body::Data(_)));
        assert!(matches!(messages[1].body, Body::Empty));
    }
    queue.client.close().await
}

#[tokio::test]
async fn a_batch_with_a_broken_message_is_refused_whole() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let mut batch = batch_of(vec![message("good")])?;
    batch
        .message
        .body
        .push(Data(Binary::from(b"\x00\x53\x75\xa0\xff".to_vec())));
    let mut sender = queue.sender().await?;
    let outcome = sender.send(batch).await?;
    assert!(outcome.is_rejected(), "the batch ended {outcome:?}");
    queue.must_be_empty().await?;
    let sent = message("the link still works");
    let expected = id(&sent);
    assert!(sender.send(sent).await?.is_accepted());
    assert_eq!(ids(&queue.take(1).await?), [expected]);
    queue.client.close().await
}
