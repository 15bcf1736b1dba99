//! Calls: what a holder of a session asks for besides its messages, through `$management`: more
//! time, the session's state, a look at it or at all sessions, what was deferred in it.

use std::collections::BTreeMap;

use amqp::Value;
use amqp::value::{Map, lookup};
use bytes::Bytes;
use endpoint::LinkId;
use store::SequenceNumber;

use crate::context::Context;
use crate::ledger::{Ask, Ledger};
use crate::message::MessageId;
use crate::remote::Remote;
use crate::request::{Response, request};
use crate::session::Session;
use crate::violation::Violation;

/// Most requests that wait for their answers.
const IN_FLIGHT: usize = 5;

/// A request that waits for its response.
enum Asked {
    Renew,
    Get(Session),
    Set(Session, Option<Bytes>),
    List,
    Peek(Session),
    Fetch(Vec<SequenceNumber>),
    Settle(MessageId, Ask),
}

type Plan = (&'static str, Map, Asked);

/// A holder's links to the management node of its queue.
pub struct Calls {
    queue: usize,
    node: String,
    requests: Option<LinkId>,
    responses: Option<LinkId>,
    asked: BTreeMap<u64, Asked>,
    next: u64,
    /// Locks on messages that were deferred, and whose session that is.
    held: Vec<([u8; 16], MessageId)>,
}

impl Calls {
    pub(super) fn new(queue: usize, path: &str) -> Self {
        Self {
            queue,
            node: format!("{path}/$management"),
            requests: None,
            responses: None,
            asked: BTreeMap::new(),
            next: 1,
            held: Vec::new(),
        }
    }

    pub(super) fn connected(&mut self, remote: &mut Remote) {
        self.requests = Some(remote.attach_sender("requests", &self.node));
        let responses = remote.attach_receiver("responses", &self.node, true);
        remote.endpoint.set_credit(responses, 1_000, false);
        self.responses = Some(responses);
    }

    pub(super) fn goes_over(&self, link: LinkId) -> bool {
        self.requests == Some(link) || self.responses == Some(link)
    }

    /// Asks for something about the session that is held.
    pub(super) fn ask(&mut self, context: &mut Context<'_>, remote: &mut Remote, session: Session) {
        let Some(link) = self.requests.filter(|_| self.asked.len() < IN_FLIGHT) else {
            return;
        };
        let Some((operation, body, asked)) = self.plan(context, session) else {
            return;
        };
        self.next += 1;
        let request = request(self.next, &self.node, operation, body);
        if remote.request(link, self.next, &request) {
            self.asked.insert(self.next, asked);
        } else {
            lost(context.ledger, &asked);
        }
    }

    fn plan(&mut self, context: &mut Context<'_>, session: Session) -> Option<Plan> {
        let id = || ("session-id".into(), Value::String(session.name()));
        Some(match context.rng.below(20) {
            0..=4 => ("com.microsoft:renew-session-lock", vec![id()], Asked::Renew),
            5..=7 => {
                let asked = Asked::Get(session);
                ("com.microsoft:get-session-state", vec![id()], asked)
            }
            8..=10 => {
                let state = context.ledger.fresh_state(context.rng);
                let value = state.clone().map_or(Value::Null, Value::Binary);
                let body = vec![id(), ("session-state".into(), value)];
                let asked = Asked::Set(session, state);
                ("com.microsoft:set-session-state", body, asked)
            }
            11 => list(),
            12..=13 => {
                let from = Value::Long(context.rng.below(200) as i64);
                let count = Value::Int(1 + context.rng.below(20) as i32);
                let body = vec![
                    id(),
                    ("from-sequence-number".into(), from),
                    ("message-count".into(), count),
                ];
                ("com.microsoft:peek-message", body, Asked::Peek(session))
            }
            14..=16 => {
                let most = 1 + context.rng.below(3);
                let numbers = context.ledger.deferred_of(self.queue, session, most);
                if numbers.is_empty() {
                    return None;
                }
                fetch(numbers, id())
            }
            _ if self.held.is_empty() => return None,
            _ => {
                let (token, message) = self.held.remove(context.rng.below(self.held.len()));
                let ask = [Ask::Complete, Ask::Complete, Ask::Abandon, Ask::Defer];
                let ask = ask[context.rng.below(4)];
                context.ledger.asked(message, ask);
                settle(token, message, ask)
            }
        })
    }

    /// A response came.
    pub(super) fn answered(
        &mut self,
        context: &mut Context<'_>,
        payload: &Bytes,
    ) -> Result<(), Violation> {
        let response = Response::decode(payload)
            .ok_or_else(|| Violation::new("I12", "a response cannot be understood".to_owned()))?;
        let asked = self.asked.remove(&response.correlation);
        let asked =
            asked.ok_or_else(|| Violation::new("I12", "a response to no request".to_owned()))?;
        let done = response.code == 200;
        match asked {
            Asked::Renew | Asked::List => Ok(()),
            Asked::Get(session) if done => {
                let state = match lookup(&response.body, "session-state") {
                    Some(Value::Binary(state)) => Some(state),
                    _ => None,
                };
                context.ledger.state_received(self.queue, session, state)
            }
            Asked::Set(session, state) if done => {
                let ledger = &mut context.ledger;
                ledger.state_answered(self.queue, session, state.as_ref())
            }
            Asked::Get(_) | Asked::Set(..) => Ok(()),
            Asked::Peek(session) => {
                for (_, message) in response.messages() {
                    let id = context.ledger.shown(self.queue, &message)?;
                    check_session(id, session)?;
                }
                Ok(())
            }
            Asked::Fetch(numbers) => self.fetched(context, &numbers, &response),
            Asked::Settle(id, ask) => {
                let main = broker::Subqueue::Main;
                context.ledger.answered(id, main, ask, done)
            }
        }
    }

    fn fetched(
        &mut self,
        context: &mut Context<'_>,
        numbers: &[SequenceNumber],
        response: &Response,
    ) -> Result<(), Violation> {
        // Settled meanwhile, or locked already: not found is right then.
        if response.code == 404 {
            let main = broker::Subqueue::Main;
            context
                .ledger
                .forget_deferred(self.queue, main, &numbers[..1]);
        }
        for (token, message) in response.messages() {
            let id = context.ledger.shown(self.queue, &message)?;
            self.held.extend(token.map(|token| (token, id)));
        }
        Ok(())
    }

    pub(super) fn disconnected(&mut self, ledger: &mut Ledger) {
        self.requests = None;
        self.responses = None;
        self.held.clear();
        for asked in std::mem::take(&mut self.asked).into_values() {
            lost(ledger, &asked);
        }
    }
}

/// No answer will come.
fn lost(ledger: &mut Ledger, asked: &Asked) {
    if let Asked::Settle(id, ask) = asked {
        ledger.answer_lost(*id, *ask);
    }
}

fn check_session(id: MessageId, session: Session) -> Result<(), Violation> {
    if Session::of(id) == Some(session) {
        return Ok(());
    }
    let what = format!("message {id} was shown as one of {session:?}");
    Err(Violation::new("I4", what))
}

fn list() -> Plan {
    let body = vec![
        (
            "last-updated-time".into(),
            Value::Timestamp(253_402_300_800_000),
        ),
        ("skip".into(), Value::Int(0)),
        ("top".into(), Value::Int(1_000)),
    ];
    ("com.microsoft:get-message-sessions", body, Asked::List)
}

fn fetch(numbers: Vec<SequenceNumber>, id: (Value, Value)) -> Plan {
    let array = numbers.iter().map(|number| Value::Long(number.0 as i64));
    let body = vec![
        ("sequence-numbers".into(), Value::Array(array.collect())),
        ("receiver-settle-mode".into(), Value::Uint(1)),
        id,
    ];
    let operation = "com.microsoft:receive-by-sequence-number";
    (operation, body, Asked::Fetch(numbers))
}

fn settle(token: [u8; 16], message: MessageId, ask: Ask) -> Plan {
    let status = match ask {
        Ask::Complete => "completed",
        Ask::Defer => "defered",
        _ => "abandoned",
    };
    let body = vec![
        ("lock-tokens".into(), Value::Array(vec![Value::Uuid(token)])),
        ("disposition-status".into(), status.into()),
    ];
    let operation = "com.microsoft:update-disposition";
    (operation, body, Asked::Settle(message, ask))
}
