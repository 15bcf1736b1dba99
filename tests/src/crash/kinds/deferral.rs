//! Deferral: messages that are deferred, and received by their sequence numbers: completed, or
//! given back, after which they are still deferred.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use amqp::value::lookup;
use amqp::{DeliveryState, Value};
use endpoint::LinkId;

use super::{Kind, Worker, lock, take_one};
use crate::crash::client::{Client, Node, Step, Stop, map};
use crate::crash::dice::Dice;
use crate::crash::ledger::Ledger;
use crate::crash::message::{ACTIVE, DEFERRED, Draft};
use crate::crash::survey::Survey;

const QUEUE: &str = "deferred";
/// With more deferred messages than this, they are completed.
const MOST: usize = 30;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Queue,
    Deferred,
}

#[derive(Debug)]
pub(super) struct Deferral {
    ledger: Mutex<Ledger<Place>>,
    /// The sequence numbers of messages.
    sequences: Mutex<BTreeMap<u64, i64>>,
}

impl Deferral {
    pub fn new(kind: u64) -> Self {
        Self {
            ledger: Mutex::new(Ledger::new(kind)),
            sequences: Mutex::default(),
        }
    }
}

impl Kind for Deferral {
    fn name(&self) -> &'static str {
        "deferral"
    }

    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>> {
        let mut client = Client::connect(address)?;
        Ok(Box::new(Deferrer {
            sender: client.sender(QUEUE)?,
            receiver: client.receiver(QUEUE)?,
            node: client.node(QUEUE)?,
            client,
            kind: self,
        }))
    }

    fn count(&self, survey: &mut Survey) -> Result<(), String> {
        let (mut found, mut sequences) = (Vec::new(), BTreeMap::new());
        for seen in survey.messages(QUEUE)? {
            let place = match seen.state {
                ACTIVE => Place::Queue,
                DEFERRED => Place::Deferred,
                other => return Err(format!("message {} is in state {other}", seen.number)),
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

struct Deferrer<'a> {
    client: Client,
    kind: &'a Deferral,
    sender: LinkId,
    receiver: LinkId,
    node: Node,
}

impl Worker for Deferrer<'_> {
    fn step(&mut self, dice: &mut Dice) -> Step<()> {
        let deferred = lock(&self.kind.ledger).at(Place::Deferred);
        let some = match deferred.len() {
            0 => None,
            len => usize::try_from(dice.roll(len as u64))
                .ok()
                .and_then(|at| deferred.get(at).copied()),
        };
        match (dice.roll(6), some) {
            (_, Some(number)) if deferred.len() > MOST => self.complete(number),
            (3, Some(number)) => self.complete(number),
            (4, Some(number)) => self.give_back(number),
            (5, Some(number)) => self.receive_and_delete(number),
            (2, _) => self.defer(),
            _ => self.send(),
        }
    }
}

impl Deferrer<'_> {
    fn send(&mut self) -> Step<()> {
        let number = lock(&self.kind.ledger).number();
        lock(&self.kind.ledger).send(number, &[Place::Queue]);
        self.client
            .send(self.sender, &Draft::default().encode(number))?;
        lock(&self.kind.ledger).end(number, &[Some(Place::Queue)]);
        // Half of the messages are deferred.
        self.defer()
    }

    fn defer(&mut self) -> Step<()> {
        let Some(delivery) = take_one(&mut self.client, self.receiver)? else {
            return Ok(());
        };
        let number = delivery.seen.number;
        lock(&self.kind.ledger).expect(number, Place::Queue)?;
        lock(&self.kind.sequences).insert(number, delivery.seen.sequence);
        lock(&self.kind.ledger).begin(number, Some(Place::Deferred));
        let deferred = DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: true,
            message_annotations: None,
        };
        self.client.settle(&delivery, deferred)?;
        lock(&self.kind.ledger).end(number, &[Some(Place::Deferred)]);
        Ok(())
    }

    fn complete(&mut self, number: u64) -> Step<()> {
        let token = self.receive(number, 1)?;
        lock(&self.kind.ledger).begin(number, None);
        self.dispose("completed", token)?;
        lock(&self.kind.ledger).end(number, &[None]);
        Ok(())
    }

    fn give_back(&mut self, number: u64) -> Step<()> {
        let token = self.receive(number, 1)?;
        self.dispose("abandoned", token)
    }

    fn receive_and_delete(&mut self, number: u64) -> Step<()> {
        lock(&self.kind.ledger).begin(number, None);
        self.receive(number, 0)?;
        lock(&self.kind.ledger).end(number, &[None]);
        Ok(())
    }

    /// Receives a deferred message; returns its lock token.
    fn receive(&mut self, number: u64, mode: u32) -> Step<Option<Value>> {
        let sequence = lock(&self.kind.sequences).get(&number).copied();
        let sequence = sequence.ok_or_else(|| format!("message {number} was never seen"))?;
        let body = map([
            (
                "sequence-numbers",
                Value::Array(vec![Value::Long(sequence)]),
            ),
            ("receiver-settle-mode", Value::Uint(mode)),
        ]);
        let operation = "com.microsoft:receive-by-sequence-number";
        let answer = self.client.ask_well(self.node, operation, body)?;
        let first = match lookup(&answer, "messages") {
            Some(Value::List(messages)) => messages.first().and_then(Value::as_map).cloned(),
            _ => None,
        };
        let first = first.ok_or_else(|| format!("no deferred message {number}"))?;
        Ok(lookup(&first, "lock-token").cloned())
    }

    fn dispose(&mut self, status: &str, token: Option<Value>) -> Step<()> {
        let token = token.ok_or_else(|| Stop::Broken("a lock has no token".to_owned()))?;
        let body = map([
            ("disposition-status", Value::from(status)),
            ("lock-tokens", Value::Array(vec![token])),
        ]);
        let operation = "com.microsoft:update-disposition";
        self.client.ask_well(self.node, operation, body).map(drop)
    }
}
