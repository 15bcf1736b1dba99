//! Transactor: durable sends to one queue within transactions, one transaction after the other.
//!
//! A message counts as accepted when its transaction was committed.

use std::time::Instant;

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Role, TargetTerminus, Value};
use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use endpoint::{Connection, LinkId, Outgoing, SessionId};

use load::bodies::{Bodies, HEADER};
use load::sender::{Plan, Sender};

/// Sends of one transaction; the broker allows 100.
const BATCH: u64 = 50;
/// Descriptors of what a coordinator is told. [AMQP 4.5.2, 4.5.3]
const DECLARE: u64 = 0x31;
const DISCHARGE: u64 = 0x32;

/// Where the current transaction stands.
#[derive(Debug)]
enum Stage {
    /// There is none.
    None,
    Declaring,
    Open {
        id: Bytes,
        sent: u64,
        answered: u64,
    },
    Discharging,
}

/// A sending link, a coordinator, and what became of the messages.
pub struct Transactor {
    sender: Sender,
    bodies: Bodies,
    count: u64,
    coordinator: Option<LinkId>,
    started: bool,
    stage: Stage,
    /// Messages of the current transaction.
    batch: u64,
    committed: u64,
    last: Option<Instant>,
}

impl Transactor {
    /// A transactor that has not started; of the plan's pace it knows only the count.
    pub fn new(plan: Plan) -> Self {
        Self {
            bodies: Bodies::new(plan.size),
            count: plan.count,
            sender: Sender::new(plan),
            coordinator: None,
            started: false,
            stage: Stage::None,
            batch: 0,
            committed: 0,
            last: None,
        }
    }

    /// Asks for both links.
    pub fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        self.sender.attach(engine, session);
        self.coordinator = Some(engine.attach(
            session,
            Attach {
                name: "bench-coordinator".to_owned(),
                handle: 0,
                role: Role::Sender,
                snd_settle_mode: Some(SenderSettleMode::Unsettled),
                rcv_settle_mode: Some(ReceiverSettleMode::First),
                source: Some(Box::default()),
                target: Some(Box::new(TargetTerminus::Coordinator(Vec::new()))),
                unsettled: None,
                incomplete_unsettled: false,
                initial_delivery_count: Some(0),
                max_message_size: None,
                offered_capabilities: Vec::new(),
                desired_capabilities: Vec::new(),
                properties: None,
            },
        ));
    }

    /// Its links, once asked for.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.sender.link().into_iter().chain(self.coordinator)
    }

    /// Lets it send.
    pub fn start(&mut self) {
        self.started = true;
    }

    /// Leaves out what is in no transaction yet.
    pub fn stop(&mut self) {
        let current = match self.stage {
            Stage::None => 0,
            _ => self.batch,
        };
        self.count = self.committed + current;
    }

    /// Does what comes next in the current transaction, or begins one.
    pub fn send(&mut self, engine: &mut Connection) {
        match &mut self.stage {
            Stage::None if self.started && self.committed < self.count => {
                self.batch = BATCH.min(self.count - self.committed);
                if self.tell(DECLARE, vec![Value::Null], engine) {
                    self.stage = Stage::Declaring;
                }
            }
            Stage::Open { id, sent, answered } if *answered < self.batch => {
                let Some(link) = self.sender.link() else {
                    return;
                };
                let state = DeliveryState::Transactional {
                    txn_id: id.clone(),
                    outcome: None,
                };
                while *sent < self.batch {
                    let tag = sent.to_be_bytes();
                    let outgoing = Outgoing {
                        tag: &tag,
                        state: Some(state.clone()),
                        ..Outgoing::default()
                    };
                    let [head, body] = self.bodies.section(self.committed + *sent);
                    if engine.send(link, &outgoing, &[HEADER, head, body]).is_err() {
                        return;
                    }
                    *sent += 1;
                }
            }
            Stage::Open { id, .. } => {
                let fields = vec![Value::Binary(id.clone()), Value::Bool(false)];
                if self.tell(DISCHARGE, fields, engine) {
                    self.stage = Stage::Discharging;
                }
            }
            _ => {}
        }
    }

    fn tell(&self, code: u64, fields: Vec<Value>, engine: &mut Connection) -> bool {
        let mut control = BytesMut::new();
        amqp::encode::descriptor(&mut control, 0x77);
        amqp::encode::value(&mut control, &Value::described(code, Value::List(fields)));
        let outgoing = Outgoing {
            tag: b"control",
            ..Outgoing::default()
        };
        let told = self
            .coordinator
            .map(|link| engine.send(link, &outgoing, &[&control]));
        told.is_some_and(|told| told.is_ok())
    }

    /// Takes an outcome.
    pub fn disposed(&mut self, now: Instant, state: Option<&DeliveryState>) -> Result<()> {
        let stage = std::mem::replace(&mut self.stage, Stage::None);
        self.stage = match (stage, state) {
            (Stage::Declaring, Some(DeliveryState::Declared { txn_id })) => Stage::Open {
                id: txn_id.clone(),
                sent: 0,
                answered: 0,
            },
            (Stage::Open { id, sent, answered }, Some(DeliveryState::Transactional { .. })) => {
                let answered = answered + 1;
                Stage::Open { id, sent, answered }
            }
            (Stage::Discharging, Some(DeliveryState::Accepted)) => {
                self.committed += self.batch;
                self.last = Some(now);
                Stage::None
            }
            (stage, state) => bail!("in a transaction that is {stage:?} came {state:?}"),
        };
        Ok(())
    }

    /// Whether every message was committed.
    pub fn is_done(&self) -> bool {
        self.committed == self.count
    }

    /// Messages that were committed.
    pub fn accepted(&self) -> u64 {
        self.committed
    }

    /// When the newest commit was confirmed.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }
}
