//! Sending one message, or a batch that is taken whole or refused whole.

use std::sync::Arc;

use access::Entity;
use admin::Error;
use admin::data::{self, Call};
use amqp::error::condition;
use broker::{Command, Incoming as Message, Output, Subqueue};
use bytes::Bytes;
use dialect::MessageIds;
use hyper::body::{Body, Incoming};
use hyper::{Request, StatusCode};

use super::{Response, empty, run_detached, unavailable};
use crate::connection::budget::BudgetShare;
use crate::http::request::body;
use crate::http::request::body::BodyError;
use crate::namespaces::namespace_view::NamespaceView;
use crate::random::random;
use crate::shard::shard_client::{LocksAtEnd, ShardClient};

/// What a request may be besides the messages in it: names, quotes and escapes of a batch.
const ENVELOPE: u64 = 1 << 20;

/// Sends what the request holds.
pub async fn respond(
    request: Request<Incoming>,
    call: &Call,
    entity: Arc<Entity>,
    server: &Arc<NamespaceView>,
) -> Result<Response, Error> {
    if call.subqueue != Subqueue::Main {
        return Err(data::dead_letter_only());
    }
    let most = entity.settings.max_message_size;
    let most = most.unwrap_or(server.settings().max_message_size);
    // Held until the broker has answered.
    let mut share = BudgetShare::new(Arc::clone(&server.budget));
    let request = read(request, most, &mut share, server).await?;
    let now = server.clock.moment().wall;
    let payloads = data::messages(&request, now)?;
    let together: u64 = payloads.iter().map(|payload| payload.len() as u64).sum();
    if together > most {
        return Err(data::too_large(most));
    }
    let mut ids = MessageIds::new(random());
    let messages = payloads
        .iter()
        .map(|payload| check(payload, most, &mut ids))
        .collect::<Result<Vec<_>, _>>()?;
    if messages.is_empty() {
        return Ok(empty(StatusCode::CREATED));
    }
    let server = Arc::clone(server);
    run_detached(async move {
        let sent = send(&entity, messages, &server).await;
        drop(share);
        sent
    })
    .await
}

/// The request with its whole body, for which there has to be room.
async fn read(
    request: Request<Incoming>,
    most: u64,
    share: &mut BudgetShare,
    server: &NamespaceView,
) -> Result<Request<Bytes>, Error> {
    let limit = usize::try_from(most.saturating_add(ENVELOPE)).unwrap_or(usize::MAX);
    let (head, incoming) = request.into_parts();
    let length = incoming.size_hint().upper();
    let length = length.and_then(|length| usize::try_from(length).ok());
    share.set(length.unwrap_or(limit).min(limit), 0);
    if share.is_exhausted() {
        return Err(Error::unavailable());
    }
    let body = body::read(incoming, limit, server.limits().handshake).await;
    let body = body.map_err(|error| match error {
        BodyError::TooLong(_) => data::too_large(most),
        error => data::invalid(&error.to_string()),
    })?;
    Ok(Request::from_parts(head, body))
}

/// Looks at a message as if it had come over a link.
fn check(payload: &Bytes, most: u64, ids: &mut MessageIds) -> Result<Message, Error> {
    servicebus::read_message(payload, most, ids).map_err(|error| {
        if error.condition == condition::MESSAGE_SIZE_EXCEEDED {
            return data::too_large(most);
        }
        data::invalid(error.description.as_deref().unwrap_or_default())
    })
}

async fn send(
    entity: &Entity,
    messages: Vec<Message>,
    server: &NamespaceView,
) -> Result<Response, Error> {
    let shard_client = ShardClient::connect_to(server, LocksAtEnd::Keep).await;
    let mut shard_client = shard_client.map_err(unavailable)?;
    let command = |request| Command::Send {
        request,
        entity: entity.id,
        messages,
    };
    let sent = shard_client.ask(command, |output| match output {
        Output::Sent { result, .. } => Some(result),
        _ => None,
    });
    let sent = sent.await.map_err(unavailable)?;
    sent.map_err(|error| data::send(&error, &entity.path))?;
    Ok(empty(StatusCode::CREATED))
}
