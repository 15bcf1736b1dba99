//! Delete: the oldest messages of a subqueue go at once, without being received.
//!
//! Locked, deferred and scheduled messages stay, and so does what arrives after the request. A
//! deletion takes from the window as a receiver would: what is on disk only comes to it by
//! refills, which begin where the last one ended, so that it never walks over what was deleted
//! before, and whose late answers are the window's business. A queue with sessions has no such
//! window (`sessions/delete.rs`). A queue's deletions are done one after the other, each piece
//! with a share of a turn's work; the answer tells how many went. (Entities contract 20)

use bytes::Bytes;
use store::SequenceNumber;

use crate::clients::Place;
use crate::directory::Directory;
use crate::id::{ReadId, RequestId, Subqueue};
use crate::output::{Output, RequestError};
use crate::queue::{Message, Queue};
use crate::sessions::SessionKey;
use crate::shared::Context;
use crate::time::Wall;
use crate::window::Entry;

/// A queue has this part of a turn's work before it is another's turn.
const SHARE: usize = 4;

/// What is to be deleted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub place: Place,
    /// Only messages of this session.
    pub session: Option<Bytes>,
    /// Only what was enqueued before.
    pub before: Wall,
    /// At most so many.
    pub count: usize,
}

/// A deletion on its way.
#[derive(Debug)]
pub(crate) struct Deletion {
    pub request: RequestId,
    pub subqueue: Subqueue,
    pub session: Option<SessionKey>,
    pub before: Wall,
    pub left: usize,
    pub deleted: usize,
    /// Everything below has been looked at.
    pub cursor: SequenceNumber,
    /// What arrived since is not its business.
    pub until: SequenceNumber,
    /// What it has asked for, in a queue with sessions.
    pub asked: Option<Asked>,
    /// Whether it goes on when a read comes back, and not before.
    pub waiting: bool,
}

/// A read of a queue with sessions, and the number up to which it looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub read: ReadId,
    pub limit: usize,
    pub covered: SequenceNumber,
}

/// Where a deletion stands after a piece.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It goes on in the next turn.
    Interrupted,
    Waiting,
    Finished,
    /// There is nothing to be read.
    Failed(String),
}

/// Deletes messages.
pub(crate) fn delete(
    directory: &mut Directory,
    request: RequestId,
    wanted: &Wanted,
    cx: &mut Context<'_>,
) {
    let started = match directory.receivable(wanted.place.entity) {
        Ok(queue) => queue.start_deletion(request, wanted, cx),
        Err(error) => Err(error),
    };
    if let Err(error) = started {
        cx.say(Output::Deleted {
            request,
            result: Err(error),
        });
    }
}

impl Deletion {
    /// One message less to delete.
    pub(crate) fn count_one(&mut self) {
        self.deleted += 1;
        self.left -= 1;
    }

    /// What went before something could not be read has gone all the same.
    pub(crate) fn result(&self, progress: Progress) -> Result<usize, RequestError> {
        match progress {
            Progress::Failed(error) if self.deleted == 0 => Err(RequestError::Invalid(error)),
            _ => Ok(self.deleted),
        }
    }
}

impl Queue {
    fn start_deletion(
        &mut self,
        request: RequestId,
        wanted: &Wanted,
        cx: &mut Context<'_>,
    ) -> Result<(), RequestError> {
        let subqueue = wanted.place.subqueue;
        let has_sessions = subqueue == Subqueue::Main && self.sessions.is_some();
        if wanted.session.is_some() && !has_sessions {
            // Without them it would take the messages of all.
            return Err(RequestError::SessionsNotSupported);
        }
        self.deletions.push_back(Deletion {
            request,
            subqueue,
            session: wanted.session.as_ref().map(|id| SessionKey::new(id)),
            before: wanted.before,
            left: wanted.count,
            deleted: 0,
            cursor: SequenceNumber(0),
            until: self.head.next_number,
            asked: None,
            waiting: false,
        });
        self.run(cx);
        Ok(())
    }

