//! Age: when the first available message of all sessions was enqueued.
//!
//! That is known of what arrived or was held in this process. A session that was learnt of from
//! disk, or whose first message has left, tells only a number; when such a session is the oldest,
//! the row of its first message is read, once. Numbers rise with the time of enqueuing, so the
//! least number is the oldest message.

use store::{Query, SequenceNumber};

use crate::api::id::Subqueue;
use crate::api::time::Wall;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::stored::ReadRows;
use crate::queue::session_key::SessionKey;
use crate::sessions::read::SessionRead;
use crate::sessions::{Parts, Record, Sessions};

/// The row that was read last, or is being read.
#[derive(Debug, Default)]
pub(super) struct AgeRead {
    number: Option<SequenceNumber>,
    is_under_way: bool,
}

impl Sessions {
    /// When the first available message was enqueued; `None` while that is not known, or there is
    /// none.
    pub(crate) fn oldest_enqueued(&self) -> Option<Wall> {
        if !self.survey.is_complete() {
            return None;
        }
        let idle = self.oldest();
        let idle = idle.map(|(_, record)| (record.first, record.enqueued));
        let held = self.held.values().filter_map(|hold| {
            let first = hold.window.first();
            let first = first.map(|(number, entry)| (number, Some(Wall(entry.row.enqueued_ms))));
            // What is not read yet begins no earlier than that.
            first.or((hold.beyond() > 0).then_some((hold.window.end(), None)))
        });
        let oldest = idle.into_iter().chain(held).min_by_key(|first| first.0);
        oldest.and_then(|(_, enqueued)| enqueued)
    }

    /// The oldest idle session, if the time of its first message is to be read.
    fn unknown_oldest(&self) -> Option<(SessionKey, SequenceNumber)> {
        let is_due = self.survey.is_complete() && self.retry_at.is_none();
        // A waiter for a session gets the oldest one, which reads its messages.
        if !is_due || self.age_read.is_under_way || self.has_waiters() {
            return None;
        }
        let (
            key,
            Record {
                first, enqueued, ..
            },
        ) = self.oldest()?;
        let wanted = enqueued.is_none() && self.age_read.number != Some(first);
        wanted.then_some((key, first))
    }
}

impl Sessions {
    /// Asks for the row of the first message of the oldest session, unless its time is known.
    pub(super) fn learn_age(&mut self, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        let entity = parts.rows.id;
        let Some((key, number)) = self.unknown_oldest() else {
            return;
        };
        let query = Query::Points {
            entity,
            part: Subqueue::Main.part(),
            numbers: vec![number],
            bodies: false,
            max_bytes: 0,
        };
        let read = Box::new(SessionRead::Age(key, number));
        cx.ask(query, Purpose::Session(entity, read));
        self.age_read = AgeRead {
            number: Some(number),
            is_under_way: true,
        };
    }

    /// The row came back. If there is none the message has left, so its session is looked at.
    pub(super) fn age_loaded(
        &mut self,
        key: SessionKey,
        number: SequenceNumber,
        found: ReadRows,
        parts: &mut Parts<'_>,
    ) {
        parts.main.needs_dispatch = true;
        self.age_read.is_under_way = false;
        // One that cannot be read is not asked for again; all that is missing then is an age.
        let Ok(rows) = found else {
            return;
        };
        // The session may be held by now, or have lost that message.
        let record = self.idle.get_mut(&key);
        let Some(record) = record.filter(|record| record.first == number) else {
            return;
        };
        match rows.first() {
            Some(row) => record.enqueued = Some(Wall(row.row.enqueued_ms)),
            None => drop(self.uncertain.insert(key)),
        }
    }
}
