//! Step: which code a command is for, one arm for each command.
//!
//! A command about an entity that is there counts as a use of it, so that it is not deleted as
//! idle: here, or where the command changes what is in the entity. (docs/spec/entities.md#15)

use crate::administration;
use crate::api::command::Command;
use crate::api::id::SubqueueId;
use crate::api::output::Output;
use crate::api::time::Wall;
use crate::broker::{clock, loaded, tick};
use crate::client_affine;
use crate::context::Context;
use crate::delete;
use crate::entities::directory::Directory;
use crate::node;
use crate::receive::pending_schedule_peek::SchedulePeek;
use crate::receive::retrieval::Retrieval;
use crate::receive::{attach, deferred, disconnect, peek, schedule_peek};
use crate::router;
use crate::send::timetable::Due;
use crate::send::{self, cancel};
use crate::sessions;
use crate::sessions::state_request::StateRequest;
use crate::settle::end_lock::Asker;
use crate::settle::{self, redrive, renew};
use crate::transaction::{discharge, enlist};
use crate::{topic, transaction};

/// Carries one command out.
pub(crate) fn apply(directory: &mut Directory, command: Command, cx: &mut Context<'_>) {
    clock::enter_for(directory, &command, cx);
    match command {
        Command::AddRule {
            request,
            entity,
            rule,
        } => topic::command::add_rule(directory, request, entity, &rule, cx),
        Command::RemoveRule {
            request,
            entity,
            name,
        } => topic::command::remove_rule(directory, request, entity, &name, cx),
        Command::ListRules {
            request,
            entity,
            skip,
            top,
        } => topic::command::list_rules(directory, request, entity, skip, top, cx),
        Command::Administer {
            request,
            namespace,
            order,
        } => administration::administer(directory, request, namespace, *order, cx),
        Command::Send {
            request,
            entity,
            messages,
        } => send::send(directory, request, entity, messages, cx),
        Command::Publish {
            request,
            publication,
        } => router::publish::publish(directory, request, *publication, cx),
        Command::Attach {
            receiver,
            subqueue,
            access,
            selector,
        } => {
            attach::attach(directory, receiver, subqueue, access, selector, cx);
        }
        // No rule has objected.
        Command::AttachSender { request, .. } => {
            let result = Ok(());
            cx.emit(Output::SenderAttached { request, result });
        }
        Command::Subscribe { receiver, request } => {
            client_affine::subscribe(directory, receiver, *request, cx);
        }
        Command::Credit {
            receiver,
            limit,
            drain,
        } => attach::credit(directory, receiver, limit, drain, cx),
        Command::Detach { receiver } => attach::detach(directory, receiver, cx),
        Command::LoseReceiver { receiver } => attach::lose(directory, receiver, cx),
        Command::Settle {
            request,
            subqueue,
            session,
            token,
            outcome,
        } => {
            let asker = Asker::new(subqueue, request, session);
            settle::settle(directory, request, &asker, token, outcome, cx);
        }
        Command::SettleMany {
            request,
            subqueue,
            session,
            tokens,
            outcome,
        } => {
            let asker = Asker::new(subqueue, Some(request), session);
            settle::settle_many(directory, request, &asker, &tokens, &outcome, cx);
        }
        Command::Redrive {
            request,
            subqueue,
            token,
            message,
        } => {
            redrive::redrive(directory, request, subqueue, token, message, cx);
        }
        Command::Renew {
            request,
            subqueue: SubqueueId { entity, .. },
            tokens,
        } => {
            directory.note_use(entity, cx);
            renew::renew(directory, request, entity, &tokens, cx);
        }
        Command::Peek {
            request,
            subqueue,
            state,
            from,
            count,
            max_bytes,
        } => {
            directory.note_use(subqueue.entity, cx);
            let wanted = peek::Wanted {
                place: subqueue,
                state,
                from,
                count,
                max_bytes,
            };
            peek::peek(directory, request, wanted, cx);
        }
        Command::PeekSchedule {
            request,
            entity,
            from: (Wall(at), number),
            count,
            max_bytes,
        } => {
            directory.note_use(entity, cx);
            let from = Due { at, number };
            let peek = SchedulePeek::new(request, entity, from, count, max_bytes);
            schedule_peek::peek(directory, peek, cx);
        }
        Command::ReceiveDeferred {
            request,
            subqueue,
            session,
            numbers,
            mode,
            max_bytes,
        } => {
            directory.note_use(subqueue.entity, cx);
            let retrieval = Retrieval {
                place: subqueue,
                request,
                session,
                numbers,
                mode,
                max_bytes,
            };
            deferred::receive(directory, retrieval, cx);
        }
        Command::CancelScheduled {
            request,
            entity,
            numbers,
        } => {
            directory.note_use(entity, cx);
            cancel::cancel(directory, request, entity, numbers, cx);
        }
        Command::DeleteMessages {
            request,
            subqueue,
            session,
            enqueued_before,
            count,
        } => {
            let wanted = delete::Wanted {
                place: subqueue,
                session,
                before: enqueued_before,
                count,
            };
            delete::delete(directory, request, &wanted, cx);
        }
        Command::AcceptSession {
            receiver,
            entity,
            mode,
            session,
        } => {
            directory.note_use(entity, cx);
            sessions::command::accept(directory, receiver, entity, mode, session, cx);
        }
        Command::RenewSession {
            request,
            entity,
            session,
        } => {
            directory.note_use(entity, cx);
            sessions::command::renew(directory, request, entity, &session, cx);
        }
        Command::GetSessionState {
            request,
            entity,
            session,
        } => {
            directory.note_use(entity, cx);
            sessions::command::ask_state(
                directory,
                entity,
                &session,
                StateRequest::Get(request),
                cx,
            );
        }
        Command::ShowSessionState {
            request,
            entity,
            session,
        } => {
            directory.note_use(entity, cx);
            sessions::command::show_state(directory, request, entity, &session, cx);
        }
        Command::SetSessionState {
            request,
            entity,
            session,
            state,
        } => {
            directory.note_use(entity, cx);
            let wanted = StateRequest::Set(request, state);
            sessions::command::ask_state(directory, entity, &session, wanted, cx);
        }
        Command::ListSessions {
            request,
            entity,
            updated_after,
            skip,
            top,
        } => {
            directory.note_use(entity, cx);
            sessions::command::list(directory, request, entity, updated_after, skip, top, cx);
        }
        Command::PeekSession {
            request,
            entity,
            session,
            from,
            count,
            max_bytes,
        } => {
            directory.note_use(entity, cx);
            sessions::command::peek(
                directory, request, entity, &session, from, count, max_bytes, cx,
            );
        }
        Command::AdvanceClock { namespace, ms } => clock::advance(directory, namespace, ms, cx),
        Command::CreateNode {
            link,
            namespace,
            node,
        } => node::create(directory, link, namespace, node, cx),
        Command::OpenNode {
            link,
            namespace,
            node,
            used,
        } => node::open(directory, link, namespace, node, used, cx),
        Command::CloseNode { link } => node::close(directory, link, cx),
        Command::Declare {
            request,
            namespace,
            coordinator,
        } => transaction::declare(request, namespace, coordinator, cx),
        Command::Enlist {
            request,
            transaction,
            operation,
            scope,
            refusal,
        } => enlist::enlist(
            directory,
            request,
            transaction,
            *operation,
            scope,
            refusal,
            cx,
        ),
        Command::FailTransaction {
            connection,
            transaction,
            reason,
        } => enlist::mark_failed(connection, transaction, reason, cx),
        Command::Discharge {
            request,
            transaction,
            fail,
        } => discharge::discharge(directory, request, transaction, fail, cx),
        Command::EndTransactions {
            connection,
            coordinator,
        } => transaction::end(directory, connection, Some(coordinator), cx),
        Command::Written { connection, bytes } => {
            attach::written(directory, connection, bytes, cx);
        }
        Command::Introduce { connection, client } => {
            directory.faults.introduce(connection, *client);
        }
        Command::Disconnect { connection } => {
            directory.faults.forget_client(connection);
            disconnect::disconnect(directory, connection, cx);
        }
        Command::Leave { connection } => {
            directory.faults.forget_client(connection);
            disconnect::leave(directory, connection, cx);
        }
        Command::Loaded { read, found } => loaded::loaded(directory, read, found, cx),
        Command::Durable => cx.shared.deletion_scheduler.go_on(),
        Command::StoreSpace { nearly_full } => cx.shared.nearly_full = nearly_full,
        Command::SetLimits(limits) => cx.shared.settings.set_limits(limits),
        Command::Tick => tick::tick(directory, cx),
    }
}
