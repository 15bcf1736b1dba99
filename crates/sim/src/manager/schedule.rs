//! Schedule: what a manager says to have messages scheduled and to take them back.

use amqp::Value;
use amqp::value::{Map, lookup};
use store::SequenceNumber;

use super::{Asked, Manager, Plan, Response};
use crate::context::Context;
use crate::ledger::Ledger;
use crate::message::{self, MessageId, SendOptions};
use crate::violation::Violation;

impl Manager {
    /// One to three messages, each with a time of its own.
    pub(super) fn schedule(&self, context: &mut Context<'_>) -> Plan {
        let mut ids = Vec::new();
        let mut messages = Vec::new();
        for _ in 0..=context.rng.below(3) {
            let id = context.ledger.fresh_id(context.rng, self.queue);
            let options = SendOptions {
                due: Some(message::any_due(context.rng, context.now)),
                ..SendOptions::any(context.rng, id, context.now)
            };
            let size = context.rng.below(100);
            let payload = message::build(context.rng, id, options, size);
            let entry: Map = vec![
                ("message-id".into(), Value::String(id.to_string())),
                ("message".into(), Value::Binary(payload.clone())),
            ];
            messages.push(Value::Map(entry));
            context
                .ledger
                .send_asked(id, self.queue, payload, options, context.now);
            ids.push(id);
        }
        let body = vec![("messages".into(), Value::List(messages))];
        ("com.microsoft:schedule-message", body, Asked::Schedule(ids))
    }

    /// Some of the messages that clients know of, now and then with a number that no message has.
    pub(super) fn cancel(&self, context: &mut Context<'_>) -> Option<Plan> {
        let (newer, most) = (context.rng.below(6), 1 + context.rng.below(2));
        let messages = context.ledger.known_scheduled(self.queue, newer, most);
        if messages.is_empty() {
            return None;
        }
        context.ledger.cancel_asked(&messages);
        let mut numbers: Vec<_> = messages
            .iter()
            .map(|(number, _)| Value::Long(number.0 as i64))
            .collect();
        if context.rng.chance(50) {
            numbers.push(Value::Long(i64::MAX));
        }
        let body = vec![("sequence-numbers".into(), Value::Array(numbers))];
        let operation = "com.microsoft:cancel-scheduled-message";
        Some((operation, body, Asked::Cancel(messages)))
    }
}

/// The messages were accepted, under these numbers, or none of them.
pub(super) fn scheduled(
    ledger: &mut Ledger,
    queue: usize,
    ids: &[MessageId],
    response: &Response,
) -> Result<(), Violation> {
    let numbers = match lookup(&response.body, "sequence-numbers") {
        Some(Value::Array(numbers)) => numbers.as_slice(),
        _ => &[],
    };
    let done = response.code == 200;
    if done && numbers.len() != ids.len() {
        let what = format!("{} numbers for messages {ids:?}", numbers.len());
        return Err(Violation::new("I10", what));
    }
    for (index, id) in ids.iter().enumerate() {
        ledger.send_answered(*id, done)?;
        let number = numbers.get(index).and_then(Value::as_integer);
        let number = number.and_then(|number| u64::try_from(number).ok());
        if let Some(number) = number.filter(|_| done) {
            ledger.scheduled(queue, SequenceNumber(number), *id)?;
        }
    }
    Ok(())
}
