//! Declarer: a client of RabbitMQ's dialect that declares, deletes and purges queues, exchanges and
//! bindings over a management link pair.
//!
//! Others do so at the same time, so that what it names may be missing. The ledger says of each
//! order what must come of it; here each response has a status of its request's contract, and
//! responses come in the order of their requests. (docs/spec/rabbitmq.md#5, #6.1)

use std::collections::VecDeque;

use amqp::message::{Properties, Sections, descriptor};
use amqp::{Value, encode};
use broker::BindingDestination;
use bytes::{Bytes, BytesMut};
use endpoint::{Event, LinkId};

use crate::context::Context;
use crate::ledger::Ledger;
use crate::remote::Remote;
use crate::rng::Rng;
use crate::topology;
use crate::violation::Violation;

/// Most requests that wait for their response.
const WAITING: usize = 4;

/// A kind of request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    DeclareQueue,
    DeclareExchange,
    Bind,
    /// Of a queue, an exchange or a binding.
    Remove(&'static [u16]),
    Purge,
    Show(&'static [u16]),
}

impl Kind {
    /// The statuses of its responses.
    fn statuses(self) -> &'static [u16] {
        match self {
            // It may go before it is shown.
            Self::DeclareQueue => &[200, 201, 404],
            // What is there may differ.
            Self::DeclareExchange => &[204, 409],
            // One of its ends may be missing.
            Self::Bind => &[204, 400],
            // The queue may go between its look-up and the purge.
            Self::Purge => &[200, 400, 404],
            Self::Remove(statuses) | Self::Show(statuses) => statuses,
        }
    }
}

/// A request.
struct Request {
    kind: Kind,
    method: &'static str,
    path: String,
    body: Value,
}

/// A client that declares.
#[derive(Debug, Default)]
pub struct Declarer {
    requests: Option<LinkId>,
    responses: Option<LinkId>,
    waiting: VecDeque<(u64, Kind)>,
    next: u64,
}

impl Declarer {
    pub(crate) fn connected(&mut self, remote: &mut Remote) {
        let (requests, responses) = remote.attach_pair();
        remote.endpoint.set_credit(responses, 1_000, false);
        (self.requests, self.responses) = (Some(requests), Some(responses));
    }

    /// Whether a link went with a session that it has ended.
    pub(crate) fn parts_with(&self, link: LinkId) -> bool {
        ![self.requests, self.responses].contains(&Some(link))
    }

