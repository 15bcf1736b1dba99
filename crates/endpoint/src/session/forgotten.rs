//! Forgotten: deliveries that a detach without close would leave in their session, had it the room.
//! (docs/spec/amqp.md#3.8)
//!
//! Only the first and the last of a session's are remembered, so others between them count too once
//! they are settled: a peer that disposes of such a one again has meant a forgotten one for all
//! that is known here.

use crate::serial;
use crate::session::unsettled::Unsettled;

/// The deliveries that a session has forgotten.
#[derive(Default)]
pub(crate) struct Forgotten(Option<(u32, u32)>);

impl Forgotten {
    /// Adds deliveries in the order of their ids.
    pub(crate) fn add(&mut self, ids: impl Iterator<Item = u32>) {
        for id in ids {
            let (mut first, mut last) = self.0.unwrap_or((id, id));
            if serial::distance(first, id).is_none() {
                first = id;
            }
            if serial::distance(id, last).is_none() {
                last = id;
            }
            self.0 = Some((first, last));
        }
    }

    /// Whether the range from `first` to `last` has one of them, as far as that is known.
    pub(crate) fn is_in<T: Copy>(&self, first: u32, last: u32, known: &Unsettled<T>) -> bool {
        let Some((from, until)) = self.0 else {
            return false;
        };
        let from = serial::distance(first, from).map_or(first, |_| from);
        let until = serial::distance(last, until).map_or(until, |_| last);
        serial::distance(from, until).is_some_and(|steps| {
            let known = u64::try_from(known.count_unsettled(from, until));
            known.is_ok_and(|known| known <= u64::from(steps))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_one_if_it_meets_them_with_an_id_that_is_not_known() {
        let mut forgotten = Forgotten::default();
        let mut known = Unsettled::new();
        assert!(!forgotten.is_in(0, 9, &known));
        forgotten.add([u32::MAX - 1, u32::MAX, 3].into_iter());
        known.push(0, 7, ());
        for (first, last, expected) in [
            (u32::MAX - 9, u32::MAX - 2, false),
            (u32::MAX - 9, u32::MAX - 1, true),
            (0, 0, false),
            (0, 1, true),
            (3, 9, true),
            (4, 9, false),
            (u32::MAX - 9, 9, true),
        ] {
            let is_in = forgotten.is_in(first, last, &known);
            assert_eq!(is_in, expected, "{first} to {last}");
        }
    }

    #[test]
    fn an_older_one_comes_before_those_that_are_there() {
        let mut forgotten = Forgotten::default();
        forgotten.add([5, 6].into_iter());
        forgotten.add([2, 9].into_iter());
        let known = Unsettled::<()>::new();
        assert!(forgotten.is_in(2, 2, &known) && forgotten.is_in(9, 9, &known));
        assert!(!forgotten.is_in(1, 1, &known) && !forgotten.is_in(10, 10, &known));
    }
}
