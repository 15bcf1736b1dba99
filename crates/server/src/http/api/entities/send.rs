//! `POST /$railbus/entities/{path}/messages`: sends the message that the body describes.

use broker::{Command, EntityError, Incoming, Output, QueueInfo, SendError};
use bytes::Bytes;
use dialect::MessageIds;
use entity::rules::MessageDescription;
use hyper::StatusCode;
use serde_json::{Value as Json, json};
use store::SequenceNumber;

use super::{ApiError, ResourcePath, show};
use crate::http::request::body::parse_object;
use crate::random::random;
use crate::server::server_state::ServerState;
use crate::shard::shard_client::ShardClient;

/// Sends it.
pub async fn handle(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    body: &Bytes,
    server: &ServerState,
) -> Result<(StatusCode, Json), ApiError> {
    let path = resource.messages().map_err(ApiError::Bad)?;
    let described: MessageDescription = parse_object(body)
        .map_err(|error| ApiError::Bad(format!("the body is not a message: {error}")))?;
    let queue = show::describe(shard_client, &path).await?.queue;
    let message = read(&queue, &described, server)?;
    let number = send(shard_client, &queue, message).await?;
    Ok((StatusCode::CREATED, json!({"sequence-number": number.0})))
}

/// The message that is described, as one that is on its way to an entity.
pub fn read(
    queue: &QueueInfo,
    described: &MessageDescription,
    server: &ServerState,
) -> Result<Incoming, ApiError> {
    described
        .check()
        .map_err(|error| ApiError::Bad(error.to_owned()))?;
    let most = queue.settings.max_message_size;
    let most = most.unwrap_or(server.settings().max_message_size);
    let mut ids = MessageIds::new(random());
    servicebus::read_message(&described.encode(), most, &mut ids)
        .map_err(|error| ApiError::Bad(error.description.as_deref().unwrap_or_default().to_owned()))
}

/// Sends a message to an entity that is there. Returns its number.
pub async fn send(
    shard_client: &mut ShardClient,
    queue: &QueueInfo,
    message: Incoming,
) -> Result<SequenceNumber, ApiError> {
    let command = |request| Command::Send {
        request,
        entity: queue.id,
        messages: vec![message],
    };
    let sent = shard_client.ask(command, |output| match output {
        Output::Sent { result, .. } => Some(result),
        _ => None,
    });
    sent.await?.map_err(refused)
}

fn refused(error: SendError) -> ApiError {
    match error {
        // It has gone since it was found.
        SendError::NotFound => EntityError::NotFound.into(),
        error => ApiError::Bad(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_that_goes_before_the_message_comes_is_not_found() {
        let status = |error| refused(error).status();
        assert_eq!(status(SendError::NotFound), StatusCode::NOT_FOUND);
        assert_eq!(status(SendError::Disabled), StatusCode::BAD_REQUEST);
    }
}
