//! Redrive: a dead letter goes back to where it came from, when the holder of its lock asks for it.
//!
//! It is a new message then, but for its body: it has another number, no count, its whole time to
//! live, and does not say why it was dead. In one write set it leaves and arrives. (I2, I3, I6)

use broker::{LockToken, RequestId, Subqueue};
use store::Part;

use super::Ledger;
use super::answers::{Asked, LockState, check_lock_state};
use super::entry::Entry;
use super::moves::contains;
use crate::books::{Move, Place};
use crate::message::MessageId;
use crate::session::Session;
use crate::violation::Violation;

/// A redrive that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Redrive {
    id: Option<MessageId>,
    /// How often the message had been redriven before.
    redrives: usize,
    lock_state: LockState,
}

impl Ledger {
    pub(super) fn observe_redrive(
        &mut self,
        request: RequestId,
        subqueue: Subqueue,
        token: LockToken,
    ) {
        let id = self.tokens.get(&token).copied();
        let lock_state = match subqueue {
            Subqueue::Main => LockState::Lost,
            _ if id.is_some_and(|id| self.lacks_session(id)) => LockState::Lost,
            _ => self.lock_state(&[token]),
        };
        if let Some(id) = id.filter(|_| lock_state != LockState::Lost) {
            self.turn.redriven.insert(id);
            self.free(token, lock_state == LockState::Held);
        }
        let entry = id.and_then(|id| self.entries.get(&id));
        let redrive = Redrive {
            id,
            redrives: entry.map_or(0, |entry| entry.redrives.len()),
            lock_state,
        };
        self.answers.expect(request, Asked::Redrive(redrive));
    }

    /// Whether a message cannot be where it was, having no session.
    fn lacks_session(&self, id: MessageId) -> bool {
        let entry = self.entries.get(&id);
        let needs = entry.is_some_and(|entry| self.queues[entry.queue].sessions);
        needs && Session::of(id).is_none()
    }

    /// Whether a move is that of a dead letter whose holder has asked for it in this turn.
    pub(super) fn is_redriven(&self, moved: &Move, from: Place, to: Place) -> bool {
        from.entity == to.entity
            && matches!(from.part, Part::DeadLetter | Part::Transfer)
            && to.part == Part::Active
            && self.turn.redriven.contains(&moved.id)
    }

    /// The message begins anew, behind all others.
    pub(super) fn explain_redrive(
        &mut self,
        moved: &Move,
        from: Place,
        to: Place,
    ) -> Result<(), Violation> {
        let id = moved.id;
        self.entry_at(id, from)?;
        let wrong = |what: &str| Err(Violation::new("I6", format!("message {id} {what}")));
        if to.number.arrival() <= from.number.arrival() {
            return wrong("was redriven under an old number");
        }
        if self.books.count(to) > 0 {
            return wrong("was redriven and counts its deliveries on");
        }
        let patch = self.books.patch(to).cloned().unwrap_or_default();
        // One that stands at the head of a full queue is dead again at once.
        let stays = self.books.place(id) == Some(to);
        if stays && contains(&patch, b"DeadLetterReason") {
            return wrong("was redriven and says why it is dead");
        }
        let payload = self.entries.get(&id).map(|entry| entry.payload.clone());
        if self.body_of(&moved.row) != payload.as_ref() {
            return Err(Violation::new(
                "I12",
                format!("message {id} was redriven changed"),
            ));
        }
        self.check_enqueued(moved)?;
        self.report.redriven += 1;
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.record_redrive(to.number);
            entry.free(self.turn.index);
        }
        Ok(())
    }

    /// The client that redrives is told whether it is done.
    pub(super) fn verify_redriven(&self, redrive: Redrive, done: bool) -> Result<(), Violation> {
        let Redrive {
            id,
            redrives,
            lock_state,
        } = redrive;
        check_lock_state(lock_state, done, || format!("redriving message {id:?}"))?;
        let entry = id.and_then(|id| self.entries.get(&id));
        let stands = |entry: &Entry| !entry.removed_with_entity && entry.redrives.len() <= redrives;
        if done && entry.is_some_and(stands) {
            let what = format!("redriving message {id:?} was answered and it is where it was");
            return Err(Violation::new("I2", what));
        }
        Ok(())
    }
}
