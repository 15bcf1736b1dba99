//! Inject: carries out a command, or has it fail as a rule says.
//!
//! What a rule does not touch is carried out as ever. A refused command has changed nothing. A
//! command whose connection is dropped after it is in the same commit as ever, and the connection
//! is told nothing any more.

use crate::api::command::Command;
use crate::api::fault::{DisconnectTime, FaultEffect, InjectedEnd, Requester};
use crate::api::id::{ConnectionId, LockToken};
use crate::api::lineage::LockEnd;
use crate::api::operation::Operation;
use crate::api::outcome::Outcome;
use crate::api::output::Output;
use crate::broker::step;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::fault::concern::{Concern, Named, Place};
use crate::fault::delays::Delayed;
use crate::fault::refuse;
use crate::queue::Queue;
use crate::receive::run::run;
use crate::settle::end_lock;
use crate::transaction;
use crate::transaction::injected;
use store::{EntityId, NamespaceId, SequenceNumber};

/// Carries a command out unless a rule has it fail.
pub(crate) fn apply(directory: &mut Directory, command: Command, cx: &mut Context<'_>) {
    let Some(Choice {
        effect,
        namespace,
        requester,
    }) = choose(directory, &command, cx)
    else {
        return step::apply(directory, command, cx);
    };
    match effect {
        FaultEffect::Refuse(error) => refuse::refuse(directory, &command, error, cx),
        FaultEffect::Disconnect(DisconnectTime::Before) => drop_client(requester, cx),
        FaultEffect::Disconnect(DisconnectTime::After) => {
            let connection = requester.map(Requester::connection);
            let first = cx.effects.outputs.len();
            step::apply(directory, command, cx);
            let mut said = cx.effects.outputs.split_off(first);
            said.retain(|output| Some(output.connection()) != connection);
            cx.effects.outputs.append(&mut said);
            drop_client(requester, cx);
        }
        FaultEffect::Detach(error) => end(&command, requester, InjectedEnd::Link(error), cx),
        FaultEffect::End(error) => end(&command, requester, InjectedEnd::Session(error), cx),
        FaultEffect::Close(error) => end(&command, requester, InjectedEnd::Connection(error), cx),
        FaultEffect::ExpireToken => end(&command, requester, InjectedEnd::Token, cx),
        FaultEffect::DelayMs(delay) if can_wait(&command) => {
            let until = cx.broker_now.mono.after(delay);
            let delayed = Delayed::Command(Box::new(command));
            let delays = &mut directory.faults.delays;
            delays.delay(until, namespace, requester, delayed);
        }
        FaultEffect::DelayMs(_) | FaultEffect::ThrottlePerSecond(_) => {
            step::apply(directory, command, cx);
        }
        FaultEffect::DelayAnswerMs(delay) => {
            // A settlement without an answer is its receiver's.
            if let Some(Requester::Request(request)) = requester {
                let delays = &mut directory.faults.delays;
                delays.delay_answer(request, namespace, delay);
            }
            step::apply(directory, command, cx);
        }
        FaultEffect::WithholdCreditMs(time) => {
            step::apply(directory, command, cx);
            if let Some(requester) = requester {
                withhold(directory, requester, namespace, time, cx);
            }
        }
        FaultEffect::LoseLock => {
            lose_locks(directory, &command, cx);
            step::apply(directory, command, cx);
        }
        FaultEffect::DeliverAgain => step::apply(directory, abandoning(command), cx),
    }
}

/// Carries out what was delayed until now, as far as the turn's budget goes.
pub(crate) fn carry_out_delayed(directory: &mut Directory, cx: &mut Context<'_>) {
    while cx.shared.work_left > 0
        && let Some(delayed) = directory.faults.delays.take_due(cx.broker_now.mono)
    {
        cx.take_work();
        let delays = &mut directory.faults.delays;
        match delayed {
            Delayed::Command(command) => step::apply(directory, *command, cx),
            Delayed::Output(output) => delays.say(*output),
            Delayed::Credit(connection) if delays.withholds_credit(connection) => {}
            Delayed::Credit(connection) => withhold_credit(connection, false, cx),
        }
    }
}

/// What a rule does to a command.
pub(super) struct Choice {
    pub effect: FaultEffect,
    pub namespace: NamespaceId,
    /// As [`Concern::requester`].
    requester: Option<Requester>,
}

/// Looks for a rule that has a command fail.
fn choose(directory: &mut Directory, command: &Command, cx: &mut Context<'_>) -> Option<Choice> {
    let concern = Concern::of(command)?;
    choose_for(directory, concern, Some(command), cx)
}

