//! Refill: brings the window's next messages into memory.
//!
//! They are read only while a receiver waits for messages. A read that failed is tried again after
//! a second. Rows that are damaged are passed over: those before them are read by themselves, and
//! the next read begins behind them.

use store::{CommitId, Query, SequenceNumber, StoreError};

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
        let Some(mut ask) = self.window.wants(beyond, next_number) else {
            return;
        };
        ask.shorten(self.intact_rows);
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
                self.intact_rows = None;
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
            Err(error) if error.is_damage() => self.pass_damage(read, &error, cx),
            Err(_) => {
                self.window.failed(read);
                self.retry_at = Some(cx.retry_at());
            }
        }
    }

    /// A refill met damaged rows: the next one ends before them, or begins behind them.
    fn pass_damage(&mut self, read: ReadId, error: &StoreError, cx: &mut Context<'_>) {
        let Some(ask) = self.window.asked_by(read) else {
            return;
        };
        match (ask, error) {
            (Ask::From(..), StoreError::UnreadableRows { intact, .. }) if *intact > 0 => {
                self.window.failed(read);
                self.intact_rows = Some(*intact);
            }
            (Ask::From(from, _), StoreError::UnreadableRows { until, .. }) => {
                self.intact_rows = None;
                let until = (*until).max(from.next());
                self.unreadable.note_rows(from..until);
                let locks = &self.locks;
                let spilled = self
                    .window
                    .loaded_below(read, Vec::new(), until, |number| locks.contains(number));
                for entry in spilled {
                    drop(cx.shared.bodies.take(entry.body));
                }
            }
            (Ask::Stragglers(numbers), _) if numbers.len() > 1 => {
                self.window.failed(read);
                self.intact_rows = Some(1);
            }
            (Ask::Stragglers(numbers), _) => {
                for number in &numbers {
                    self.unreadable.note_rows(*number..number.next());
                }
                drop(self.window.loaded(read, Vec::new(), |_| false));
            }
            (Ask::From(..), _) => {
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
