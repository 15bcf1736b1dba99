//! Enlist: makes commands and dispositions part of a transaction. (docs/spec/amqp.md#8)

use amqp::DeliveryState;
use broker::{
    Command, LockToken, Operation, Outcome, RefusalReport, SettleError, SubqueueId,
    TransactionError, TransactionId,
};
use endpoint::LinkId;
use store::EntityId;

use crate::client::Client;
use crate::client::events::ReceivedDisposition;
use crate::errors;
use crate::pending_requests::{EnlistedDisposition, PendingRequest};
use crate::receiver::SETTLEMENT;
use crate::receiver::disposition::Settlement;
use crate::transactions::{self, transactional_state};

/// Why a transaction fails with a delivery that is not known any more.
const NOT_REMEMBERED: &str = "it has a delivery that its link and the broker have forgotten";

/// A request's command as part of a transaction, if it is one that takes part; all others are done
/// at once. (docs/spec/amqp.md#8)
pub(crate) fn enlist_command(
    transaction: TransactionId,
    scope: Option<EntityId>,
    command: Command,
) -> Command {
    let (request, operation) = match command {
        Command::Send {
            request,
            entity,
            messages,
        } => (request, Operation::Send { entity, messages }),
        Command::SettleMany {
            request,
            subqueue: SubqueueId { entity, subqueue },
            session,
            tokens,
            outcome,
        } => {
            let operation = Operation::Settle {
                subqueue: SubqueueId { entity, subqueue },
                session,
                tokens,
                outcome,
                on_rollback: None,
            };
            (request, operation)
        }
        Command::CancelScheduled {
            request,
            entity,
            numbers,
        } => (request, Operation::Cancel { entity, numbers }),
        Command::SetSessionState {
            request,
            entity,
            session,
            state,
        } => {
            let operation = Operation::SetSessionState {
                entity,
                session,
                state,
            };
            (request, operation)
        }
        other => return other,
    };
    Command::Enlist {
        request,
        transaction,
        operation: Box::new(operation),
        scope,
        refusal: RefusalReport::Reported,
    }
}

impl Client {
    /// Makes a disposition part of a transaction.
    pub(crate) fn enlist(
        &mut self,
        disposition: &ReceivedDisposition,
        transaction: TransactionId,
        outcome: Outcome,
        settlement: Settlement,
    ) {
        let scope = self.scope_of(disposition.link);
        let Some(receiver) = self.settling_receiver(disposition.link) else {
            return;
        };
        let enlisted = EnlistedDisposition {
            transaction,
            token: LockToken(disposition.cookie),
            settled: disposition.settled,
            disposition: receiver.pending_disposition(disposition, settlement),
        };
        let cost = SETTLEMENT + outcome.size();
        // A client that has settled the delivery has no more say in it. [AMQP 4.4.4.2]
        let on_rollback = disposition.settled.then(|| receiver.default_settlement().0);
        let operation = Operation::Settle {
            subqueue: SubqueueId {
                entity: receiver.entity,
                subqueue: receiver.subqueue,
            },
            session: receiver.held_session.clone(),
            tokens: vec![enlisted.token],
            outcome,
            on_rollback,
        };
        self.transactions.enlist(enlisted);
        let request = self.register_request(PendingRequest::Enlist(enlisted), cost);
        self.command(Command::Enlist {
            request,
            transaction,
            operation: Box::new(operation),
            scope,
            refusal: if disposition.settled {
                RefusalReport::Unreported
            } else {
                RefusalReport::Reported
            },
        });
    }

    /// Handles an outcome of a delivery that is not remembered, as the broker has detached its
    /// link, or the client has and there are too many of those: a transaction with it cannot be
    /// committed.
    /// (docs/spec/amqp.md#8.1)
    pub(crate) fn handle_missed(&mut self, state: Option<&DeliveryState>) {
        if let Some(DeliveryState::Transactional {
            txn_id,
            outcome: Some(_),
        }) = state
        {
            self.command(Command::FailTransaction {
                connection: self.id,
                transaction: transactions::parse_id(txn_id),
                reason: NOT_REMEMBERED.to_owned(),
            });
        }
    }

    /// A delivery in a transaction stays unsettled until the commit. A refusal is sent
    /// outside of the transaction's state, since one SDK looks at the type of the state only.
    /// (docs/spec/amqp.md#8)
    pub(crate) fn answer_enlisted(
        &mut self,
        enlisted: &EnlistedDisposition,
        result: Result<(), SettleError>,
    ) {
        let pending = enlisted.disposition;
        let (state, settled) = match result {
            Ok(()) => {
                let outcome = pending.settlement.state();
                (transactional_state(enlisted.transaction, outcome), false)
            }
            Err(error) => {
                // It is part of it already if that is the refusal.
                if error != SettleError::Enlisted {
                    self.transactions.refused(enlisted);
                }
                if enlisted.settled && is_about_transaction(&error) {
                    return self.detach_unknown_transaction(enlisted.disposition.link);
                }
                self.refused_settlement(pending.link, &error)
            }
        };
        self.connection
            .settle_sent(pending.session, pending.delivery_id, state, settled);
    }

    /// There is no answer to a settled disposition that would tell of it. [AMQP 4.5.8]
    fn detach_unknown_transaction(&mut self, link: LinkId) {
        if self.links.get(link).is_some() {
            self.detach(link, errors::unknown_transaction());
        }
    }
}

/// Whether a transaction is over or never was.
pub(crate) fn is_about_transaction(error: &SettleError) -> bool {
    use TransactionError::{TimedOut, Unknown};
    matches!(error, SettleError::Transaction(Unknown | TimedOut))
}
