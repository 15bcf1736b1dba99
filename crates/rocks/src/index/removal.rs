//! Removals: the numbers that one group of write sets removes, in runs of neighbours.
//!
//! A run holds only numbers that were removed one by one by the sets of the group, so deleting the
//! whole range deletes nothing else. A number that is put and removed in the same group never
//! reaches the disk.

/// From this many neighbours on, one range deletion is cheaper than one deletion each.
const RANGE_FROM: usize = 4;

/// One removed number of a scope: a part of an entity, or the home of bodies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removal<S> {
    pub scope: S,
    pub number: u64,
    /// There is nothing to delete, since it was put in this very group, or stands in a row that
    /// goes too.
    pub nothing_there: bool,
}

/// The removed numbers of a group.
#[derive(Debug)]
pub(crate) struct Removals<S> {
    removals: Vec<Removal<S>>,
}

/// Neighbouring numbers of one scope, all removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a, S> {
    removals: &'a [Removal<S>],
}

impl<S: Copy + Ord> Removals<S> {
    pub fn new() -> Self {
        Self {
            removals: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        self.removals.clear();
    }

    pub fn add(&mut self, scope: S, number: u64) {
        self.removals.push(Removal {
            scope,
            number,
            nothing_there: false,
        });
    }

    /// To be called after the last [`add`](Self::add) of a group.
    pub fn seal(&mut self) {
        // Mostly in order already, which makes this one pass.
        self.removals
            .sort_unstable_by_key(|removal| (removal.scope, removal.number));
        self.removals
            .dedup_by_key(|removal| (removal.scope, removal.number));
    }

    /// Whether the group removes what it is about to put; then neither needs to be written.
    pub fn cancels(&mut self, scope: S, number: u64) -> bool {
        // Sends are usually far above what is being settled.
        match self.removals.last() {
            Some(last) if (scope, number) <= (last.scope, last.number) => {}
            _ => return false,
        }
        let key = |removal: &Removal<S>| (removal.scope, removal.number);
        match self.removals.binary_search_by_key(&(scope, number), key) {
            Ok(index) => {
                self.removals[index].nothing_there = true;
                true
            }
            Err(_) => false,
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
        for (scope, number) in numbers {
            removals.add(*scope, *number);
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
        assert!(removals.cancels(1, 2));
        assert!(!removals.cancels(1, 5));
        assert!(!removals.cancels(0, 2));
        assert_eq!(runs(&removals), [(1, 1, 4, false)]);
        let on_disk: Vec<_> = removals
            .runs()
            .flat_map(|run| run.on_disk().collect::<Vec<_>>())
            .collect();
        assert_eq!(on_disk, [1, 3, 4]);
    }
}