    /// Deletes what can be deleted now, as far as the share of the turn's work goes.
    pub(crate) fn go_on_deleting(&mut self, cx: &mut Context<'_>) {
        let mut share = (cx.shared.settings.turn_work / SHARE).max(1);
        while let Some(mut deletion) = self.deletions.pop_front() {
            let progress = self.delete_piece(&mut deletion, &mut share, cx);
            if let Progress::Interrupted | Progress::Waiting = progress {
                deletion.waiting = matches!(progress, Progress::Waiting);
                return self.deletions.push_front(deletion);
            }
            cx.say(Output::Deleted {
                request: deletion.request,
                result: deletion.result(progress),
            });
        }
    }

    /// The queue is gone: whoever waits is told.
    pub(crate) fn refuse_deletions(&mut self, cx: &mut Context<'_>) {
        for deletion in std::mem::take(&mut self.deletions) {
            cx.say(Output::Deleted {
                request: deletion.request,
                result: Err(RequestError::NotFound),
            });
        }
    }

    /// When a deletion that was interrupted wants a tick.
    pub(crate) fn deletion_alarm(&self, cx: &Context<'_>) -> Option<Wall> {
        let next = self.deletions.front();
        next.filter(|next| !next.waiting).map(|_| cx.now.wall)
    }

    fn delete_piece(
        &mut self,
        deletion: &mut Deletion,
        share: &mut usize,
        cx: &mut Context<'_>,
    ) -> Progress {
        if deletion.subqueue == Subqueue::Main && self.sessions.is_some() {
            return self.delete_of_sessions(deletion, cx);
        }
        let subqueue = deletion.subqueue;
        while deletion.left > 0 {
            let Some((number, entry)) = self.next_to_delete(deletion) else {
                return self.wait_for_window(deletion, cx);
            };
            if entry.row.enqueued_ms >= deletion.before.0 {
                break;
            }
            if *share == 0 || !cx.take_work() {
                return Progress::Interrupted;
            }
            *share -= 1;
            deletion.cursor = number.next();
            self.delete_available(deletion, number, &entry, cx);
        }
        if deletion.deleted > 0 {
            // Whoever purges a queue will soon ask again.
            self.refill(subqueue, cx);
        }
        Progress::Finished
    }

    fn next_to_delete(&self, deletion: &Deletion) -> Option<(SequenceNumber, Entry)> {
        let window = &self.sub(deletion.subqueue).window;
        if window.has_stragglers() {
            // What a restart knows by number only comes before all else.
            return None;
        }
        let mut next = window.range(deletion.cursor..deletion.until);
        next.next().map(|(number, entry)| (number, *entry))
    }

    /// The window knows no more that could be deleted; perhaps there is more on disk.
    fn wait_for_window(&mut self, deletion: &Deletion, cx: &mut Context<'_>) -> Progress {
        let subqueue = deletion.subqueue;
        let window = &self.sub(subqueue).window;
        let all = !window.has_stragglers() && self.beyond(subqueue) == 0;
        if all || window.covers(deletion.until) {
            return Progress::Finished;
        }
        self.refill(subqueue, cx);
        let sub = self.sub(subqueue);
        if sub.window.is_refilling() {
            Progress::Waiting
        } else if sub.retry_at.is_some() {
            Progress::Failed("the store can not be read".to_owned())
        } else {
            Progress::Finished
        }
    }

    fn delete_available(
        &mut self,
        deletion: &mut Deletion,
        number: SequenceNumber,
        entry: &Entry,
        cx: &mut Context<'_>,
    ) {
        let subqueue = deletion.subqueue;
        self.sub_mut(subqueue).stirred = true;
        if Self::is_expired(subqueue, &entry.row, cx.now.wall) && self.may_expire(cx) {
            // It is not there any more, though nobody has noticed. One that can not be
            // dead-lettered at once is left to the sweep, which is due.
            if self.can_expire_at_once(entry, cx) {
                self.expire_available(number, entry, cx);
            }
            return;
        }
        self.sub_mut(subqueue).window.take(number);
        drop(cx.shared.bodies.take(entry.body));
        let message = Message::available(subqueue.part(), number, entry, None);
        // A dead letter tells why it is one, whether or not it was ever delivered.
        let patched = subqueue != Subqueue::Main || entry.may_have_patch();
        self.erase(&message, patched, cx);
        deletion.count_one();
    }
}
