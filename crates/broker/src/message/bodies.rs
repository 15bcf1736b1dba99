//! Bodies: the messages that are in memory, within a budget for the whole broker.
//!
//! When the budget is passed, some go; they can be read from the store again. The lot falls on a
//! body, so on an entity that has many, and the newest of those goes that arrived at that entity. A
//! queue is read in the order in which it was written: so its first messages stay, which are wanted
//! first, and those that were read back stay until they are handed out. If the oldest went, a
//! receiver that is further behind than the budget reaches would find none of its messages here;
//! and a queue without receivers loses its bodies to other queues bit by bit, last of all those
//! that were read back. A body that takes more than half of the budget goes before all others: many
//! of them would have to go for it. What is about to go on to another entity by itself is passed
//! over a few times, since it would be read back at once.
//!
//! Copies of a topic's message for its subscriptions share one payload, which counts once.
//!
//! Handles survive that: a handle whose body has gone resolves to nothing. Nothing goes before
//! [`Bodies::trim`], so what a step brings in is there for all of that step.

mod body;
mod sampler;
mod shares;

use rustc_hash::FxHashMap;
use store::EntityId;

use sampler::Sampler;
use shares::Shares;

pub(crate) use body::{Body, Memory};

/// A body that costs more than this part of the budget is a large one.
const LARGE_PART: usize = 2;
/// How often another lot is drawn for a body that is about to go on, unless most of them are.
const CHANCES: usize = 8;
const NIL: u32 = u32::MAX;
/// Why a slot has a body.
const OCCUPIED: &str = "only occupied slots are listed";

/// Names a body that is, or was, in memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BodyRef {
    slot: u32,
    generation: u32,
}

impl BodyRef {
    /// Names no body.
    pub(crate) const NONE: Self = Self {
        slot: NIL,
        generation: 0,
    };
}

#[derive(Debug)]
struct Slot {
    /// Raised when the slot is vacated, so that old handles find nothing.
    generation: u32,
    /// Where in `occupied` the slot stands.
    place: u32,
    /// Whose body it is.
    entity: EntityId,
    /// Its body's place, if it arrived and was not read back.
    arrival: Option<Arrival>,
    /// Its body is about to go on by itself.
    passing: bool,
    body: Option<Body>,
}

/// A place among the bodies that arrived at one entity.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    older: u32,
    newer: u32,
}

/// The bodies by slot.
#[derive(Debug)]
pub(crate) struct Bodies {
    slots: Vec<Slot>,
    occupied: Vec<u32>,
    /// How many of those are about to go on by themselves.
    passing: usize,
    vacant: Vec<u32>,
    /// The newest arrival at each entity that has any.
    newest: FxHashMap<EntityId, u32>,
    shares: Shares,
    sampler: Sampler,
    bytes: usize,
    limit: usize,
    /// Came in during this step and still share a read buffer.
    fresh: Vec<BodyRef>,
    /// Large ones; some may be gone.
    large: Vec<BodyRef>,
}

