//! Receive: the handing out of a message, as a rule says.
//!
//! The step has handed it out already, but no client was told. If it is not to be, the receiver
//! goes first, so that it does not take again what is given back, and what was handed out to it
//! behind the message is given back too. A message that was received and deleted is gone.

use crate::api::command::Command;
use crate::api::fault::{DisconnectTime, FaultEffect, InjectedEnd, Requester};
use crate::api::id::{ConnectionId, ReceiverId, Subqueue, SubqueueId};
use crate::api::outcome::Outcome;
use crate::api::output::{Delivery, Output};
use crate::broker::step;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::fault::concern::Concern;
use crate::fault::inject::{self, Choice};
use crate::message::properties::Properties;

/// The receivers and connections that a rule has ended in this step.
#[derive(Debug, Default)]
pub(super) struct Gone {
    receivers: Vec<ReceiverId>,
    connections: Vec<ConnectionId>,
    /// Connections that hear nothing more of what is theirs all the same.
    deaf: Vec<ConnectionId>,
}

/// Looks at a delivery. Returns what is to be said now.
pub(super) fn deliver(
    directory: &mut Directory,
    receiver: ReceiverId,
    delivery: Box<Delivery>,
    gone: &mut Gone,
    cx: &mut Context<'_>,
) -> Option<Output> {
    let connection = receiver.connection;
    if gone.receivers.contains(&receiver) || gone.connections.contains(&connection) {
        give_back(directory, receiver, &delivery, cx);
        return None;
    }
    if gone.deaf.contains(&connection) {
        return None;
    }
    let chosen = choose(directory, receiver, &delivery, cx);
    let requester = Requester::Receiver(receiver);
    let ended = |end| Output::Ended { requester, end };
    let end = match chosen.as_ref().map(|chosen| chosen.effect) {
        Some(FaultEffect::Disconnect(DisconnectTime::Before)) => Output::Dropped { connection },
        Some(FaultEffect::Disconnect(DisconnectTime::After)) => {
            gone.deaf.push(connection);
            cx.emit(Output::Dropped { connection });
            return None;
        }
        Some(FaultEffect::Detach(error)) => ended(InjectedEnd::Link(error)),
        Some(FaultEffect::End(error)) => ended(InjectedEnd::Session(error)),
        Some(FaultEffect::Close(error)) => ended(InjectedEnd::Connection(error)),
        Some(FaultEffect::ExpireToken) => ended(InjectedEnd::Token),
        _ => return say(directory, receiver, delivery, chosen.as_ref(), cx),
    };
    leave(directory, receiver, &end, gone, cx);
    give_back(directory, receiver, &delivery, cx);
    cx.emit(end);
    None
}

fn choose(
    directory: &mut Directory,
    receiver: ReceiverId,
    delivery: &Delivery,
    cx: &mut Context<'_>,
) -> Option<Choice> {
    if !directory.faults.match_deliveries() {
        return None;
    }
    let message = &delivery.message;
    let session = Properties::of(&message.payload).session_id;
    let session = session.as_deref();
    let concern = Concern::of_delivery(receiver, message.entity, &message.number, session);
    inject::choose_for(directory, concern, None, cx)
}

/// A delivery that goes to its receiver, now or later.
fn say(
    directory: &mut Directory,
    receiver: ReceiverId,
    delivery: Box<Delivery>,
    chosen: Option<&Choice>,
    cx: &mut Context<'_>,
) -> Option<Output> {
    let output = Output::Deliver { receiver, delivery };
    let now = cx.broker_now.mono;
    let delays = &mut directory.faults.delays;
    if let Some(&Choice {
        effect, namespace, ..
    }) = chosen
    {
        match effect {
            FaultEffect::DelayMs(delay) if delay > 0 => {
                delays.delay_told(now.after(delay), namespace, receiver, output);
                return None;
            }
            FaultEffect::WithholdCreditMs(time) => {
                let requester = Requester::Receiver(receiver);
                inject::withhold(directory, requester, namespace, time, cx);
            }
            _ => {}
        }
    }
    directory.faults.delays.keep_in_order(output)
}

/// A receiver goes, or its connection.
fn leave(
    directory: &mut Directory,
    receiver: ReceiverId,
    end: &Output,
    gone: &mut Gone,
    cx: &mut Context<'_>,
) {
    let connection = receiver.connection;
    let ends_connection = matches!(
        end,
        Output::Dropped { .. }
            | Output::Ended {
                end: InjectedEnd::Connection(_),
                ..
            }
    );
    let command = match ends_connection {
        true => {
            gone.connections.push(connection);
            Command::Disconnect { connection }
        }
        false => {
            gone.receivers.push(receiver);
            Command::Detach { receiver }
        }
    };
    step::apply(directory, command, cx);
}

/// A message is there as if it had not been handed out.
fn give_back(
    directory: &mut Directory,
    receiver: ReceiverId,
    delivery: &Delivery,
    cx: &mut Context<'_>,
) {
    // The lock is in one of them, and the others do not know its token.
    let subqueues = Subqueue::ALL.into_iter();
    for subqueue in subqueues.filter(|_| delivery.message.lock.is_some()) {
        let entity = delivery.message.entity;
        let given_back = Command::Settle {
            request: None,
            subqueue: SubqueueId { entity, subqueue },
            session: None,
            token: delivery.token,
            outcome: Outcome::Undelivered,
        };
        step::apply(directory, given_back, cx);
    }
    let written = Command::Written {
        connection: receiver.connection,
        bytes: delivery.size(),
    };
    step::apply(directory, written, cx);
}
