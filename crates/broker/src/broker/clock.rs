//! Clock: in which namespace a step is, hence what time it has, and the advance of one namespace.
//!
//! How far each namespace is ahead of the broker is kept in `context/clocks.rs`; the machine's
//! clocks are read in the crate `server`. A step enters the namespace of its command before it
//! looks at the time. A command that names neither a namespace nor an entity is entered where its
//! entities are found. Alarms, the ends of transactions and those of delays are kept in the
//! broker's time, so that there is one first deadline. An advance of their namespace makes them
//! come earlier by as much.

use store::{EntityId, NamespaceId};

use crate::api::command::Command;
use crate::api::info::Deadline;
use crate::context::{Context, Shared};
use crate::entities::directory::Directory;

/// What follows is about the namespace of a command, if the command alone tells.
pub(crate) fn enter_for(directory: &Directory, command: &Command, cx: &mut Context<'_>) {
    if cx.shared.clocks.is_empty() {
        return;
    }
    match command {
        Command::Administer { namespace, .. }
        | Command::CreateNode { namespace, .. }
        | Command::OpenNode { namespace, .. } => cx.enter(*namespace),
        command => {
            let entity = entity_of(command);
            if let Some(queue) = entity.and_then(|entity| directory.get(entity)) {
                cx.enter(queue.namespace);
            }
        }
    }
}

/// Lets time pass in a namespace alone. What is due then is done with the next tick.
pub(crate) fn advance(
    directory: &mut Directory,
    namespace: NamespaceId,
    ms: u64,
    cx: &mut Context<'_>,
) {
    // It may have been deleted meanwhile.
    if !directory.namespaces.contains(namespace) {
        return;
    }
    let Shared {
        clocks,
        alarms,
        transactions,
        ..
    } = &mut *cx.shared;
    clocks.advance(namespace, ms);
    transactions.shorten(namespace, ms);
    directory.faults.shorten_delays(namespace, ms);
    for queue in directory.iter_mut() {
        if queue.namespace == namespace {
            let alarm = queue.alarm.earlier(ms);
            alarms.set(queue.id, queue.alarm, alarm);
            queue.alarm = alarm;
        }
    }
}

/// The first deadline of what is in a namespace, in the broker's time.
pub(crate) fn deadline(directory: &Directory, shared: &Shared, namespace: NamespaceId) -> Deadline {
    let mut first = Deadline {
        mono: directory.faults.delays.deadline_of(namespace),
        wall: None,
    };
    for queue in directory.all_in(namespace) {
        let alarm = queue.alarm;
        first.mono = first.mono.into_iter().chain(alarm.mono).min();
        first.wall = first.wall.into_iter().chain(alarm.wall).min();
    }
    let transaction = shared.transactions.deadline_of(namespace);
    first.mono = first.mono.into_iter().chain(transaction).min();
    first
}

/// Whether something in a namespace goes on when the store has answered or written, which is not
/// a matter of time.
pub(crate) fn is_under_way(directory: &Directory, shared: &Shared, namespace: NamespaceId) -> bool {
    let mut reads = shared.reads();
    let mut here = directory.all_in(namespace);
    reads.any(|purpose| is_in(directory, purpose.entity(), namespace))
        || here.any(|queue| queue.deletions.first().is_some())
}

fn is_in(directory: &Directory, entity: EntityId, namespace: NamespaceId) -> bool {
    let queue = directory.get(entity);
    queue.is_some_and(|queue| queue.namespace == namespace)
}

/// The entity that a command names.
fn entity_of(command: &Command) -> Option<EntityId> {
    match command {
        Command::AddRule { entity, .. }
        | Command::RemoveRule { entity, .. }
        | Command::ListRules { entity, .. }
        | Command::Send { entity, .. }
        | Command::AttachSender { entity, .. }
        | Command::AcceptSession { entity, .. }
        | Command::RenewSession { entity, .. }
        | Command::GetSessionState { entity, .. }
        | Command::SetSessionState { entity, .. }
        | Command::ListSessions { entity, .. }
        | Command::PeekSession { entity, .. }
        | Command::PeekSchedule { entity, .. }
        | Command::ShowSessionState { entity, .. }
        | Command::CancelScheduled { entity, .. } => Some(*entity),
        Command::Attach { subqueue, .. }
        | Command::Settle { subqueue, .. }
        | Command::SettleMany { subqueue, .. }
        | Command::Redrive { subqueue, .. }
        | Command::Renew { subqueue, .. }
        | Command::Peek { subqueue, .. }
        | Command::ReceiveDeferred { subqueue, .. }
        | Command::DeleteMessages { subqueue, .. } => Some(subqueue.entity),
        Command::Subscribe { request, .. } => Some(request.topic),
        Command::Enlist { operation, .. } => Some(operation.entity()),
        Command::Administer { .. }
        | Command::AdvanceClock { .. }
        | Command::Introduce { .. }
        | Command::Publish { .. }
        | Command::Credit { .. }
        | Command::Detach { .. }
        | Command::LoseReceiver { .. }
        | Command::CreateNode { .. }
        | Command::OpenNode { .. }
        | Command::CloseNode { .. }
        | Command::Declare { .. }
        | Command::FailTransaction { .. }
        | Command::Discharge { .. }
        | Command::EndTransactions { .. }
        | Command::Written { .. }
        | Command::Disconnect { .. }
        | Command::Leave { .. }
        | Command::Loaded { .. }
        | Command::Durable
        | Command::StoreSpace { .. }
        | Command::SetLimits(_)
        | Command::Tick => None,
    }
}
