//! Deferred: messages that were put aside, fetched by number, all or none.
//!
//! In peek-lock mode they are locked; when that ends without completion they are deferred again.
//! A number that is unknown, or locked at any moment until the answer, is not there.
//! (docs/spec/entities.md#12)

use std::collections::{BTreeMap, BTreeSet};

use store::{Query, SequenceNumber, StoredMessage};

use crate::api::error::RequestError;
use crate::api::id::{ReadId, RequestId, Subqueue};
use crate::api::output::{Delivery, MessageState, Output};
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::Message;
use crate::message::bodies::Body;
use crate::message::stored::{ReadRows, body_of};
use crate::queue::Queue;
use crate::receive::hand_out;
use crate::receive::hand_out::Source;
use crate::receive::retrieval::Retrieval;
use crate::subqueue::lock::Holder;

/// Most messages of one request.
const MOST: usize = 1_000;

/// Asks for deferred messages.
pub(crate) fn receive(directory: &mut Directory, mut retrieval: Retrieval, cx: &mut Context<'_>) {
    let mut seen = BTreeSet::new();
    retrieval.numbers.retain(|number| seen.insert(*number));
    let request = retrieval.request;
    let queue = directory.open_to(retrieval.place.entity, request.connection);
    let started = queue.and_then(|queue| start_retrieval(queue, retrieval, cx));
    if let Err(error) = started {
        refuse(request, error, cx);
    }
}

fn refuse(request: RequestId, error: RequestError, cx: &mut Context<'_>) {
    let result = Err(error);
    cx.emit(Output::Deferred { request, result });
}

fn start_retrieval(
    queue: &mut Queue,
    retrieval: Retrieval,
    cx: &mut Context<'_>,
) -> Result<(), RequestError> {
    if retrieval.numbers.len() > MOST {
        let text = format!("more than {MOST} messages in one request");
        return Err(RequestError::Invalid(text));
    }
    let query = Query::Points {
        entity: queue.id,
        part: retrieval.place.subqueue.deferred_part(),
        numbers: retrieval.numbers.clone(),
        bodies: true,
        max_bytes: retrieval.max_bytes,
    };
    let locks = &queue.sub(retrieval.place.subqueue).locks;
    if let Some(number) = retrieval.numbers.iter().find(|n| locks.contains(**n)) {
        return Err(RequestError::MessageNotFound(*number));
    }
    let connection = retrieval.request.connection;
    cx.shared.clients.note_place(connection, retrieval.place);
    let read = cx.ask(query, Purpose::Deferred(Box::new(retrieval)));
    queue.rows.journal.begin(read);
    Ok(())
}

/// The messages were read.
pub(crate) fn loaded(
    queue: &mut Queue,
    read: ReadId,
    retrieval: &Retrieval,
    rows: ReadRows,
    cx: &mut Context<'_>,
) {
    let touched = queue.rows.journal.finish(read);
    if !cx.shared.clients.is_connected(retrieval.request.connection) {
        // The receiver that asked for them is gone.
        return;
    }
    let result = check_retrieval(queue, retrieval, rows, &touched, cx)
        .map(|messages| hand_over(queue, retrieval, messages, cx));
    cx.emit(retrieval.answer(result));
}

/// All of the messages, if all can be had.
fn check_retrieval(
    queue: &Queue,
    retrieval: &Retrieval,
    rows: ReadRows,
    touched: &BTreeSet<SequenceNumber>,
    cx: &Context<'_>,
) -> Result<Vec<(StoredMessage, Body)>, RequestError> {
    let rows = rows.map_err(|error| RequestError::Unreadable(error.to_string()))?;
    let locks = &queue.sub(retrieval.place.subqueue).locks;
    let settings = &cx.shared.settings;
    let room = settings.max_locked.saturating_sub(rows.len());
    if locks.len() > room || locks.is_full(settings.max_locked, settings.locked_bytes) {
        return Err(RequestError::TooManyLocks);
    }
    retrieval.check_size(&rows)?;
    let mut rows: BTreeMap<_, _> = rows.into_iter().map(|row| (row.number, row)).collect();
    let mut messages = Vec::with_capacity(retrieval.numbers.len());
    for &number in &retrieval.numbers {
        let free = !touched.contains(&number) && !locks.contains(number);
        let row = rows.remove(&number).filter(|_| free);
        let row = row.ok_or(RequestError::MessageNotFound(number))?;
        check_holder(queue, retrieval, &row, cx)?;
        let body = body_of(&row).ok_or(RequestError::MessageNotFound(number))?;
        messages.push((row, body));
    }
    Ok(messages)
}

/// Messages of a session are its holder's only.
fn check_holder(
    queue: &Queue,
    retrieval: &Retrieval,
    row: &StoredMessage,
    cx: &Context<'_>,
) -> Result<(), RequestError> {
    if !queue.sub(retrieval.place.subqueue).by_session {
        return Ok(());
    }
    let named = retrieval.session.as_ref().zip(queue.sessions.as_ref());
    let named = named.map(|(session, sessions)| sessions.ids.key(session).hash);
    if named.is_some_and(|hash| hash != row.row.session_hash) {
        return Err(RequestError::MessageNotFound(row.number));
    }
    match session_of(queue, retrieval, row, cx) {
        Some(_) => Ok(()),
        None => Err(RequestError::SessionLockLost),
    }
}

/// The session of a message, if that is held by the connection that asks for it.
fn session_of(
    queue: &Queue,
    retrieval: &Retrieval,
    row: &StoredMessage,
    cx: &Context<'_>,
) -> Option<HoldId> {
    let sessions = queue.sessions.as_ref()?;
    let connection = retrieval.request.connection;
    sessions.held_by(connection, row.row.session_hash, cx.now.mono)
}

fn hand_over(
    queue: &mut Queue,
    retrieval: &Retrieval,
    messages: Vec<(StoredMessage, Body)>,
    cx: &mut Context<'_>,
) -> Vec<Delivery> {
    messages
        .into_iter()
        .map(|(stored, body)| hand_over_one(queue, retrieval, &stored, body, cx))
        .collect()
}

fn hand_over_one(
    queue: &mut Queue,
    retrieval: &Retrieval,
    stored: &StoredMessage,
    body: Body,
    cx: &mut Context<'_>,
) -> Delivery {
    let subqueue = retrieval.place.subqueue;
    let source = match session_of(queue, retrieval, stored, cx) {
        Some(session) if subqueue == Subqueue::Main => Source::Session(session),
        _ => Source::Subqueue(subqueue),
    };
    let message = Message::stored(stored, body.patch);
    let holder = Holder {
        connection: retrieval.request.connection,
        link: None,
    };
    let shown = message.shown(queue.id, MessageState::Deferred, body.payload);
    hand_out::give(
        queue,
        source,
        (retrieval.mode, None),
        holder,
        message,
        shown,
        cx,
    )
}
