//! Schedule: messages that are scheduled far ahead and perhaps cancelled, and messages that are due
//! in a moment. A number says which: even ones are due far ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use amqp::Value;
use amqp::value::lookup;
use bytes::Bytes;
use endpoint::LinkId;

use super::{Kind, Worker, complete, lock};
use crate::crash::client::{Client, Node, Step, map};
use crate::crash::dice::Dice;
use crate::crash::ledger::Ledger;
use crate::crash::message::{ACTIVE, Draft, SCHEDULED};
use crate::crash::survey::Survey;

const QUEUE: &str = "scheduled";
/// With more messages than this that are due far ahead, some are cancelled.
const MOST: usize = 25;
/// Longer than any run.
const FAR_MS: i64 = 7 * 86_400_000;
/// Within a cycle.
const NEAR_MS: u64 = 40;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// It is due far ahead, and waits.
    Waiting,
    /// It is due in a moment: it waits or can be received.
    Near,
    /// It is due far ahead, and can be received all the same.
    TooEarly,
}

#[derive(Debug)]
pub(super) struct Schedule {
    ledger: Mutex<Ledger<Place>>,
    /// The sequence numbers of those that wait.
    sequences: Mutex<BTreeMap<u64, i64>>,
}

impl Schedule {
    pub fn new(kind: u64) -> Self {
        Self {
            ledger: Mutex::new(Ledger::new(kind)),
            sequences: Mutex::default(),
        }
    }
}

impl Kind for Schedule {
    fn name(&self) -> &'static str {
        "schedule"
    }

    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>> {
        let mut client = Client::connect(address)?;
        Ok(Box::new(Planner {
            sender: client.sender(QUEUE)?,
            receiver: client.receiver(QUEUE)?,
            node: client.node(QUEUE)?,
            client,
            kind: self,
        }))
    }

    fn count(&self, survey: &mut Survey) -> Result<(), String> {
        let (mut found, mut sequences) = (Vec::new(), BTreeMap::new());
        let mut near = BTreeSet::new();
        for seen in survey.messages(QUEUE)? {
            // One that becomes due between two pages is on both, available on the second.
            if seen.state == SCHEDULED && !is_far(seen.number) {
                near.insert(seen.number);
            } else if seen.state == ACTIVE && near.remove(&seen.number) {
                continue;
            }
            let place = match (is_far(seen.number), seen.state) {
                (true, SCHEDULED) => Place::Waiting,
                (true, ACTIVE) => Place::TooEarly,
                (false, ACTIVE | SCHEDULED) => Place::Near,
                (_, other) => return Err(format!("message {} is in state {other}", seen.number)),
            };
            found.push((seen.number, place));
            sequences.insert(seen.number, seen.sequence);
        }
        lock(&self.ledger).count(&found)?;
        *lock(&self.sequences) = sequences;
        survey.has_no_dead_letters(QUEUE)
    }

    fn open_window(&self) {
        lock(&self.ledger).open_window();
    }

    fn close_window(&self) -> Box<dyn Kind> {
        Box::new(Self {
            ledger: Mutex::new(lock(&self.ledger).close_window()),
            sequences: Mutex::default(),
        })
    }
}

fn is_far(number: u64) -> bool {
    number.is_multiple_of(2)
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

struct Planner<'a> {
    client: Client,
    kind: &'a Schedule,
    sender: LinkId,
    receiver: LinkId,
    node: Node,
}

impl Worker for Planner<'_> {
    fn step(&mut self, dice: &mut Dice) -> Step<()> {
        let waiting = lock(&self.kind.ledger).at(Place::Waiting);
        // The oldest goes first, so that it has waited over several ends.
        let oldest = waiting.first().copied();
        match (dice.roll(5), oldest) {
            (_, Some(number)) if waiting.len() > MOST => self.cancel(number),
            (0, Some(number)) if waiting.len() > MOST / 2 => self.cancel(number),
            (1, _) => self.complete_due(),
            _ => self.schedule(dice),
        }
    }
}

impl Planner<'_> {
    /// Schedules by the node or by a link.
    fn schedule(&mut self, dice: &mut Dice) -> Step<()> {
        let number = lock(&self.kind.ledger).number();
        let (place, ahead) = match is_far(number) {
            true => (Place::Waiting, FAR_MS),
            false => (Place::Near, i64::try_from(dice.roll(NEAR_MS)).unwrap_or(0)),
        };
        let draft = Draft {
            due_ms: Some(now_ms() + ahead),
            ..Draft::default()
        };
        let message = draft.encode(number);
        lock(&self.kind.ledger).send(number, &[place]);
        if dice.roll(2) == 0 {
            self.client.send(self.sender, &message)?;
        } else {
            let sequence = self.ask_to_schedule(number, message)?;
            lock(&self.kind.sequences).insert(number, sequence);
        }
        lock(&self.kind.ledger).end(number, &[Some(place)]);
        Ok(())
    }

    fn ask_to_schedule(&mut self, number: u64, message: Vec<u8>) -> Step<i64> {
        let item = map([
            ("message", Value::Binary(Bytes::from(message))),
            ("message-id", Value::String(number.to_string())),
        ]);
        let body = map([("messages", Value::List(vec![Value::Map(item)]))]);
        let operation = "com.microsoft:schedule-message";
        let answer = self.client.ask_well(self.node, operation, body)?;
        let sequence = match lookup(&answer, "sequence-numbers") {
            Some(Value::Array(numbers)) => numbers.first().and_then(Value::as_integer),
            _ => None,
        };
        Ok(sequence.ok_or_else(|| format!("message {number} gets no sequence number"))?)
    }

    /// Cancels a message, if its sequence number is known.
    fn cancel(&mut self, number: u64) -> Step<()> {
        let Some(sequence) = lock(&self.kind.sequences).get(&number).copied() else {
            return Ok(());
        };
        lock(&self.kind.ledger).begin(number, None);
        let numbers = Value::Array(vec![Value::Long(sequence)]);
        let body = map([("sequence-numbers", numbers)]);
        let operation = "com.microsoft:cancel-scheduled-message";
        self.client.ask_well(self.node, operation, body)?;
        lock(&self.kind.ledger).end(number, &[None]);
        Ok(())
    }

    fn complete_due(&mut self) -> Step<()> {
        for delivery in self.client.take(self.receiver, 4)? {
            lock(&self.kind.ledger).expect(delivery.seen.number, Place::Near)?;
            complete(&mut self.client, &self.kind.ledger, &delivery)?;
        }
        Ok(())
    }
}
