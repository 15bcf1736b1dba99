//! Removals: the numbers that one group of write sets removes, in runs of neighbours.
//!
//! A run holds only numbers that were removed one by one by the sets of the group, so deleting the
//! whole range deletes nothing else. A number that is put and then removed in the same group never
//! reaches the disk. One that is removed and then put again, as a message that waited for its next
//! delivery and is back, is not deleted; so removals know where in the group they are.

/// From this many neighbours on, one range deletion is cheaper than one deletion each.
const RANGE_FROM: usize = 4;

/// The place of a write in its group.
pub type Place = u32;

/// One removed number of a scope: a part of an entity, or the home of bodies.
#[derive(Clone, Copy, Debug)]
pub struct Removal<S> {
    pub scope: S,
    pub number: u64,
    /// Where the group removes it for the first time.
    first: Place,
    /// Where it does so for the last time.
    last: Place,
    /// There is nothing to delete, since it was put in this very group, or stands in a row that
    /// goes too.
    pub nothing_there: bool,
    /// It waits in another scope, and will be put again.
    returns: bool,
    /// It was put again in this very group.
    is_back: bool,
}

/// The removed numbers of a group.
#[derive(Debug)]
pub struct Removals<S> {
    removals: Vec<Removal<S>>,
    /// Whether some are put again.
    some_are_back: bool,
    /// What is put again is dropped, in a control of tests.
    drops_returned: bool,
}

/// Neighbouring numbers of one scope, all removed.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a, S> {
    removals: &'a [Removal<S>],
}

impl<S: Copy + Ord> Removals<S> {
    pub fn new() -> Self {
        Self {
            removals: Vec::new(),
            some_are_back: false,
            drops_returned: false,
        }
    }

    pub fn clear(&mut self) {
        self.removals.clear();
        self.some_are_back = false;
    }

    pub fn add(&mut self, scope: S, number: u64, at: Place) {
        self.removals.push(Removal {
            scope,
            number,
            first: at,
            last: at,
            nothing_there: false,
            returns: false,
            is_back: false,
        });
    }

    /// To be called after the last [`add`](Self::add) of a group.
    pub fn seal(&mut self) {
        // Mostly in order already, which makes this one pass.
        self.removals
            .sort_unstable_by_key(|removal| (removal.scope, removal.number, removal.first));
        self.removals.dedup_by(|next, first| {
            let is_same = (next.scope, next.number) == (first.scope, first.number);
            if is_same {
                first.last = next.last;
            }
            is_same
        });
    }

    /// Whether the group removes what it puts at a place; then the put need not be written. If it
    /// was removed before, the removal need not be.
    pub fn cancels(&mut self, scope: S, number: u64, at: Place) -> bool {
        let keeps_returned = !self.drops_returned;
        let Some(removal) = self.find_mut(scope, number) else {
            return false;
        };
        if keeps_returned && removal.last < at {
            removal.is_back = true;
            self.some_are_back = true;
            return false;
        }
        removal.nothing_there |= at < removal.first;
        true
    }

    /// From now on what a group puts again counts as if it were removed afterwards.
    pub fn drop_returned(&mut self) {
        self.drops_returned = true;
    }

    /// What the group puts at a place elsewhere will be put again in this scope.
    pub fn note_return(&mut self, scope: S, number: u64, at: Place) {
        if let Some(removal) = self.find_mut(scope, number) {
            removal.returns |= removal.last < at;
        }
    }

    fn find_mut(&mut self, scope: S, number: u64) -> Option<&mut Removal<S>> {
        // Sends are usually far above what is being settled.
        let last = self.removals.last()?;
        if (scope, number) > (last.scope, last.number) {
            return None;
        }
        let key = |removal: &Removal<S>| (removal.scope, removal.number);
        let found = self.removals.binary_search_by_key(&(scope, number), key);
        Some(&mut self.removals[found.ok()?])
    }

    /// Forgets the removals of what was put again.
    pub fn forget_returned(&mut self) {
        if self.some_are_back {
            self.removals.retain(|removal| !removal.is_back);
        }
    }

    /// All of them, ascending.
    pub fn removals_mut(&mut self) -> impl Iterator<Item = &mut Removal<S>> {
        self.removals.iter_mut()
    }

    /// Whether the group removes it.
    pub fn holds(&self, scope: S, number: u64) -> bool {
        let key = |removal: &Removal<S>| (removal.scope, removal.number);
        let found = self.removals.binary_search_by_key(&(scope, number), key);
        found.is_ok()
    }

