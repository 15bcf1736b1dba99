//! Messages over HTTP: passes calls of the data plane to the shard. (docs/spec/admin.md#11)
//!
//! The answer to a request rests on a durable commit. A message is always locked first. With
//! peek-lock it stays locked after the response. A message that is received and deleted is removed
//! just before its response is written. If the peer has gone by then, its lock is released at once
//! and nothing is lost. A peer that goes later finds the message locked, or has received it.

mod post;
mod receive;
mod settle;

use std::sync::Arc;

use access::{Entity, Operation};
use admin::data::{self, Action, Call};
use admin::{Error, Exchange};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use percent_encoding::percent_decode_str;

use super::admin::{unauthorized, whole};
use super::request::caller::Caller;
use super::request::transport::Transport;
use super::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;
use crate::random::random;
use crate::shard::shard_client::ShardError;

/// What a request asks of messages; `None` if it is one of management: its path is an entity's, or
/// could be and names no entity before `messages`. The type of the body decides nothing, since REST
/// libraries send that of Atom with everything. (docs/spec/admin.md#11)
pub fn call(request: &Request<Incoming>, server: &NamespaceView) -> Option<Call> {
    let call = Call::parse(request.method(), request.uri())?;
    let directory = server.directory();
    let path = request.uri().path().trim_matches('/');
    let path = percent_decode_str(path).decode_utf8_lossy();
    let is_managed = call.needs_entity(request.method()) && directory.get(&call.entity).is_none();
    (directory.get(&path).is_none() && !is_managed).then_some(call)
}

/// Answers a request.
pub async fn respond(
    request: Request<Incoming>,
    call: Call,
    caller: Caller,
    transport: Transport,
    server: &Arc<NamespaceView>,
) -> Response {
    let tracking = u128::from_be_bytes(random());
    let (head, incoming) = request.into_parts();
    let head = Request::from_parts(head, ());
    let done = match enter(&head, &call, &caller, server) {
        Err(error) => Err(error),
        Ok(entity) => match call.action {
            Action::Send => {
                let request = head.clone().map(|()| incoming);
                post::respond(request, &call, entity, server).await
            }
            Action::PeekLock | Action::ReceiveAndDelete => {
                receive::respond(&head, call, caller, entity, transport, server).await
            }
            Action::Complete(token) | Action::Unlock(token) | Action::Renew(token) => {
                settle::respond(call, token, entity, server).await
            }
            Action::NoLock => Err(data::no_lock()),
            Action::Browse => Err(data::invalid("Messages can be browsed over AMQP only.")),
        },
    };
    done.unwrap_or_else(|error| {
        let now = server.clock.moment().wall;
        whole(Exchange::refuse_unparsed(&head, now, tracking, &error))
    })
}

/// The shard is not available.
fn unavailable(_: ShardError) -> Error {
    Error::unavailable()
}

/// The entity of a call, if the caller has the right for it. A caller without the right does not
/// learn whether the entity exists.
fn enter(
    head: &Request<()>,
    call: &Call,
    caller: &Caller,
    server: &NamespaceView,
) -> Result<Arc<Entity>, Error> {
    let operation = match call.action {
        Action::Send => Operation::PostMessages,
        Action::PeekLock | Action::ReceiveAndDelete | Action::Browse => Operation::TakeMessage,
        Action::Complete(_) | Action::Unlock(_) | Action::Renew(_) | Action::NoLock => {
            Operation::SettleMessage
        }
    };
    let allowed = caller.check(server, operation, head.uri().path());
    allowed.map_err(|reason| unauthorized(&reason))?;
    let directory = server.directory();
    let entity = directory.get(&call.entity).cloned();
    entity.ok_or_else(|| data::gone(&call.entity))
}

/// Runs `work` to its end, even if its client disconnects.
async fn run_detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    tokio::spawn(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request ended because of an internal error");
        let text = "The request ended because of an internal error of the broker.";
        Err(Error::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            Some(50_000),
            text,
        ))
    })
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}
