//! Receives ten orders, one after the other, and completes each. A message that is not completed
//! comes again when its lock has expired.
//!
//! `cargo run --package examples --example receive`

use std::error::Error;

use fe2o3_amqp::types::messaging::Data;
use fe2o3_amqp::{Receiver, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut connection = examples::connect().await?;
    let mut session = Session::begin(&mut connection).await?;
    let mut receiver = Receiver::attach(&mut session, "receive-example", examples::QUEUE).await?;
    for _ in 1..=10 {
        let delivery = receiver.recv::<Data>().await?;
        println!("{}", String::from_utf8_lossy(&delivery.body().0));
        receiver.accept(&delivery).await?;
    }
    receiver.close().await?;
    session.end().await?;
    connection.close().await?;
    Ok(())
}