/// The same for what a command is about, or for something that comes of one.
pub(super) fn choose_for(
    directory: &mut Directory,
    mut concern: Concern<'_>,
    command: Option<&Command>,
    cx: &mut Context<'_>,
) -> Option<Choice> {
    let (namespace, path) = match &concern.place {
        Place::Entity(entity) => {
            let queue = directory.get(*entity)?;
            concern.requester = concern.requester.or_else(|| holder(queue, command?, cx));
            (queue.namespace, queue.path.to_lowercase())
        }
        Place::Path(namespace, path) if directory.namespaces.contains(*namespace) => {
            (*namespace, path.to_lowercase())
        }
        Place::Namespace(namespace) if directory.namespaces.contains(*namespace) => {
            (*namespace, String::new())
        }
        // It is deleted.
        Place::Path(..) | Place::Namespace(_) => return None,
        Place::Transaction(id) => {
            let connection = concern.requester.map(Requester::connection)?;
            let namespace = transaction::namespace_of(*id, connection, cx)?;
            (namespace, String::new())
        }
    };
    cx.enter(namespace);
    let named = match directory.faults.follow_messages() {
        true => named(&concern, cx),
        false => Vec::new(),
    };
    let effect = directory.faults.choose(
        namespace,
        &path,
        &concern,
        &named,
        cx.now,
        cx.broker_now.mono,
    )?;
    Some(Choice {
        effect,
        namespace,
        requester: concern.requester,
    })
}

/// Where the messages stand that an operation is about without bringing them.
fn named(concern: &Concern<'_>, cx: &Context<'_>) -> Vec<(EntityId, SequenceNumber)> {
    let Place::Entity(entity) = concern.place else {
        return Vec::new();
    };
    let numbers = match concern.named {
        Named::Nothing => Vec::new(),
        Named::Numbers(numbers) => numbers.to_vec(),
        Named::Locks(tokens) => {
            let number = |token: &LockToken| cx.shared.tokens.number(*token);
            tokens.iter().map(number).collect()
        }
    };
    numbers.into_iter().map(|number| (entity, number)).collect()
}

/// Of a settlement whose client wants no answer: the receiver that holds the lock.
fn holder(queue: &Queue, command: &Command, cx: &Context<'_>) -> Option<Requester> {
    let Command::Settle { token, .. } = command else {
        return None;
    };
    let (subqueue, number) = end_lock::find_lock(queue, *token, cx)?;
    let lock = queue.sub(subqueue).locks.get(number)?;
    lock.receiver().map(Requester::Receiver)
}

fn drop_client(requester: Option<Requester>, cx: &mut Context<'_>) {
    if let Some(connection) = requester.map(Requester::connection) {
        cx.emit(Output::Dropped { connection });
    }
}

/// A connection has no credit for some time.
pub(super) fn withhold(
    directory: &mut Directory,
    requester: Requester,
    namespace: NamespaceId,
    time: u64,
    cx: &mut Context<'_>,
) {
    let until = cx.broker_now.mono.after(time);
    let delays = &mut directory.faults.delays;
    delays.withhold(until, namespace, requester);
    withhold_credit(requester.connection(), true, cx);
}

fn withhold_credit(connection: ConnectionId, withheld: bool, cx: &mut Context<'_>) {
    cx.emit(Output::CreditWithheld {
        connection,
        withheld,
    });
}

/// Whether a command may be carried out later. Commands of a transaction keep their order: its end
/// decides what was part of it.
fn can_wait(command: &Command) -> bool {
    !matches!(
        command,
        Command::Declare { .. } | Command::Enlist { .. } | Command::Discharge { .. }
    )
}

/// A command that is not carried out has a part of its client's connection end.
fn end(command: &Command, requester: Option<Requester>, end: InjectedEnd, cx: &mut Context<'_>) {
    if let Command::Enlist {
        request,
        transaction,
        refusal,
        ..
    } = command
    {
        injected::fail_unreported(*request, *transaction, *refusal, cx);
    }
    if let Some(requester) = requester {
        cx.emit(Output::Ended { requester, end });
    }
}

/// The locks that a command is about end as if their time were up, those too whose end is part of
/// a transaction.
fn lose_locks(directory: &mut Directory, command: &Command, cx: &mut Context<'_>) {
    let (subqueue, tokens) = match command {
        Command::Settle {
            subqueue, token, ..
        } => (*subqueue, std::slice::from_ref(token)),
        Command::SettleMany {
            subqueue, tokens, ..
        }
        | Command::Renew {
            subqueue, tokens, ..
        } => (*subqueue, tokens.as_slice()),
        Command::Enlist { operation, .. } => match &**operation {
            Operation::Settle {
                subqueue, tokens, ..
            } => (*subqueue, tokens.as_slice()),
            _ => return,
        },
        _ => return,
    };
    // Its entity has gone, and the locks with it.
    let Some(queue) = directory.get_mut(subqueue.entity) else {
        return;
    };
    for &token in tokens {
        if let Some((subqueue, number)) = end_lock::find_lock(queue, token, cx) {
            end_lock::expire_lock(queue, subqueue, number, LockEnd::Expired, cx);
        }
    }
    run(queue, cx);
}

/// A completion that leaves the message there.
fn abandoning(mut command: Command) -> Command {
    let mut outcome = match &mut command {
        Command::Settle { outcome, .. } | Command::SettleMany { outcome, .. } => outcome,
        Command::Enlist { operation, .. } => match &mut **operation {
            Operation::Settle { outcome, .. } => outcome,
            _ => return command,
        },
        _ => return command,
    };
    while let Outcome::Reported { outcome: inner, .. } = outcome {
        outcome = inner;
    }
    *outcome = Outcome::abandon(Vec::new());
    command
}
