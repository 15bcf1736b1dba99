//! Queue: durable messages in the order in which they came, and their receivers.
//!
//! Bodies stay in memory up to a budget of all queues together, if those beyond it can be read
//! back.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use bytes::Bytes;
use endpoint::LinkId;

use crate::database::Table;
use crate::row::Place;

/// Bodies in memory, all together, if others can be read back.
const RESIDENT: usize = 64 << 20;

/// A receiver's link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Taker {
    pub peer: u64,
    pub link: LinkId,
}

/// One queue.
#[derive(Default)]
struct Queue {
    /// The number of the message that comes next.
    next: u64,
    ready: VecDeque<(Place, Option<Bytes>)>,
    takers: VecDeque<Taker>,
}

/// All queues.
pub struct Queues {
    numbers: BTreeMap<String, u32>,
    queues: BTreeMap<u32, Queue>,
    resident: usize,
    table: Option<Table>,
}

impl Queues {
    /// None so far; `table` reads bodies back, if there is one.
    pub fn new(table: Option<Table>) -> Self {
        Self {
            numbers: BTreeMap::new(),
            queues: BTreeMap::new(),
            resident: 0,
            table,
        }
    }

    /// The queue at `address`, which is created at the first request.
    pub fn find(&mut self, address: &str) -> u32 {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = self.numbers.entry(address.to_owned()).or_insert(next);
        self.queues.entry(*number).or_default();
        *number
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.numbers.len()).unwrap_or(u32::MAX)
    }

    /// The place of a message that has come.
    pub fn place(&mut self, queue: u32) -> Place {
        let next = &mut self.queues.entry(queue).or_default().next;
        let number = *next;
        *next += 1;
        Place { queue, number }
    }

    /// A message is durable.
    pub fn push(&mut self, place: Place, body: Bytes) {
        let stays = self.table.is_none() || self.resident + body.len() <= RESIDENT;
        let body = stays.then_some(body);
        self.resident += body.as_ref().map_or(0, Bytes::len);
        let queue = self.queues.entry(place.queue).or_default();
        queue.ready.push_back((place, body));
    }

    /// Whether the queue has nothing to give.
    pub fn is_empty(&self, queue: u32) -> bool {
        self.queues
            .get(&queue)
            .is_none_or(|queue| queue.ready.is_empty())
    }

    /// Adds a receiver of the queue.
    pub fn attach(&mut self, queue: u32, taker: Taker) {
        self.queues
            .entry(queue)
            .or_default()
            .takers
            .push_back(taker);
    }

    /// Removes the receivers that `goes` selects.
    pub fn detach(&mut self, goes: impl Fn(&Taker) -> bool) {
        for queue in self.queues.values_mut() {
            queue.takers.retain(|taker| !goes(taker));
        }
    }

    /// Gives messages to takers in turn, until `give` has refused each. What it is given is in its
    /// hands.
    pub fn deliver(
        &mut self,
        queue: u32,
        mut give: impl FnMut(Taker, Place, &Bytes) -> bool,
    ) -> io::Result<()> {
        let Some(queue) = self.queues.get_mut(&queue) else {
            return Ok(());
        };
        let mut refused = 0;
        while refused < queue.takers.len() {
            let Some((place, body)) = queue.ready.front_mut() else {
                break;
            };
            if let (None, Some(table)) = (&body, &self.table) {
                let read = table.read(*place)?;
                self.resident += read.len();
                *body = Some(read);
            }
            let Some(taker) = queue.takers.front().copied() else {
                break;
            };
            if body.as_ref().is_some_and(|body| give(taker, *place, body)) {
                self.resident -= body.as_ref().map_or(0, Bytes::len);
                queue.ready.pop_front();
                refused = 0;
            } else {
                refused += 1;
            }
            queue.takers.rotate_left(1);
        }
        Ok(())
    }
}
