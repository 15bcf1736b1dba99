//! Recent: the latest accepted ids, exactly.
//!
//! Whatever was accepted since a send asked for its lookup stays, since the answer may be older
//! than that; beyond this the oldest go.

use std::collections::{HashMap, VecDeque};

use crate::message::id::{Acceptance, IdHash};

#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Never iterated, so the order does not matter.
    ids: HashMap<IdHash, Acceptance>,
    order: VecDeque<(IdHash, Acceptance)>,
    /// How many have gone from the front of `order`.
    gone: u64,
}

impl Recent {
    pub(super) fn get(&self, id: IdHash) -> Option<Acceptance> {
        self.ids.get(&id).copied()
    }

    /// How many were ever accepted here.
    pub(super) fn accepted(&self) -> u64 {
        self.gone + self.order.len() as u64
    }

    /// How many were accepted and have gone.
    pub(super) fn gone(&self) -> u64 {
        self.gone
    }

    pub(super) fn insert(&mut self, id: IdHash, acceptance: Acceptance) {
        self.ids.insert(id, acceptance);
        self.order.push_back((id, acceptance));
    }

    /// Lets the oldest go beyond `kept`, but none that was accepted as the `needed`th or later.
    pub(super) fn trim(&mut self, kept: usize, needed: u64) {
        while self.order.len() > kept
            && self.gone < needed
            && let Some((id, acceptance)) = self.order.pop_front()
        {
            self.gone += 1;
            self.forget(id, acceptance);
        }
    }

    /// Forgets an id, unless it was accepted again since.
    fn forget(&mut self, id: IdHash, acceptance: Acceptance) {
        if self.ids.get(&id) == Some(&acceptance) {
            self.ids.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use store::SequenceNumber;

    use super::*;
    use crate::api::time::Wall;

    fn id(n: u64) -> IdHash {
        IdHash((u128::from(n)).to_be_bytes())
    }

    fn accept(recent: &mut Recent, n: u64, number: u64) {
        let number = SequenceNumber(number);
        recent.insert(
            id(n),
            Acceptance {
                at: Wall(1),
                number,
            },
        );
    }

    #[test]
    fn the_oldest_go_unless_somebody_needs_them() {
        let mut recent = Recent::default();
        (0..13).for_each(|n| accept(&mut recent, n, n));
        recent.trim(10, 1);
        assert_eq!(recent.get(id(0)), None);
        assert!(recent.get(id(1)).is_some(), "it is needed");
        recent.trim(10, u64::MAX);
        assert_eq!(recent.get(id(2)), None);
        assert!(recent.get(id(3)).is_some());
        assert_eq!(recent.accepted(), 13);
    }

    #[test]
    fn an_id_that_was_accepted_again_stays_when_its_first_acceptance_goes() {
        let mut recent = Recent::default();
        accept(&mut recent, 7, 1);
        accept(&mut recent, 7, 2);
        (10..19).for_each(|n| accept(&mut recent, n, n));
        recent.trim(10, u64::MAX);
        let number = recent.get(id(7)).map(|acceptance| acceptance.number);
        assert_eq!(number, Some(SequenceNumber(2)));
    }
}
