//! Unsettled: the deliveries of a session in one direction that wait for settlement. [AMQP 2.6.12]
//!
//! Delivery-ids rise, so a deque ordered by id is a map: the index is guessed from the distance
//! to the front and almost always right. Settled entries stay as gaps until they reach an end or
//! outnumber the live ones, so memory is bounded by what is really unsettled.

use std::collections::VecDeque;
use std::ops::Range;

use crate::serial;
use crate::slab::NONE;

pub(crate) struct Unsettled<T> {
    entries: VecDeque<Entry<T>>,
    live: usize,
}

struct Entry<T> {
    id: u32,
    /// The link's key; `NONE` for a gap.
    link: u32,
    value: T,
    /// A terminal state was received and waits for an answer.
    outcome_seen: bool,
}

impl<T: Copy> Unsettled<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            live: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// The link of each delivery.
    pub(crate) fn links(&self) -> impl Iterator<Item = u32> {
        let links = self.entries.iter().map(|entry| entry.link);
        links.filter(|link| *link != NONE)
    }

    /// The id and the link of each delivery.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (u32, u32)> {
        let entries = self.entries.iter().filter(|entry| entry.link != NONE);
        entries.map(|entry| (entry.id, entry.link))
    }

    /// Whether `id` may be pushed: it comes after all others, and not half the circle after the
    /// first.
    pub(crate) fn accepts(&self, id: u32) -> bool {
        let (Some(front), Some(back)) = (self.entries.front(), self.entries.back()) else {
            return true;
        };
        let after_back = serial::distance(back.id, id).is_some_and(|steps| steps > 0);
        after_back && serial::distance(front.id, id).is_some()
    }

    /// Adds a delivery; `accepts` must have said yes.
    pub(crate) fn push(&mut self, id: u32, link: u32, value: T) {
        debug_assert!(self.accepts(id), "delivery-ids rise");
        self.entries.push_back(Entry {
            id,
            link,
            value,
            outcome_seen: false,
        });
        self.live += 1;
    }

    pub(crate) fn get(&self, id: u32) -> Option<(u32, T)> {
        let entry = &self.entries[self.position(id)?];
        Some((entry.link, entry.value))
    }

    /// The newest delivery of a link that has this value.
    pub(crate) fn find(&self, link: u32, value: T) -> Option<u32>
    where
        T: PartialEq,
    {
        let mut entries = self.entries.iter().rev();
        let entry = entries.find(|entry| entry.link == link && entry.value == value);
        entry.map(|entry| entry.id)
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<(u32, T)> {
        let index = self.position(id)?;
        let removed = self.take(index);
        self.tidy();
        removed
    }

    /// At most how many deliveries there are from `first` to `last`.
    pub(crate) fn count(&self, first: u32, last: u32) -> usize {
        self.range(first, last).len()
    }

    /// How many deliveries there are from `first` to `last`.
    pub(crate) fn count_unsettled(&self, first: u32, last: u32) -> usize {
        let entries = self.entries.range(self.range(first, last));
        entries.filter(|entry| entry.link != NONE).count()
    }

    /// The last received state is answered without settling: another may come.
    pub(crate) fn expect_another(&mut self, id: u32) {
        if let Some(index) = self.position(id) {
            self.entries[index].outcome_seen = false;
        }
    }

    /// Calls `visit` with the id, link and value of each delivery from `first` to `last`, and
    /// removes them if `settled`. Otherwise each is visited only once until
    /// [`expect_another`](Self::expect_another), if `once`: one outcome has one answer, however
    /// often it is received. Costs no more than there are entries, however wide the range.
    pub(crate) fn visit(
        &mut self,
        first: u32,
        last: u32,
        settled: bool,
        once: bool,
        mut visit: impl FnMut(u32, u32, T),
    ) {
        for index in self.range(first, last) {
            let Entry {
                id,
                link,
                value,
                outcome_seen,
            } = self.entries[index];
            if link == NONE || (once && outcome_seen && !settled) {
                continue;
            }
            self.entries[index].outcome_seen |= once;
            visit(id, link, value);
            if settled {
                self.take(index);
            }
        }
        self.tidy();
    }

    /// Forgets all deliveries of `link` and returns their values in order.
    pub(crate) fn remove_link(&mut self, link: u32) -> Vec<T> {
        let mut removed = Vec::new();
        for index in 0..self.entries.len() {
            if self.entries[index].link == link {
                removed.push(self.entries[index].value);
                self.take(index);
            }
        }
        self.tidy();
        removed
    }

    fn take(&mut self, index: usize) -> Option<(u32, T)> {
        let entry = &mut self.entries[index];
        if entry.link == NONE {
            return None;
        }
        let link = std::mem::replace(&mut entry.link, NONE);
        self.live -= 1;
        Some((link, entry.value))
    }

    #[inline]
    fn position(&self, id: u32) -> Option<usize> {
        let index = self.lower_bound(id);
        let entry = self.entries.get(index)?;
        (entry.id == id && entry.link != NONE).then_some(index)
    }

    /// The index of the first entry that does not come before `id`.
    #[inline]
    fn lower_bound(&self, id: u32) -> usize {
        let Some(front) = self.entries.front() else {
            return 0;
        };
        let start = front.id;
        let Some(steps) = serial::distance(start, id) else {
            return 0;
        };
        match self.entries.get(steps as usize) {
            Some(entry) if entry.id == id => steps as usize,
            _ => self
                .entries
                .partition_point(|entry| entry.id.wrapping_sub(start) < steps),
        }
    }

    /// The entries from `first` to `last`, which is at most half the circle further.
    fn range(&self, first: u32, last: u32) -> Range<usize> {
        let Some(start) = self.entries.front().map(|front| front.id) else {
            return 0..0;
        };
        // How far the last one lies behind the front; both may be more than half the circle away.
        let width = u64::from(last.wrapping_sub(first));
        let (from, steps) = match (
            serial::distance(start, first),
            serial::distance(first, start),
        ) {
            (Some(steps), _) => (self.lower_bound(first), Some(u64::from(steps) + width)),
            (None, Some(before)) => (0, width.checked_sub(before.into())),
            (None, None) => (0, None),
        };
        let Some(steps) = steps else {
            return 0..0;
        };
        let until = match usize::try_from(steps)
            .ok()
            .map(|index| (index, self.entries.get(index)))
        {
            Some((index, Some(entry))) if u64::from(entry.id.wrapping_sub(start)) == steps => {
                index + 1
            }
            _ => self
                .entries
                .partition_point(|entry| u64::from(entry.id.wrapping_sub(start)) <= steps),
        };
        from..until
    }

    /// Drops gaps from both ends, and all of them when they are the larger part.
    fn tidy(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.link == NONE) {
            self.entries.pop_front();
        }
        while self.entries.back().is_some_and(|entry| entry.link == NONE) {
            self.entries.pop_back();
        }
        if self.entries.len() > 64 && self.entries.len() / 2 > self.live {
            self.entries.retain(|entry| entry.link != NONE);
        }
        // A burst must not keep its memory for ever.
        if self.entries.capacity() > 1024 && self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to(self.entries.capacity() / 4);
        }
    }
}

