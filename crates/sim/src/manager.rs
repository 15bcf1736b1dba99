//! Manager: a client that browses a queue, fetches deferred messages by number and settles or
//! renews them, schedules messages and takes them back, all through `$management`.

use std::collections::BTreeMap;
use std::ops::Range;

use amqp::Value;
use amqp::value::Map;
use broker::Subqueue;
use endpoint::{Event, LinkId};
use store::SequenceNumber;

use crate::context::Context;
use crate::ledger::{Ask, Ledger, Scheduled};
use crate::message::MessageId;
use crate::remote::Remote;
use crate::request::{Response, request};
use crate::violation::Violation;
use crate::world::queues::{Definition, What};

mod schedule;

/// A request that waits for its response.
enum Asked {
    Peek,
    Fetch(Vec<SequenceNumber>),
    Renew,
    Settle(Vec<MessageId>, Ask),
    Schedule(Vec<MessageId>),
    Cancel(Vec<Scheduled>),
    Delete,
}

/// What there is to manage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "named for what they are")]
pub enum Role {
    Queue,
    /// Messages are scheduled, and there is nothing to receive.
    Topic,
    /// Messages are received, and no client sends.
    Subscription,
}

impl Role {
    /// What there is to manage of an entity.
    #[must_use]
    pub fn of(definition: &Definition) -> Self {
        match definition.what {
            What::Queue => Self::Queue,
            What::Topic => Self::Topic,
            What::Subscription { .. } => Self::Subscription,
        }
    }

    /// Whether what a manager has chosen makes sense.
    fn does(self, chosen: usize) -> bool {
        match self {
            Self::Queue => true,
            Self::Topic => SCHEDULE.contains(&chosen),
            Self::Subscription => !SCHEDULE.contains(&chosen),
        }
    }
}

/// Those of a manager's choices that are about scheduled messages.
const SCHEDULE: Range<usize> = 6..8;

/// A managing client.
pub struct Manager {
    queue: usize,
    node: String,
    subqueue: Subqueue,
    role: Role,
    requests: Option<LinkId>,
    asked: BTreeMap<u64, Asked>,
    next: u64,
    /// Locks that it holds on deferred messages.
    held: Vec<([u8; 16], MessageId)>,
    /// Asks nothing more once it has stopped.
    pub stopped: bool,
}

impl Manager {
    /// A manager of the entity of that index and path.
    #[must_use]
    pub fn new(queue: usize, path: &'static str, role: Role) -> Self {
        let node = format!("{path}/$management");
        let subqueue = Subqueue::Main;
        let asked = BTreeMap::new();
        Self {
            queue,
            node,
            subqueue,
            role,
            requests: None,
            asked,
            next: 1,
            held: Vec::new(),
            stopped: false,
        }
    }

    pub(crate) fn connected(&mut self, remote: &mut Remote) {
        self.requests = Some(remote.attach_sender("requests", &self.node));
        let responses = remote.attach_receiver("responses", &self.node, true);
        remote.endpoint.set_credit(responses, 1_000, false);
    }

