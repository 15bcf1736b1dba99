//! Delete: the oldest messages of a subqueue go at once, without being received.
//!
//! Locked, deferred and scheduled messages stay, and so does what arrives after the request. A
//! deletion takes from the window as a receiver would: what is on disk only comes to it by
//! refills, which begin where the last one ended, so that it never walks over what was deleted
//! before, and whose late answers are the window's business. A queue with sessions has no such
//! window (`sessions/delete.rs`), and waits for the answer to a read after each piece. A queue's
//! deletions are done one after the other, at a rate set by the deletion scheduler; the
//! answer tells how many went. (docs/spec/entities.md#20)

use crate::delete::deletion::Deletion;
use crate::delete::deletion::Progress;
use crate::subqueue::is_expired;
pub(crate) mod deletion;

use bytes::Bytes;
use store::SequenceNumber;

use crate::api::id::{RequestId, Subqueue, SubqueueId};
use crate::api::output::{Output, RequestError};
use crate::api::time::Wall;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::queue::Queue;
use crate::queue::session_key::SessionKey;

/// What is to be deleted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub place: SubqueueId,
    /// Only messages of this session.
    pub session: Option<Bytes>,
    /// Only what was enqueued before.
    pub before: Wall,
    /// The most messages to delete.
    pub count: usize,
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
        cx.emit(Output::Deleted {
            request,
            result: Err(error),
        });
    }
}

/// Lets the queues in line delete as much as one turn may.
pub(crate) fn go_on(directory: &mut Directory, cx: &mut Context<'_>) {
    while cx.shared.work_left > 0
        && let Some(entity) = cx.shared.deletion_scheduler.next()
    {
        // An entity may have gone while it stood in line.
        if let Some(queue) = directory.get_mut(entity) {
            queue.is_in_line = false;
            queue.delete_share(cx);
            queue.run_on(cx);
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
        if wanted.session.is_some() && !self.sub(subqueue).by_session {
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
            until: self.rows.end(),
            asked: None,
        });
        self.run(cx);
        Ok(())
    }

    /// Something has changed: deletes what can be deleted now, or lines up for it.
    pub(crate) fn go_on_deleting(&mut self, cx: &mut Context<'_>) {
        match self.deletions.front() {
            None => {}
            Some(next) if self.sub(next.subqueue).by_session => self.delete_share(cx),
            Some(_) => self.line_up(cx),
        }
    }

    fn line_up(&mut self, cx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_in_line, true) {
            cx.shared.deletion_scheduler.line_up(self.id);
        }
    }

    /// Deletes as much as is to be deleted before it is another queue's turn.
    fn delete_share(&mut self, cx: &mut Context<'_>) {
        let mut share = cx.shared.deletion_scheduler.share();
        while let Some(mut deletion) = self.deletions.pop_front() {
            let progress = self.delete_piece(&mut deletion, &mut share, cx);
            match progress {
                Progress::Interrupted => {
                    self.deletions.push_front(deletion);
                    return self.line_up(cx);
                }
                Progress::Waiting => return self.deletions.push_front(deletion),
                Progress::Finished | Progress::Failed(_) => {}
            }
            cx.emit(Output::Deleted {
                request: deletion.request,
                result: deletion.result(progress),
            });
        }
    }

    /// The queue is gone: every deletion that waits is answered with an error.
    pub(crate) fn refuse_deletions(&mut self, cx: &mut Context<'_>) {
        for deletion in std::mem::take(&mut self.deletions) {
            cx.emit(Output::Deleted {
                request: deletion.request,
                result: Err(RequestError::NotFound),
            });
        }
    }

    fn delete_piece(
        &mut self,
        deletion: &mut Deletion,
        share: &mut usize,
        cx: &mut Context<'_>,
    ) -> Progress {
        let subqueue = deletion.subqueue;
        if self.sub(subqueue).by_session {
            let (sessions, mut parts) = self.sessions_mut();
            return sessions.delete_piece(deletion, &mut parts, cx);
        }
        while deletion.left > 0 {
            let Some((number, entry)) = self.next_to_delete(deletion) else {
                return self.wait_for_window(deletion, cx);
            };
            if entry.row.enqueued_ms >= deletion.before.0 {
                break;
            }
            if *share == 0 || cx.shared.work_left == 0 || !cx.shared.deletion_scheduler.take() {
                return Progress::Interrupted;
            }
            *share -= 1;
            cx.take_work();
            deletion.cursor = number.next();
            self.delete_available(deletion, number, &entry, cx);
        }
        if deletion.deleted > 0 {
            // A client that purges a queue will soon ask again.
            self.subs[subqueue as usize].refill(&self.rows, cx);
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
        let all = !window.has_stragglers() && self.sub(subqueue).beyond(&self.rows) == 0;
        if all || window.covers(deletion.until) {
            return Progress::Finished;
        }
        self.subs[subqueue as usize].refill(&self.rows, cx);
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
        self.sub_mut(subqueue).needs_pump = true;
        if is_expired(subqueue, &entry.row, cx.now.wall) && self.may_expire(cx) {
            // It has expired, although no receiver has noticed. One that cannot be dead-lettered at
            // once is left to the sweep, which is due.
            if self.can_expire_at_once(entry, cx) {
                self.expire_available(number, entry, cx);
            }
            return;
        }
        self.sub_mut(subqueue).take_available(number);
        drop(cx.shared.bodies.take(entry.body));
        let message = Message::available(subqueue.part(), number, entry, None);
        // A dead letter tells why it is one, whether or not it was ever delivered.
        let patched = subqueue != Subqueue::Main || entry.may_have_patch();
        self.erase(&message, patched, cx);
        deletion.count_one();
    }
}
