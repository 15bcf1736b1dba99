//! Commands about sessions. Each kind's logic has a file of its own.

use crate::command::Command;
use crate::directory::Directory;
use crate::sessions::state::StateRequest;
use crate::sessions::{accept, list, peek, release, state};
use crate::shared::Context;

/// Does what a command about sessions says; any other is not for here.
pub(crate) fn dispatch(directory: &mut Directory, command: Command, cx: &mut Context<'_>) {
    match command {
        Command::AcceptSession {
            receiver,
            entity,
            mode,
            session,
        } => accept::accept(directory, receiver, entity, mode, session, cx),
        Command::RenewSession {
            request,
            entity,
            session,
        } => release::renew(directory, request, entity, &session, cx),
        Command::GetSessionState {
            request,
            entity,
            session,
        } => state::ask(directory, entity, &session, StateRequest::Get(request), cx),
        Command::SetSessionState {
            request,
            entity,
            session,
            state,
        } => {
            let wanted = StateRequest::Set(request, state);
            state::ask(directory, entity, &session, wanted, cx);
        }
        Command::ListSessions {
            request,
            entity,
            updated_after,
            skip,
            top,
        } => list::list(directory, request, entity, updated_after, skip, top, cx),
        Command::PeekSession {
            request,
            entity,
            session,
            from,
            count,
            max_bytes,
        } => peek::peek(
            directory, request, entity, &session, from, count, max_bytes, cx,
        ),
        other => unreachable!("the broker handles it elsewhere: {other:?}"),
    }
}
