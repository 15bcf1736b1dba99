//! Transactions: messages that are moved from one queue to another, by a transaction that completes
//! them in the first and sends them to the second. Each is in one of both, never in none.

use std::net::SocketAddr;
use std::sync::Mutex;

use endpoint::LinkId;

use super::{Kind, Worker, complete, lock};
use crate::crash::client::{Client, Step};
use crate::crash::dice::Dice;
use crate::crash::ledger::Ledger;
use crate::crash::message::Draft;
use crate::crash::survey::Survey;

const QUEUES: [(&str, Place); 2] = [("left", Place::Left), ("right", Place::Right)];
/// With more messages than this in the second queue, some are completed.
const MOST: usize = 20;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Left,
    Right,
}

#[derive(Debug)]
pub(super) struct Transactions {
    ledger: Mutex<Ledger<Place>>,
    /// The messages of the transaction whose commit has no answer.
    open: Mutex<Vec<u64>>,
}

impl Transactions {
    pub fn new(kind: u64) -> Self {
        Self {
            ledger: Mutex::new(Ledger::new(kind)),
            open: Mutex::default(),
        }
    }
}

impl Kind for Transactions {
    fn name(&self) -> &'static str {
        "transactions"
    }

    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>> {
        let mut client = Client::connect(address)?;
        Ok(Box::new(Mover {
            coordinator: client.coordinator()?,
            to_left: client.sender("left")?,
            left: client.receiver("left")?,
            to_right: client.sender("right")?,
            right: client.receiver("right")?,
            client,
            ledger: &self.ledger,
            open: &self.open,
        }))
    }

    fn count(&self, survey: &mut Survey) -> Result<(), String> {
        let mut found = Vec::new();
        for (queue, place) in QUEUES {
            let seen = survey.messages(queue)?.into_iter();
            found.extend(seen.map(|seen| (seen.number, place)));
            survey.has_no_dead_letters(queue)?;
        }
        lock(&self.ledger).count(&found)?;
        let open = std::mem::take(&mut *lock(&self.open));
        let moved = lock(&self.ledger).at(Place::Right);
        let done = open.iter().filter(|number| moved.contains(number)).count();
        match done == 0 || done == open.len() {
            true => Ok(()),
            false => Err(format!("of the transaction with {open:?} {done} are done")),
        }
    }

    fn open_window(&self) {
        lock(&self.ledger).open_window();
    }

    fn close_window(&self) -> Box<dyn Kind> {
        Box::new(Self {
            ledger: Mutex::new(lock(&self.ledger).close_window()),
            open: Mutex::default(),
        })
    }
}

struct Mover<'a> {
    client: Client,
    ledger: &'a Mutex<Ledger<Place>>,
    open: &'a Mutex<Vec<u64>>,
    coordinator: LinkId,
    to_left: LinkId,
    left: LinkId,
    to_right: LinkId,
    right: LinkId,
}

impl Worker for Mover<'_> {
    fn step(&mut self, dice: &mut Dice) -> Step<()> {
        let moved = lock(self.ledger).at(Place::Right).len();
        match dice.roll(5) {
            _ if moved > MOST => self.complete(),
            0 | 1 => self.send(),
            2 | 3 => self.transfer(dice),
            _ => self.complete(),
        }
    }
}

impl Mover<'_> {
    fn send(&mut self) -> Step<()> {
        let number = lock(self.ledger).number();
        lock(self.ledger).send(number, &[Place::Left]);
        self.client
            .send(self.to_left, &Draft::default().encode(number))?;
        lock(self.ledger).end(number, &[Some(Place::Left)]);
        Ok(())
    }

    /// Moves up to three messages by one transaction, which is sometimes rolled back.
    fn transfer(&mut self, dice: &mut Dice) -> Step<()> {
        let deliveries = self
            .client
            .take(self.left, 1 + u32::from(dice.roll(3) > 0) * 2)?;
        if deliveries.is_empty() {
            return self.send();
        }
        let transaction = self.client.declare(self.coordinator)?;
        for delivery in &deliveries {
            let number = delivery.seen.number;
            lock(self.ledger).expect(number, Place::Left)?;
            self.client.complete_within(&transaction, delivery)?;
            let message = Draft::default().encode(number);
            self.client
                .send_within(&transaction, self.to_right, &message)?;
        }
        if dice.roll(5) == 0 {
            return self.client.discharge(transaction, true);
        }
        let numbers: Vec<_> = deliveries
            .iter()
            .map(|delivery| delivery.seen.number)
            .collect();
        for number in &numbers {
            lock(self.ledger).begin(*number, Some(Place::Right));
        }
        lock(self.open).clone_from(&numbers);
        self.client.discharge(transaction, false)?;
        lock(self.open).clear();
        for number in numbers {
            lock(self.ledger).end(number, &[Some(Place::Right)]);
        }
        Ok(())
    }

    fn complete(&mut self) -> Step<()> {
        for delivery in self.client.take(self.right, 2)? {
            lock(self.ledger).expect(delivery.seen.number, Place::Right)?;
            complete(&mut self.client, self.ledger, &delivery)?;
        }
        Ok(())
    }
}
