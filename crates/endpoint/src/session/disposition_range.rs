//! Disposition range: neighbouring deliveries with the same state, sent in one disposition. [AMQP
//! 2.7.6]

use amqp::performative::Role;
use amqp::{DeliveryState, Disposition, Performative};

/// Deliveries `first` to `last` that share state and settlement.
pub(crate) struct DispositionRange {
    first: u32,
    last: u32,
    state: DeliveryState,
    settled: bool,
}

impl DispositionRange {
    pub(crate) fn new(id: u32, state: DeliveryState, settled: bool) -> Self {
        Self {
            first: id,
            last: id,
            state,
            settled,
        }
    }

    /// Takes `id` in if it is the next one and shares the fate.
    pub(crate) fn extend(&mut self, id: u32, state: &DeliveryState, settled: bool) -> bool {
        let fits = self.last.wrapping_add(1) == id && self.settled == settled;
        if fits && self.state == *state {
            self.last = id;
            return true;
        }
        false
    }

    pub(crate) fn into_disposition(self, role: Role) -> Performative {
        Performative::Disposition(Disposition {
            role,
            first: self.first,
            last: Some(self.last),
            settled: self.settled,
            state: Some(self.state),
            batchable: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_next_delivery_with_the_same_fate_joins() {
        let mut range = DispositionRange::new(u32::MAX, DeliveryState::Accepted, true);
        assert!(range.extend(0, &DeliveryState::Accepted, true));
        assert!(!range.extend(2, &DeliveryState::Accepted, true));
        assert!(!range.extend(1, &DeliveryState::Released, true));
        assert!(!range.extend(1, &DeliveryState::Accepted, false));
        assert!(range.extend(1, &DeliveryState::Accepted, true));
    }
}
