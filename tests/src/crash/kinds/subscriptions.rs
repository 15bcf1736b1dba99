//! Subscriptions: messages of a topic with two of them. One has all, the other those that its rule
//! selects: the messages with even numbers.
//!
//! A message's place is the set of copies that there are, so that all arrive or none.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use amqp::DeliveryState;
use endpoint::LinkId;

use super::{Kind, Worker, lock};
use crate::crash::client::{Client, Step};
use crate::crash::dice::Dice;
use crate::crash::ledger::Ledger;
use crate::crash::message::Draft;
use crate::crash::survey::Survey;

const TOPIC: &str = "events";
const PATHS: [&str; 2] = ["events/Subscriptions/all", "events/Subscriptions/even"];
/// With more messages than this, all that are received are completed.
const MOST: usize = 40;

/// A bit for each subscription with a copy, the first one lowest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Copies(u8);

impl Copies {
    /// All copies of a message.
    fn of(number: u64) -> Self {
        Self(if number.is_multiple_of(2) { 0b11 } else { 0b01 })
    }

    fn has(self, subscription: usize) -> bool {
        self.0 & 1 << subscription != 0
    }

    /// Without one of them; `None` if that is the last one.
    fn without(self, subscription: usize) -> Option<Self> {
        let left = self.0 & !(1 << subscription);
        (left != 0).then_some(Self(left))
    }
}

#[derive(Debug)]
pub(super) struct Subscriptions {
    ledger: Mutex<Ledger<Copies>>,
}

impl Subscriptions {
    pub fn new(kind: u64) -> Self {
        let ledger = Mutex::new(Ledger::new(kind));
        Self { ledger }
    }
}

impl Kind for Subscriptions {
    fn name(&self) -> &'static str {
        "subscriptions"
    }

    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>> {
        let mut client = Client::connect(address)?;
        Ok(Box::new(Subscriber {
            sender: client.sender(TOPIC)?,
            receivers: [client.receiver(PATHS[0])?, client.receiver(PATHS[1])?],
            client,
            ledger: &self.ledger,
        }))
    }

    fn count(&self, survey: &mut Survey) -> Result<(), String> {
        let mut found: BTreeMap<u64, Copies> = BTreeMap::new();
        for (subscription, path) in PATHS.iter().enumerate() {
            for seen in survey.messages(path)? {
                let copies = found.entry(seen.number).or_default();
                if copies.has(subscription) {
                    return Err(format!("{path} has message {} twice", seen.number));
                }
                copies.0 |= 1 << subscription;
            }
            survey.has_no_dead_letters(path)?;
        }
        let found: Vec<_> = found.into_iter().collect();
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

struct Subscriber<'a> {
    client: Client,
    ledger: &'a Mutex<Ledger<Copies>>,
    sender: LinkId,
    receivers: [LinkId; 2],
}

impl Worker for Subscriber<'_> {
    fn step(&mut self, dice: &mut Dice) -> Step<()> {
        match dice.roll(4) {
            0 => self.receive(0, dice),
            1 => self.receive(1, dice),
            _ => self.publish(),
        }
    }
}

impl Subscriber<'_> {
    fn publish(&mut self) -> Step<()> {
        let number = lock(self.ledger).number();
        let copies = Copies::of(number);
        lock(self.ledger).send(number, &[copies]);
        let parity = if number.is_multiple_of(2) {
            "even"
        } else {
            "odd"
        };
        let draft = Draft {
            property: Some(("parity", parity)),
            ..Draft::default()
        };
        self.client.send(self.sender, &draft.encode(number))?;
        lock(self.ledger).end(number, &[Some(copies)]);
        Ok(())
    }

    fn receive(&mut self, subscription: usize, dice: &mut Dice) -> Step<()> {
        let has_many = lock(self.ledger).len() > MOST;
        for delivery in self.client.take(self.receivers[subscription], 3)? {
            let number = delivery.seen.number;
            let known = lock(self.ledger).place(number);
            let copies = known.filter(|copies| copies.has(subscription));
            let copies = copies.ok_or_else(|| {
                format!("message {number} is delivered by {subscription}; it is in {known:?}")
            })?;
            if has_many || dice.roll(3) > 0 {
                let left = copies.without(subscription);
                lock(self.ledger).begin(number, left);
                self.client.settle(&delivery, DeliveryState::Accepted)?;
                lock(self.ledger).end(number, &[left]);
            }
        }
        Ok(())
    }
}
