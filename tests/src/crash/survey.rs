//! Survey: all messages of an entity, whatever their state, and the states of sessions, as a broker
//! shows them that does nothing else.

use std::net::SocketAddr;

use amqp::Value;
use amqp::value::lookup;

use super::client::{Client, Step, Stop, map};
use super::message::Seen;

/// Messages that are asked for at a time.
const PAGE: i32 = 250;

pub(super) struct Survey {
    client: Client,
}

impl Survey {
    pub fn begin(address: SocketAddr) -> Result<Self, String> {
        let client = Client::connect(address).map_err(text)?;
        Ok(Self { client })
    }

    /// All messages of an entity, in the order of their sequence numbers.
    pub fn messages(&mut self, entity: &str) -> Result<Vec<Seen>, String> {
        let found = self.peek(entity).map_err(text)?;
        match found.is_sorted_by(|one, next| one.sequence < next.sequence) {
            true => Ok(found),
            false => Err(format!("{entity} has sequence numbers twice: {found:?}")),
        }
    }

    /// Fails if an entity has dead letters.
    pub fn has_no_dead_letters(&mut self, entity: &str) -> Result<(), String> {
        let dead = self.messages(&dead_letters(entity))?;
        match dead.first() {
            None => Ok(()),
            Some(dead) => Err(format!("{entity} has a dead letter: {dead:?}")),
        }
    }

    /// The state of a session that no link holds.
    pub fn session_state(&mut self, entity: &str, session: &str) -> Result<Value, String> {
        self.read_state(entity, session).map_err(text)
    }

    fn read_state(&mut self, entity: &str, session: &str) -> Step<Value> {
        self.client.session(entity, session)?;
        let node = self.client.node(entity)?;
        let body = map([("session-id", Value::from(session))]);
        let answer = self
            .client
            .ask_well(node, "com.microsoft:get-session-state", body)?;
        let state = lookup(&answer, "session-state").cloned();
        state.ok_or_else(|| Stop::Broken("an answer has no session-state".to_owned()))
    }

    fn peek(&mut self, entity: &str) -> Step<Vec<Seen>> {
        let node = self.client.node(entity)?;
        let mut all: Vec<Seen> = Vec::new();
        loop {
            let from = all.last().map_or(0, |last| last.sequence + 1);
            let body = map([
                ("from-sequence-number", Value::Long(from)),
                ("message-count", Value::Int(PAGE)),
            ]);
            let answer = self.client.ask(node, "com.microsoft:peek-message", body)?;
            let page = match answer {
                (204, _) => return Ok(all),
                (200, answer) => lookup(&answer, "messages").cloned(),
                other => return Err(Stop::Refused(format!("a peek is answered {other:?}"))),
            };
            let Some(Value::List(page)) = page else {
                return Err(Stop::Broken(format!("a peek has no messages: {page:?}")));
            };
            for item in &page {
                let message = item.as_map().and_then(|map| lookup(map, "message"));
                let Some(Value::Binary(message)) = message else {
                    return Err(Stop::Broken(format!("a peek has no message: {item:?}")));
                };
                all.push(Seen::read(message)?);
            }
        }
    }
}

/// The dead-letter queue of an entity.
pub(super) fn dead_letters(entity: &str) -> String {
    format!("{entity}/$DeadLetterQueue")
}

/// A survey waits for every answer.
fn text(stop: Stop) -> String {
    match stop {
        Stop::Gone => "the broker has ended while it was looked at".to_owned(),
        Stop::Refused(text) | Stop::Broken(text) => text,
    }
}
