//! Receiving the next message, which may take as long as the call is ready to wait.
//!
//! A task of its own waits, and knows when nobody waits for it any more: then the receiver's credit
//! is drained, and a message that was on its way is given back.

use std::sync::Arc;

use admin::Error;
use admin::data::{self, Action, Call};
use broker::{
    Access, Command, Delivery, Eviction, Outcome, Output, ReceiveMode, ReceiverId, RequestId,
    SubqueueId,
};
use http_body_util::Full;
use hyper::header::{HOST, HeaderValue, LOCATION};
use hyper::{Request, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use servicebus::{Entity, Operation};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::super::Way;
use super::super::admin::unauthorized;
use super::super::caller::Caller;
use super::{Response, empty};
use crate::desk::Desk;
use crate::door::House;

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
enum Taken {
    Message(Box<Delivery>),
    Nothing,
    Evicted(Eviction),
    /// The server stops or has failed.
    Stopped,
}

/// Where the result goes, and whether anybody waits for it.
type Answer = oneshot::Sender<Result<Response, Error>>;

/// Who waits, and what they showed for which path.
struct Waiting {
    caller: Caller,
    path: String,
}

impl Waiting {
    /// Whether they still may: keys are replaced, and tokens expire, while somebody waits.
    fn check(&self, house: &House) -> Result<(), Error> {
        let allowed = self.caller.check(house, Operation::TakeMessage, &self.path);
        allowed.map_err(|reason| unauthorized(&reason))
    }
}

/// Receives a message and shows it, or says that there was none.
pub async fn respond(
    head: &Request<()>,
    call: Call,
    caller: Caller,
    entity: Arc<Entity>,
    way: Way,
    house: &Arc<House>,
) -> Result<Response, Error> {
    let (answer, answered) = oneshot::channel();
    let base = base(head, &call, way);
    let path = head.uri().path().to_owned();
    let waiting = Waiting { caller, path };
    let house = Arc::clone(house);
    drop(tokio::spawn(async move {
        take(&call, &entity, &base, &waiting, answer, &house).await;
    }));
    answered.await.unwrap_or_else(|_| Err(Error::unavailable()))
}

async fn take(
    call: &Call,
    entity: &Entity,
    base: &str,
    waiting: &Waiting,
    mut answer: Answer,
    house: &House,
) {
    let Ok(mut desk) = Desk::open_in(house).await else {
        return;
    };
    match receive(call, entity, &mut answer, &mut desk, house).await {
        Taken::Message(delivery) => {
            if let Err(error) = waiting.check(house) {
                give_back(call, entity, &delivery, &mut desk).await;
                drop(answer.send(Err(error)));
                return desk.leave().await;
            }
            hand_out(call, entity, base, &delivery, answer, &mut desk, house).await;
        }
        // Nobody may wait for these any more.
        Taken::Nothing => drop(answer.send(Ok(empty(StatusCode::NO_CONTENT)))),
        Taken::Evicted(reason) => drop(answer.send(Err(data::evicted(reason, &entity.path)))),
        Taken::Stopped => drop(answer.send(Err(Error::unavailable()))),
    }
    desk.leave().await;
}

/// Waits for a message until there is one, the time is up, or nobody waits.
async fn receive(
    call: &Call,
    entity: &Entity,
    answer: &mut Answer,
    desk: &mut Desk,
    house: &House,
) -> Taken {
    let receiver = ReceiverId {
        connection: desk.connection(),
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
    if desk.tell(vec![attach, credit(false)]).await.is_err() {
        return Taken::Stopped;
    }
    let mut stopping = house.stopping.clone();
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
        said = next(desk) => return said,
        () = enough => {}
    }
    // What is on its way arrives before the drain is answered.
    if desk.tell(vec![credit(true)]).await.is_err() {
        return Taken::Stopped;
    }
    next(desk).await
}

async fn next(desk: &mut Desk) -> Taken {
    loop {
        let Ok(said) = desk.hear().await else {
            return Taken::Stopped;
        };
        let taken = said.into_iter().find_map(|output| match output {
            Output::Deliver { delivery, .. } => Some(Taken::Message(delivery)),
            Output::Drained { .. } => Some(Taken::Nothing),
            Output::Evicted { reason, .. } => Some(Taken::Evicted(reason)),
            _ => None,
        });
        if let Some(taken) = taken {
            return taken;
        }
    }
}

/// Hands a locked message out, unless nobody is there to take it: then it is available again.
async fn hand_out(
    call: &Call,
    entity: &Entity,
    base: &str,
    delivery: &Delivery,
    answer: Answer,
    desk: &mut Desk,
    house: &House,
) {
    let is_wanted = !answer.is_closed();
    if is_wanted && call.action == Action::ReceiveAndDelete {
        let request = Some(desk.request(0));
        let complete = settle(call, entity, delivery, request, Outcome::Complete);
        let response = match removed(complete, desk).await {
            Some(true) => Ok(show(delivery, None, StatusCode::OK)),
            // Its lock is lost already: somebody else will have it.
            Some(false) => Ok(empty(StatusCode::NO_CONTENT)),
            None => Err(Error::unavailable()),
        };
        // Whoever has gone since then has received it.
        return drop(answer.send(response));
    }
    let now = house.clock.moment().wall.0;
    let until = now.saturating_add(delivery.lock_ms().unwrap_or_default());
    let response = show(delivery, Some((base, until)), StatusCode::CREATED);
    if !is_wanted || answer.send(Ok(response)).is_err() {
        give_back(call, entity, delivery, desk).await;
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

/// Makes a locked message available again, as if nobody had seen it.
async fn give_back(call: &Call, entity: &Entity, delivery: &Delivery, desk: &mut Desk) {
    let release = settle(call, entity, delivery, None, Outcome::Release);
    // A shard that has ended holds no locks.
    let _ = desk.tell(vec![release]).await;
}

/// Whether a message is removed for good; `None` when the server stops or has failed.
async fn removed(complete: Command, desk: &mut Desk) -> Option<bool> {
    desk.tell(vec![complete]).await.ok()?;
    loop {
        let said = desk.hear().await.ok()?;
        let settled = said.into_iter().find_map(|output| match output {
            Output::Settled { result, .. } => Some(result.is_ok()),
            _ => None,
        });
        if settled.is_some() {
            return settled;
        }
    }
}

fn show(delivery: &Delivery, lock: Option<(&str, u64)>, status: StatusCode) -> Response {
    let token = delivery.token;
    let shown = lock.map(|(_, until)| data::Lock { token, until });
    let (headers, body) = data::received(&delivery.message, shown);
    let mut response = Response::new(Full::new(body));
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
fn base(head: &Request<()>, call: &Call, way: Way) -> String {
    let scheme = if way.is_tls { "https" } else { "http" };
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
