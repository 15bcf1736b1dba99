//! Commands about sessions, each for the queue that it names.
//!
//! A command finds the queue, sees whether it has sessions, hands itself to them, and lets the
//! queue go on. What it does there is in the file of its name.

use bytes::Bytes;
use store::{EntityId, Part, SequenceNumber};

use crate::api::command::SessionFilter;
use crate::api::error::{RequestError, SessionError};
use crate::api::id::{ConnectionId, ReceiverId, RequestId, Subqueue, SubqueueId};
use crate::api::lineage::MessageEvent;
use crate::api::output::Output;
use crate::api::receive_mode::ReceiveMode;
use crate::api::time::Wall;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::receive::attach;
use crate::receive::page::Page;
use crate::receive::peek::MOST;
use crate::receive::run::run;
use crate::sessions::Sessions;
use crate::sessions::accept::refuse;
use crate::sessions::list;
use crate::sessions::listing::Listing;
use crate::sessions::pending_peek::SessionPeek;
use crate::sessions::release;
use crate::sessions::state_request::StateRequest;

/// A receiver comes for a session.
pub(crate) fn accept(
    directory: &mut Directory,
    receiver: ReceiverId,
    entity: EntityId,
    mode: ReceiveMode,
    session: SessionFilter,
    cx: &mut Context<'_>,
) {
    // A link that attaches again starts anew.
    attach::detach(directory, receiver, cx);
    let subqueue = Subqueue::Main;
    let queue = match directory.admit(SubqueueId { entity, subqueue }) {
        Ok(queue) => queue,
        Err(reason) => return cx.emit(Output::Evicted { receiver, reason }),
    };
    let Some((sessions, mut parts)) = queue.by_session() else {
        return refuse(receiver, SessionError::NotAllowed, cx);
    };
    match session {
        SessionFilter::ById(id) => accept_by_id(queue, receiver, mode, &id, cx),
        SessionFilter::Next { timeout_ms } => {
            sessions.accept_next(receiver, mode, timeout_ms, &mut parts, cx);
        }
    }
    run(queue, cx);
}

fn accept_by_id(
    queue: &mut Queue,
    receiver: ReceiverId,
    mode: ReceiveMode,
    id: &Bytes,
    cx: &mut Context<'_>,
) {
    let (sessions, _) = queue.sessions_mut();
    let key = sessions.ids.key(id);
    if let Some(id) = sessions.holder(&key) {
        // Its end may not have been noticed.
        if sessions.existing_hold(id).ends() > cx.now.mono {
            return refuse(receiver, SessionError::CannotBeLocked, cx);
        }
        release::expire(queue, id, cx);
    }
    let (sessions, mut parts) = queue.sessions_mut();
    let slot = cx.shared.clients.attach(receiver, parts.main.place, mode);
    sessions.hold_session(key, slot, &mut parts, cx);
}

/// Renews a session's lock for its holder's connection.
pub(crate) fn renew(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    session: &Bytes,
    cx: &mut Context<'_>,
) {
    let Some(queue) = directory.get_mut(entity) else {
        let result = Err(RequestError::NotFound);
        return cx.emit(Output::SessionRenewed { request, result });
    };
    let result = match queue.by_session() {
        Some((sessions, parts)) => {
            let duration = parts.settings.lock_duration;
            sessions.renew(request.connection, session, duration, cx.now.mono)
        }
        None => Err(RequestError::SessionsNotSupported),
    };
    if result.is_ok() && cx.records(queue.namespace) {
        record_renewals(queue, request.connection, session, cx);
    }
    cx.emit(Output::SessionRenewed { request, result });
    run(queue, cx);
}

/// With a session that is held, the locks of its messages are renewed.
fn record_renewals(queue: &Queue, connection: ConnectionId, session: &Bytes, cx: &mut Context<'_>) {
    let sessions = queue.sessions.as_ref();
    let held = sessions.and_then(|it| Some(it.existing_hold(it.holder(&it.ids.key(session))?)));
    for number in held.into_iter().flat_map(|hold| &hold.locked) {
        queue.record(*number, || MessageEvent::Renewed { connection }, cx);
    }
}

