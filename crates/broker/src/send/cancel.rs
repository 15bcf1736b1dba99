//! Cancel: scheduled messages are taken back by their numbers, all or none.
//!
//! Their rows are read first, since only these tell when each is due. A number that is unknown, or
//! that was activated or cancelled at any moment until the answer, is not there.
//! (docs/spec/entities.md#11)

use std::collections::{BTreeMap, BTreeSet};

use store::{EntityId, MessageRow, Part, Query, SequenceNumber};

use crate::api::error::RequestError;
use crate::api::id::{ReadId, RequestId};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::row;
use crate::message::stored::ReadRows;
use crate::queue::Queue;
use crate::send::activate::erase_scheduled;
use crate::send::cancellation::Cancellation;

/// Cancels scheduled messages.
pub(crate) fn cancel(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    mut numbers: Vec<SequenceNumber>,
    cx: &mut Context<'_>,
) {
    let mut seen = BTreeSet::new();
    numbers.retain(|number| seen.insert(*number));
    let cancellation = Cancellation {
        entity,
        request,
        numbers,
    };
    match directory.get_mut(entity) {
        Some(queue) => start_cancellation(queue, cancellation, cx),
        None => cx.emit(cancellation.answer(Err(RequestError::NotFound))),
    }
}

fn start_cancellation(queue: &mut Queue, cancellation: Cancellation, cx: &mut Context<'_>) {
    let query = scheduled(queue, cancellation.numbers.clone());
    let read = cx.ask(query, Purpose::Cancel(Box::new(cancellation)));
    queue.rows.journal.begin(read);
}

/// A query for the rows of scheduled messages.
pub(crate) fn scheduled(queue: &Queue, numbers: Vec<SequenceNumber>) -> Query {
    Query::Points {
        entity: queue.id,
        part: Part::Scheduled,
        numbers,
        bodies: false,
        max_bytes: usize::MAX,
    }
}

/// The rows were read.
pub(crate) fn loaded(
    queue: &mut Queue,
    read: ReadId,
    cancellation: &Cancellation,
    rows: ReadRows,
    cx: &mut Context<'_>,
) {
    let touched = queue.rows.journal.finish(read);
    let result = check(&cancellation.numbers, rows, &touched).map(|rows| {
        for (number, row) in rows {
            erase_scheduled(queue, number, row, cx);
        }
    });
    cx.emit(cancellation.answer(result));
}

/// The rows of all of the messages, if all are still there.
pub(crate) fn check(
    numbers: &[SequenceNumber],
    rows: ReadRows,
    touched: &BTreeSet<SequenceNumber>,
) -> Result<BTreeMap<SequenceNumber, MessageRow>, RequestError> {
    let rows = rows.map_err(|error| RequestError::Unreadable(error.to_string()))?;
    let rows: BTreeMap<_, _> = rows
        .iter()
        .map(|stored| (stored.number, stored.row))
        .filter(|(_, row)| !row::is_waiting(row))
        .collect();
    let is_there = |number: &SequenceNumber| rows.contains_key(number) && !touched.contains(number);
    match numbers.iter().find(|number| !is_there(number)) {
        Some(missing) => Err(RequestError::MessageNotFound(*missing)),
        None => Ok(rows),
    }
}
