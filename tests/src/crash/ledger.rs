//! Ledger: where each message of a kind may be, by what its client was told.
//!
//! A request without an answer adds the places that it may have moved the message to; its answer
//! leaves one. A count compares the ledger with all that is there, and decides what was open.
//! While a window is open the ledger also collects each place that was possible in it: a backup
//! that is made in the window has the message in one of these.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::book::is_large;

/// Where messages may be; `None` is nowhere. A message that is nowhere for certain is not listed.
type Places<P> = BTreeMap<u64, Vec<Option<P>>>;

#[derive(Debug)]
pub(super) struct Ledger<P> {
    places: Places<P>,
    window: Option<Places<P>>,
    next: u64,
}

impl<P: Copy + Debug + Eq> Ledger<P> {
    /// Of a kind whose numbers are those of no other kind.
    pub fn new(kind: u64) -> Self {
        Self {
            places: BTreeMap::new(),
            window: None,
            next: kind << 32,
        }
    }

    /// A number that was never used, and whose body is not a large one.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        if is_large(self.next) {
            self.next += 1;
        }
        self.next
    }

    /// A message is about to be sent to one of `places`.
    pub fn send(&mut self, number: u64, places: &[P]) {
        self.places.insert(number, vec![None]);
        places
            .iter()
            .for_each(|place| self.begin(number, Some(*place)));
    }

    /// From now on the message may be at `place` too.
    pub fn begin(&mut self, number: u64, place: Option<P>) {
        let known = self.places.entry(number).or_default();
        if !known.contains(&place) {
            known.push(place);
        }
        let now = known.clone();
        if let Some(window) = &mut self.window {
            add(window.entry(number).or_insert_with(|| vec![None]), &now);
        }
    }

    /// An answer tells that the message is at one of `places`.
    pub fn end(&mut self, number: u64, places: &[Option<P>]) {
        if places == [None] {
            self.places.remove(&number);
        } else {
            self.places.insert(number, places.to_vec());
        }
    }

    /// Whether the message may be at `place`.
    pub fn allows(&self, number: u64, place: P) -> bool {
        let places = self.places.get(&number);
        places.is_some_and(|places| places.contains(&Some(place)))
    }

    /// Where the message is, if that is certain.
    pub fn place(&self, number: u64) -> Option<P> {
        match self.places.get(&number).map(Vec::as_slice) {
            Some([place]) => *place,
            _ => None,
        }
    }

    /// The messages that are at `place` for certain.
    pub fn at(&self, place: P) -> Vec<u64> {
        let places = self.places.iter();
        places
            .filter(|(_, places)| **places == [Some(place)])
            .map(|(number, _)| *number)
            .collect()
    }

    /// How many messages may be there.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Checks that a message may be delivered from `place`.
    pub fn expect(&self, number: u64, place: P) -> Result<(), String> {
        match self.allows(number, place) {
            true => Ok(()),
            false => Err(format!(
                "message {number} is delivered from {place:?}; it may be {}",
                self.known(number)
            )),
        }
    }

    fn known(&self, number: u64) -> String {
        match self.places.get(&number) {
            Some(places) => format!("{places:?}"),
            None => "nowhere: it was settled, lost or never sent".to_owned(),
        }
    }

    /// Compares with the places of all that is there, no request being under way.
    pub fn count(&mut self, found: &[(u64, P)]) -> Result<(), String> {
        let mut counted = BTreeMap::new();
        for (number, place) in found {
            if !self.allows(*number, *place) {
                let known = self.known(*number);
                return Err(format!("message {number} is {place:?}; it may be {known}"));
            }
            if let Some(other) = counted.insert(*number, vec![Some(*place)]) {
                return Err(format!(
                    "message {number} is there twice: {place:?}, {other:?}"
                ));
            }
        }
        let is_missing = |(number, places): &(&u64, &Vec<Option<P>>)| {
            !places.contains(&None) && !counted.contains_key(number)
        };
        let mut missing = self.places.iter().filter(is_missing);
        if let Some((number, places)) = missing.next() {
            let more = missing.count();
            return Err(format!(
                "message {number} is missing and has to be {places:?}, and {more} more"
            ));
        }
        self.places = counted;
        Ok(())
    }

    /// Begins to collect places.
    pub fn open_window(&mut self) {
        self.window = Some(self.places.clone());
    }

    /// What was possible in the window, as a ledger of its own.
    pub fn close_window(&mut self) -> Self {
        Self {
            places: self.window.take().unwrap_or_default(),
            window: None,
            next: self.next,
        }
    }
}

fn add<P: Copy + Eq>(places: &mut Vec<Option<P>>, more: &[Option<P>]) {
    for place in more {
        if !places.contains(place) {
            places.push(*place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    enum Place {
        Here,
        There,
    }
    use Place::{Here, There};

    /// Message 1 is here, 2 may be on its way from here to there, 3 may have been stored.
    fn ledger() -> Ledger<Place> {
        let mut ledger = Ledger::new(0);
        for number in 1..=3 {
            assert_eq!(ledger.number(), number);
            ledger.send(number, &[Here]);
        }
        ledger.end(1, &[Some(Here)]);
        ledger.end(2, &[Some(Here)]);
        ledger.begin(2, Some(There));
        ledger
    }

    #[test]
    fn what_was_answered_is_where_the_answer_said() {
        assert_eq!(ledger().count(&[(1, Here), (2, There)]), Ok(()));
        assert_eq!(ledger().count(&[(1, Here), (2, Here), (3, Here)]), Ok(()));
        assert!(ledger().count(&[(1, There), (2, There)]).is_err());
        assert!(ledger().count(&[(2, There)]).is_err());
        assert!(ledger().count(&[(1, Here)]).is_err());
    }

    #[test]
    fn a_message_is_in_one_place() {
        let mut ledger = ledger();
        let twice = ledger.count(&[(1, Here), (2, Here), (2, There)]);
        assert!(twice.expect_err("it is").contains("there twice"));
    }

    #[test]
    fn what_a_count_did_not_find_does_not_come_back() {
        let mut ledger = ledger();
        assert_eq!(ledger.count(&[(1, Here), (2, There)]), Ok(()));
        assert!(ledger.count(&[(1, Here), (2, There), (3, Here)]).is_err());
        assert!(ledger.expect(3, Here).is_err());
        ledger.begin(1, None);
        ledger.end(1, &[None]);
        assert_eq!(ledger.count(&[(2, There)]), Ok(()));
    }

    #[test]
    fn a_window_allows_what_was_possible_in_it() {
        let mut ledger = ledger();
        ledger.open_window();
        ledger.end(2, &[Some(There)]);
        ledger.begin(2, None);
        ledger.end(2, &[None]);
        let new = ledger.number();
        ledger.send(new, &[There]);
        ledger.end(new, &[Some(There)]);
        for at in [Some(Here), Some(There), None] {
            let mut window = ledger.window.clone();
            std::mem::swap(&mut window, &mut ledger.window);
            let mut seen = ledger.close_window();
            ledger.window = window;
            let mut found = vec![(1, Here)];
            found.extend(at.map(|place| (2, place)));
            assert_eq!(seen.count(&found), Ok(()));
        }
        let mut seen = ledger.close_window();
        assert!(seen.count(&[(1, There)]).is_err());
    }
}