    pub(crate) fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        let Some(link) = self
            .requests
            .filter(|_| !self.stopped && self.asked.len() < 5)
        else {
            return;
        };
        let chosen = context.rng.below(9);
        if !self.role.does(chosen) {
            return;
        }
        let (operation, body, asked) = match chosen {
            0 => peek(context),
            1..=2 => {
                let numbers =
                    context
                        .ledger
                        .deferred(self.queue, self.subqueue, 1 + context.rng.below(3));
                if numbers.is_empty() {
                    return;
                }
                fetch(numbers)
            }
            3 if !self.held.is_empty() => renew(&self.held),
            4..=5 if !self.held.is_empty() => {
                let held = vec![self.held.remove(context.rng.below(self.held.len()))];
                let ask = if context.rng.chance(700) {
                    Ask::Complete
                } else {
                    Ask::Abandon
                };
                context.ledger.asked(held[0].1, ask);
                settle(&held, ask)
            }
            6 => self.schedule(context),
            8 if context.rng.chance(200) => delete(context),
            7 => match self.cancel(context) {
                Some(plan) => plan,
                None => return,
            },
            _ => return,
        };
        self.next += 1;
        let request = request(self.next, &self.node, operation, body);
        if remote.request(link, self.next, &request) {
            self.asked.insert(self.next, asked);
        } else {
            abandoned(context.ledger, asked);
        }
    }

    pub(crate) fn handle(
        &mut self,
        context: &mut Context<'_>,
        event: Event,
    ) -> Result<(), Violation> {
        match event {
            Event::Delivery { payload, .. } => {
                let response = Response::decode(&payload).ok_or_else(|| {
                    Violation::new("I12", "a response cannot be understood".to_owned())
                })?;
                self.answered(context, &response)
            }
            Event::Detached { .. } | Event::Closed { .. } => {
                self.disconnected(context.ledger);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn answered(
        &mut self,
        context: &mut Context<'_>,
        response: &Response,
    ) -> Result<(), Violation> {
        let asked = self.asked.remove(&response.correlation);
        let asked =
            asked.ok_or_else(|| Violation::new("I12", "a response to no request".to_owned()))?;
        match asked {
            Asked::Peek => {
                for (_, message) in response.messages() {
                    context.ledger.shown(self.queue, &message)?;
                }
            }
            Asked::Fetch(numbers) => {
                // Locked by another manager, or settled meanwhile: not found is right then. In a
                // queue with sessions only their holders get anything.
                if response.code != 200 && !context.ledger.queues[self.queue].sessions {
                    context
                        .ledger
                        .forget_deferred(self.queue, self.subqueue, &numbers[..1]);
                }
                for (token, message) in response.messages() {
                    let id = context.ledger.shown(self.queue, &message)?;
                    self.held.extend(token.map(|token| (token, id)));
                }
            }
            Asked::Renew => {
                if response.code != 200 {
                    self.held.clear();
                }
            }
            Asked::Delete => {}
            Asked::Schedule(ids) => {
                schedule::scheduled(context.ledger, self.queue, &ids, response)?;
            }
            Asked::Cancel(messages) => {
                let done = response.code == 200;
                context
                    .ledger
                    .cancel_answered(self.queue, &messages, done)?;
            }
            Asked::Settle(ids, ask) => {
                for id in ids {
                    context
                        .ledger
                        .answered(id, self.subqueue, ask, response.code == 200)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn disconnected(&mut self, ledger: &mut Ledger) {
        self.requests = None;
        self.held.clear();
        for asked in std::mem::take(&mut self.asked).into_values() {
            abandoned(ledger, asked);
        }
    }
}

/// No answer will come.
fn abandoned(ledger: &mut Ledger, asked: Asked) {
    match asked {
        Asked::Settle(ids, ask) => ids.into_iter().for_each(|id| ledger.answer_lost(id, ask)),
        Asked::Schedule(ids) => ids.into_iter().for_each(|id| ledger.send_lost(id)),
        Asked::Cancel(messages) => ledger.cancel_lost(&messages),
        Asked::Peek | Asked::Fetch(_) | Asked::Renew | Asked::Delete => {}
    }
}

type Plan = (&'static str, Map, Asked);

fn peek(context: &mut Context<'_>) -> Plan {
    let from = Value::Long(context.rng.below(200) as i64);
    let count = Value::Int(1 + context.rng.below(20) as i32);
    let body = vec![
        ("from-sequence-number".into(), from),
        ("message-count".into(), count),
    ];
    ("com.microsoft:peek-message", body, Asked::Peek)
}

/// A few of the oldest, or what is old enough.
fn delete(context: &mut Context<'_>) -> Plan {
    let before = context.now.wall.0 - context.rng.between(0, 3_000);
    let body = vec![
        (
            "message-count".into(),
            Value::Int(1 + context.rng.below(6) as i32),
        ),
        ("enqueued-time-utc".into(), Value::Timestamp(before as i64)),
    ];
    ("com.microsoft:batch-delete-messages", body, Asked::Delete)
}

fn fetch(numbers: Vec<SequenceNumber>) -> Plan {
    let array = numbers
        .iter()
        .map(|number| Value::Long(number.0 as i64))
        .collect();
    let body = vec![
        ("sequence-numbers".into(), Value::Array(array)),
        ("receiver-settle-mode".into(), Value::Uint(1)),
    ];
    (
        "com.microsoft:receive-by-sequence-number",
        body,
        Asked::Fetch(numbers),
    )
}

fn tokens(held: &[([u8; 16], MessageId)]) -> (Value, Value) {
    (
        "lock-tokens".into(),
        Value::Array(held.iter().map(|(token, _)| Value::Uuid(*token)).collect()),
    )
}

fn renew(held: &[([u8; 16], MessageId)]) -> Plan {
    ("com.microsoft:renew-lock", vec![tokens(held)], Asked::Renew)
}

fn settle(held: &[([u8; 16], MessageId)], ask: Ask) -> Plan {
    let status = if ask == Ask::Complete {
        "completed"
    } else {
        "abandoned"
    };
    let body = vec![tokens(held), ("disposition-status".into(), status.into())];
    let ids = held.iter().map(|(_, id)| *id).collect();
    (
        "com.microsoft:update-disposition",
        body,
        Asked::Settle(ids, ask),
    )
}
