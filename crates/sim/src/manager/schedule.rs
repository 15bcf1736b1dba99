//! Schedule: what a manager says to have messages scheduled and to take them back.

use amqp::Value;
use amqp::value::{Map, lookup};
use store::SequenceNumber;

use super::{Asked, Manager, Plan, Response};
use crate::actor::Stage;
use crate::ledger::Ledger;
use crate::message::{self, MessageId, Wish};
use crate::violation::Violation;

impl Manager {
    /// One to three messages, each with a time of its own.
    pub(super) fn schedule(&self, stage: &mut Stage<'_>) -> Plan {
        let mut ids = Vec::new();
        let mut messages = Vec::new();
        for _ in 0..=stage.rng.below(3) {
            let id = stage.ledger.fresh_id(stage.rng, self.queue);
            let wish = Wish {
                due: Some(message::any_due(stage.rng, stage.now)),
                ..Wish::any(stage.rng, id, stage.now)
            };
            let size = stage.rng.below(100);
            let payload = message::build(stage.rng, id, wish, size);
            let entry: Map = vec![
                ("message-id".into(), Value::String(id.to_string())),
                ("message".into(), Value::Binary(payload.clone())),
            ];
            messages.push(Value::Map(entry));
            stage
                .ledger
                .send_asked(id, self.queue, payload, wish, stage.now);
            ids.push(id);
        }
        let body = vec![("messages".into(), Value::List(messages))];
        ("com.microsoft:schedule-message", body, Asked::Schedule(ids))
    }

    /// Some of the messages that clients know of, now and then with a number that no message has.
    pub(super) fn cancel(&self, stage: &mut Stage<'_>) -> Option<Plan> {
        let (newer, most) = (stage.rng.below(6), 1 + stage.rng.below(2));
        let messages = stage.ledger.known_scheduled(self.queue, newer, most);
        if messages.is_empty() {
            return None;
        }
        stage.ledger.cancel_asked(&messages);
        let mut numbers: Vec<_> = messages
            .iter()
            .map(|(number, _)| Value::Long(number.0 as i64))
            .collect();
        if stage.rng.chance(50) {
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
