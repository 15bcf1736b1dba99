//! Sender: a link on which the client sends messages to an entity.
//! (docs/spec/amqp.md#3.2, #4.5, #5.5)
//!
//! Every delivery becomes one `Command::Send` and is answered when the broker has answered, unless
//! it came settled. Credit is granted as answers are sent, not as messages arrive, so the messages
//! that are not yet durable stay bounded per link.

pub(crate) mod distribution;
pub(crate) mod oversize;
pub(crate) mod relay;

use amqp::error::condition;
use amqp::{DeliveryState, Error};
use broker::{Command, Incoming, Operation, RefusalReport, RequestId, SendError, TransactionId};
use dialect::Subject;
use store::{EntityId, SequenceNumber};

use crate::client::Client;
use crate::client::events::IncomingDelivery;
use crate::errors;
use crate::links::link::SenderDestination;
use crate::message::incoming;
use crate::pending_requests::{PendingRequest, PendingSend};
use crate::sender::relay::Destination;
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
        let limit = sender.max_message_size;
        let transfer_to = sender.transfer_to.clone();
        let IncomingDelivery {
            link,
            session,
            delivery_id,
            settled,
            ..
        } = *delivery;
        let mut pending = PendingSend {
            link,
            session,
            delivery_id,
            settled,
            transaction: transactions::of_state(delivery.state.as_ref()),
            relayed_to: None,
        };
        let Destination {
            entity,
            max_message_size,
            scope,
            only_in,
            relayed_to,
        } = match self.destination_of(delivery, limit) {
            Ok(destination) => destination,
            Err(error) => return self.refuse_or_detach(&pending, error),
        };
        pending.relayed_to = relayed_to;
        let (format, payload) = (delivery.message_format, &delivery.payload);
        let has_delays = self.settings.jms;
        let ids = &mut self.ids;
        match incoming::messages(format, payload, max_message_size, has_delays, ids) {
            Err(error) => self.refuse_send(&pending, error),
            // An empty batch has no effect. (docs/spec/amqp.md#4.5)
            Ok(messages) if messages.is_empty() && pending.transaction.is_none() => {
                self.answer_send(&pending, Ok(()));
            }
            Ok(mut messages) => {
                for message in &mut messages {
                    message.transfer_to.clone_from(&transfer_to);
                    message.only_in = only_in;
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
                self.command(send(request, entity, messages, transaction, scope, settled));
            }
        }
    }

    /// Where a delivery goes: by its link, or by the message itself.
    fn destination_of(
        &mut self,
        delivery: &IncomingDelivery,
        max_message_size: u64,
    ) -> Result<Destination, Error> {
        let link = delivery.link;
        let sender = self.links.sender(link).ok_or_else(errors::no_address)?;
        let relay = match &mut sender.destination {
            SenderDestination::Entity(entity) => {
                let entity = *entity;
                let scope = self.scope_of(link);
                return Ok(Destination {
                    entity,
                    max_message_size,
                    scope,
                    only_in: None,
                    relayed_to: None,
                });
            }
            SenderDestination::Relay(relay) => relay,
        };
        let mut relay = std::mem::take(relay);
        let destination = self.relayed(&mut relay, delivery.session, &delivery.payload);
        if let Some(sender) = self.links.sender(link) {
            sender.destination = SenderDestination::Relay(relay);
        }
        destination
    }

    /// Refuses a delivery that the broker has not seen.
    fn refuse_send(&mut self, pending: &PendingSend, error: Error) {
        self.fail_transaction(pending, &error);
        self.answer_send(pending, Err(error));
    }

    /// The same. The link of a settled one is detached: its client would not hear of it otherwise.
    /// (docs/spec/amqp.md#3.9)
    pub(crate) fn refuse_or_detach(&mut self, pending: &PendingSend, error: Error) {
        if !pending.settled {
            return self.refuse_send(pending, error);
        }
        self.fail_transaction(pending, &error);
        self.detach(pending.link, error);
    }

    fn fail_transaction(&mut self, pending: &PendingSend, error: &Error) {
        if let Some(transaction) = pending.transaction {
            self.command(Command::FailTransaction {
                connection: self.id,
                transaction,
                reason: error.condition.as_str().to_owned(),
            });
        }
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
        match result {
            Ok(_) => self.answer_send(&pending, Ok(())),
            Err(error) => {
                let error = self.send_error(&pending, &error);
                let is_missing = error.condition == condition::NOT_FOUND;
                let is_unheard = pending.settled && pending.relayed_to.is_some() && is_missing;
                match is_unheard {
                    // The client would not hear of it otherwise. (docs/spec/amqp.md#3.9)
                    true => self.detach(pending.link, error),
                    false => self.answer_send(&pending, Err(error)),
                }
            }
        }
    }

    fn send_error(&self, pending: &PendingSend, error: &SendError) -> Error {
        match &pending.relayed_to {
            Some(path) => errors::send(error, &self.name_of(path, &self.resource(path))),
            None => errors::send(error, &self.entity_name(pending.link)),
        }
    }

    /// Settles a delivery (unless it came settled) and gives credit for more. After the link's
    /// end there is no answer, unless it was detached without being closed.
    /// (docs/spec/amqp.md#3.8)
    fn answer_send(&mut self, pending: &PendingSend, result: Result<(), Error>) {
        let entity = pending.relayed_to.as_deref();
        let result =
            result.map_err(|error| self.refused(Subject::Message, pending.link, entity, error));
        if !pending.settled {
            let state = pending.state(result);
            self.connection
                .dispose_received(pending.session, pending.delivery_id, state, true);
        }
        let Some(sender) = self.links.sender(pending.link) else {
            return;
        };
        sender.credit_window.answered();
        if self.withholds_credit {
            return;
        }
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
            operation: Box::new(Operation::Send { entity, messages }),
            scope,
            refusal: if settled {
                RefusalReport::Unreported
            } else {
                RefusalReport::Misread
            },
        },
    }
}

fn is_about_transaction(error: &Error) -> bool {
    error.condition == condition::UNKNOWN_TRANSACTION
        || error.condition == condition::TRANSACTION_TIMEOUT
}
