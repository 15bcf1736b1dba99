//! Client: a peer of one kind, on a broker that may end at any moment.
//!
//! Each call waits for the broker's answer. A client stops at the end of its broker, and at any
//! answer but success: a broker whose disk works refuses nothing that the kinds ask.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::net::SocketAddr;

use amqp::message::{Sections, decode_map_section, descriptor};
use amqp::value::lookup;
use amqp::{DeliveryState, Map, Value, encode};
use bytes::{Bytes, BytesMut};
use endpoint::LinkId;

use super::message::Seen;
use crate::{Peer, Received};

/// Why a client does not go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// The broker has ended.
    Gone,
    /// The broker refuses a request.
    Refused(String),
    /// The broker has broken its promise.
    Broken(String),
}

impl From<String> for Stop {
    fn from(violation: String) -> Self {
        Self::Broken(violation)
    }
}

/// What a call gives, or why the client stops.
pub(super) type Step<T> = Result<T, Stop>;

/// A message that was delivered, and the link on which it is settled.
#[derive(Debug)]
pub(super) struct Delivery {
    pub seen: Seen,
    pub link: LinkId,
    received: Received,
}

/// The links of a management node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    requests: LinkId,
    answers: LinkId,
}

/// A transaction that is open.
#[derive(Debug)]
pub(super) struct Transaction {
    coordinator: LinkId,
    id: Bytes,
}

impl Transaction {
    fn state(&self, outcome: Option<DeliveryState>) -> DeliveryState {
        DeliveryState::Transactional {
            txn_id: self.id.clone(),
            outcome: outcome.map(Box::new),
        }
    }
}

pub(super) struct Client {
    peer: Peer,
    /// Those that it has, by their entities: answers come on the first links to a node.
    nodes: BTreeMap<String, Node>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Step<Self> {
        let peer = Peer::connect_or_end(address).ok_or(Stop::Gone)?;
        let nodes = BTreeMap::new();
        Ok(Self { peer, nodes })
    }

    pub fn sender(&mut self, entity: &str) -> Step<LinkId> {
        self.peer.sender_or_end(entity).ok_or(Stop::Gone)
    }

    /// A receiver without credit.
    pub fn receiver(&mut self, entity: &str) -> Step<LinkId> {
        self.peer.receiver_or_end(entity, 0).ok_or(Stop::Gone)
    }

    /// A receiver of one session, without credit.
    pub fn session(&mut self, entity: &str, session: &str) -> Step<LinkId> {
        let link = self.peer.session_receiver_or_end(entity, session);
        link.ok_or(Stop::Gone)
    }

    pub fn node(&mut self, entity: &str) -> Step<Node> {
        if let Some(node) = self.nodes.get(entity) {
            return Ok(*node);
        }
        let address = format!("{entity}/$management");
        let node = Node {
            answers: self.receiver(&address)?,
            requests: self.sender(&address)?,
        };
        self.nodes.insert(entity.to_owned(), node);
        Ok(node)
    }

    /// Sends a message and waits until it is accepted.
    pub fn send(&mut self, link: LinkId, message: &[u8]) -> Step<()> {
        self.send_in(link, message, None, &DeliveryState::Accepted)
            .map(drop)
    }

    /// The same within a transaction.
    pub fn send_within(
        &mut self,
        transaction: &Transaction,
        link: LinkId,
        message: &[u8],
    ) -> Step<()> {
        let state = transaction.state(None);
        let wanted = transaction.state(Some(DeliveryState::Accepted));
        self.send_in(link, message, Some(state), &wanted)
    }

    fn send_in(
        &mut self,
        link: LinkId,
        message: &[u8],
        state: Option<DeliveryState>,
        wanted: &DeliveryState,
    ) -> Step<()> {
        let cookie = self.peer.send_or_end(link, message, state);
        let cookie = cookie.ok_or(Stop::Gone)?;
        match self.peer.outcome_or_end(cookie).ok_or(Stop::Gone)? {
            answer if answer == *wanted => Ok(()),
            other => Err(Stop::Refused(format!("a send is answered {other:?}"))),
        }
    }

    /// At most `count` of the messages that can be received now.
    pub fn take(&mut self, link: LinkId, count: u32) -> Step<Vec<Delivery>> {
        let taken = self.peer.drain_or_end(link, count).ok_or(Stop::Gone)?;
        let taken = taken.into_iter();
        taken.map(|received| delivery(link, received)).collect()
    }

    /// Waits for a message that is there or on its way.
    pub fn wait(&mut self, link: LinkId) -> Step<Delivery> {
        self.peer.credit(link, 1);
        let received = self.peer.receive_or_end(link).ok_or(Stop::Gone)?;
        delivery(link, received)
    }

