//! Shares: payloads that several bodies in memory have in common, each of which counts once.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::{Body, Memory};

/// How many bodies share a payload, by where it lies. Nothing else lies there as long as one of
/// them is in memory.
#[derive(Debug, Default)]
pub(super) struct Shares(FxHashMap<usize, usize>);

impl Shares {
    /// What is added to what all take when a body comes that takes `cost` bytes alone.
    pub fn adds(&mut self, body: &Body, cost: usize) -> usize {
        let Some(place) = place_of(body) else {
            return cost;
        };
        let count = self.0.entry(place).or_default();
        *count += 1;
        if *count == 1 {
            cost
        } else {
            cost - body.payload.len()
        }
    }

    /// What is freed of what all take when it goes.
    pub fn frees(&mut self, body: &Body, cost: usize) -> usize {
        let Some(place) = place_of(body) else {
            return cost;
        };
        let Entry::Occupied(mut count) = self.0.entry(place) else {
            unreachable!("a body that goes has been counted");
        };
        if *count.get() > 1 {
            *count.get_mut() -= 1;
            return cost - body.payload.len();
        }
        count.remove();
        cost
    }
}

/// Where the payload lies of a body that may share it.
fn place_of(body: &Body) -> Option<usize> {
    (body.memory == Memory::Shared).then(|| body.payload.as_ptr() as usize)
}
