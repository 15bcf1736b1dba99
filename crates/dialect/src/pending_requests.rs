//! Pending requests: the requests of a connection to the broker that have no answer yet.
//!
//! They are kept in a slab, so once it has grown to the usual number of open requests, neither a
//! request nor an answer allocates. A token holds the slot and its generation, so a second answer
//! to a request finds nothing. Every open request has a cost in bytes; the owner bounds their sum.

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    cost: usize,
    request: Option<T>,
}

/// Open requests by token.
#[derive(Debug)]
pub struct PendingRequests<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    cost: usize,
}

impl<T> Default for PendingRequests<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            cost: 0,
        }
    }
}

impl<T> PendingRequests<T> {
    /// Adds `request`, which occupies `cost` bytes, and returns its token.
    pub fn insert(&mut self, request: T, cost: usize) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        let slot = &mut self.slots[index as usize];
        slot.request = Some(request);
        slot.cost = cost;
        self.cost = self.cost.saturating_add(cost);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// Removes and returns the request that `token` names.
    pub fn remove(&mut self, token: u64) -> Option<T> {
        let index = (token & u64::from(u32::MAX)) as u32;
        let slot = self.slots.get_mut(index as usize)?;
        if u64::from(slot.generation) != token >> 32 {
            return None;
        }
        let request = slot.request.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.cost = self.cost.saturating_sub(slot.cost);
        self.free.push(index);
        Some(request)
    }

    /// The requests that are open.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.request.as_ref())
    }

    /// Bytes that all open requests occupy.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.cost
    }

    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.slots.len()).expect("2^32 questions do not fit in memory");
        self.slots.push(Slot {
            generation: 0,
            cost: 0,
            request: None,
        });
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_finds_its_request_once() {
        let mut pending = PendingRequests::default();
        let token = pending.insert(7, 10);
        assert_eq!(pending.cost(), 10);
        assert_eq!(pending.remove(token), Some(7));
        assert!(pending.remove(token).is_none());
        assert_eq!(pending.cost(), 0);
    }

    #[test]
    fn a_reused_slot_does_not_answer_to_its_old_token() {
        let mut pending = PendingRequests::default();
        let old = pending.insert(1, 1);
        pending.remove(old);
        let new = pending.insert(2, 1);
        assert_ne!(old, new);
        assert!(pending.remove(old).is_none());
        assert!(pending.remove(new).is_some());
    }
}
