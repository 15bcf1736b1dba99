//! Management: passes requests to the `admin` crate, and its orders to the shard.
//!
//! Rights are checked before the body is read. Every refusal has the body that the contract
//! defines. An order is carried out even if its client does not wait for it.

use std::sync::Arc;

use access::{Operation, Unauthorized};
use admin::{
    Error, Exchange, ReasonPhrase as AdminReasonPhrase, RequestContext, Response as AdminResponse,
    Step,
};
use broker::Order;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::{Request, StatusCode};

use super::request::body;
use super::request::body::BodyError;
use super::request::caller::Caller;
use super::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;
use crate::random::random;
use crate::server::server_state::ServerState;
use crate::shard::shard_client::{LocksAtEnd, ShardClient};

/// Says that a request is one of management, whatever its path is called.
const VERSION: &str = "api-version=";

/// Whether a path that means something else could be an entity's all the same.
pub fn is_management_request<T>(request: &Request<T>) -> bool {
    request
        .uri()
        .query()
        .is_some_and(|query| query.contains(VERSION))
}

/// Answers a request for the root, which anyone may send.
pub fn root(request: &Request<Incoming>, server: &NamespaceView) -> Response {
    let now = server.clock.moment().wall;
    whole(Exchange::root(request, now, u128::from_be_bytes(random())))
}

/// Refuses a request before it is known what it asks for, in the form that SDKs read.
pub fn refuse<T>(request: &Request<T>, server: &ServerState, error: &Error) -> Response {
    let tracking = u128::from_be_bytes(random());
    let now = server.clock.moment().wall;
    whole(Exchange::refuse_unparsed(request, now, tracking, error))
}

/// Answers a request, if its caller may manage what its path names.
pub async fn respond(
    request: Request<Incoming>,
    caller: Caller,
    server: &Arc<NamespaceView>,
) -> Response {
    let tracking = u128::from_be_bytes(random());
    let refuse = |request: &Request<()>, error: &Error| {
        let now = server.clock.moment().wall;
        whole(Exchange::refuse_unparsed(request, now, tracking, error))
    };
    let (head, incoming) = request.into_parts();
    let head = Request::from_parts(head, ());
    match caller.check(server, Operation::Administer, head.uri().path()) {
        Ok(()) => {}
        Err(Unauthorized::Claim(_)) => return whole(deny(&head, tracking, server).await),
        Err(reason) => return refuse(&head, &unauthorized(&reason)),
    }
    let limits = server.limits();
    let read = body::read(incoming, limits.http_body_bytes, limits.handshake).await;
    let body = match read {
        Ok(body) => body,
        Err(BodyError::TooLong(_)) => {
            return refuse(&head, &Error::too_long(limits.http_body_bytes));
        }
        Err(error) => return refuse(&head, &Error::body(&error.to_string())),
    };
    let request = head.clone().map(|()| body);
    // A task of its own, so that a client that goes does not stop what it has begun.
    let managed = Arc::clone(server);
    let managing = tokio::spawn(async move { manage(&request, &caller, tracking, &managed).await });
    match managing.await {
        Ok(response) => whole(response),
        Err(error) => {
            tracing::error!(%error, "a request ended because of an internal error");
            let text = "The request ended because of an internal error of the broker.";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            refuse(&head, &Error::new(status, Some(50_000), text))
        }
    }
}

/// Answers a request whose caller may not manage.
async fn deny(request: &Request<()>, tracking: u128, server: &NamespaceView) -> AdminResponse {
    let now = server.clock.moment().wall;
    match Exchange::begin_denied(&server.admin_settings(), request, now, tracking) {
        Ok((exchange, order)) => carry_out(exchange, order, server).await,
        Err(response) => *response,
    }
}

async fn manage(
    request: &Request<Bytes>,
    caller: &Caller,
    tracking: u128,
    server: &NamespaceView,
) -> AdminResponse {
    let now = server.clock.moment().wall;
    let context = RequestContext {
        now,
        tracking,
        random: &mut random,
    };
    let (exchange, order) = match Exchange::begin(&server.admin_settings(), request, context) {
        Ok(begun) => begun,
        Err(response) => return *response,
    };
    // Forwarding to another entity needs the right to manage that one too.
    for (target, token) in exchange.destinations() {
        let allowed = caller.check_with(token, server, Operation::Administer, target);
        if let Err(reason) = allowed {
            return exchange.refuse(&unauthorized(&reason));
        }
    }
    carry_out(exchange, order, server).await
}

/// Asks the broker until there is a response.
async fn carry_out(
    mut exchange: Exchange,
    mut order: Order,
    server: &NamespaceView,
) -> AdminResponse {
    let Ok(mut shard_client) = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await
    else {
        return exchange.refuse(&Error::unavailable());
    };
    loop {
        let Ok(answer) = shard_client.order(order).await else {
            return exchange.refuse(&Error::unavailable());
        };
        match exchange.handle_answer(answer) {
            Step::Ask(next) => order = next,
            Step::Respond(response) => return response,
        }
    }
}

pub fn unauthorized(reason: &Unauthorized) -> Error {
    let status = match reason.is_temporary() {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::UNAUTHORIZED,
    };
    Error::new(status, Some(reason.sub_code()), reason.to_string())
}

pub fn whole(mut response: AdminResponse) -> Response {
    let extensions = response.extensions_mut();
    let phrase = extensions.remove::<AdminReasonPhrase>();
    if let Some(phrase) = phrase.and_then(|phrase| ReasonPhrase::try_from(phrase.0).ok()) {
        extensions.insert(phrase);
    }
    response.map(Into::into)
}