    pub fn runs(&self) -> impl Iterator<Item = Run<'_, S>> {
        let neighbours = |one: &Removal<S>, two: &Removal<S>| {
            one.scope == two.scope && one.number.checked_add(1) == Some(two.number)
        };
        self.removals
            .chunk_by(neighbours)
            .map(|removals| Run { removals })
    }
}

impl<S: Copy> Run<'_, S> {
    pub fn scope(&self) -> S {
        self.removals[0].scope
    }

    pub fn first(&self) -> u64 {
        self.removals[0].number
    }

    pub fn last(&self) -> u64 {
        self.removals[self.removals.len() - 1].number
    }

    /// The numbers that have to be deleted.
    pub fn on_disk(&self) -> impl Iterator<Item = u64> {
        self.removals
            .iter()
            .filter(|removal| !removal.nothing_there)
            .map(|removal| removal.number)
    }

    /// Its parts that are removed for good.
    pub fn settled(&self) -> impl Iterator<Item = Self> {
        let parts = self.removals.split(|removal| removal.returns);
        let parts = parts.filter(|removals| !removals.is_empty());
        parts.map(|removals| Run { removals })
    }

    /// Whether one range deletion is the cheaper way.
    pub fn is_range(&self) -> bool {
        self.on_disk().nth(RANGE_FROM - 1).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(numbers: &[(u8, u64)]) -> Removals<u8> {
        let mut removals = Removals::new();
        for (at, (scope, number)) in (100..).zip(numbers) {
            removals.add(*scope, *number, at);
        }
        removals.seal();
        removals
    }

    fn runs(removals: &Removals<u8>) -> Vec<(u8, u64, u64, bool)> {
        let describe = |run: Run<'_, u8>| (run.scope(), run.first(), run.last(), run.is_range());
        removals.runs().map(describe).collect()
    }

    #[test]
    fn neighbours_of_one_scope_make_a_run_whatever_their_order() {
        let removals = sealed(&[(1, 5), (1, 3), (2, 6), (1, 4), (1, 6), (1, 9), (1, 4)]);
        assert_eq!(
            runs(&removals),
            [(1, 3, 6, true), (1, 9, 9, false), (2, 6, 6, false)]
        );
    }

    #[test]
    fn a_gap_ends_a_run_and_the_last_number_has_no_neighbour() {
        let removals = sealed(&[(1, 1), (1, 2), (1, 4), (1, u64::MAX), (2, 0)]);
        let expected = [
            (1, 1, 2, false),
            (1, 4, 4, false),
            (1, u64::MAX, u64::MAX, false),
            (2, 0, 0, false),
        ];
        assert_eq!(runs(&removals), expected);
    }

    #[test]
    fn what_is_put_in_the_same_group_is_not_deleted() {
        let mut removals = sealed(&[(1, 1), (1, 2), (1, 3), (1, 4)]);
        assert!(removals.cancels(1, 2, 7));
        assert!(!removals.cancels(1, 5, 7));
        assert!(!removals.cancels(0, 2, 7));
        assert_eq!(runs(&removals), [(1, 1, 4, false)]);
        assert_eq!(on_disk(&removals), [1, 3, 4]);
    }

    fn on_disk(removals: &Removals<u8>) -> Vec<u64> {
        let on_disk = removals.runs().map(|run| run.on_disk().collect::<Vec<_>>());
        on_disk.flatten().collect()
    }

    #[test]
    fn what_is_put_again_behind_its_removal_is_neither_deleted_nor_in_a_run() {
        let mut removals = sealed(&[(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6)]);
        assert!(!removals.cancels(1, 4, 200));
        removals.forget_returned();
        assert_eq!(runs(&removals), [(1, 1, 3, false), (1, 5, 6, false)]);
        assert_eq!(on_disk(&removals), [1, 2, 3, 5, 6]);
    }

    #[test]
    fn what_is_removed_put_again_and_removed_is_deleted() {
        let mut removals = sealed(&[(1, 1), (1, 1)]);
        assert!(
            removals.cancels(1, 1, 100),
            "between the first removal and the last"
        );
        removals.forget_returned();
        assert_eq!(on_disk(&removals), [1]);
    }

    #[test]
    fn what_waits_elsewhere_is_deleted_and_not_settled() {
        let mut removals = sealed(&[(1, 1), (1, 2), (1, 3), (1, 4), (1, 4)]);
        removals.note_return(1, 2, 200);
        // It came back and was removed once more.
        removals.note_return(1, 4, 103);
        assert_eq!(runs(&removals), [(1, 1, 4, true)]);
        let settled = removals
            .runs()
            .map(|run| run.settled().map(|it| (it.first(), it.last())).collect());
        let settled: Vec<Vec<_>> = settled.collect();
        assert_eq!(settled, [[(1, 1), (3, 4)]]);
    }
}
