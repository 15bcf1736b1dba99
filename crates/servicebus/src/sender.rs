//! Sender: a link on which the client sends messages to an entity. (docs/spec/amqp.md#3.2, #4.5, #5.5)
//!
//! Every delivery becomes one `Command::Send` and is answered once the broker has answered,
//! unless it came settled. Credit is topped up as answers go out, not as messages come in, so
//! what is not durable yet stays bounded per link.

use amqp::error::condition;
use amqp::{DeliveryState, Error};
use broker::{Command, Incoming, Operation, RequestId, SendError, TransactionId};
use bytes::Bytes;
use endpoint::{LinkId, SessionId};
use store::{EntityId, SequenceNumber};

use crate::client::Client;
use crate::distributing;
use crate::incoming;
use crate::link::Intake;
use crate::pending::Question;
use crate::refusal;
use crate::transactions;

/// What every message costs beside its bytes while it waits for its answer.
const OVERHEAD: usize = 256;

/// A sender link's own state.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) entity: EntityId,
    pub(crate) intake: Intake,
    pub(crate) max_message_size: u64,
}

/// A delivery that the broker was given.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
    /// The transaction that it is part of.
    pub(crate) transaction: Option<TransactionId>,
}

/// A delivery as the endpoint reports it.
pub(crate) struct Arrival {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) message_format: u32,
    pub(crate) settled: bool,
    pub(crate) state: Option<DeliveryState>,
    pub(crate) payload: Bytes,
}

impl Client {
    /// Hands a delivery's messages to the broker, or refuses it.
    pub(crate) fn handle_send(&mut self, arrival: &Arrival) {
        let Some(sender) = self.links.sender(arrival.link) else {
            return;
        };
        if !sender.intake.arrived() {
            self.detach(arrival.link, refusal::credit_overrun());
            return;
        }
        let entity = sender.entity;
        let Arrival {
            link,
            session,
            delivery_id,
            settled,
            ..
        } = *arrival;
        let sent = Sent {
            link,
            session,
            delivery_id,
            settled,
            transaction: transactions::of(arrival.state.as_ref()),
        };
        let (format, limit) = (arrival.message_format, sender.max_message_size);
        let messages = incoming::messages(format, &arrival.payload, limit, &mut self.ids);
        match messages {
            Err(error) => self.refuse_send(&sent, error),
            // An empty batch has no effect. (docs/spec/amqp.md#4.5)
            Ok(messages) if messages.is_empty() && sent.transaction.is_none() => {
                self.answer_send(&sent, Ok(()));
            }
            Ok(mut messages) => {
                let rules = self.directory.rules(entity);
                self.is_slow =
                    rules.is_some_and(|rules| distributing::distribute(rules, &mut messages));
                let cost = messages.iter().map(|message| message.size() + OVERHEAD);
                let cost = cost.sum();
                let transaction = sent.transaction;
                let request = self.ask(Question::Send(sent), cost);
                self.command(send(request, entity, messages, transaction));
            }
        }
    }

    /// Refuses a delivery that the broker has not seen.
    pub(crate) fn refuse_send(&mut self, sent: &Sent, error: Error) {
        if let Some(transaction) = sent.transaction {
            self.command(Command::Doom {
                connection: self.id,
                transaction,
                reason: error.condition.as_str().to_owned(),
            });
        }
        self.answer_send(sent, Err(error));
    }

    /// The broker has answered a send.
    pub(crate) fn handle_sent(
        &mut self,
        request: RequestId,
        result: Result<SequenceNumber, SendError>,
        duplicates: &[(usize, SequenceNumber)],
    ) {
        let sent = match self.pending.answer(request.token) {
            Some(Question::Send(sent)) => sent,
            Some(Question::Manage(asked)) => {
                return self.answer_schedule(&asked, result, duplicates);
            }
            _ => return,
        };
        let result = result.map(|_| ()).map_err(|error| {
            let link = self.links.get(sent.link);
            let name = match &error {
                SendError::NotFound | SendError::Disabled => link.map(|link| &link.resource),
                _ => link.and_then(|link| Some(&link.entity.as_ref()?.path)),
            };
            refusal::send(&error, name.map_or("", String::as_str))
        });
        self.answer_send(&sent, result);
    }

    /// Settles a delivery (unless it came settled) and gives credit for more. After the link's
    /// end there is nobody to tell.
    fn answer_send(&mut self, sent: &Sent, result: Result<(), Error>) {
        let Some(sender) = self.links.sender(sent.link) else {
            return;
        };
        sender.intake.answered();
        if !sent.settled {
            let state = sent.state(result);
            self.connection
                .dispose_received(sent.session, sent.delivery_id, state, true);
        }
        if let Some(credit) = sender.intake.top_up(self.connection.credit_left(sent.link)) {
            self.connection.set_credit(sent.link, credit, false);
        }
    }
}

impl Sent {
    /// The state that tells the client. What happened within a transaction is told within its
    /// state, but not that there is no such transaction.
    fn state(&self, result: Result<(), Error>) -> DeliveryState {
        let outcome = match result {
            Ok(()) => DeliveryState::Accepted,
            Err(error) if is_about_transaction(&error) => {
                return DeliveryState::Rejected(Some(error));
            }
            Err(error) => DeliveryState::Rejected(Some(error)),
        };
        match self.transaction {
            Some(transaction) => transactions::provisional(transaction, outcome),
            None => outcome,
        }
    }
}

/// Refusals within a transaction are not left to the client to act on: one SDK takes any answer
/// to such a send for a success (azure-core-amqp for Java, `ReactorSender`), so that it would
/// commit the rest.
fn send(
    request: RequestId,
    entity: EntityId,
    messages: Vec<Incoming>,
    transaction: Option<TransactionId>,
) -> Command {
    match transaction {
        None => Command::Send {
            request,
            entity,
            messages,
        },
        Some(transaction) => Command::Enlist {
            request,
            transaction,
            operation: Operation::Send { entity, messages },
            heard: false,
        },
    }
}

fn is_about_transaction(error: &Error) -> bool {
    error.condition == condition::UNKNOWN_TRANSACTION
        || error.condition == condition::TRANSACTION_TIMEOUT
}
