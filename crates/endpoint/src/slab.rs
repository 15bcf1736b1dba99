//! Slab: sessions and links by a key that is an index, so that finding one costs nothing.
//!
//! A key is a slot number below and the slot's generation above. A slot whose generations are
//! used up is retired, so a key is never given out twice.

const SLOT_BITS: u32 = 20;
const SLOTS: u32 = 1 << SLOT_BITS;
const GENERATIONS: u32 = 1 << (32 - SLOT_BITS);

/// No key: the slot of a handle or channel that is free.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    live: usize,
}

struct Slot<T> {
    generation: u32,
    value: Option<Box<T>>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            live: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Stores what `make` makes of its key; `None` when all keys are in use.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u32) -> T) -> Option<u32> {
        let slot = self.free_slot()?;
        let entry = self.slots.get_mut(slot as usize)?;
        let key = slot | (entry.generation << SLOT_BITS);
        entry.value = Some(Box::new(make(key)));
        self.live += 1;
        Some(key)
    }

    /// The keys in use.
    pub(crate) fn keys(&self) -> impl Iterator<Item = u32> {
        let used = (0..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.value.is_some());
        used.map(|(index, slot): (u32, _)| index | (slot.generation << SLOT_BITS))
    }

    fn free_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        // The last slot stays unused, so that no key equals `NONE`.
        if slot >= SLOTS - 1 {
            return None;
        }
        self.slots.push(Slot {
            generation: 0,
            value: None,
        });
        Some(slot)
    }

    #[inline]
    pub(crate) fn get(&self, key: u32) -> Option<&T> {
        let slot = self.slots.get((key % SLOTS) as usize)?;
        (slot.generation == key >> SLOT_BITS)
            .then_some(slot.value.as_deref())
            .flatten()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut((key % SLOTS) as usize)?;
        if slot.generation != key >> SLOT_BITS {
            return None;
        }
        slot.value.as_deref_mut()
    }

    pub(crate) fn remove(&mut self, key: u32) -> Option<Box<T>> {
        let index = key % SLOTS;
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != key >> SLOT_BITS {
            return None;
        }
        let value = slot.value.take()?;
        self.live -= 1;
        slot.generation += 1;
        if slot.generation < GENERATIONS {
            self.free.push(index);
        }
        Some(value)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_value_until_it_is_removed() {
        let mut slab = Slab::new();
        let key = slab.insert(|key| key).expect("there is room");
        assert_eq!(slab.get(key), Some(&key));
        assert!(slab.remove(key).is_some());
        assert_eq!(slab.get(key), None);
        assert_eq!(slab.get_mut(key), None);
        assert!(slab.remove(key).is_none());
    }

    #[test]
    fn keys_are_never_given_out_twice() {
        let mut slab = Slab::new();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..3 * GENERATIONS {
            let key = slab.insert(|_| ()).expect("there is room");
            assert!(seen.insert(key), "key {key} came twice");
            slab.remove(key);
        }
        assert!(slab.slots.len() <= 4);
    }
}
