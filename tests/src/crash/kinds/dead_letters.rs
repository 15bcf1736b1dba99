//! Dead letters: messages that are dead-lettered with a reason, and completed from there.

use std::net::SocketAddr;
use std::sync::Mutex;

use amqp::value::lookup;
use amqp::{DeliveryState, Error, Symbol, Value};
use endpoint::LinkId;

use super::{Kind, Worker, complete, lock, take_one};
use crate::crash::client::{Client, Step};
use crate::crash::dice::Dice;
use crate::crash::ledger::Ledger;
use crate::crash::message::Draft;
use crate::crash::survey::{self, Survey};

const QUEUE: &str = "letters";
/// With more dead letters than this, they are completed.
const MOST: usize = 30;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Queue,
    Dead,
}

#[derive(Debug)]
pub(super) struct DeadLetters {
    ledger: Mutex<Ledger<Place>>,
}

impl DeadLetters {
    pub fn new(kind: u64) -> Self {
        let ledger = Mutex::new(Ledger::new(kind));
        Self { ledger }
    }
}

impl Kind for DeadLetters {
    fn name(&self) -> &'static str {
        "dead letters"
    }

    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>> {
        let mut client = Client::connect(address)?;
        Ok(Box::new(Clerk {
            sender: client.sender(QUEUE)?,
            receiver: client.receiver(QUEUE)?,
            dead: client.receiver(&survey::dead_letters(QUEUE))?,
            client,
            ledger: &self.ledger,
        }))
    }

    fn count(&self, survey: &mut Survey) -> Result<(), String> {
        let mut found = Vec::new();
        for seen in survey.messages(QUEUE)? {
            found.push((seen.number, Place::Queue));
        }
        for seen in survey.messages(&survey::dead_letters(QUEUE))? {
            let number = seen.number;
            let given = lookup(&seen.properties, "DeadLetterReason");
            if given != Some(&Value::String(reason(number))) {
                return Err(format!("message {number} is dead for {given:?}"));
            }
            found.push((number, Place::Dead));
        }
        lock(&self.ledger).count(&found)
    }

    fn open_window(&self) {
        lock(&self.ledger).open_window();
    }

    fn close_window(&self) -> Box<dyn Kind> {
        let ledger = Mutex::new(lock(&self.ledger).close_window());
        Box::new(Self { ledger })
    }
}

fn reason(number: u64) -> String {
    format!("because of {number}")
}

struct Clerk<'a> {
    client: Client,
    ledger: &'a Mutex<Ledger<Place>>,
    sender: LinkId,
    receiver: LinkId,
    dead: LinkId,
}

impl Worker for Clerk<'_> {
    fn step(&mut self, dice: &mut Dice) -> Step<()> {
        let dead = lock(self.ledger).at(Place::Dead).len();
        match dice.roll(4) {
            _ if dead > MOST => self.complete_dead(),
            0 | 1 => self.send(),
            2 => self.dead_letter(),
            _ => self.complete_dead(),
        }
    }
}

impl Clerk<'_> {
    fn send(&mut self) -> Step<()> {
        let number = lock(self.ledger).number();
        lock(self.ledger).send(number, &[Place::Queue]);
        self.client
            .send(self.sender, &Draft::default().encode(number))?;
        lock(self.ledger).end(number, &[Some(Place::Queue)]);
        Ok(())
    }

    fn dead_letter(&mut self) -> Step<()> {
        for delivery in self.client.take(self.receiver, 2)? {
            let number = delivery.seen.number;
            lock(self.ledger).expect(number, Place::Queue)?;
            lock(self.ledger).begin(number, Some(Place::Dead));
            self.client.settle(&delivery, rejected(number))?;
            lock(self.ledger).end(number, &[Some(Place::Dead)]);
        }
        Ok(())
    }

    fn complete_dead(&mut self) -> Step<()> {
        let Some(delivery) = take_one(&mut self.client, self.dead)? else {
            return Ok(());
        };
        lock(self.ledger).expect(delivery.seen.number, Place::Dead)?;
        complete(&mut self.client, self.ledger, &delivery)
    }
}

fn rejected(number: u64) -> DeliveryState {
    let reason_key = Value::Symbol(Symbol::new("DeadLetterReason"));
    let mut error = Error::new(Symbol::new("com.microsoft:dead-letter"), "");
    error.info = Some(vec![(reason_key, Value::String(reason(number)))]);
    DeliveryState::Rejected(Some(error))
}