    pub(crate) fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        if context.rng.chance(10) {
            remote.begin_again();
            self.disconnected();
            return self.connected(remote);
        }
        let Some(link) = self.requests.filter(|_| self.waiting.len() < WAITING) else {
            return;
        };
        let Request {
            kind,
            method,
            path,
            body,
        } = any_request(context.rng);
        self.next += 1;
        let payload = encoded(self.next, method, path, body);
        if remote.request(link, self.next, &payload) {
            self.waiting.push_back((self.next, kind));
        }
    }

    pub(crate) fn handle(
        &mut self,
        context: &mut Context<'_>,
        event: Event,
    ) -> Result<(), Violation> {
        match event {
            Event::Delivery { payload, .. } => self.answered(context.ledger, &payload),
            Event::Detached { link, .. } if self.parts_with(link) => Ok(()),
            Event::Detached { .. } | Event::Closed { .. } => {
                self.disconnected();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn answered(&mut self, ledger: &mut Ledger, payload: &Bytes) -> Result<(), Violation> {
        let response = read(payload);
        let asked = self.waiting.pop_front();
        let (Some((id, status)), Some((asked, kind))) = (response, asked) else {
            let what = format!("{response:?} is the response to {asked:?}");
            return Err(Violation::new("I14", what));
        };
        if id != asked || !kind.statuses().contains(&status) {
            let what = format!("{kind:?} {asked} is answered with {status} to {id}");
            return Err(Violation::new("I14", what));
        }
        let report = &mut ledger.report;
        match (kind, status) {
            (Kind::DeclareQueue, 201) | (Kind::DeclareExchange, 204) => report.declared += 1,
            (Kind::Bind, 204) => report.bound += 1,
            (Kind::Remove(_), 200 | 204) => report.unmade += 1,
            (Kind::Purge, 200) => report.purges += 1,
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn disconnected(&mut self) {
        (self.requests, self.responses) = (None, None);
        self.waiting.clear();
    }
}

fn any_request(rng: &mut Rng) -> Request {
    let queue = topology::any_declared_queue(rng);
    let empty = |kind, method, path| Request {
        kind,
        method,
        path,
        body: Value::Null,
    };
    match rng.weighted(&[8, 3, 3, 5, 2, 14, 5, 3, 3]) {
        0 => Request {
            kind: Kind::DeclareQueue,
            method: "PUT",
            path: format!("/queues/{queue}"),
            body: map(vec![("arguments", arguments())]),
        },
        1 => empty(Kind::Remove(&[200]), "DELETE", format!("/queues/{queue}")),
        2 => empty(Kind::Purge, "DELETE", format!("/queues/{queue}/messages")),
        3 => {
            let (exchange, kind) = topology::any_declared_exchange(rng);
            Request {
                kind: Kind::DeclareExchange,
                method: "PUT",
                path: format!("/exchanges/{exchange}"),
                body: map(vec![("type", Value::from(kind.name()))]),
            }
        }
        4 => {
            let (exchange, _) = topology::any_declared_exchange(rng);
            let path = format!("/exchanges/{exchange}");
            empty(Kind::Remove(&[204]), "DELETE", path)
        }
        5 => bind(rng),
        6 => {
            let path = format!("/bindings/{};args=", binding(rng, ';'));
            empty(Kind::Remove(&[204]), "DELETE", path)
        }
        7 => {
            let path = format!("/bindings?{}", binding(rng, '&'));
            empty(Kind::Show(&[200]), "GET", path)
        }
        _ => empty(Kind::Show(&[200, 404]), "GET", format!("/queues/{queue}")),
    }
}

/// Those of a queue, as the other administrators make it.
fn arguments() -> Value {
    map(vec![
        ("x-queue-type", Value::from("quorum")),
        (
            "x-delivery-limit",
            Value::Long(topology::DELIVERY_LIMIT.into()),
        ),
    ])
}

fn bind(rng: &mut Rng) -> Request {
    let (to, name) = match topology::any_destination(rng) {
        BindingDestination::Entity(name) => ("destination_queue", name),
        BindingDestination::Router(name) => ("destination_exchange", name),
    };
    Request {
        kind: Kind::Bind,
        method: "POST",
        path: "/bindings".to_owned(),
        body: map(vec![
            ("source", Value::from(topology::any_exchange(rng))),
            (to, Value::String(name)),
            ("binding_key", Value::from(topology::any_binding_key(rng))),
            ("arguments", map(Vec::new())),
        ]),
    }
}

/// The place of a binding, with its parts separated so.
fn binding(rng: &mut Rng, separator: char) -> String {
    let (to, name) = match topology::any_destination(rng) {
        BindingDestination::Entity(name) => ("dstq", name),
        BindingDestination::Router(name) => ("dste", name),
    };
    let source = topology::any_exchange(rng);
    let key = topology::any_binding_key(rng);
    let key = key.replace('#', "%23").replace('*', "%2A");
    format!("src={source}{separator}{to}={name}{separator}key={key}")
}

fn map(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::Map(
        entries
            .map(|(key, value)| (Value::from(key), value))
            .collect(),
    )
}

fn encoded(id: u64, method: &str, path: String, body: Value) -> Bytes {
    let mut out = BytesMut::new();
    let properties = Properties {
        message_id: Some(Value::Ulong(id)),
        to: Some(Value::String(path)),
        subject: Some(method.to_owned()),
        reply_to: Some(Value::from("$me")),
        ..Properties::default()
    };
    properties.encode(&mut out);
    encode::value(&mut out, &Value::described(descriptor::VALUE, body));
    out.freeze()
}

/// The request that a response is to, and its status.
fn read(payload: &Bytes) -> Option<(u64, u16)> {
    let sections = Sections::scan(payload).ok()?;
    let properties = Properties::decode(&payload.slice(sections.properties)).ok()?;
    let Some(Value::Ulong(id)) = properties.correlation_id else {
        return None;
    };
    Some((id, properties.subject?.parse().ok()?))
}
