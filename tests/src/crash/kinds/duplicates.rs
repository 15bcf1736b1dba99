//! Duplicates: messages that are sent again with the same id, to a queue with duplicate detection:
//! what was stored once is not stored again, also after it was completed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use endpoint::LinkId;

use super::{Kind, Worker, complete, lock};
use crate::crash::client::{Client, Step};
use crate::crash::dice::Dice;
use crate::crash::ledger::Ledger;
use crate::crash::message::Draft;
use crate::crash::survey::Survey;

const QUEUE: &str = "once";
/// As many messages are sent again.
const RECENT: usize = 60;
/// With more messages than this, all that are received are completed.
const MOST: usize = 40;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Queue,
}

#[derive(Debug)]
pub(super) struct Duplicates {
    ledger: Mutex<Ledger<Place>>,
    /// The last messages, and whether each is known to have been stored.
    recent: Mutex<BTreeMap<u64, bool>>,
}

impl Duplicates {
    pub fn new(kind: u64) -> Self {
        Self {
            ledger: Mutex::new(Ledger::new(kind)),
            recent: Mutex::default(),
        }
    }
}

impl Kind for Duplicates {
    fn name(&self) -> &'static str {
        "duplicates"
    }

    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>> {
        let mut client = Client::connect(address)?;
        Ok(Box::new(Repeater {
            sender: client.sender(QUEUE)?,
            receiver: client.receiver(QUEUE)?,
            client,
            kind: self,
        }))
    }

    fn count(&self, survey: &mut Survey) -> Result<(), String> {
        let seen = survey.messages(QUEUE)?;
        let found: Vec<_> = seen
            .iter()
            .map(|seen| (seen.number, Place::Queue))
            .collect();
        lock(&self.ledger).count(&found)?;
        let mut recent = lock(&self.recent);
        for (number, _) in found {
            recent.entry(number).and_modify(|stored| *stored = true);
        }
        survey.has_no_dead_letters(QUEUE)
    }

    fn open_window(&self) {
        lock(&self.ledger).open_window();
    }

    fn close_window(&self) -> Box<dyn Kind> {
        Box::new(Self {
            ledger: Mutex::new(lock(&self.ledger).close_window()),
            recent: Mutex::default(),
        })
    }
}

struct Repeater<'a> {
    client: Client,
    kind: &'a Duplicates,
    sender: LinkId,
    receiver: LinkId,
}

impl Worker for Repeater<'_> {
    fn step(&mut self, dice: &mut Dice) -> Step<()> {
        match dice.roll(4) {
            0 | 1 => self.send_new(),
            2 => self.send_again(dice),
            _ => self.receive(dice),
        }
    }
}

impl Repeater<'_> {
    fn send_new(&mut self) -> Step<()> {
        let number = lock(&self.kind.ledger).number();
        let mut recent = lock(&self.kind.recent);
        recent.insert(number, false);
        if recent.len() > RECENT {
            recent.pop_first();
        }
        drop(recent);
        self.store(number)
    }

    /// Sends one of the last messages again. It is stored if it never was.
    fn send_again(&mut self, dice: &mut Dice) -> Step<()> {
        let recent: Vec<_> = {
            let recent = lock(&self.kind.recent);
            recent
                .iter()
                .map(|(number, stored)| (*number, *stored))
                .collect()
        };
        if recent.is_empty() {
            return self.send_new();
        }
        let at = usize::try_from(dice.roll(recent.len() as u64)).unwrap_or(0);
        match recent[at] {
            (number, true) => self.send(number),
            (number, false) => self.store(number),
        }
    }

    fn store(&mut self, number: u64) -> Step<()> {
        lock(&self.kind.ledger).send(number, &[Place::Queue]);
        self.send(number)?;
        lock(&self.kind.ledger).end(number, &[Some(Place::Queue)]);
        let mut recent = lock(&self.kind.recent);
        recent.entry(number).and_modify(|stored| *stored = true);
        Ok(())
    }

    fn send(&mut self, number: u64) -> Step<()> {
        let draft = Draft {
            id: Some(format!("id {number}")),
            ..Draft::default()
        };
        self.client.send(self.sender, &draft.encode(number))
    }

    fn receive(&mut self, dice: &mut Dice) -> Step<()> {
        let has_many = lock(&self.kind.ledger).len() > MOST;
        for delivery in self.client.take(self.receiver, 3)? {
            lock(&self.kind.ledger).expect(delivery.seen.number, Place::Queue)?;
            if has_many || dice.roll(2) == 0 {
                complete(&mut self.client, &self.kind.ledger, &delivery)?;
            }
        }
        Ok(())
    }
}