/// Reads or sets the state of a session for its holder's connection.
pub(crate) fn ask_state(
    directory: &mut Directory,
    entity: EntityId,
    session: &Bytes,
    wanted: StateRequest,
    cx: &mut Context<'_>,
) {
    let Some(queue) = directory.get_mut(entity) else {
        return cx.emit(wanted.refusal(RequestError::NotFound));
    };
    let Some((sessions, mut parts)) = queue.by_session() else {
        cx.emit(wanted.refusal(RequestError::SessionsNotSupported));
        return run(queue, cx);
    };
    let connection = wanted.request().connection;
    let held = sessions.held_session(connection, session, cx.now.mono);
    match held.and_then(|id| {
        wanted
            .check(parts.settings, cx.shared.nearly_full)
            .map(|()| id)
    }) {
        Ok(id) => sessions.ask_state(id, wanted, &mut parts, cx),
        Err(error) => cx.emit(wanted.refusal(error)),
    }
    run(queue, cx);
}

/// Reads the state of a session for a request that need not hold it.
pub(crate) fn show_state(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    session: &Bytes,
    cx: &mut Context<'_>,
) {
    let wanted = StateRequest::Get(request);
    let Some(queue) = directory.get_mut(entity) else {
        return cx.emit(wanted.refusal(RequestError::NotFound));
    };
    match queue.by_session() {
        Some((sessions, _)) => sessions.show_state(request, session, entity, cx),
        None => cx.emit(wanted.refusal(RequestError::SessionsNotSupported)),
    }
    run(queue, cx);
}

/// Starts a listing.
pub(crate) fn list(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    updated_after: Option<Wall>,
    skip: usize,
    top: usize,
    cx: &mut Context<'_>,
) {
    let mut listing = Listing::new(request, updated_after, skip, top);
    let Some(queue) = directory.get_mut(entity) else {
        return cx.emit(listing.answer(Err(RequestError::NotFound)));
    };
    let Some((sessions, mut parts)) = queue.by_session() else {
        return cx.emit(listing.answer(Err(RequestError::SessionsNotSupported)));
    };
    let place = (updated_after, skip);
    let found = sessions.bookmarks.iter().position(|(at, _)| *at == place);
    if let Some(index) = found {
        listing.after = Some(sessions.bookmarks.remove(index).1);
        listing.left_to_skip = 0;
    }
    let knows_all = updated_after.is_some() || sessions.survey.is_complete();
    if !knows_all && sessions.survey.is_over() {
        cx.emit(listing.answer(Err(list::unreadable())));
    } else if !knows_all {
        // Which sessions have messages is not known yet.
        sessions.listings.push(listing);
        parts.main.needs_dispatch = true;
    } else {
        Sessions::list_on(listing, &mut parts, cx);
    }
    run(queue, cx);
}

/// Starts to browse a session.
#[allow(clippy::too_many_arguments, reason = "the command's fields")]
pub(crate) fn peek(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    session: &Bytes,
    from: SequenceNumber,
    count: usize,
    max_bytes: usize,
    cx: &mut Context<'_>,
) {
    let queue = match directory.receivable(entity) {
        Ok(queue) => queue,
        Err(error) => return refuse_peek(request, error, cx),
    };
    let Some((sessions, parts)) = queue.by_session() else {
        return refuse_peek(request, RequestError::SessionsNotSupported, cx);
    };
    let peek = SessionPeek {
        key: sessions.ids.key(session),
        from,
        part: Part::Scheduled,
        next: from,
        cut: None,
        page: Page::new(request, count.min(MOST), max_bytes, parts.rows.end()),
    };
    Sessions::ask_order(peek, &parts, cx);
}

fn refuse_peek(request: RequestId, error: RequestError, cx: &mut Context<'_>) {
    let result = Err(error);
    cx.emit(Output::Browsed { request, result });
}
