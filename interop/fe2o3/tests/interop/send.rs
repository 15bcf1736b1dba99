//! Sending: one, many in flight, many connections, large; and what the broker stamps on a message.

use anyhow::{Result, ensure};
use fe2o3_amqp::link::SendError;
use fe2o3_amqp::types::messaging::Message;
use serde_amqp::Value;

use crate::queue::{Queue, receive};
use crate::support::{
    Client, annotation, bytes, id, ids, message, now, patiently, sequence_number,
};

#[tokio::test]
async fn a_sent_message_arrives_with_its_body() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let sent = message("hello");
    let expected = id(&sent);
    queue.send([sent]).await?;
    let received = queue.take(1).await?;
    assert_eq!(id(&received[0]), expected);
    assert_eq!(bytes(&received[0]), b"hello");
    queue.client.close().await
}

#[tokio::test]
async fn two_hundred_unsettled_sends_on_one_link_all_arrive_in_order() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let sent: Vec<_> = (0..200)
        .map(|number| message(format!("number {number}")))
        .collect();
    let expected = ids(&sent);
    let mut sender = queue.sender().await?;
    let mut outcomes = Vec::new();
    for one in sent {
        outcomes.push(sender.send_batchable(one).await?);
    }
    for outcome in outcomes {
        let outcome = patiently("an outcome", outcome).await??;
        ensure!(outcome.is_accepted(), "a send ended {outcome:?}");
    }
    assert_eq!(ids(&queue.take(200).await?), expected);
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn sends_of_twenty_connections_at_once_all_arrive_once() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let name = queue.name.clone();
        tasks.spawn(send_ten(name));
    }
    let mut expected = Vec::new();
    while let Some(sent) = tasks.join_next().await {
        expected.extend(sent??);
    }
    let mut got = ids(&queue.take(200).await?);
    expected.sort();
    got.sort();
    assert_eq!(got, expected);
    queue.must_be_empty().await?;
    queue.client.close().await
}

async fn send_ten(name: String) -> Result<Vec<String>> {
    let mut queue = Queue {
        client: Client::connect().await?,
        name,
    };
    let sent: Vec<_> = (0..10).map(|_| message("body")).collect();
    let sent_ids = ids(&sent);
    queue.send(sent).await?;
    queue.client.close().await?;
    Ok(sent_ids)
}

#[tokio::test]
async fn a_large_message_arrives_byte_for_byte() -> Result<()> {
    let mut queue = Queue::cleared("large").await?;
    for kib in [200_usize, 900] {
        // A period that does not divide any frame shows misplaced frames.
        let body: Vec<u8> = (0..=250_u8).cycle().take(kib << 10).collect();
        queue.send([message(body.clone())]).await?;
        let mut receiver = queue.receiver().await?;
        let delivery = receive(&mut receiver).await?;
        ensure!(
            bytes(delivery.message()) == body,
            "the body of {kib} KiB is not what was sent"
        );
        receiver.accept(&delivery).await?;
        queue.must_be_empty().await?;
        receiver.close().await?;
    }
    queue.client.close().await
}

/// What `interop/railbus.toml` says.
const LIMIT: usize = 1 << 20;

#[tokio::test]
async fn a_message_of_almost_the_limit_arrives() -> Result<()> {
    let mut queue = Queue::cleared("large").await?;
    // The data section takes eight bytes.
    let body: Vec<u8> = (0..=250_u8).cycle().take(LIMIT - 8).collect();
    let sent = || Message::builder().data(body.clone()).build();
    queue.send([sent(), sent()]).await?;
    let mut receiver = queue.receiver().await?;
    for _ in 0..2 {
        let delivery = receive(&mut receiver).await?;
        ensure!(bytes(delivery.message()) == body, "it is another body");
        receiver.accept(&delivery).await?;
    }
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn a_message_above_the_limit_is_not_sent_and_the_next_one_is() -> Result<()> {
    let mut queue = Queue::cleared("large").await?;
    let mut sender = queue.sender().await?;
    assert_eq!(sender.max_message_size(), Some(LIMIT as u64));
    let refused = sender.send(message(vec![0; LIMIT])).await;
    assert!(
        matches!(refused, Err(SendError::MessageSizeExceeded(_))),
        "{refused:?}"
    );
    let sent = message("small");
    let expected = id(&sent);
    assert!(sender.send(sent).await?.is_accepted());
    assert_eq!(ids(&queue.take(1).await?), [expected]);
    queue.client.close().await
}

#[tokio::test]
async fn a_message_without_an_id_gets_one_that_stays() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue
        .send((0..2).map(|_| Message::builder().data(b"same".to_vec()).build()))
        .await?;
    let assigned = ids(&queue.peek().await?);
    assert_are_assigned(&assigned);
    let mut receiver = queue.receiver().await?;
    let delivery = receive(&mut receiver).await?;
    assert_eq!(id(delivery.message()), assigned[0]);
    receiver.release(&delivery).await?;
    assert_eq!(ids(&queue.take(2).await?), assigned);
    queue.client.close().await
}

/// The ids are such as the broker gives, and each is another.
pub fn assert_are_assigned(ids: &[String]) {
    let is_assigned =
        |id: &String| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(ids.iter().all(is_assigned), "{ids:?}");
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
}

#[tokio::test]
async fn sequence_numbers_rise_and_enqueued_times_are_now() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let before = now()? - 5000;
    queue.send((0..5).map(|_| message("body"))).await?;
    let received = queue.take(5).await?;
    let first = sequence_number(&received[0])?;
    assert!(first > 0);
    for (one, number) in received.iter().zip(first..) {
        assert_eq!(sequence_number(one)?, number);
        let Some(Value::Timestamp(enqueued)) = annotation(one, "x-opt-enqueued-time") else {
            panic!("no enqueued time");
        };
        assert!((before..now()? + 5000).contains(&enqueued.milliseconds()));
    }
    queue.client.close().await
}