    /// Settles a message and waits until that is confirmed.
    pub fn settle(&mut self, delivery: &Delivery, state: DeliveryState) -> Step<()> {
        let wanted = discriminant(&state);
        let answer = self
            .peer
            .settle_or_end(delivery.link, &delivery.received, state);
        let answer = answer.ok_or(Stop::Gone)?;
        if discriminant(&answer) == wanted && !is_refusal(&answer) {
            return Ok(());
        }
        let number = delivery.seen.number;
        Err(Stop::Refused(format!(
            "the settlement of message {number} is answered {answer:?}"
        )))
    }

    /// Completes a message within a transaction.
    pub fn complete_within(&mut self, transaction: &Transaction, delivery: &Delivery) -> Step<()> {
        let state = transaction.state(Some(DeliveryState::Accepted));
        self.settle(delivery, state)
    }

    /// A link to the coordinator of transactions.
    pub fn coordinator(&mut self) -> Step<LinkId> {
        self.peer.coordinator_or_end().ok_or(Stop::Gone)
    }

    pub fn declare(&mut self, coordinator: LinkId) -> Step<Transaction> {
        let declare = Value::described(0x31, Value::List(vec![Value::Null]));
        let declare = value_message(&declare);
        let cookie = self.peer.send_or_end(coordinator, &declare, None);
        let cookie = cookie.ok_or(Stop::Gone)?;
        match self.peer.outcome_or_end(cookie).ok_or(Stop::Gone)? {
            DeliveryState::Declared { txn_id } => Ok(Transaction {
                coordinator,
                id: txn_id,
            }),
            other => Err(Stop::Refused(format!("a declare is answered {other:?}"))),
        }
    }

    /// Commits a transaction, or rolls it back.
    pub fn discharge(&mut self, transaction: Transaction, fail: bool) -> Step<()> {
        let Transaction { coordinator, id } = transaction;
        let fields = vec![Value::Binary(id), Value::Bool(fail)];
        let discharge = Value::described(0x32, Value::List(fields));
        self.send(coordinator, &value_message(&discharge))
    }

    /// Asks a node for something. Returns the status and what the answer has.
    pub fn ask(&mut self, node: Node, operation: &str, body: Map) -> Step<(i64, Map)> {
        let mut request = BytesMut::new();
        let properties = [(Value::from("operation"), Value::from(operation))];
        amqp::message::Properties {
            message_id: Some(Value::Ulong(1)),
            ..amqp::message::Properties::default()
        }
        .encode(&mut request);
        amqp::message::encode_map_section(
            &mut request,
            descriptor::APPLICATION_PROPERTIES,
            &properties,
        );
        request.extend_from_slice(&value_message(&Value::Map(body)));
        self.peer.credit(node.answers, 1);
        let cookie = self.peer.send_or_end(node.requests, &request, None);
        let cookie = cookie.ok_or(Stop::Gone)?;
        let answer = self.peer.receive_or_end(node.answers).ok_or(Stop::Gone)?;
        self.peer.forget(&answer);
        self.peer.outcome_or_end(cookie).ok_or(Stop::Gone)?;
        read_answer(&answer.payload).map_err(Stop::Broken)
    }

    /// The same, where nothing but success is right.
    pub fn ask_well(&mut self, node: Node, operation: &str, body: Map) -> Step<Map> {
        match self.ask(node, operation, body)? {
            (200, answer) => Ok(answer),
            (status, answer) => Err(Stop::Refused(format!(
                "{operation} is answered {status} {answer:?}"
            ))),
        }
    }
}

/// Whether the answer to a settlement says that it was not done.
fn is_refusal(answer: &DeliveryState) -> bool {
    match answer {
        DeliveryState::Rejected(error) => error.is_some(),
        DeliveryState::Transactional { outcome, .. } => {
            outcome.as_deref() != Some(&DeliveryState::Accepted)
        }
        _ => false,
    }
}

/// A map with text keys.
pub(super) fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (Value::from(key), value))
        .collect()
}

fn delivery(link: LinkId, received: Received) -> Step<Delivery> {
    let seen = Seen::read(&received.payload)?;
    Ok(Delivery {
        seen,
        link,
        received,
    })
}

/// A message, or the end of one, whose body is a value.
fn value_message(value: &Value) -> Vec<u8> {
    let mut out = BytesMut::new();
    encode::descriptor(&mut out, 0x77);
    encode::value(&mut out, value);
    out.to_vec()
}

fn read_answer(payload: &Bytes) -> Result<(i64, Map), String> {
    let text = |error: amqp::DecodeError| error.to_string();
    let sections = Sections::scan(payload).map_err(text)?;
    let properties = payload.slice(sections.application_properties.clone());
    let properties = decode_map_section(&properties).map_err(text)?;
    let status = lookup(&properties, "statusCode").and_then(Value::as_integer);
    // The descriptor of the section takes three bytes.
    let body = payload.slice(sections.body.start + 3..sections.body.end);
    match (status, amqp::decode::value(&body).map_err(text)?) {
        (Some(200), Value::Map(body)) => Ok((200, body)),
        (Some(status), _) => Ok((status, properties)),
        (None, _) => Err(format!("an answer has no status: {properties:?}")),
    }
}
