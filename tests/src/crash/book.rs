//! Book: what the clients know of each message, and what must therefore be stored.
//!
//! A number is sent once. A send or a completion that had no answer leaves a message that may be
//! there or not; the next count decides which, and from then on it is known.

use std::collections::{BTreeMap, BTreeSet};

/// Larger than a body that the broker writes to a file of its own. (docs/storage.md)
const LARGE: usize = 4_300_000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// The send had no answer yet.
    Sent,
    /// It was accepted, or counted.
    Stored,
    /// The completion had no answer yet.
    Completing,
}

/// All messages that can be there.
#[derive(Debug, Default)]
pub struct Book {
    states: BTreeMap<u64, State>,
    next: u64,
    /// Sends that were accepted.
    pub accepted: u64,
    /// Completions that were confirmed.
    pub completed: u64,
    window: Option<Window>,
}

/// What may be in a backup that is made meanwhile.
#[derive(Debug, Default)]
struct Window {
    /// All that may have been there at any time of it.
    possible: BTreeSet<u64>,
    /// What was there all the time.
    certain: BTreeSet<u64>,
}

impl Book {
    /// A number that was never used.
    pub fn send(&mut self) -> u64 {
        self.next += 1;
        self.states.insert(self.next, State::Sent);
        if let Some(window) = &mut self.window {
            window.possible.insert(self.next);
        }
        self.next
    }

    /// The broker has accepted `number`.
    pub fn accept(&mut self, number: u64) {
        self.accepted += 1;
        // A receiver may have been quicker.
        if self.states.get(&number) == Some(&State::Sent) {
            self.states.insert(number, State::Stored);
        }
    }

    /// The broker has refused `number`.
    pub fn refuse(&mut self, number: u64) {
        self.states.remove(&number);
    }

    /// `number` is about to be completed.
    ///
    /// # Errors
    /// When it cannot have been delivered.
    pub fn begin_completion(&mut self, number: u64) -> Result<(), String> {
        if let Some(window) = &mut self.window {
            window.certain.remove(&number);
        }
        match self.states.insert(number, State::Completing) {
            Some(_) => Ok(()),
            None => Err(format!(
                "message {number} is delivered, but it was completed or never sent"
            )),
        }
    }

    /// The broker has confirmed that `number` is completed.
    pub fn end_completion(&mut self, number: u64) {
        self.completed += 1;
        self.states.remove(&number);
    }

    /// Everything was purged, which was confirmed.
    pub fn forget(&mut self) {
        self.states.clear();
    }

    /// From now on a backup may be made.
    pub(super) fn open_window(&mut self) {
        let states = self.states.iter();
        let certain = states.filter(|(_, state)| **state == State::Stored);
        self.window = Some(Window {
            certain: certain.map(|(number, _)| *number).collect(),
            possible: self.states.keys().copied().collect(),
        });
    }

    /// The backup was made: the book of what has to be in it.
    pub(super) fn close_window(&mut self) -> Self {
        let window = self.window.take().unwrap_or_default();
        let state = |number| match window.certain.contains(&number) {
            true => State::Stored,
            false => State::Sent,
        };
        let possible = window.possible.iter();
        Self {
            states: possible.map(|number| (*number, state(*number))).collect(),
            ..Self::default()
        }
    }

    /// How many messages may be there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether nothing can be there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Compares with the numbers of all that is there, nothing being under way.
    ///
    /// # Errors
    /// When one is missing, is there twice, or should be gone.
    pub fn count(&mut self, present: &[u64]) -> Result<(), String> {
        let mut found = BTreeMap::new();
        for number in present {
            if !self.states.contains_key(number) {
                return Err(format!(
                    "message {number} is there, but it was completed or never sent"
                ));
            }
            if found.insert(*number, State::Stored).is_some() {
                return Err(format!("message {number} is there twice"));
            }
        }
        let missing = self.states.iter();
        let mut missing = missing
            .filter(|(number, state)| **state == State::Stored && !found.contains_key(number));
        if let Some((number, _)) = missing.next() {
            let more = missing.count();
            return Err(format!(
                "message {number} was accepted and is missing, and {more} more"
            ));
        }
        self.states = found;
        Ok(())
    }
}

