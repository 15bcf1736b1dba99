//! Receiving the next message, which takes up to the time-out of the call.
//!
//! A task of its own waits, and notices when the client has gone. It then drains the receiver's
//! credit and releases a message that was on its way.

use std::sync::Arc;

use access::{Entity, Operation};
use admin::Error;
use admin::data::{self, Action, Call};
use broker::{
    Access, Command, Delivery, Eviction, Outcome, Output, ReceiveMode, ReceiverId, RequestId,
    SubqueueId,
};
use hyper::header::{HOST, HeaderValue, LOCATION};
use hyper::{Request, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::super::admin::unauthorized;
use super::{Response, empty, unavailable};
use crate::http::request::caller::Caller;
use crate::http::request::transport::Transport;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError};

/// What the path of a URI does not hold as it stands. [RFC 3986 3.3]
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// How a receive ended.
enum ReceiveOutcome {
    Message(Box<Delivery>),
    Nothing,
    Evicted(Eviction),
    /// There is no shard that answers.
    Unavailable,
}

/// Takes the response; it is closed when the client has gone.
type ResponseSender = oneshot::Sender<Result<Response, Error>>;

/// The waiting caller, and the path of its request.
struct Authorization {
    caller: Caller,
    path: String,
}

impl Authorization {
    /// Checks the caller's right again: keys are replaced, and tokens expire, during the wait.
    fn check(&self, server: &NamespaceView) -> Result<(), Error> {
        let allowed = self
            .caller
            .check(server, Operation::TakeMessage, &self.path);
        allowed.map_err(|reason| unauthorized(&reason))
    }
}

/// Receives a message and shows it, or says that there was none.
pub async fn respond(
    head: &Request<()>,
    call: Call,
    caller: Caller,
    entity: Arc<Entity>,
    transport: Transport,
    server: &Arc<NamespaceView>,
) -> Result<Response, Error> {
    let (answer, answered) = oneshot::channel();
    let base = base(head, &call, transport);
    let path = head.uri().path().to_owned();
    let authorization = Authorization { caller, path };
    let server = Arc::clone(server);
    drop(tokio::spawn(async move {
        receive_and_respond(&call, &entity, &base, &authorization, answer, &server).await;
    }));
    answered.await.unwrap_or_else(|_| Err(Error::unavailable()))
}

async fn receive_and_respond(
    call: &Call,
    entity: &Entity,
    base: &str,
    authorization: &Authorization,
    mut answer: ResponseSender,
    server: &NamespaceView,
) {
    let Ok(mut shard_client) = ShardClient::connect_to(server, LocksAtEnd::Keep).await else {
        return;
    };
    let received = receive(call, entity, &mut answer, &mut shard_client, server).await;
    match received.unwrap_or(ReceiveOutcome::Unavailable) {
        ReceiveOutcome::Message(delivery) => {
            if let Err(error) = authorization.check(server) {
                release(call, entity, &delivery, &mut shard_client).await;
                return drop(answer.send(Err(error)));
            }
            deliver(
                call,
                entity,
                base,
                &delivery,
                answer,
                &mut shard_client,
                server,
            )
            .await;
        }
        // The client may have gone.
        ReceiveOutcome::Nothing => drop(answer.send(Ok(empty(StatusCode::NO_CONTENT)))),
        ReceiveOutcome::Evicted(reason) => {
            drop(answer.send(Err(data::evicted(reason, &entity.path))));
        }
        ReceiveOutcome::Unavailable => drop(answer.send(Err(Error::unavailable()))),
    }
}

