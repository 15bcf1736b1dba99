//! Refill: brings the window's next messages into memory.
//!
//! They are read only while a receiver waits for messages. A read that failed is tried again after
//! a second.

use store::{CommitId, Query, SequenceNumber};

use crate::api::id::{ReadId, SubqueueId};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::stored::{ReadRows, entry_of};
use crate::queue::rows::Rows;
use crate::subqueue::SubqueueState;
use crate::subqueue::window::Ask;

impl SubqueueState {
    /// Asks for more messages if the window runs low.
    pub(crate) fn refill(&mut self, rows: &Rows, cx: &mut Context<'_>) {
        let next_number = rows.end();
        let beyond = self.beyond(rows);
        let place = self.place;
        if self.retry_at.is_some() {
            return;
        }
        let Some(ask) = self.window.wants(beyond, next_number) else {
            return;
        };
        let query = query_for(place, &ask, next_number);
        let read = cx.ask(query, Purpose::Refill(place, cx.commit()));
        self.window.asked(read, ask, next_number);
    }

    /// A refill came back, which holds that commit.
    pub(crate) fn refilled(
        &mut self,
        read: ReadId,
        after: CommitId,
        rows: ReadRows,
        cx: &mut Context<'_>,
    ) {
        self.needs_dispatch = true;
        match rows {
            Ok(rows) => {
                // What has changed since is known to the window.
                let rows = rows.iter();
                let rows = rows.map(|row| (row.number, entry_of(row, after))).collect();
                let locks = &self.locks;
                let spilled = self
                    .window
                    .loaded(read, rows, |number| locks.contains(number));
                for entry in spilled {
                    drop(cx.shared.bodies.take(entry.body));
                }
            }
            Err(_) => {
                self.window.failed(read);
                self.retry_at = Some(cx.retry_at());
            }
        }
    }
}

fn query_for(place: SubqueueId, ask: &Ask, until: SequenceNumber) -> Query {
    let entity = place.entity;
    let part = place.subqueue.part();
    match ask {
        Ask::Stragglers(numbers) => Query::Points {
            entity,
            part,
            numbers: numbers.clone(),
            bodies: false,
            max_bytes: usize::MAX,
        },
        Ask::From(from, limit) => Query::Range {
            entity,
            part,
            from: *from,
            until,
            limit: *limit,
            bodies: false,
            max_bytes: 0,
        },
    }
}