/// Whether the body of `number` has a file of its own.
pub(super) fn is_large(number: u64) -> bool {
    number % 1_000 == 999
}

/// The body of `number`: mostly a few hundred bytes, sometimes more than a page or a segment's
/// record, rarely one that has a file of its own.
#[must_use]
pub fn body(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let size = match number % 1_000 {
        _ if is_large(number) => LARGE,
        in_thousand if in_thousand % 100 == 50 => 100_000,
        in_thousand if in_thousand % 10 == 5 => {
            4_096 + usize::try_from(next() % 9_000).unwrap_or(0)
        }
        _ => 8 + usize::try_from(next() % 900).unwrap_or(0),
    };
    let mut body = number.to_be_bytes().to_vec();
    while body.len() < size {
        body.extend(next().to_be_bytes());
    }
    body.truncate(size);
    body
}

/// The number of a body, which has to be as it was sent.
///
/// # Errors
/// When it is not.
pub fn number_of(found: &[u8]) -> Result<u64, String> {
    let number = found.first_chunk().map(|first| u64::from_be_bytes(*first));
    let number = number.ok_or("a message has no number")?;
    if found == body(number) {
        Ok(number)
    } else {
        Err(format!("the body of message {number} is not as it was"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Book {
        let mut book = Book::default();
        for _ in 0..3 {
            book.send();
        }
        book.accept(1);
        book
    }

    #[test]
    fn a_send_without_an_answer_may_be_there_or_not_until_it_is_counted() {
        assert_eq!(book().count(&[1]), Ok(()));
        let mut book = book();
        assert_eq!(book.count(&[1, 3]), Ok(()));
        assert_eq!(book.len(), 2);
        let missing = book.count(&[1]).unwrap_err();
        assert_eq!(missing, "message 3 was accepted and is missing, and 0 more");
        let risen = book.count(&[1, 2, 3]).unwrap_err();
        assert!(risen.starts_with("message 2 is there"), "{risen}");
    }

    #[test]
    fn an_accepted_message_has_to_be_there_once() {
        assert!(book().count(&[2, 3]).is_err());
        assert_eq!(
            book().count(&[1, 1]),
            Err("message 1 is there twice".to_owned())
        );
    }

    #[test]
    fn a_completed_message_does_not_come_back() {
        let mut book = book();
        assert_eq!(book.begin_completion(1), Ok(()));
        book.end_completion(1);
        assert!(book.begin_completion(1).is_err());
        let mut book = self::book();
        book.begin_completion(1).expect("it is there");
        assert_eq!(book.count(&[]), Ok(()));
        assert!(book.count(&[1]).is_err());
    }

    #[test]
    fn a_backup_has_what_was_there_all_the_time() {
        let mut book = book();
        book.open_window();
        assert_eq!(book.send(), 4);
        book.accept(2);
        assert_eq!(book.close_window().count(&[1, 4]), Ok(()));
        let made = || {
            let mut book = self::book();
            book.accept(2);
            book.open_window();
            book.begin_completion(1).expect("it is there");
            book.end_completion(1);
            book.close_window()
        };
        assert_eq!(made().count(&[1, 2, 3]), Ok(()));
        assert_eq!(made().count(&[2]), Ok(()));
        assert!(made().count(&[1]).is_err());
        assert!(made().count(&[2, 4]).is_err());
    }

    #[test]
    fn a_body_is_known_from_its_number() {
        for number in [1, 5, 50, 77] {
            assert_eq!(number_of(&body(number)), Ok(number));
        }
        let mut changed = body(50);
        changed[60_000] ^= 1;
        assert!(number_of(&changed).is_err());
    }
}
