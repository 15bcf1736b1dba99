//! Delay: messages that are given back with a delay (`x-opt-delivery-delay`): they wait and come
//! back, in a moment or long after the run.

use std::net::SocketAddr;
use std::sync::Mutex;

use amqp::{DeliveryState, Value};
use endpoint::LinkId;

use super::{Kind, Worker, complete, lock, take_one};
use crate::crash::client::{Client, Delivery, Step};
use crate::crash::dice::Dice;
use crate::crash::ledger::Ledger;
use crate::crash::message::{ACTIVE, Draft, SCHEDULED};
use crate::crash::survey::Survey;

const QUEUE: &str = "delayed";
/// With so much that waits for long, nothing more does.
const MOST: usize = 25;
/// With more messages than this, all that come back are completed.
const MANY: usize = 60;
/// Longer than any run.
const FAR_MS: u64 = 7 * 86_400_000;
/// Within a cycle.
const NEAR_MS: u64 = 20;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Queue,
    /// It waits or is back.
    Returning,
    /// It waits for long.
    Waiting,
}

#[derive(Debug)]
pub(super) struct Delay {
    ledger: Mutex<Ledger<Place>>,
}

impl Delay {
    pub fn new(kind: u64) -> Self {
        let ledger = Mutex::new(Ledger::new(kind));
        Self { ledger }
    }
}

impl Kind for Delay {
    fn name(&self) -> &'static str {
        "delay"
    }

    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>> {
        let mut client = Client::connect(address)?;
        Ok(Box::new(Delayer {
            sender: client.sender(QUEUE)?,
            receiver: client.receiver(QUEUE)?,
            client,
            ledger: &self.ledger,
        }))
    }

    fn count(&self, survey: &mut Survey) -> Result<(), String> {
        let mut ledger = lock(&self.ledger);
        let mut found = Vec::new();
        for seen in survey.messages(QUEUE)? {
            let number = seen.number;
            // A message that comes back in a moment may be seen in both states.
            let place = match seen.state {
                ACTIVE if ledger.allows(number, Place::Queue) => Place::Queue,
                ACTIVE => Place::Returning,
                SCHEDULED if ledger.allows(number, Place::Waiting) => Place::Waiting,
                SCHEDULED => Place::Returning,
                other => return Err(format!("message {number} is in state {other}")),
            };
            found.push((number, place));
        }
        ledger.count(&found)?;
        survey.has_no_dead_letters(QUEUE)
    }

    fn open_window(&self) {
        lock(&self.ledger).open_window();
    }

    fn close_window(&self) -> Box<dyn Kind> {
        let ledger = Mutex::new(lock(&self.ledger).close_window());
        Box::new(Self { ledger })
    }
}

struct Delayer<'a> {
    client: Client,
    ledger: &'a Mutex<Ledger<Place>>,
    sender: LinkId,
    receiver: LinkId,
}

impl Worker for Delayer<'_> {
    fn step(&mut self, dice: &mut Dice) -> Step<()> {
        match dice.roll(3) {
            0 => self.send(),
            1 => self.delay_next(dice),
            _ => self.wait_for_return(dice),
        }
    }
}

impl Delayer<'_> {
    fn send(&mut self) -> Step<()> {
        let number = lock(self.ledger).number();
        lock(self.ledger).send(number, &[Place::Queue]);
        self.client
            .send(self.sender, &Draft::default().encode(number))?;
        lock(self.ledger).end(number, &[Some(Place::Queue)]);
        Ok(())
    }

    /// Gives a message back for long or for a moment.
    fn delay_next(&mut self, dice: &mut Dice) -> Step<()> {
        let Some(delivery) = self.next()? else {
            return self.send();
        };
        let waiting = lock(self.ledger).at(Place::Waiting).len();
        if waiting < MOST && dice.roll(4) == 0 {
            return self.delay(&delivery, Place::Waiting, FAR_MS);
        }
        self.delay(&delivery, Place::Returning, 1 + dice.roll(NEAR_MS))
    }

    /// Gives a message back for a moment, and waits until one is there: this one or another.
    fn wait_for_return(&mut self, dice: &mut Dice) -> Step<()> {
        let Some(delivery) = self.next()? else {
            return self.send();
        };
        self.delay(&delivery, Place::Returning, 1 + dice.roll(NEAR_MS))?;
        let back = self.client.wait(self.receiver)?;
        self.note(&back)?;
        match dice.roll(2) {
            0 if lock(self.ledger).len() <= MANY => {
                self.delay(&back, Place::Returning, 1 + dice.roll(NEAR_MS))
            }
            _ => complete(&mut self.client, self.ledger, &back),
        }
    }

    fn next(&mut self) -> Step<Option<Delivery>> {
        let next = take_one(&mut self.client, self.receiver)?;
        if let Some(delivery) = &next {
            self.note(delivery)?;
        }
        Ok(next)
    }

    /// A message that is delivered is in the queue.
    fn note(&mut self, delivery: &Delivery) -> Step<()> {
        let number = delivery.seen.number;
        let mut ledger = lock(self.ledger);
        if !ledger.allows(number, Place::Returning) {
            ledger.expect(number, Place::Queue)?;
        }
        ledger.begin(number, Some(Place::Queue));
        ledger.end(number, &[Some(Place::Queue)]);
        Ok(())
    }

    fn delay(&mut self, delivery: &Delivery, place: Place, delay_ms: u64) -> Step<()> {
        let number = delivery.seen.number;
        lock(self.ledger).begin(number, Some(place));
        let delay = vec![("x-opt-delivery-delay".into(), Value::Ulong(delay_ms))];
        let abandoned = DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            message_annotations: Some(delay),
        };
        self.client.settle(delivery, abandoned)?;
        lock(self.ledger).end(number, &[Some(place)]);
        Ok(())
    }
}
