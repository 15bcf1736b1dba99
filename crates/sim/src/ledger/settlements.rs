//! Settlements: what clients ask to become of messages, and what they are told about it.

use broker::{Outcome, Subqueue};
use store::SequenceNumber;

use super::{Ask, Ledger};
use crate::message::MessageId;
use crate::violation::Violation;

impl Ledger {
    /// A client asks to end a lock.
    pub fn asked(&mut self, id: MessageId, ask: Ask) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        match ask {
            Ask::Complete => entry.leaving += 1,
            Ask::DeadLetter => entry.dead_letter_asked = true,
            Ask::Defer => entry.defer_asked += 1,
            Ask::Abandon | Ask::Release => {}
        }
        entry.changed |= matches!(ask, Ask::DeadLetter | Ask::Abandon);
    }

    /// A client was told whether its settlement took place.
    ///
    /// # Errors
    /// I2, when it was told so and the shard never said it.
    pub fn answered(
        &mut self,
        id: MessageId,
        subqueue: Subqueue,
        ask: Ask,
        done: bool,
    ) -> Result<(), Violation> {
        let Some(entry) = self.entries.get_mut(&id) else {
            return Ok(());
        };
        if done && !entry.was_granted(ask) {
            let what = format!("a client was told that {ask:?} of message {id} is done");
            return Err(Violation::new("I2", what));
        }
        match ask {
            Ask::Complete => {
                entry.leaving -= 1;
                entry.gone |= done;
            }
            Ask::Defer if done => {
                let number = entry.number.expect("delivered before it was deferred");
                self.deferred.insert((entry.queue, subqueue, number));
            }
            Ask::Defer | Ask::DeadLetter | Ask::Abandon | Ask::Release => {}
        }
        Ok(())
    }

    /// Whether the shard has said that it did that with a message.
    #[must_use]
    pub fn was_granted(&self, id: MessageId, ask: Ask) -> bool {
        let entry = self.entries.get(&id);
        entry.is_some_and(|entry| entry.was_granted(ask))
    }

    /// A client will never know whether its settlement took place.
    pub fn answer_lost(&mut self, id: MessageId, ask: Ask) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if ask == Ask::Complete {
            entry.leaving -= 1;
            entry.may_be_gone = true;
        }
    }

    /// Numbers of deferred messages that clients know of.
    #[must_use]
    pub fn deferred(&self, queue: usize, subqueue: Subqueue, most: usize) -> Vec<SequenceNumber> {
        let from = (queue, subqueue, SequenceNumber(0));
        let until = (queue, subqueue, SequenceNumber::MAX);
        self.deferred
            .range(from..until)
            .take(most)
            .map(|(_, _, number)| *number)
            .collect()
    }

    /// Those numbers are not worth another try.
    pub fn forget_deferred(
        &mut self,
        queue: usize,
        subqueue: Subqueue,
        numbers: &[SequenceNumber],
    ) {
        for number in numbers {
            self.deferred.remove(&(queue, subqueue, *number));
        }
    }
}

/// What an outcome asks for.
pub(super) fn ask_of(outcome: &Outcome) -> Ask {
    match outcome {
        Outcome::Complete => Ask::Complete,
        Outcome::Abandon { .. } => Ask::Abandon,
        Outcome::Defer { .. } => Ask::Defer,
        Outcome::DeadLetter { .. } => Ask::DeadLetter,
        Outcome::Annotated { outcome, .. } | Outcome::Reported { outcome, .. } => ask_of(outcome),
        Outcome::Release | Outcome::ReleaseLater(_) | Outcome::Undelivered => Ask::Release,
    }
}
