//! azservicebus: queues, a topic, sessions and what becomes of messages that are given back.

use std::time::Duration;

use anyhow::{Context, Result};
use azservicebus::core::BasicRetryPolicy;
use azservicebus::receiver::DeadLetterOptions;
use azservicebus::{
    ServiceBusClient, ServiceBusClientOptions, ServiceBusMessage, ServiceBusReceivedMessage,
    ServiceBusReceiver, ServiceBusReceiverOptions, SubQueue,
};

type Client = ServiceBusClient<BasicRetryPolicy>;

const PATIENCE: Duration = Duration::from_secs(30);

/// The broker as the cloud's users write it: a host, and no port.
fn connection_string(key: &str) -> Result<String> {
    let host = std::env::var("RAILBUS_ADDRESS").context("RAILBUS_ADDRESS names no broker")?;
    Ok(format!(
        "Endpoint=sb://{host}/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey={key}"
    ))
}

async fn connect(key: &str) -> Result<Client> {
    let options = ServiceBusClientOptions::default();
    let client = ServiceBusClient::new_from_connection_string(connection_string(key)?, options);
    Ok(client.await?)
}

async fn send(client: &mut Client, queue: &str, bodies: &[&str]) -> Result<()> {
    let mut sender = client.create_sender(queue, Default::default()).await?;
    sender.send_messages(bodies.to_vec()).await?;
    Ok(sender.dispose().await?)
}

async fn next(receiver: &mut ServiceBusReceiver) -> Result<ServiceBusReceivedMessage> {
    let received = receiver
        .receive_message_with_max_wait_time(PATIENCE)
        .await?;
    received.context("nothing came")
}

fn body(message: &ServiceBusReceivedMessage) -> Result<String> {
    Ok(String::from_utf8(message.body()?.to_vec())?)
}

#[tokio::test]
async fn messages_are_sent_and_completed() -> Result<()> {
    let mut client = connect("SAS_KEY_VALUE").await?;
    send(&mut client, "orders", &["first", "second", "third"]).await?;
    let mut receiver = client
        .create_receiver_for_queue("orders", Default::default())
        .await?;
    for expected in ["first", "second", "third"] {
        let received = next(&mut receiver).await?;
        assert_eq!(body(&received)?, expected);
        receiver.complete_message(&received).await?;
    }
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

#[tokio::test]
async fn an_abandoned_message_comes_again() -> Result<()> {
    let mut client = connect("SAS_KEY_VALUE").await?;
    send(&mut client, "orders", &["again"]).await?;
    let mut receiver = client
        .create_receiver_for_queue("orders", Default::default())
        .await?;
    let first = next(&mut receiver).await?;
    receiver.abandon_message(&first, None).await?;
    let again = next(&mut receiver).await?;
    assert_eq!(again.sequence_number(), first.sequence_number());
    assert_eq!(
        again.delivery_count(),
        Some(first.delivery_count().unwrap_or_default() + 1)
    );
    receiver.complete_message(&again).await?;
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

#[tokio::test]
async fn a_dead_letter_tells_its_reason() -> Result<()> {
    let mut client = connect("SAS_KEY_VALUE").await?;
    send(&mut client, "orders", &["bad"]).await?;
    let mut receiver = client
        .create_receiver_for_queue("orders", Default::default())
        .await?;
    let bad = next(&mut receiver).await?;
    let options = DeadLetterOptions {
        dead_letter_reason: Some("unreadable".to_owned()),
        ..Default::default()
    };
    receiver.dead_letter_message(&bad, options).await?;
    receiver.dispose().await?;
    let options = ServiceBusReceiverOptions {
        sub_queue: SubQueue::DeadLetter,
        ..Default::default()
    };
    let mut dead = client.create_receiver_for_queue("orders", options).await?;
    let received = next(&mut dead).await?;
    assert_eq!(body(&received)?, "bad");
    assert_eq!(received.dead_letter_reason(), Some("unreadable"));
    dead.complete_message(&received).await?;
    dead.dispose().await?;
    Ok(client.dispose().await?)
}

#[tokio::test]
async fn a_subscription_gets_what_its_topic_is_sent() -> Result<()> {
    let mut client = connect("SAS_KEY_VALUE").await?;
    send(&mut client, "events", &["event"]).await?;
    let mut receiver = client
        .create_receiver_for_subscription("events", "all", Default::default())
        .await?;
    let received = next(&mut receiver).await?;
    assert_eq!(body(&received)?, "event");
    receiver.complete_message(&received).await?;
    receiver.dispose().await?;
    Ok(client.dispose().await?)
}

#[tokio::test]
async fn the_next_session_is_accepted() -> Result<()> {
    let mut client = connect("SAS_KEY_VALUE").await?;
    let mut sender = client.create_sender("sessions", Default::default()).await?;
    let mut message = ServiceBusMessage::new("in a session");
    message.set_session_id("red".to_owned())?;
    sender.send_message(message).await?;
    let mut receiver = client
        .accept_next_session_for_queue("sessions", Default::default())
        .await?;
    assert_eq!(receiver.session_id(), "red");
    let received = receiver.receive_message().await?;
    assert_eq!(body(&received)?, "in a session");
    receiver.complete_message(&received).await?;
    receiver.dispose().await?;
    sender.dispose().await?;
    Ok(client.dispose().await?)
}

#[tokio::test]
async fn a_queue_that_is_missing_is_an_error() -> Result<()> {
    let mut client = connect("SAS_KEY_VALUE").await?;
    let missing = client
        .create_sender("no-such-queue", Default::default())
        .await;
    assert!(missing.is_err());
    Ok(client.dispose().await?)
}

#[tokio::test]
async fn a_wrong_key_is_an_error() -> Result<()> {
    let mut client = connect("WRONG_KEY_VALUE").await?;
    let refused = client.create_sender("orders", Default::default()).await;
    assert!(refused.is_err());
    Ok(client.dispose().await?)
}