/// Waits for a message, until the time is up or the client has gone.
async fn receive(
    call: &Call,
    entity: &Entity,
    answer: &mut ResponseSender,
    shard_client: &mut ShardClient,
    server: &NamespaceView,
) -> Result<ReceiveOutcome, ShardError> {
    let receiver = ReceiverId {
        connection: shard_client.connection(),
        link: 0,
    };
    let credit = |drain| Command::Credit {
        receiver,
        limit: 1,
        drain,
    };
    let attach = Command::Attach {
        receiver,
        subqueue: SubqueueId {
            entity: entity.id,
            subqueue: call.subqueue,
        },
        access: Access::Consume(ReceiveMode::PeekLock),
        selector: None,
    };
    shard_client
        .send_commands(vec![attach, credit(false)])
        .await?;
    let mut stopping = server.stopping.clone();
    let time_is_up = tokio::time::sleep(call.timeout);
    let enough = async {
        tokio::select! {
            () = time_is_up => {}
            () = answer.closed() => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    };
    tokio::select! {
        biased;
        outcome = shard_client.wait_for(outcome_of) => return outcome,
        () = enough => {}
    }
    // What is on its way arrives before the drain is answered.
    shard_client.send_commands(vec![credit(true)]).await?;
    shard_client.answer(outcome_of).await
}

fn outcome_of(output: Output) -> Option<ReceiveOutcome> {
    match output {
        Output::Deliver { delivery, .. } => Some(ReceiveOutcome::Message(delivery)),
        Output::Drained { .. } => Some(ReceiveOutcome::Nothing),
        Output::Evicted { reason, .. } => Some(ReceiveOutcome::Evicted(reason)),
        _ => None,
    }
}

/// Sends a locked message to the client, or releases it if the client has gone.
async fn deliver(
    call: &Call,
    entity: &Entity,
    base: &str,
    delivery: &Delivery,
    answer: ResponseSender,
    shard_client: &mut ShardClient,
    server: &NamespaceView,
) {
    let is_wanted = !answer.is_closed();
    if is_wanted && call.action == Action::ReceiveAndDelete {
        let complete = |request| settle(call, entity, delivery, Some(request), Outcome::Complete);
        let removed = shard_client.ask(complete, |output| match output {
            Output::Settled { result, .. } => Some(result.is_ok()),
            _ => None,
        });
        let response = match removed.await {
            Ok(true) => Ok(show(delivery, None, StatusCode::OK)),
            // Its lock is lost already: another receiver gets the message.
            Ok(false) => Ok(empty(StatusCode::NO_CONTENT)),
            Err(error) => Err(unavailable(error)),
        };
        // A client that has gone since then has received it.
        return drop(answer.send(response));
    }
    let now = server.clock.moment().wall.0;
    let until = now.saturating_add(delivery.lock_ms().unwrap_or_default());
    let response = show(delivery, Some((base, until)), StatusCode::CREATED);
    if !is_wanted || answer.send(Ok(response)).is_err() {
        release(call, entity, delivery, shard_client).await;
    }
}

fn settle(
    call: &Call,
    entity: &Entity,
    delivery: &Delivery,
    request: Option<RequestId>,
    outcome: Outcome,
) -> Command {
    Command::Settle {
        request,
        session: None,
        subqueue: SubqueueId {
            entity: entity.id,
            subqueue: call.subqueue,
        },
        token: delivery.token,
        outcome,
    }
}

/// Makes a locked message available again, without counting a delivery.
async fn release(
    call: &Call,
    entity: &Entity,
    delivery: &Delivery,
    shard_client: &mut ShardClient,
) {
    let release = settle(call, entity, delivery, None, Outcome::Release);
    // A shard that has ended holds no locks.
    let _ = shard_client.send_commands(vec![release]).await;
}

fn show(delivery: &Delivery, lock: Option<(&str, u64)>, status: StatusCode) -> Response {
    let token = delivery.token;
    let shown = lock.map(|(_, until)| data::Lock { token, until });
    let (headers, body) = data::received(&delivery.message, shown);
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if let Some((base, _)) = lock {
        let (number, token) = (delivery.message.number.0, Uuid::from_u128(token.0));
        if let Ok(location) = HeaderValue::try_from(format!("{base}/{number}/{token}")) {
            response.headers_mut().insert(LOCATION, location);
        }
    }
    response
}

/// What the address of a locked message begins with, as the client knows the broker.
fn base(head: &Request<()>, call: &Call, transport: Transport) -> String {
    let scheme = if transport.is_tls { "https" } else { "http" };
    let host = head.headers().get(HOST).and_then(|host| host.to_str().ok());
    let subqueue = match call.subqueue {
        broker::Subqueue::Main => "",
        broker::Subqueue::DeadLetter => "/$deadletterqueue",
        broker::Subqueue::TransferDeadLetter => "/$transfer/$deadletterqueue",
    };
    let entity = utf8_percent_encode(&call.entity, ESCAPED);
    let host = host.unwrap_or("localhost");
    format!("{scheme}://{host}/{entity}{subqueue}/messages")
}
