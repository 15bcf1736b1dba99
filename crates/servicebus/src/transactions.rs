//! Transactions: the open transactions of a client, as the dialect sees them. (docs/spec/amqp.md#8)
//!
//! The broker decides about them. This file keeps the coordinator that declared each one, and the
//! deliveries that it settles. An enlisted delivery is answered with its transaction's state and
//! stays unsettled, so that the client can settle it again after a rollback; the commit settles it
//! finally.

pub(crate) mod coordinator;
pub(crate) mod enlist;
pub(crate) mod scope;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use amqp::DeliveryState;
use broker::{LockToken, TransactionId};
use bytes::Bytes;
use endpoint::LinkId;

use crate::pending_requests::{EnlistedDisposition, PendingDisposition};

/// The transaction that a client names; an id that is not 16 bytes long names none.
pub(crate) fn parse_id(txn_id: &Bytes) -> TransactionId {
    let id = <[u8; 16]>::try_from(&txn_id[..]).unwrap_or_default();
    TransactionId(u128::from_be_bytes(id))
}

/// A transaction's id as the client knows it.
pub(crate) fn encode_id(transaction: TransactionId) -> Bytes {
    Bytes::copy_from_slice(&transaction.0.to_be_bytes())
}

/// The transaction that a delivery's state puts it into.
pub(crate) fn of_state(state: Option<&DeliveryState>) -> Option<TransactionId> {
    match state {
        Some(DeliveryState::Transactional { txn_id, .. }) => Some(parse_id(txn_id)),
        _ => None,
    }
}

/// An outcome within a transaction.
pub(crate) fn transactional_state(
    transaction: TransactionId,
    outcome: DeliveryState,
) -> DeliveryState {
    DeliveryState::Transactional {
        txn_id: encode_id(transaction),
        outcome: Some(Box::new(outcome)),
    }
}

#[derive(Debug)]
struct OpenTransaction {
    coordinator: LinkId,
    /// The broker decides it now, even if its coordinator is detached.
    discharged: bool,
    enlisted: Vec<EnlistedDisposition>,
}

/// The open transactions of a connection.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    open: BTreeMap<TransactionId, OpenTransaction>,
    /// The transactions of all deliveries that are enlisted.
    tokens: BTreeMap<LockToken, TransactionId>,
}

impl Transactions {
    pub(crate) fn declared(&mut self, id: TransactionId, coordinator: LinkId) {
        let open = OpenTransaction {
            coordinator,
            discharged: false,
            enlisted: Vec::new(),
        };
        self.open.insert(id, open);
    }

    /// A disposition is on its way to the broker. One that comes after the discharge is refused
    /// there, so the commit does not settle it.
    pub(crate) fn enlist(&mut self, enlisted: EnlistedDisposition) {
        if let Some(open) = self.open.get_mut(&enlisted.transaction)
            && !open.discharged
            && let Entry::Vacant(place) = self.tokens.entry(enlisted.token)
        {
            place.insert(enlisted.transaction);
            open.enlisted.push(enlisted);
        }
    }

    /// The transaction that a delivery is part of, if that is not over.
    pub(crate) fn of(&self, token: LockToken) -> Option<TransactionId> {
        self.tokens.get(&token).copied()
    }

    /// Whether a transaction is not over.
    pub(crate) fn is_open(&self, id: TransactionId) -> bool {
        self.open.contains_key(&id)
    }

    /// The broker has refused a disposition.
    pub(crate) fn refused(&mut self, refused: &EnlistedDisposition) {
        let is_it = |enlisted: &EnlistedDisposition| {
            let (one, other) = (enlisted.disposition, refused.disposition);
            (one.session, one.delivery_id) == (other.session, other.delivery_id)
        };
        if let Some(open) = self.open.get_mut(&refused.transaction)
            && let Some(index) = open.enlisted.iter().position(is_it)
        {
            let enlisted = open.enlisted.swap_remove(index);
            self.tokens.remove(&enlisted.token);
        }
    }

    /// A discharge is on its way to the broker.
    pub(crate) fn discharge(&mut self, id: TransactionId) {
        if let Some(open) = self.open.get_mut(&id) {
            open.discharged = true;
        }
    }

    /// A transaction is over. Returns the answers to the dispositions that were part of it.
    pub(crate) fn end(&mut self, id: TransactionId) -> Vec<PendingDisposition> {
        let Some(open) = self.open.remove(&id) else {
            return Vec::new();
        };
        for enlisted in &open.enlisted {
            self.tokens.remove(&enlisted.token);
        }
        let enlisted = open.enlisted.into_iter();
        enlisted.map(|enlisted| enlisted.disposition).collect()
    }

    /// Ends the transactions of a detached coordinator.
    pub(crate) fn end_coordinator(&mut self, coordinator: LinkId) {
        let ended = self
            .open
            .iter()
            .filter(|(_, open)| open.coordinator == coordinator && !open.discharged);
        let ended: Vec<_> = ended.map(|(id, _)| *id).collect();
        for id in ended {
            self.end(id);
        }
    }
}