impl Bodies {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            occupied: Vec::new(),
            passing: 0,
            vacant: Vec::new(),
            newest: FxHashMap::default(),
            shares: Shares::default(),
            sampler: Sampler::default(),
            bytes: 0,
            limit,
            fresh: Vec::new(),
            large: Vec::new(),
        }
    }

    /// Takes in a body that has arrived at `entity`, and which may be `passing`: about to go on by
    /// itself. A small payload leaves its read buffer when it outlives the step.
    pub(crate) fn put_arrived(&mut self, entity: EntityId, body: Body, passing: bool) -> BodyRef {
        let fresh = body.memory == Memory::Received;
        let body = self.put(entity, body);
        let older = self.newest.insert(entity, body.slot).unwrap_or(NIL);
        if older != NIL {
            self.arrival_mut(older).newer = body.slot;
        }
        let newer = NIL;
        let slot = &mut self.slots[body.slot as usize];
        slot.passing = passing;
        self.passing += usize::from(passing);
        slot.arrival = Some(Arrival { older, newer });
        if fresh {
            self.fresh.push(body);
        }
        body
    }

    /// Takes in a body of `entity` that was read back.
    pub(crate) fn put(&mut self, entity: EntityId, body: Body) -> BodyRef {
        let cost = body.cost();
        self.bytes += self.shares.adds(&body, cost);
        let slot = self.vacant.pop().unwrap_or_else(|| self.add_slot());
        let last = index_of(self.occupied.len());
        let place = &mut self.slots[slot as usize];
        place.body = Some(body);
        place.entity = entity;
        place.place = last;
        let generation = place.generation;
        self.occupied.push(slot);
        let body = BodyRef { slot, generation };
        if cost > self.limit / LARGE_PART {
            self.large.push(body);
        }
        body
    }

    /// Whether the body is still in memory.
    pub(crate) fn is_resident(&self, body: BodyRef) -> bool {
        self.slot_of(body).is_some()
    }

    /// A body that is still in memory.
    pub(crate) fn get(&self, body: BodyRef) -> Option<&Body> {
        let slot = self.slot_of(body)?;
        self.slots[slot as usize].body.as_ref()
    }

    /// Takes the body out.
    pub(crate) fn take(&mut self, body: BodyRef) -> Option<Body> {
        let slot = self.slot_of(body)?;
        Some(self.vacate(slot))
    }

    /// The end of a step: copies what stays out of its read buffer and keeps the budget.
    pub(crate) fn trim(&mut self) {
        self.large.retain(|large| is_in(&self.slots, *large));
        while self.bytes > self.limit && !self.large.is_empty() {
            let drawn = self.sampler.draw(self.large.len());
            let drawn = self.large.swap_remove(drawn);
            drop(self.take(drawn));
        }
        while self.bytes > self.limit && !self.occupied.is_empty() {
            let drawn = self.draw();
            let entity = self.slots[drawn as usize].entity;
            let newest = self.newest.get(&entity).copied();
            drop(self.vacate(newest.unwrap_or(drawn)));
        }
        for index in 0..self.fresh.len() {
            // A body may have been handed out within the step.
            if let Some(slot) = self.slot_of(self.fresh[index]) {
                let body = self.slots[slot as usize].body.as_mut();
                body.expect(OCCUPIED).own();
            }
        }
        self.fresh.clear();
    }

    /// One of those that are here, and of those that stay for a while if there are any to speak of.
    fn draw(&mut self) -> u32 {
        let mut drawn = self.draw_any();
        let chances = if self.passing > self.occupied.len() / 2 {
            0
        } else {
            CHANCES
        };
        for _ in 0..chances {
            if !self.slots[drawn as usize].passing {
                break;
            }
            drawn = self.draw_any();
        }
        drawn
    }

    fn draw_any(&mut self) -> u32 {
        self.occupied[self.sampler.draw(self.occupied.len())]
    }

    fn add_slot(&mut self) -> u32 {
        let slot = index_of(self.slots.len());
        self.slots.push(Slot {
            generation: 0,
            place: NIL,
            entity: EntityId(0),
            arrival: None,
            passing: false,
            body: None,
        });
        slot
    }

    fn slot_of(&self, body: BodyRef) -> Option<u32> {
        is_in(&self.slots, body).then_some(body.slot)
    }

    /// Empties an occupied slot.
    fn vacate(&mut self, slot: u32) -> Body {
        let emptied = &mut self.slots[slot as usize];
        let body = emptied.body.take().expect(OCCUPIED);
        emptied.generation = emptied.generation.wrapping_add(1);
        self.passing -= usize::from(std::mem::take(&mut emptied.passing));
        let (place, entity, arrival) = (emptied.place, emptied.entity, emptied.arrival.take());
        self.occupied.swap_remove(place as usize);
        if let Some(moved) = self.occupied.get(place as usize) {
            self.slots[*moved as usize].place = place;
        }
        if let Some(arrival) = arrival {
            self.unlink(entity, arrival);
        }
        self.vacant.push(slot);
        self.bytes -= self.shares.frees(&body, body.cost());
        body
    }

    /// Joins what is older and what is newer than something that goes.
    fn unlink(&mut self, entity: EntityId, arrival: Arrival) {
        let Arrival { older, newer } = arrival;
        if older != NIL {
            self.arrival_mut(older).newer = newer;
        }
        if newer != NIL {
            self.arrival_mut(newer).older = older;
        } else if older == NIL {
            self.newest.remove(&entity);
        } else {
            self.newest.insert(entity, older);
        }
    }

    fn arrival_mut(&mut self, slot: u32) -> &mut Arrival {
        let arrival = self.slots[slot as usize].arrival.as_mut();
        arrival.expect("an arrival that goes is unlinked from those beside it")
    }
}

