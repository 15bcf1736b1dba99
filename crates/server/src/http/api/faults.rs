//! `/$railbus/namespaces/NAME/faults`: the fault rules of a namespace.
//!
//! `GET` shows them with what each has done. `PUT` replaces all of them; a rule that stays as it is
//! goes on counting. `POST` adds one behind them. `DELETE` takes all of them away. They are not
//! stored.
//!
//! Rules for HTTP requests are looked at before a request is answered, its right checked or its
//! body read. What is about namespaces, and the health check, no rule touches.

use broker::{
    DisconnectTime, FaultDescription, FaultRule, HttpFault, HttpRequest, InjectedError,
    NamespaceAnswer, NamespaceOrder,
};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::namespaces::{self, ApiError, ask};
use crate::http::console::session;
use crate::http::request::body;
use crate::http::request::body::parse_object;
use crate::http::request::caller::Caller;
use crate::http::request::transport::Transport;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::http::response::early_refusal;
use crate::http::routes::HEALTH;
use crate::log::audit::{changes_of, with_changes};
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::Message;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ask_task};

/// More than all rules of a namespace need.
const BODY_BYTES: usize = 256 << 10;

/// The body of a `PUT`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    faults: Vec<FaultRule>,
}

/// Answers a request about the rules of the namespace of a name. The caller has the right to manage
/// the default namespace.
pub async fn respond(request: Request<Incoming>, name: &str, server: &NamespaceView) -> Response {
    let name = name.to_owned();
    let order = match *request.method() {
        Method::PUT => read::<Wanted>(request, server)
            .await
            .map(|Wanted { faults: rules }| NamespaceOrder::ReplaceFaults { name, rules }),
        Method::POST => read(request, server)
            .await
            .map(|rule| NamespaceOrder::AddFault { name, rule }),
        Method::DELETE => Ok(NamespaceOrder::ReplaceFaults {
            name,
            rules: Vec::new(),
        }),
        _ => Ok(NamespaceOrder::ListFaults(name)),
    };
    let answered = match order {
        Ok(order) => carry_out(order, server).await,
        Err(refusal) => return refusal,
    };
    answered.unwrap_or_else(ApiError::into)
}

/// The connection is dropped instead of an answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a fault rule drops the connection")]
pub struct Dropped;

/// Carries out the rule for a request, if there is one. Returns whether its answer will be lost.
///
/// # Errors
/// The answer of a request that is not carried out.
pub async fn before(
    request: &Request<Incoming>,
    server: &NamespaceView,
    transport: Transport,
) -> Result<bool, Response> {
    match of_request(request, server, transport).await {
        Some(HttpFault::Refuse(error)) => Err(refused(request, error, server)),
        Some(HttpFault::Disconnect(DisconnectTime::Before)) => Err(dropped()),
        Some(HttpFault::Disconnect(DisconnectTime::After)) => Ok(true),
        None => Ok(false),
    }
}

/// What becomes of the answer to a request that was carried out.
pub fn after(response: Response, is_lost: bool) -> Response {
    match is_lost {
        true => dropped(),
        false => response,
    }
}

/// Ends the connection whose client gets no answer.
pub fn check_dropped(response: &Response) -> Result<(), Dropped> {
    let dropped = response.extensions().get();
    dropped.copied().map_or(Ok(()), Err)
}

/// What stands for the answer that a client does not get.
fn dropped() -> Response {
    let mut response = Response::default();
    response.extensions_mut().insert(Dropped);
    response
}

/// What a rule does to a request.
async fn of_request(
    request: &Request<Incoming>,
    server: &NamespaceView,
    transport: Transport,
) -> Option<HttpFault> {
    if !server.namespaces.matches_http() {
        return None;
    }
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
    if path == HEALTH || path.starts_with(namespaces::PREFIX) {
        return None;
    }
    let names_clients = server.namespaces.names_clients();
    let key = names_clients.then(|| {
        let mut caller = Caller::of(request.headers(), transport);
        // A change that lacks the session's token has no session, and is refused later.
        caller.set_session(session::of(request, server).unwrap_or_default());
        caller.name(server, &path)
    });
    let namespace = server.namespace();
    let asked = HttpRequest {
        namespace,
        method: request.method().to_string(),
        path: path.into_owned(),
        key,
    };
    let question = |answer| Message::HttpFault(Box::new((asked, answer)));
    ask_task(server.placement.of(namespace), question)
        .await
        .ok()
        .flatten()
}

/// The answer to a request that a rule refuses, in the words of the interface that was asked.
fn refused(request: &Request<Incoming>, error: InjectedError, server: &NamespaceView) -> Response {
    let told = admin::data::injected(error);
    match early_refusal::is_json(request) {
        true => answer::error(told.status, &error.to_string()),
        false => crate::http::admin::refuse(request, server, &told),
    }
}

async fn read<T: DeserializeOwned>(
    request: Request<Incoming>,
    server: &NamespaceView,
) -> Result<T, Response> {
    let body = body::read_own(request, BODY_BYTES, server.limits().handshake).await?;
    parse_object(&body).map_err(|error| {
        let text = "the body must be a fault rule or a list of fault rules";
        answer::error_quoting(StatusCode::BAD_REQUEST, text, &error.to_string())
    })
}

async fn carry_out(order: NamespaceOrder, server: &NamespaceView) -> Result<Response, ApiError> {
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    let (NamespaceOrder::ReplaceFaults { name, .. } | NamespaceOrder::AddFault { name, .. }) =
        &order
    else {
        return show(&list(&mut shard, order).await?);
    };
    let name = name.clone();
    let before = list(&mut shard, NamespaceOrder::ListFaults(name.clone())).await?;
    let faults = list(&mut shard, order).await?;
    if !faults.is_empty() {
        warn_of_faults(&name, faults.len());
    }
    let [before, now] = [&before, &faults].map(|faults| {
        let rules = faults.iter().map(|fault| fault.rule.clone());
        rules.collect::<Vec<_>>()
    });
    let changes = changes_of("fault rule", (&before, &now), &name, |rule| &rule.name);
    Ok(with_changes(show(&faults)?, changes))
}

async fn list(
    shard: &mut ShardClient,
    order: NamespaceOrder,
) -> Result<Vec<FaultDescription>, ApiError> {
    match ask(shard, order).await? {
        NamespaceAnswer::Faults(faults) => Ok(faults),
        _ => Err(ApiError::Unexpected),
    }
}

fn show(faults: &[FaultDescription]) -> Result<Response, ApiError> {
    let shown = faults.iter().map(shown).collect::<Result<Vec<_>, _>>();
    let faults = shown.map_err(|_| ApiError::Unexpected)?;
    Ok(answer::value(StatusCode::OK, &json!({ "faults": faults })))
}

/// Tells the operator's log of the rules that a namespace has from now on.
pub fn warn_of_faults(namespace: &str, count: usize) {
    tracing::warn!(namespace, "{count} fault rules: operations fail on purpose");
}

fn shown(fault: &FaultDescription) -> serde_json::Result<Json> {
    let mut shown = serde_json::to_value(&fault.rule)?;
    shown["matched"] = fault.matched.into();
    shown["injected"] = fault.injected.into();
    Ok(shown)
}
