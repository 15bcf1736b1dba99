//! `POST /$railbus/entities/{path}/messages`: sends the message that the body describes.

use broker::{Command, EntityError, Output, QueueInfo, SendError};
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
    let number = send(shard_client, &queue, &described, server).await?;
    Ok((StatusCode::CREATED, json!({"sequence-number": number.0})))
}

/// Sends a message to an entity that is there. Returns its number.
pub async fn send(
    shard_client: &mut ShardClient,
    queue: &QueueInfo,
    described: &MessageDescription,
    server: &ServerState,
) -> Result<SequenceNumber, ApiError> {
    let most = queue.settings.max_message_size;
    let most = most.unwrap_or(server.settings().max_message_size);
    let mut ids = MessageIds::new(random());
    let message =
        servicebus::read_message(&described.encode(), most, &mut ids).map_err(|error| {
            ApiError::Bad(error.description.as_deref().unwrap_or_default().to_owned())
        })?;
    let command = |request| Command::Send {
        request,
        entity: queue.id,
        messages: vec![message],
    };
    let sent = shard_client.ask(command, |output| match output {
        Output::Sent { result, .. } => Some(result),
        _ => None,
    });
    sent.await?.map_err(|error| match error {
        // It has gone since it was found.
        SendError::NotFound => EntityError::NotFound.into(),
        error => ApiError::Bad(error.to_string()),
    })
}
