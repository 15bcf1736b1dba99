//! Sender: a link on which the client sends messages to an entity.
//! (docs/spec/amqp.md#3.2, #4.5, #5.5)
//!
//! Every delivery becomes one `Command::Send` and is answered when the broker has answered, unless
//! it came settled. Credit is granted as answers are sent, not as messages arrive, so the messages
//! that are not yet durable stay bounded per link.

pub(crate) mod distribution;
pub(crate) mod oversize;

use amqp::error::condition;
use amqp::{DeliveryState, Error};
use broker::{Command, Incoming, Operation, Refusal, RequestId, SendError, TransactionId};
use store::{EntityId, SequenceNumber};

use crate::client::Client;
use crate::client::events::IncomingDelivery;
use crate::errors;
use crate::message::incoming;
use crate::pending_requests::{PendingRequest, PendingSend};
use crate::transactions;

/// The cost of every message beside its bytes while it waits for its answer.
const OVERHEAD: usize = 256;

impl Client {
    /// Hands a delivery's messages to the broker, or refuses it.
    pub(crate) fn handle_send(&mut self, delivery: &IncomingDelivery) {
        let Some(sender) = self.links.sender(delivery.link) else {
            return;
        };
        if !sender.credit_window.arrived() {
            self.detach(delivery.link, errors::credit_overrun());
            return;
        }
        let (entity, transfer_to) = (sender.entity, sender.transfer_to.clone());
        let IncomingDelivery {
            link,
            session,
            delivery_id,
            settled,
            ..
        } = *delivery;
        let pending = PendingSend {
            link,
            session,
            delivery_id,
            settled,
            transaction: transactions::of_state(delivery.state.as_ref()),
        };
        let (format, limit) = (delivery.message_format, sender.max_message_size);
        let messages = incoming::messages(format, &delivery.payload, limit, &mut self.ids);
        match messages {
            Err(error) => self.refuse_send(&pending, error),
            // An empty batch has no effect. (docs/spec/amqp.md#4.5)
            Ok(messages) if messages.is_empty() && pending.transaction.is_none() => {
                self.answer_send(&pending, Ok(()));
            }
            Ok(mut messages) => {
                for message in messages.iter_mut().filter(|_| transfer_to.is_some()) {
                    message.transfer_to.clone_from(&transfer_to);
                }
                let rules = self
                    .directory
                    .rules(entity)
                    .filter(|_| transfer_to.is_none());
                self.is_slow =
                    rules.is_some_and(|rules| distribution::distribute(rules, &mut messages));
                let cost = messages.iter().map(|message| message.size() + OVERHEAD);
                let cost = cost.sum();
                let transaction = pending.transaction;
                let request = self.register_request(PendingRequest::Send(pending), cost);
                let scope = self.scope_of(link);
                self.command(send(request, entity, messages, transaction, scope, settled));
            }
        }
    }

    /// Refuses a delivery that the broker has not seen.
    pub(crate) fn refuse_send(&mut self, pending: &PendingSend, error: Error) {
        if let Some(transaction) = pending.transaction {
            self.command(Command::FailTransaction {
                connection: self.id,
                transaction,
                reason: error.condition.as_str().to_owned(),
            });
        }
        self.answer_send(pending, Err(error));
    }

    /// The broker has answered a send.
    pub(crate) fn handle_sent(
        &mut self,
        request: RequestId,
        result: Result<SequenceNumber, SendError>,
        duplicates: &[(usize, SequenceNumber)],
    ) {
        let pending = match self.pending_requests.remove(request.token) {
            Some(PendingRequest::Send(pending)) => pending,
            Some(PendingRequest::Manage(pending)) => {
                return self.answer_schedule(&pending, result, duplicates);
            }
            _ => return,
        };
        let result = result.map(|_| ()).map_err(|error| {
            let link = self.links.get(pending.link);
            let name = match &error {
                SendError::NotFound | SendError::Disabled => link.map(|link| &link.resource),
                _ => link.and_then(|link| Some(&link.entity.as_ref()?.path)),
            };
            errors::send(&error, name.map_or("", String::as_str))
        });
        self.answer_send(&pending, result);
    }

    /// Settles a delivery (unless it came settled) and gives credit for more. After the link's
    /// end there is no answer, unless it was detached without being closed.
    /// (docs/spec/amqp.md#3.8)
    fn answer_send(&mut self, pending: &PendingSend, result: Result<(), Error>) {
        if !pending.settled {
            let result = result.map_err(|error| self.tracked(error));
            let state = pending.state(result);
            self.connection
                .dispose_received(pending.session, pending.delivery_id, state, true);
        }
        let Some(sender) = self.links.sender(pending.link) else {
            return;
        };
        sender.credit_window.answered();
        if let Some(credit) = sender
            .credit_window
            .top_up(self.connection.credit_left(pending.link))
        {
            self.connection.set_credit(pending.link, credit, false);
        }
    }
}

impl PendingSend {
    /// The state of the answer. Within a transaction the outcome is wrapped in the transaction's
    /// state, except that there is no such transaction.
    fn state(&self, result: Result<(), Error>) -> DeliveryState {
        let outcome = match result {
            Ok(()) => DeliveryState::Accepted,
            Err(error) if is_about_transaction(&error) => {
                return DeliveryState::Rejected(Some(error));
            }
            Err(error) => DeliveryState::Rejected(Some(error)),
        };
        match self.transaction {
            Some(transaction) => transactions::transactional_state(transaction, outcome),
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
    scope: Option<EntityId>,
    settled: bool,
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
            scope,
            refusal: if settled {
                Refusal::Untold
            } else {
                Refusal::Misread
            },
        },
    }
}

fn is_about_transaction(error: &Error) -> bool {
    error.condition == condition::UNKNOWN_TRANSACTION
        || error.condition == condition::TRANSACTION_TIMEOUT
}
