//! Annotations: which ones a message carries, by how it is received, and what becomes of the
//! sender's.

use anyhow::{Context, Result};
use fe2o3_amqp::types::messaging::DeliveryAnnotations;
use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use serde_amqp::Value;
use serde_amqp::primitives::Uuid;

use crate::management::lock_token;
use crate::queue::{Queue, receive};
use crate::support::{Received, message};

const ENQUEUED_TIME: &str = "x-opt-enqueued-time";
const SEQUENCE_NUMBER: &str = "x-opt-sequence-number";
const LOCKED_UNTIL: &str = "x-opt-locked-until";
const LOCK_TOKEN: &str = "x-opt-lock-token";

/// Whether the message annotations are those of `names` and no others.
fn has_only(message: &Received, names: &[&str]) -> bool {
    message
        .message_annotations
        .as_ref()
        .is_some_and(|annotations| {
            annotations.len() == names.len()
                && names
                    .iter()
                    .all(|name| annotations.contains_key(&OwnedKey::from(*name)))
        })
}

#[tokio::test]
async fn a_plain_delivery_has_its_time_number_and_lock() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([message("body")]).await?;
    let mut receiver = queue.receiver().await?;
    let delivery = receive(&mut receiver).await?;
    let received = delivery.message();
    let names = [ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL];
    assert!(
        has_only(received, &names),
        "{:?}",
        received.message_annotations
    );
    let annotations = received.delivery_annotations.as_ref();
    assert_eq!(annotations.map(|all| all.len()), Some(1));
    lock_token(received)?;
    assert_eq!(delivery.delivery_tag().len(), 16);
    receiver.accept(&delivery).await?;
    queue.client.close().await
}

#[tokio::test]
async fn a_delivery_to_delete_has_no_lock() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([message("body")]).await?;
    let name = queue.name.clone();
    let mut receiver = queue.deleting_receiver(&name).await?;
    let delivery = receive(&mut receiver).await?;
    let received = delivery.message();
    assert!(
        has_only(received, &[ENQUEUED_TIME, SEQUENCE_NUMBER]),
        "{:?}",
        received.message_annotations
    );
    assert_eq!(received.delivery_annotations, None);
    assert!(delivery.delivery_tag().is_empty());
    queue.client.close().await
}

#[tokio::test]
async fn the_senders_annotations_arrive() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let own = Value::Uuid(Uuid::from([9; 16]));
    let mut sent = message("body");
    sent.delivery_annotations = Some(
        DeliveryAnnotations::builder()
            .insert("by", "courier")
            .insert("hop", 3_i64)
            .insert(LOCK_TOKEN, own.clone())
            .build(),
    );
    queue.send([sent]).await?;
    let mut receiver = queue.receiver().await?;
    let delivery = receive(&mut receiver).await?;
    let annotations = delivery.message().delivery_annotations.as_ref();
    let annotations = annotations.context("delivery annotations")?;
    let value = |name: &str| annotations.get(&OwnedKey::from(name));
    assert_eq!(annotations.len(), 3);
    assert_eq!(value("by"), Some(&Value::from("courier")));
    assert_eq!(value("hop"), Some(&Value::Long(3)));
    assert_ne!(value(LOCK_TOKEN), Some(&own));
    receiver.accept(&delivery).await?;
    queue.client.close().await
}
