//! Enlist: makes commands and dispositions part of a transaction. (docs/spec/amqp.md#8)

use broker::{Command, LockToken, Operation, Outcome, SettleError, SubqueueId, TransactionId};

use crate::client::Client;
use crate::client::events::ReceivedDisposition;
use crate::pending_requests::{EnlistedDisposition, PendingRequest};
use crate::receiver::disposition::Settlement;
use crate::receiver::{SETTLEMENT, refused};
use crate::transactions::transactional_state;

/// A request's command as part of a transaction, if it is one that takes part; all others are done
/// at once. (docs/spec/amqp.md#8)
pub(crate) fn enlist_command(transaction: TransactionId, command: Command) -> Command {
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
        operation,
        refusal_is_reported: true,
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
        let Some(receiver) = self.links.receiver(disposition.link) else {
            return;
        };
        let enlisted = EnlistedDisposition {
            transaction,
            token: LockToken(disposition.cookie),
            disposition: receiver.pending_disposition(disposition, settlement),
        };
        let cost = SETTLEMENT + outcome.size();
        let operation = Operation::Settle {
            subqueue: SubqueueId {
                entity: receiver.entity,
                subqueue: receiver.subqueue,
            },
            session: receiver.held_session.clone(),
            tokens: vec![enlisted.token],
            outcome,
        };
        self.transactions.enlist(enlisted);
        let request = self.register_request(PendingRequest::Enlist(enlisted), cost);
        self.command(Command::Enlist {
            request,
            transaction,
            operation,
            refusal_is_reported: !disposition.settled,
        });
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
                self.transactions.refused(enlisted);
                refused(&error)
            }
        };
        self.connection
            .settle_sent(pending.session, pending.delivery_id, state, settled);
    }
}
