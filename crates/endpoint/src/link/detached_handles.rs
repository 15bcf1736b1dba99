//! Detached handles: handles whose link was detached just before; one more detach of each is
//! ignored.
//!
//! Some clients (fe2o3-amqp 0.18 after a refused attach) answer our detach twice. The standard
//! lets a session end for a handle without a link [AMQP 2.8.17], but that would end all its other
//! links for a frame that asks for nothing. Only the last few handles are remembered, and none
//! that has a link again.

use std::collections::VecDeque;

/// Handles that are remembered.
const MAX: usize = 16;

#[derive(Default)]
pub(crate) struct DetachedHandles(VecDeque<u32>);

impl DetachedHandles {
    /// The peer has answered our detach of the link on `handle`.
    pub(crate) fn insert(&mut self, handle: u32) {
        self.remove(handle);
        if self.0.len() >= MAX {
            self.0.pop_front();
        }
        self.0.push_back(handle);
    }

    /// Forgets `handle`; true if a detach of it may pass.
    pub(crate) fn remove(&mut self, handle: u32) -> bool {
        let position = self.0.iter().position(|&detached| detached == handle);
        position.is_some_and(|position| self.0.remove(position).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_handles_are_remembered() {
        let mut detached_handles = DetachedHandles::default();
        for handle in 0..100 {
            detached_handles.insert(handle);
            detached_handles.insert(handle);
        }
        assert_eq!(detached_handles.0.len(), MAX);
        assert!(!detached_handles.remove(83));
        assert!(detached_handles.remove(84));
        assert!(!detached_handles.remove(84));
    }
}