fn is_in(slots: &[Slot], body: BodyRef) -> bool {
    let slot = slots.get(body.slot as usize);
    slot.is_some_and(|slot| slot.generation == body.generation && slot.body.is_some())
}

fn index_of(count: usize) -> u32 {
    u32::try_from(count).expect("the byte budget bounds the slots")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bytes::Bytes;

    use super::body::{COPY_LIMIT, OVERHEAD};
    use super::*;

    fn body(len: usize) -> Body {
        Body::new(vec![7; len].into(), None)
    }

    fn resident(bodies: &Bodies, refs: &[BodyRef]) -> usize {
        refs.iter().filter(|&&r| bodies.is_resident(r)).count()
    }

    #[test]
    fn no_more_stay_than_the_budget_has_room_for() {
        let mut bodies = Bodies::new(2 * (100 + OVERHEAD));
        let refs: Vec<_> = (0..3).map(|_| bodies.put(EntityId(1), body(100))).collect();
        assert_eq!(resident(&bodies, &refs), 3);
        bodies.trim();
        assert_eq!(resident(&bodies, &refs), 2);
    }

    #[test]
    fn a_queue_keeps_its_first_messages_and_one_that_nobody_reads_gives_way() {
        const ROOM: usize = 1_000;
        let mut bodies = Bodies::new(ROOM * (100 + OVERHEAD));
        let arrive = |bodies: &mut Bodies, entity| {
            let arrived = bodies.put_arrived(EntityId(entity), body(100), false);
            bodies.trim();
            arrived
        };
        let unread: Vec<_> = (0..2 * ROOM).map(|_| arrive(&mut bodies, 1)).collect();
        assert_eq!(resident(&bodies, &unread[..ROOM]), ROOM);
        let mut behind = VecDeque::new();
        let (mut found, mut read) = (0, 0);
        for _ in 0..20 * ROOM {
            behind.push_back(arrive(&mut bodies, 2));
            // Twice as much as there is room for.
            if behind.len() > 2 * ROOM {
                let first = behind.pop_front().unwrap();
                read += 1;
                found += usize::from(bodies.take(first).is_some());
            }
        }
        assert!(found * 3 > read, "{found} of {read}");
        assert!(resident(&bodies, &unread) < ROOM / 2);
    }

    #[test]
    fn a_body_larger_than_the_budget_takes_no_other_along() {
        let mut bodies = Bodies::new(100 * (100 + OVERHEAD));
        let small: Vec<_> = (0..50)
            .map(|_| bodies.put_arrived(EntityId(1), body(100), false))
            .collect();
        let large = bodies.put_arrived(EntityId(2), body(1 << 20), false);
        assert!(bodies.is_resident(large), "as long as the step");
        bodies.trim();
        assert_eq!(resident(&bodies, &small), 50);
        assert!(!bodies.is_resident(large));
    }

    #[test]
    fn what_was_read_back_outlasts_what_has_just_arrived() {
        let mut bodies = Bodies::new(10 * (100 + OVERHEAD));
        let arrived: Vec<_> = (0..8)
            .map(|_| bodies.put_arrived(EntityId(1), body(100), false))
            .collect();
        let mut read = Vec::new();
        for count in 0..20 {
            bodies.put_arrived(EntityId(1), body(100), false);
            if count < 5 {
                read.push(bodies.put(EntityId(1), body(100)));
            }
            bodies.trim();
            assert_eq!(resident(&bodies, &read), read.len());
        }
        assert_eq!(resident(&bodies, &arrived), 5);
        assert!(bodies.is_resident(arrived[0]));
    }

    #[test]
    fn a_handle_whose_slot_is_used_again_finds_nothing() {
        let mut bodies = Bodies::new(1 << 20);
        let first = bodies.put(EntityId(1), body(1));
        assert!(bodies.take(first).is_some());
        let second = bodies.put(EntityId(1), body(2));
        assert!(bodies.take(first).is_none());
        assert_eq!(bodies.take(second).unwrap().payload.len(), 2);
        assert!(bodies.take(BodyRef::NONE).is_none());
        assert_eq!(bodies.bytes, 0);
    }

    #[test]
    fn a_small_payload_that_stays_no_longer_shares_its_read_buffer() {
        let buffer = Bytes::from(vec![1; 64 * 1024]);
        let mut bodies = Bodies::new(1 << 20);
        let small = bodies.put_arrived(EntityId(1), Body::received(buffer.slice(10..20)), false);
        let large = bodies.put_arrived(
            EntityId(1),
            Body::received(buffer.slice(0..COPY_LIMIT + 1)),
            false,
        );
        bodies.trim();
        let own = bodies.take(small).unwrap().payload;
        assert_ne!(own.as_ptr(), buffer[10..].as_ptr());
        assert_eq!(own, buffer.slice(10..20));
        assert_eq!(
            bodies.take(large).unwrap().payload.as_ptr(),
            buffer.as_ptr()
        );
    }

    #[test]
    fn copies_that_share_a_payload_cost_little_more_than_one() {
        let mut bodies = Bodies::new(1 << 20);
        let mut shared = Body::received(vec![7; 1_000].into());
        shared.share();
        let copies: Vec<_> = (1..=10)
            .map(|entity| bodies.put_arrived(EntityId(entity), shared.clone(), false))
            .collect();
        bodies.trim();
        assert_eq!(bodies.bytes, 1_000 + 10 * OVERHEAD);
        for copy in &copies[1..] {
            assert!(bodies.take(*copy).is_some());
        }
        assert_eq!(bodies.bytes, 1_000 + OVERHEAD);
        assert_eq!(
            bodies.get(copies[0]).unwrap().payload.as_ptr(),
            shared.payload.as_ptr()
        );
        assert!(bodies.take(copies[0]).is_some());
        let again = bodies.put(EntityId(1), shared);
        assert_eq!(bodies.bytes, 1_000 + OVERHEAD);
        assert!(bodies.take(again).is_some());
        assert_eq!(bodies.bytes, 0);
    }

    #[test]
    fn what_is_about_to_go_on_outlasts_what_waits_for_receivers() {
        const ROOM: usize = 1_000;
        let mut bodies = Bodies::new(ROOM * (100 + OVERHEAD));
        let passing: Vec<_> = (0..ROOM / 4)
            .map(|_| bodies.put_arrived(EntityId(1), body(100), true))
            .collect();
        for _ in 0..10 * ROOM {
            bodies.put_arrived(EntityId(2), body(100), false);
            bodies.trim();
        }
        assert_eq!(resident(&bodies, &passing), passing.len());
        // But it does not fill the memory for good.
        let all: Vec<_> = (0..2 * ROOM)
            .map(|_| bodies.put_arrived(EntityId(1), body(100), true))
            .collect();
        bodies.trim();
        assert!(resident(&bodies, &all) <= ROOM);
    }

    #[test]
    fn taking_one_leaves_the_others() {
        let mut bodies = Bodies::new(1 << 20);
        let refs: Vec<_> = (0..5)
            .map(|len| bodies.put_arrived(EntityId(1), body(len), false))
            .collect();
        for taken in [1, 4, 0] {
            assert_eq!(bodies.take(refs[taken]).unwrap().payload.len(), taken);
        }
        bodies.limit = 0;
        assert_eq!(bodies.take(refs[3]).unwrap().payload.len(), 3);
        bodies.trim();
        assert_eq!(resident(&bodies, &refs), 0);
        assert_eq!((bodies.bytes, bodies.occupied.len()), (0, 0));
        assert!(bodies.newest.is_empty());
    }
}