impl<T: Copy> Copy for Entry<T> {}

impl<T: Copy> Clone for Entry<T> {
    fn clone(&self) -> Self {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(first: u32, count: u32) -> Unsettled<u32> {
        let mut unsettled = Unsettled::new();
        for step in 0..count {
            let id = first.wrapping_add(step);
            unsettled.push(id, id % 2, id);
        }
        unsettled
    }

    fn visited(unsettled: &mut Unsettled<u32>, first: u32, last: u32) -> Vec<u32> {
        let mut ids = Vec::new();
        unsettled.visit(first, last, true, false, |id, _, _| ids.push(id));
        ids
    }

    #[test]
    fn ids_are_found_across_the_wrap() {
        let mut unsettled = filled(u32::MAX - 1, 4);
        assert_eq!(unsettled.get(1), Some((1, 1)));
        assert_eq!(visited(&mut unsettled, u32::MAX, 0), [u32::MAX, 0]);
        assert_eq!(unsettled.len(), 2);
        assert_eq!(unsettled.get(0), None);
    }

    #[test]
    fn a_range_half_the_circle_wide_visits_only_what_is_there() {
        let mut unsettled = filled(10, 3);
        assert_eq!(visited(&mut unsettled, 11, 11 + (1 << 31) - 1), [11, 12]);
        let mut unsettled = filled(10, 3);
        let half_before = 10_u32.wrapping_sub((1 << 31) - 1);
        assert_eq!(visited(&mut unsettled, half_before, 10), [10]);
        assert_eq!(visited(&mut unsettled, 5, 5 + (1 << 31) - 1), [11, 12]);
    }

    #[test]
    fn a_range_before_the_first_visits_nothing() {
        let mut unsettled = filled(10, 3);
        assert_eq!(visited(&mut unsettled, 3, 9), [0; 0]);
        assert_eq!(visited(&mut unsettled, 13, 20), [0; 0]);
        assert_eq!(unsettled.len(), 3);
    }

    #[test]
    fn gaps_in_the_ids_are_searched() {
        let mut unsettled = Unsettled::new();
        for id in [5, 9, 100] {
            unsettled.push(id, 0, id);
        }
        assert_eq!(unsettled.get(9), Some((0, 9)));
        assert_eq!(unsettled.get(10), None);
        assert_eq!(unsettled.remove(100), Some((0, 100)));
        assert_eq!(unsettled.remove(100), None);
    }

    #[test]
    fn one_old_delivery_does_not_keep_the_settled_ones_in_memory() {
        let mut unsettled = Unsettled::new();
        for id in 0..100_000_u32 {
            unsettled.push(id, 0, id);
            if id > 0 {
                unsettled.remove(id);
            }
        }
        unsettled.push(100_000, 0, 7);
        assert_eq!(unsettled.len(), 2);
        assert!(unsettled.entries.len() <= 64);
        assert_eq!(unsettled.get(100_000), Some((0, 7)));
    }

    #[test]
    fn a_delivery_is_found_by_its_value_until_it_is_settled() {
        let mut unsettled = filled(7, 3);
        assert_eq!(unsettled.find(0, 8), Some(8));
        assert_eq!(unsettled.find(1, 8), None);
        unsettled.remove(8);
        assert_eq!(unsettled.find(0, 8), None);
    }

    #[test]
    fn a_link_takes_its_deliveries_along() {
        let mut unsettled = filled(0, 6);
        assert_eq!(unsettled.remove_link(1), [1, 3, 5]);
        assert_eq!(unsettled.len(), 3);
        assert_eq!(unsettled.get(4), Some((0, 4)));
    }

    #[test]
    fn an_id_that_repeats_or_goes_back_is_not_accepted() {
        let unsettled = filled(u32::MAX, 2);
        assert!(unsettled.accepts(1));
        assert!(!unsettled.accepts(0));
        assert!(!unsettled.accepts(u32::MAX - 3));
        assert!(!unsettled.accepts(u32::MAX.wrapping_add(1 << 31)));
    }
}
