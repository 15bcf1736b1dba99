//! Settling by outcome; the delivery count and its limit.
//!
//! `header.delivery-count` is the number of failed deliveries before the present one
//! (docs/spec/amqp.md#4.4).

use anyhow::Result;
use fe2o3_amqp::types::definitions::{Error, ErrorCondition, Fields};
use fe2o3_amqp::types::messaging::{ApplicationProperties, Body, Message, Modified};
use fe2o3_amqp::types::primitives::SimpleValue;
use serde_amqp::Value;
use serde_amqp::primitives::Symbol;

use crate::queue::{Queue, next, receive};
use crate::support::{
    Client, Received, annotation, delivery_count, id, ids, message, sequence_number,
};

fn property(message: &Received, name: &str) -> Option<SimpleValue> {
    message.application_properties.as_ref()?.get(name).cloned()
}

fn text(value: &str) -> Option<SimpleValue> {
    Some(SimpleValue::String(value.into()))
}

fn with_property(name: &str, value: &str) -> Message<fe2o3_amqp::types::messaging::Data> {
    let mut message = message("body");
    message.application_properties =
        Some(ApplicationProperties::builder().insert(name, value).build());
    message
}

fn dead_letter_error(entries: &[(&str, &str)]) -> Error {
    let mut info = Fields::new();
    for (key, value) in entries {
        info.insert(Symbol::from(*key), Value::from(*value));
    }
    Error::new(
        ErrorCondition::Custom(Symbol::from("com.microsoft:dead-letter")),
        None,
        Some(info),
    )
}

#[tokio::test]
async fn peek_lock_hides_a_message_until_it_is_accepted() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let sent = message("body");
    let expected = id(&sent);
    queue.send([sent]).await?;
    let mut holder = queue.receiver().await?;
    let mut other = queue.receiver().await?;
    let delivery = receive(&mut holder).await?;
    assert_eq!(id(delivery.message()), expected);
    assert!(next(&mut other).await?.is_none());
    assert_eq!(queue.peek().await?.len(), 1);
    holder.accept(&delivery).await?;
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn receive_and_delete_removes_at_delivery() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([message("body")]).await?;
    let name = queue.name.clone();
    let mut receiver = queue.deleting_receiver(&name).await?;
    receive(&mut receiver).await?;
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn modified_counts_a_failed_delivery_and_changes_properties() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([with_property("changed", "old")]).await?;
    let mut receiver = queue.receiver().await?;
    let first = receive(&mut receiver).await?;
    assert_eq!(delivery_count(first.message())?, 0);
    let mut changes = Fields::new();
    changes.insert(Symbol::from("changed"), Value::from("new"));
    let modified = Modified {
        delivery_failed: Some(true),
        undeliverable_here: Some(false),
        message_annotations: Some(changes),
    };
    receiver.modify(&first, modified).await?;
    let second = receive(&mut receiver).await?;
    assert_eq!(
        sequence_number(second.message())?,
        sequence_number(first.message())?
    );
    assert_eq!(delivery_count(second.message())?, 1);
    assert_eq!(property(second.message(), "changed"), text("new"));
    assert_ne!(second.delivery_tag(), first.delivery_tag());
    receiver.accept(&second).await?;
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn released_counts_nothing() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([message("body")]).await?;
    let mut receiver = queue.receiver().await?;
    let first = receive(&mut receiver).await?;
    receiver.release(&first).await?;
    let second = receive(&mut receiver).await?;
    assert_eq!(delivery_count(second.message())?, 0);
    receiver.accept(&second).await?;
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn rejected_goes_to_the_dead_letter_queue_with_its_reason() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let sent = with_property("kept", "yes");
    let expected = id(&sent);
    queue.send([sent]).await?;
    let mut receiver = queue.receiver().await?;
    let delivery = receive(&mut receiver).await?;
    let error = dead_letter_error(&[
        ("DeadLetterReason", "Unreadable"),
        ("DeadLetterErrorDescription", "The body is not JSON."),
        ("stage", "parse"),
    ]);
    receiver.reject(&delivery, error).await?;
    let dead = queue.take_dead().await?;
    assert_eq!(id(&dead), expected);
    assert_eq!(
        sequence_number(&dead)?,
        sequence_number(delivery.message())?
    );
    assert_eq!(property(&dead, "DeadLetterReason"), text("Unreadable"));
    assert_eq!(
        property(&dead, "DeadLetterErrorDescription"),
        text("The body is not JSON.")
    );
    assert_eq!(property(&dead, "kept"), text("yes"));
    assert_eq!(property(&dead, "stage"), text("parse"));
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn modified_undeliverable_here_defers() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([message("later")]).await?;
    let mut receiver = queue.receiver().await?;
    let delivery = receive(&mut receiver).await?;
    let modified = Modified {
        delivery_failed: None,
        undeliverable_here: Some(true),
        message_annotations: None,
    };
    receiver.modify(&delivery, modified).await?;
    let peeked = queue.peek().await?;
    assert_eq!(
        annotation(&peeked[0], "x-opt-message-state"),
        Some(&Value::Int(1))
    );
    let number = sequence_number(&peeked[0])?;
    let answer = queue
        .management()
        .await?
        .receive_by_number(&[number], 0)
        .await?;
    assert_eq!(answer.status, 200);
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn three_abandoned_deliveries_dead_letter_a_message() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let sent = message("body");
    let expected = id(&sent);
    queue.send([sent]).await?;
    let mut receiver = queue.receiver().await?;
    for count in 0..3 {
        let delivery = receive(&mut receiver).await?;
        assert_eq!(delivery_count(delivery.message())?, count);
        let abandon = Modified {
            delivery_failed: Some(true),
            undeliverable_here: None,
            message_annotations: None,
        };
        receiver.modify(&delivery, abandon).await?;
    }
    let dead = queue.take_dead().await?;
    assert_eq!(id(&dead), expected);
    assert_eq!(delivery_count(&dead)?, 3);
    assert_eq!(
        property(&dead, "DeadLetterReason"),
        text("MaxDeliveryCountExceeded")
    );
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn competing_receivers_get_disjoint_messages() -> Result<()> {
    let mut queue = Queue::cleared("compete").await?;
    let sent: Vec<_> = (0..60).map(|_| message("body")).collect();
    let mut expected = ids(&sent);
    queue.send(sent).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..3 {
        tasks.spawn(accept_until_empty(queue.name.clone()));
    }
    let mut got = Vec::new();
    while let Some(share) = tasks.join_next().await {
        got.extend(share??);
    }
    expected.sort();
    got.sort();
    assert_eq!(got, expected);
    queue.must_be_empty().await?;
    queue.client.close().await
}

/// Works like a consumer with a connection of its own until nothing comes for a while.
async fn accept_until_empty(name: String) -> Result<Vec<String>> {
    let mut queue = Queue {
        client: Client::connect().await?,
        name,
    };
    let mut receiver = queue.receiver().await?;
    let mut done = Vec::new();
    while let Some(delivery) = next(&mut receiver).await? {
        receiver.accept(&delivery).await?;
        done.push(id(delivery.message()));
    }
    // The peek comes after the dispositions on this session: when it is answered, they have been
    // seen.
    queue.peek().await?;
    receiver.close().await?;
    queue.client.close().await?;
    Ok(done)
}

#[tokio::test]
async fn an_empty_body_comes_back() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([message("")]).await?;
    let received = queue.take(1).await?;
    assert!(matches!(received[0].body, Body::Data(_)));
    queue.client.close().await
}
