//! Sends an order that its receiver cannot read, dead-letters it with a reason, and finds it with
//! that reason in the queue's dead-letter queue.
//!
//! `cargo run --package examples --example dead_letter`

use std::error::Error;

use fe2o3_amqp::types::definitions::{self, ErrorCondition, Fields};
use fe2o3_amqp::types::messaging::{Data, Message};
use fe2o3_amqp::types::primitives::{Symbol, Value};
use fe2o3_amqp::{Receiver, Sender, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut connection = examples::connect().await?;
    let mut session = Session::begin(&mut connection).await?;

    let mut sender = Sender::attach(&mut session, "dead-letter-sender", examples::QUEUE).await?;
    let message = Message::builder().data(b"?!".to_vec()).build();
    sender
        .send(message)
        .await?
        .accepted_or_else(|outcome| format!("not accepted: {outcome:?}"))?;

    let mut receiver =
        Receiver::attach(&mut session, "dead-letter-receiver", examples::QUEUE).await?;
    let delivery = receiver.recv::<Data>().await?;
    let reason = dead_letter("Unreadable", "this is no order");
    receiver.reject(&delivery, reason).await?;
    receiver.close().await?;

    let dead_letters = format!("{}/$DeadLetterQueue", examples::QUEUE);
    let mut receiver = Receiver::attach(&mut session, "dead-letter-reader", dead_letters).await?;
    let dead = receiver.recv::<Data>().await?;
    println!(
        "{}: {:?}",
        String::from_utf8_lossy(&dead.body().0),
        dead.message().application_properties
    );
    receiver.accept(&dead).await?;

    receiver.close().await?;
    sender.close().await?;
    session.end().await?;
    connection.close().await?;
    Ok(())
}

/// What Service Bus wants to hear when a message is dead-lettered.
fn dead_letter(reason: &str, description: &str) -> definitions::Error {
    let mut info = Fields::new();
    info.insert(Symbol::from("DeadLetterReason"), Value::from(reason));
    info.insert(
        Symbol::from("DeadLetterErrorDescription"),
        Value::from(description),
    );
    let condition = ErrorCondition::Custom(Symbol::from("com.microsoft:dead-letter"));
    definitions::Error::new(condition, None, Some(info))
}
