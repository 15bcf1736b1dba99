//! Sends ten orders and waits for each to be accepted. An accepted message is on the disk.
//!
//! `cargo run --package examples --example send`

use std::error::Error;

use fe2o3_amqp::types::messaging::Message;
use fe2o3_amqp::{Sender, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut connection = examples::connect().await?;
    let mut session = Session::begin(&mut connection).await?;
    let mut sender = Sender::attach(&mut session, "send-example", examples::QUEUE).await?;
    for number in 1..=10 {
        let message = Message::builder()
            .data(format!("order {number}").into_bytes())
            .build();
        sender
            .send(message)
            .await?
            .accepted_or_else(|outcome| format!("not accepted: {outcome:?}"))?;
        println!("order {number} is accepted");
    }
    sender.close().await?;
    session.end().await?;
    connection.close().await?;
    Ok(())
}
