//! Pending requests: the requests of a connection to the broker that have no answer yet.
//!
//! They are kept in a slab, so once it has grown to the usual number of open requests, neither a
//! request nor an answer allocates. A token holds the slot and its generation, so a second answer
//! to a request finds nothing. Every open request has a cost in bytes; the owner bounds their sum.

use amqp::Value;
use broker::{LockToken, TransactionId};
use endpoint::{LinkId, SessionId};

use crate::receiver::disposition::Settlement;

/// A request to the broker, by the kind of its answer.
#[derive(Debug)]
pub(crate) enum PendingRequest {
    /// Messages of one delivery.
    Send(PendingSend),
    /// A disposition that waits for its answer.
    Settle(PendingDisposition),
    /// A disposition within a transaction.
    Enlist(EnlistedDisposition),
    Declare(Control),
    Discharge(Discharge),
    /// An operation on a management node.
    Manage(Box<PendingOperation>),
}

/// A delivery that the broker has not answered.
#[derive(Debug)]
pub(crate) struct PendingSend {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
    /// The transaction that it is part of.
    pub(crate) transaction: Option<TransactionId>,
}

/// A disposition that the broker has not answered: where the answer goes, and the outcome if it
/// succeeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingDisposition {
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settlement: Settlement,
}

/// A disposition that is part of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnlistedDisposition {
    pub(crate) transaction: TransactionId,
    pub(crate) token: LockToken,
    pub(crate) link: LinkId,
    /// Whether the client has settled the delivery.
    pub(crate) settled: bool,
    pub(crate) disposition: PendingDisposition,
}

/// A declare or discharge that the broker was given.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
}

/// A discharge that the broker was given.
#[derive(Debug)]
pub(crate) struct Discharge {
    pub(crate) control: Control,
    pub(crate) transaction: TransactionId,
    pub(crate) fail: bool,
}

/// An operation of a management node that the broker has not answered.
#[derive(Debug)]
pub(crate) struct PendingOperation {
    pub(crate) request_link: LinkId,
    pub(crate) response_link: LinkId,
    /// The request's message id, to be given back as it came.
    pub(crate) correlation: Option<Value>,
    /// The node as error texts name it.
    pub(crate) resource: String,
    /// The operation, if there is such an operation.
    pub(crate) operation: Option<&'static str>,
    /// The number of elements in the request, where the answer needs it.
    pub(crate) count: usize,
    /// Whether the messages of the answer are wanted without their bodies.
    pub(crate) without_bodies: bool,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    cost: usize,
    request: Option<PendingRequest>,
}

/// Open requests by token.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    slots: Vec<Slot>,
    free: Vec<u32>,
    cost: usize,
}

impl PendingRequests {
    /// Adds `request`, which occupies `cost` bytes, and returns its token.
    pub(crate) fn insert(&mut self, request: PendingRequest, cost: usize) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        let slot = &mut self.slots[index as usize];
        slot.request = Some(request);
        slot.cost = cost;
        self.cost = self.cost.saturating_add(cost);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// Removes and returns the request that `token` names.
    pub(crate) fn remove(&mut self, token: u64) -> Option<PendingRequest> {
        let index = (token & u64::from(u32::MAX)) as u32;
        let slot = self.slots.get_mut(index as usize)?;
        if u64::from(slot.generation) != token >> 32 {
            return None;
        }
        let request = slot.request.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.cost = self.cost.saturating_sub(slot.cost);
        self.free.push(index);
        Some(request)
    }

    /// Bytes that all open requests occupy.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.slots.len()).expect("2^32 questions do not fit in memory");
        self.slots.push(Slot::default());
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(delivery_id: u32) -> PendingRequest {
        let session = SessionId(0);
        PendingRequest::Settle(PendingDisposition {
            session,
            delivery_id,
            settlement: Settlement::Accepted,
        })
    }

    #[test]
    fn an_answer_finds_its_request_once() {
        let mut pending = PendingRequests::default();
        let token = pending.insert(request(7), 10);
        assert_eq!(pending.cost(), 10);
        assert!(matches!(
            pending.remove(token),
            Some(PendingRequest::Settle(PendingDisposition {
                delivery_id: 7,
                ..
            }))
        ));
        assert!(pending.remove(token).is_none());
        assert_eq!(pending.cost(), 0);
    }

    #[test]
    fn a_reused_slot_does_not_answer_to_its_old_token() {
        let mut pending = PendingRequests::default();
        let old = pending.insert(request(1), 1);
        pending.remove(old);
        let new = pending.insert(request(2), 1);
        assert_ne!(old, new);
        assert!(pending.remove(old).is_none());
        assert!(pending.remove(new).is_some());
    }
}
