//! Selectors and browsing, as any AMQP 1.0 client asks for them: by a filter, and by distribution
//! mode "copy".

use anyhow::{Context, Result};
use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::ReceiverAttachError;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::types::definitions::{AmqpError, ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp::types::messaging::{
    ApplicationProperties, Data, DistributionMode, Message, Source,
};
use fe2o3_amqp::types::primitives::SimpleValue;
use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;

use crate::queue::{Queue, next, receive};
use crate::support::{Received, message, unique_id};

fn numbered(n: i32) -> Message<Data> {
    let mut message = message(format!("message {n}"));
    message.application_properties = Some(ApplicationProperties::builder().insert("n", n).build());
    message
}

fn n(message: &Received) -> Result<i32> {
    let properties = message.application_properties.as_ref();
    match properties.and_then(|properties| properties.get("n")) {
        Some(SimpleValue::Int(n)) => Ok(*n),
        other => anyhow::bail!("n is {other:?}"),
    }
}

/// A source with a selector, described by the filter's code.
fn selecting(queue: &Queue, selector: &str) -> Source {
    let filter = Described {
        descriptor: Descriptor::Code(0x0000_468C_0000_0004),
        value: Value::from(selector),
    };
    Source::builder()
        .address(queue.name.as_str())
        .add_to_filter("jms-selector", filter)
        .build()
}

async fn attach(queue: &mut Queue, source: Source) -> Result<Receiver, ReceiverAttachError> {
    Receiver::builder()
        .name(unique_id())
        .source(source)
        .sender_settle_mode(SenderSettleMode::Unsettled)
        .receiver_settle_mode(ReceiverSettleMode::Second)
        .credit_mode(CreditMode::Manual)
        .attach(&mut queue.client.session)
        .await
}

#[tokio::test]
async fn a_selector_takes_what_it_selects_and_leaves_the_rest() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send((1..=4).map(numbered)).await?;
    let source = selecting(&queue, "n = 2 OR n > 3");
    let mut choosy = attach(&mut queue, source).await?;
    for expected in [2, 4] {
        let delivery = receive(&mut choosy).await?;
        assert_eq!(n(delivery.message())?, expected);
        choosy.accept(&delivery).await?;
    }
    assert!(next(&mut choosy).await?.is_none());
    choosy.close().await?;
    let left = queue.take(2).await?;
    let left: Result<Vec<_>> = left.iter().map(n).collect();
    assert_eq!(left?, [1, 3]);
    queue.must_be_empty().await?;
    queue.client.close().await
}

#[tokio::test]
async fn a_bad_selector_is_refused_with_its_place() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    let source = selecting(&queue, "n LIKE 5");
    let refused = attach(&mut queue, source).await;
    let Err(ReceiverAttachError::RemoteClosedWithError(error)) = refused else {
        panic!("the attach gave {refused:?}");
    };
    assert_eq!(error.condition, AmqpError::InvalidField.into());
    let description = error.description.context("says why")?;
    assert!(description.contains("at character 8"), "{description}");
    Ok(())
}

#[tokio::test]
async fn a_browser_is_shown_everything_and_takes_nothing() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send((1..=3).map(numbered)).await?;
    let source = Source::builder()
        .address(queue.name.as_str())
        .distribution_mode(DistributionMode::Copy)
        .build();
    let mut browser = attach(&mut queue, source).await?;
    for expected in 1..=3 {
        let copy = receive(&mut browser).await?;
        assert_eq!(n(copy.message())?, expected);
        browser.accept(&copy).await?;
    }
    assert!(next(&mut browser).await?.is_none());
    browser.close().await?;
    assert_eq!(queue.take(3).await?.len(), 3);
    queue.client.close().await
}
