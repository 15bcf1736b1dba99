//! Refusals: a wrong key and a queue that does not exist; each leaves the rest working.

use anyhow::Result;
use fe2o3_amqp::connection::OpenError;
use fe2o3_amqp::link::{ReceiverAttachError, SenderAttachError};
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::types::definitions::{AmqpError, Error};
use fe2o3_amqp::types::sasl::SaslCode;
use fe2o3_amqp::{Receiver, Sender};

use crate::queue::Queue;
use crate::support::{Client, message, open, unique_id};

#[tokio::test]
async fn a_wrong_key_fails_authentication() -> Result<()> {
    for (username, password) in [
        ("RootManageSharedAccessKey", "wrong"),
        ("nobody", "SAS_KEY_VALUE"),
    ] {
        let refused = open(SaslProfile::Plain {
            username: username.into(),
            password: password.into(),
        })
        .await;
        assert!(matches!(
            refused,
            Err(OpenError::SaslError {
                code: SaslCode::Auth,
                ..
            })
        ));
    }
    others_are_still_served().await
}

// After a refused attach this client sends two detaches, of which the broker ignores the second.
// Each of the two attaches has a connection of its own, and what must still work is another
// connection.
#[tokio::test]
async fn a_missing_queue_is_not_found_by_a_sender() -> Result<()> {
    let mut client = Client::connect().await?;
    let sender = Sender::attach(&mut client.session, unique_id(), "fe2o3-missing").await;
    let Err(SenderAttachError::RemoteClosedWithError(error)) = sender else {
        panic!("the attach gave {sender:?}");
    };
    assert_not_found(&error);
    others_are_still_served().await
}

#[tokio::test]
async fn a_missing_queue_is_not_found_by_a_receiver() -> Result<()> {
    let mut client = Client::connect().await?;
    let receiver = Receiver::attach(&mut client.session, unique_id(), "fe2o3-missing").await;
    let Err(ReceiverAttachError::RemoteClosedWithError(error)) = receiver else {
        panic!("the attach gave {receiver:?}");
    };
    assert_not_found(&error);
    others_are_still_served().await
}

async fn others_are_still_served() -> Result<()> {
    let mut queue = Queue::cleared("plain").await?;
    queue.send([message("body")]).await?;
    queue.take(1).await?;
    queue.client.close().await
}

fn assert_not_found(error: &Error) {
    assert_eq!(error.condition, AmqpError::NotFound.into());
    let description = error.description.as_deref().unwrap_or_default();
    assert!(
        description.starts_with("The messaging entity "),
        "{description}"
    );
    assert!(description.contains(" could not be found"), "{description}");
}
