//! Deferrer: takes messages from one queue and defers each, then fetches them by their numbers.
//!
//! A message counts when it was fetched, in receive-and-delete: it has then been sent, received,
//! put aside, found and removed.

use std::collections::BTreeMap;
use std::time::Instant;

use amqp::message::{Sections, decode_map_section};
use amqp::{DeliveryState, Value};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use endpoint::{Connection, LinkId, SessionId};

use load::receiver::{Receiver, SettleMode};
use load::request_client::RequestClient;

const FETCH: &str = "com.microsoft:receive-by-sequence-number";
/// Numbers of one request.
const BATCH: usize = 100;

/// A receiving link, a management node, and the messages between them.
pub struct Deferrer {
    receiver: Receiver,
    request_client: RequestClient,
    /// Numbers of messages whose deferral was not confirmed yet, by delivery.
    deferring: BTreeMap<u32, i64>,
    deferred: Vec<i64>,
    /// How many are asked for.
    asked: u64,
    fetched: u64,
    last: Option<Instant>,
}

impl Deferrer {
    /// A deferrer of `queue` that has not started.
    pub fn new(queue: &str) -> Self {
        Self {
            receiver: Receiver::new(queue),
            request_client: RequestClient::new(queue),
            deferring: BTreeMap::new(),
            deferred: Vec::new(),
            asked: 0,
            fetched: 0,
            last: None,
        }
    }

    /// Asks for its links.
    pub fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        self.receiver.attach(engine, session, SettleMode::Second);
        self.request_client.attach(engine, session);
    }

    /// Its links, once asked for.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.receiver
            .link()
            .into_iter()
            .chain(self.request_client.links())
    }

    /// Lets messages come.
    pub fn start(&mut self, engine: &mut Connection) {
        self.receiver.start(engine);
        self.request_client.start(engine);
    }

    /// Fetches what is deferred, unless an answer is on its way.
    pub fn send(&mut self, engine: &mut Connection) {
        let enough = self.deferred.len() >= BATCH || self.deferring.is_empty();
        if self.request_client.is_waiting() || self.deferred.is_empty() || !enough {
            return;
        }
        let count = self.deferred.len().min(BATCH);
        let numbers = self.deferred[..count].iter().copied();
        let body = [
            (
                Value::from("sequence-numbers"),
                Value::Array(numbers.map(Value::Long).collect()),
            ),
            (Value::from("receiver-settle-mode"), Value::Uint(0)),
        ];
        if self.request_client.request(FETCH, &body, engine) {
            self.deferred.drain(..count);
            self.asked = count as u64;
        }
    }

    /// Takes a message, or an answer.
    pub fn delivered(
        &mut self,
        now: Instant,
        link: LinkId,
        (session, delivery_id): (SessionId, u32),
        payload: &Bytes,
        engine: &mut Connection,
    ) -> Result<()> {
        if self.request_client.is_response_link(link) {
            let answer =
                self.request_client
                    .handle_response(session, delivery_id, payload, engine)?;
            ensure!(
                answer.code == 200,
                "deferred messages were not found: {:?}",
                answer.fields
            );
            self.fetched += self.asked;
            self.last = Some(now);
            return Ok(());
        }
        self.deferring.insert(delivery_id, number_of(payload)?);
        let state = DeliveryState::Modified {
            delivery_failed: false,
            undeliverable_here: true,
            message_annotations: None,
        };
        self.receiver.dispose(session, delivery_id, state, engine);
        Ok(())
    }

    /// A deferral was confirmed.
    pub fn settled(&mut self, delivery_id: u32) {
        self.deferred.extend(self.deferring.remove(&delivery_id));
    }

    /// Messages fetched.
    pub fn count(&self) -> u64 {
        self.fetched
    }

    /// When the newest of them came.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }
}

fn number_of(payload: &Bytes) -> Result<i64> {
    let annotations = Sections::scan(payload)?.message_annotations;
    let annotations = decode_map_section(&payload.slice(annotations))?;
    let number = amqp::value::lookup(&annotations, "x-opt-sequence-number");
    let number = number.and_then(Value::as_integer);
    number.context("a message without a number")
}
