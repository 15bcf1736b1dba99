//! Handles: maps a small number on the wire to its link or session. [AMQP 2.6.2]
//!
//! Used for handles in both directions and for channels. Bounded by the largest number allowed.

use crate::slab::NONE;

pub(crate) struct Handles {
    keys: Vec<u32>,
}

impl Handles {
    pub(crate) fn new() -> Self {
        Self { keys: Vec::new() }
    }

    #[inline]
    pub(crate) fn get(&self, handle: u32) -> Option<u32> {
        self.keys
            .get(handle as usize)
            .copied()
            .filter(|&key| key != NONE)
    }

    /// Binds `handle`, which the caller has checked against the largest allowed.
    pub(crate) fn bind(&mut self, handle: u32, key: u32) {
        let index = handle as usize;
        if self.keys.len() <= index {
            self.keys.resize(index + 1, NONE);
        }
        self.keys[index] = key;
    }

    /// Binds the lowest free handle up to `max`.
    pub(crate) fn bind_free(&mut self, max: u32, key: u32) -> Option<u32> {
        let free = self.keys.iter().position(|&key| key == NONE);
        let handle = u32::try_from(free.unwrap_or(self.keys.len())).ok()?;
        if handle > max {
            return None;
        }
        self.bind(handle, key);
        Some(handle)
    }

    pub(crate) fn release(&mut self, handle: u32) {
        if let Some(key) = self.keys.get_mut(handle as usize) {
            *key = NONE;
        }
        while self.keys.last() == Some(&NONE) {
            self.keys.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_handle_is_taken() {
        let mut handles = Handles::new();
        assert_eq!(handles.bind_free(9, 10), Some(0));
        assert_eq!(handles.bind_free(9, 11), Some(1));
        handles.release(0);
        assert_eq!(handles.bind_free(9, 12), Some(0));
        assert_eq!(handles.get(0), Some(12));
        assert_eq!(handles.get(2), None);
    }

    #[test]
    fn no_handle_is_taken_above_the_largest() {
        let mut handles = Handles::new();
        assert_eq!(handles.bind_free(0, 1), Some(0));
        assert_eq!(handles.bind_free(0, 2), None);
    }
}
