//! Locks: running out, renewal, settlement by token; and time to live.
//!
//! This client does not show the broker's answer to a settlement on the link, so a late one is seen
//! by what it leaves unchanged, and by the refusal of its token over `$management`.

use anyhow::{Context, Result, bail};
use fe2o3_amqp::types::messaging::Header;
use fe2o3_amqp::types::primitives::SimpleValue;
use serde_amqp::Value;
use serde_amqp::primitives::{Array, Timestamp};

use crate::management::lock_token;
use crate::queue::{Queue, next, receive};
use crate::support::{
    Client, Received, annotation, id, locked_until, message, patiently, wait_until_passed,
};

const LOCK_LOST: Option<&str> = Some("com.microsoft:message-lock-lost");

#[tokio::test]
async fn a_lock_that_ran_out_is_lost_and_counts_a_failed_delivery() -> Result<()> {
    let mut queue = Queue::cleared("shortlock").await?;
    queue.send([message("body")]).await?;
    let mut late = queue.receiver().await?;
    let delivery = receive(&mut late).await?;
    wait_until_passed(locked_until(delivery.message())?).await?;
    let mut management = queue.management().await?;
    let token = lock_token(delivery.message())?;
    for answer in [
        management.renew_lock(&token).await?,
        management.update_disposition("completed", &token).await?,
        management.update_disposition("suspended", &token).await?,
    ] {
        assert_eq!(
            (answer.status, answer.condition.as_deref()),
            (410, LOCK_LOST)
        );
    }
    late.accept(&delivery).await?;
    let mut next_one = queue.receiver().await?;
    let again = receive(&mut next_one).await?;
    assert_eq!(id(again.message()), id(delivery.message()));
    assert_eq!(
        again
            .message()
            .header
            .as_ref()
            .map(|header| header.delivery_count),
        Some(1)
    );
    next_one.accept(&again).await?;
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn a_late_settlement_does_not_touch_the_next_holder() -> Result<()> {
    let mut queue = Queue::cleared("shortlock").await?;
    queue.send([message("body")]).await?;
    let mut late = queue.receiver().await?;
    let mut next_one = queue.receiver().await?;
    let delivery = receive(&mut late).await?;
    let again = receive(&mut next_one).await?;
    late.accept(&delivery).await?;
    assert_eq!(queue.peek().await?.len(), 1);
    let token = lock_token(again.message())?;
    let answer = queue
        .management()
        .await?
        .update_disposition("completed", &token)
        .await?;
    assert_eq!(answer.status, 200);
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn a_renewed_lock_outlives_the_first_one() -> Result<()> {
    let mut queue = Queue::cleared("shortlock").await?;
    queue.send([message("body")]).await?;
    let mut holder = queue.receiver().await?;
    let mut other = queue.receiver().await?;
    let delivery = receive(&mut holder).await?;
    let first = locked_until(delivery.message())?;
    let mut management = queue.management().await?;
    let mut renewed = first;
    while renewed < first + 2000 {
        assert!(next(&mut other).await?.is_none());
        let answer = management
            .renew_lock(&lock_token(delivery.message())?)
            .await?;
        assert_eq!(answer.status, 200);
        renewed = expiration(answer.get("expirations"))?;
    }
    wait_until_passed(first).await?;
    assert!(next(&mut other).await?.is_none());
    holder.accept(&delivery).await?;
    queue.must_be_empty().await?;
    queue.client.close().await
}

fn expiration(value: Option<&Value>) -> Result<i64> {
    let Some(Value::Array(Array(expirations))) = value else {
        bail!("the expirations are {value:?}");
    };
    match expirations.as_slice() {
        [Value::Timestamp(moment)] => Ok(moment.milliseconds()),
        other => bail!("the expirations are {other:?}"),
    }
}

#[tokio::test]
async fn a_lock_outlives_its_connection_and_settles_by_its_token() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([message("body")]).await?;
    let mut holder = Queue {
        client: Client::connect().await?,
        name: queue.name.clone(),
    };
    let mut receiver = holder.receiver().await?;
    let token = lock_token(receive(&mut receiver).await?.message())?;
    holder.client.close().await?;
    let mut management = queue.management().await?;
    assert_eq!(management.renew_lock(&token).await?.status, 200);
    assert_eq!(
        management
            .update_disposition("completed", &token)
            .await?
            .status,
        200
    );
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn an_expired_message_goes_to_the_dead_letter_queue() -> Result<()> {
    let mut queue = Queue::cleared("ttl").await?;
    let mut sent = message("too late");
    sent.header = Some(Header {
        ttl: Some(1000),
        ..Header::default()
    });
    let expected = id(&sent);
    queue.send([sent]).await?;
    let dead = patiently("the expiry", first_dead(&mut queue)).await??;
    assert_eq!(id(&dead), expected);
    let properties = dead
        .application_properties
        .context("application properties")?;
    let reason = Some(SimpleValue::String("TTLExpiredException".into()));
    assert_eq!(properties.get("DeadLetterReason").cloned(), reason);
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn the_expiry_is_the_creation_and_the_time_to_live() -> Result<()> {
    const HOUR: u32 = 3_600_000;
    let mut queue = Queue::cleared("plain").await?;
    // The queue's own hour is default and ceiling.
    for (given, expected) in [
        (None, HOUR),
        (Some(300_000), 300_000),
        (Some(2 * HOUR), HOUR),
    ] {
        for creation in [None, Some(1_709_209_815_250)] {
            let mut sent = message("body");
            sent.header = Some(Header {
                ttl: given,
                ..Header::default()
            });
            let mut properties = sent.properties.take().context("properties")?;
            properties.creation_time = creation.map(Timestamp::from_milliseconds);
            sent.properties = Some(properties);
            queue.send([sent]).await?;
            let received = queue.take(1).await?.pop().context("one message")?;
            assert_eq!(
                received.header.as_ref().and_then(|it| it.ttl),
                Some(expected)
            );
            let shown = received.properties.as_ref().context("properties")?;
            let created = creation.map_or_else(|| enqueued(&received), Ok)?;
            let times = (
                shown.creation_time.clone(),
                shown.absolute_expiry_time.clone(),
            );
            let at = |moment| Some(Timestamp::from_milliseconds(moment));
            assert_eq!(times, (at(created), at(created + i64::from(expected))));
        }
    }
    queue.client.close().await
}

fn enqueued(message: &Received) -> Result<i64> {
    match annotation(message, "x-opt-enqueued-time") {
        Some(Value::Timestamp(moment)) => Ok(moment.milliseconds()),
        other => bail!("enqueued at {other:?}"),
    }
}

async fn first_dead(queue: &mut Queue) -> Result<Received> {
    loop {
        if let Some(dead) = queue.peek_dead().await?.pop() {
            return Ok(dead);
        }
    }
}

#[tokio::test]
async fn the_default_of_the_queue_drops_an_expired_message() -> Result<()> {
    let mut queue = Queue::cleared("ttl-drop").await?;
    queue.send([message("body")]).await?;
    patiently("the expiry", async {
        while !queue.peek().await?.is_empty() {}
        anyhow::Ok(())
    })
    .await??;
    assert!(queue.peek_dead().await?.is_empty());
    queue.client.close().await
}
