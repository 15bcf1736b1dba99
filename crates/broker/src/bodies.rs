//! Bodies: the messages that are in memory, within a budget for the whole broker.
//!
//! A ring of the recently arrived: when the budget is passed, the oldest go; they can be read
//! from the store again. Handles survive that: a handle whose body has gone resolves to nothing.
//! Nothing goes before [`Bodies::trim`], so what a step brings in is there for all of that step.

use std::sync::Arc;

use bytes::Bytes;

use crate::patch::Patch;
use crate::topic::Distribution;

/// Smaller payloads get their own allocation when they stay: a slice would pin the whole buffer
/// that the socket was read into. (Architecture: a slice pins its buffer)
const COPY_LIMIT: usize = 4 * 1024;
/// What a resident body costs besides its bytes.
const OVERHEAD: usize = 128;
const NIL: u32 = u32::MAX;

/// A message's payload and the properties changed since it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub payload: Bytes,
    pub patch: Option<Box<Patch>>,
    /// What its topic's rules made of it when it was sent.
    pub distribution: Option<Arc<Distribution>>,
}

impl Body {
    pub(crate) fn new(payload: Bytes, patch: Option<Box<Patch>>) -> Self {
        Self {
            payload,
            patch,
            distribution: None,
        }
    }
}

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
    older: u32,
    newer: u32,
    body: Option<Body>,
}

/// The ring. Slots are linked from the oldest to the newest; vacant ones are listed in `vacant`.
#[derive(Debug)]
pub(crate) struct Bodies {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    oldest: u32,
    newest: u32,
    bytes: usize,
    limit: usize,
    /// Came in during this step and still share a read buffer.
    fresh: Vec<BodyRef>,
}

impl Bodies {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            oldest: NIL,
            newest: NIL,
            bytes: 0,
            limit,
            fresh: Vec::new(),
        }
    }

    /// Takes in a body as received: its payload is copied if it is small and outlives the step.
    pub(crate) fn put_received(&mut self, body: Body) -> BodyRef {
        let small = body.payload.len() <= COPY_LIMIT;
        let body = self.put(body);
        if small {
            self.fresh.push(body);
        }
        body
    }

    /// Takes in a body that has its own allocation.
    pub(crate) fn put(&mut self, body: Body) -> BodyRef {
        self.bytes += cost(&body);
        let slot = self.vacant.pop().unwrap_or_else(|| self.add_slot());
        let place = &mut self.slots[slot as usize];
        place.body = Some(body);
        place.older = self.newest;
        place.newer = NIL;
        let generation = place.generation;
        match self.newest {
            NIL => self.oldest = slot,
            newest => self.slots[newest as usize].newer = slot,
        }
        self.newest = slot;
        BodyRef { slot, generation }
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
        while self.bytes > self.limit && self.oldest != NIL {
            drop(self.vacate(self.oldest));
        }
        for index in 0..self.fresh.len() {
            if let Some(slot) = self.slot_of(self.fresh[index])
                && let Some(body) = &mut self.slots[slot as usize].body
            {
                body.payload = Bytes::copy_from_slice(&body.payload);
            }
        }
        self.fresh.clear();
    }

    fn add_slot(&mut self) -> u32 {
        let slot = u32::try_from(self.slots.len()).expect("the byte budget bounds the slots");
        self.slots.push(Slot {
            generation: 0,
            older: NIL,
            newer: NIL,
            body: None,
        });
        slot
    }

    fn slot_of(&self, body: BodyRef) -> Option<u32> {
        let slot = self.slots.get(body.slot as usize)?;
        let current = slot.generation == body.generation && slot.body.is_some();
        current.then_some(body.slot)
    }

    /// Empties an occupied slot.
    fn vacate(&mut self, slot: u32) -> Body {
        let place = &mut self.slots[slot as usize];
        let body = place.body.take().expect("only occupied slots are linked");
        place.generation = place.generation.wrapping_add(1);
        let (older, newer) = (place.older, place.newer);
        match older {
            NIL => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NIL => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        self.vacant.push(slot);
        self.bytes -= cost(&body);
        body
    }
}

fn cost(body: &Body) -> usize {
    let patch = body.patch.as_ref().map_or(0, |patch| patch.bytes());
    let distribution = body.distribution.as_ref().map_or(0, |it| it.bytes());
    body.payload.len() + patch + distribution + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(len: usize) -> Body {
        Body::new(vec![7; len].into(), None)
    }

    #[test]
    fn the_oldest_go_first_when_the_budget_is_passed() {
        let mut bodies = Bodies::new(2 * (100 + OVERHEAD));
        let refs: Vec<_> = (0..3).map(|_| bodies.put(body(100))).collect();
        assert!(bodies.is_resident(refs[0]));
        bodies.trim();
        let resident: Vec<_> = refs.iter().map(|&r| bodies.is_resident(r)).collect();
        assert_eq!(resident, [false, true, true]);
    }

    #[test]
    fn a_handle_whose_slot_is_used_again_finds_nothing() {
        let mut bodies = Bodies::new(1 << 20);
        let first = bodies.put(body(1));
        assert!(bodies.take(first).is_some());
        let second = bodies.put(body(2));
        assert!(bodies.take(first).is_none());
        assert_eq!(bodies.take(second).unwrap().payload.len(), 2);
        assert!(bodies.take(BodyRef::NONE).is_none());
        assert_eq!(bodies.bytes, 0);
    }

    #[test]
    fn a_small_payload_that_stays_no_longer_shares_its_read_buffer() {
        let buffer = Bytes::from(vec![1; 64 * 1024]);
        let mut bodies = Bodies::new(1 << 20);
        let received = |payload| Body::new(payload, None);
        let small = bodies.put_received(received(buffer.slice(10..20)));
        let large = bodies.put_received(received(buffer.slice(0..COPY_LIMIT + 1)));
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
    fn taking_from_the_middle_keeps_the_order_of_the_rest() {
        let mut bodies = Bodies::new(100 + OVERHEAD);
        let refs: Vec<_> = (0..3).map(|_| bodies.put(body(100))).collect();
        assert!(bodies.take(refs[1]).is_some());
        bodies.trim();
        assert!(!bodies.is_resident(refs[0]));
        assert!(bodies.is_resident(refs[2]));
    }
}
