//! Run: neighbouring deliveries with one fate, told in one disposition. [AMQP 2.7.6]

use amqp::performative::Role;
use amqp::{DeliveryState, Disposition, Performative};

/// Deliveries `first` to `last` that share state and settlement.
pub(crate) struct Run {
    first: u32,
    last: u32,
    state: DeliveryState,
    settled: bool,
}

impl Run {
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
        let mut run = Run::new(u32::MAX, DeliveryState::Accepted, true);
        assert!(run.extend(0, &DeliveryState::Accepted, true));
        assert!(!run.extend(2, &DeliveryState::Accepted, true));
        assert!(!run.extend(1, &DeliveryState::Released, true));
        assert!(!run.extend(1, &DeliveryState::Accepted, false));
        assert!(run.extend(1, &DeliveryState::Accepted, true));
    }
}
