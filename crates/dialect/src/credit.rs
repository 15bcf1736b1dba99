//! Credit: keeps the client's count of a link and the broker's count of its receiver in step.
//!
//! Both sides count deliveries as serial numbers, but at a drain each of them skips the remaining
//! credit at its own time. While the broker works on a drain it gets no other update, so that its
//! answer has one meaning; flows of the client in the meantime are passed on afterwards.
//!
//! Invariant: the deliveries that the broker may still send, and those that it has sent and the
//! connection has not seen, are at most the client's remaining credit.

/// The two counts of one receiver link.
#[derive(Clone, Debug, Default)]
pub struct Credit {
    /// The client's newest limit, and whether it came with a drain.
    limit: u32,
    drain: bool,
    /// Deliveries that the client counts: sent, or skipped by a drain.
    sent: u32,
    /// Deliveries that the broker counts: handed to us, or skipped by a drain.
    handed: u32,
    /// The limit of the drain that the broker works on.
    draining_to: Option<u32>,
}

/// A credit update for the broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CreditUpdate {
    /// The limit of deliveries, as a serial number.
    pub limit: u32,
    /// Whether what is left of it is skipped once nothing is available.
    pub drain: bool,
}

impl Credit {
    /// The client's flow.
    pub fn grant(&mut self, limit: u32, drain: bool) {
        self.limit = limit;
        self.drain = drain;
    }

    /// A delivery came from the broker.
    pub fn handed(&mut self) {
        self.handed = self.handed.wrapping_add(1);
    }

    /// A delivery went to the client.
    pub fn sent(&mut self) {
        self.sent = self.sent.wrapping_add(1);
    }

    /// Whether the broker is at work on a drain.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining_to.is_some()
    }

    /// The next update for the broker when `waiting` of its deliveries wait here for the client's
    /// credit. None while it drains.
    pub fn next_update(&mut self, waiting: usize) -> Option<CreditUpdate> {
        if self.is_draining() {
            return None;
        }
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        let limit = self
            .handed
            .wrapping_add(self.usable().saturating_sub(waiting));
        self.draining_to = self.drain.then_some(limit);
        Some(CreditUpdate {
            limit,
            drain: self.drain,
        })
    }

    /// The update that stops the broker until the client's next flow: `returned` of its deliveries
    /// go back, and their credit must not bring them here again.
    #[must_use]
    pub fn stop(&mut self, returned: usize) -> CreditUpdate {
        let returned = u32::try_from(returned).unwrap_or(u32::MAX);
        self.handed = self.handed.wrapping_sub(returned);
        CreditUpdate {
            limit: self.handed,
            drain: false,
        }
    }

    /// The broker has finished its drain and skipped what was left; true if the client still
    /// waits for the answer, which makes it skip what it has left too.
    pub fn finish_drain(&mut self) -> bool {
        let Some(limit) = self.draining_to.take() else {
            return false;
        };
        self.handed = self.handed.wrapping_add(ahead(self.handed, limit));
        if self.drain {
            self.sent = self.sent.wrapping_add(self.usable());
        }
        std::mem::take(&mut self.drain)
    }

    /// Deliveries that the client still takes.
    fn usable(&self) -> u32 {
        ahead(self.sent, self.limit)
    }
}

/// How far `to` is ahead of `from`, as serial numbers: more than half the circle is behind.
/// [AMQP 2.6.7]
const fn ahead(from: u32, to: u32) -> u32 {
    let distance = to.wrapping_sub(from);
    if distance < 1 << 31 { distance } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliver(credit: &mut Credit, count: usize) {
        for _ in 0..count {
            credit.handed();
            credit.sent();
        }
    }

    #[test]
    fn without_drains_the_broker_is_told_the_clients_limit() {
        let mut credit = Credit::default();
        credit.grant(10, false);
        assert_eq!(
            credit.next_update(0),
            Some(CreditUpdate {
                limit: 10,
                drain: false
            })
        );
        deliver(&mut credit, 4);
        credit.grant(14, false);
        assert_eq!(
            credit.next_update(0),
            Some(CreditUpdate {
                limit: 14,
                drain: false
            })
        );
    }

    #[test]
    fn both_sides_skip_what_a_drain_left() {
        let mut credit = Credit::default();
        credit.grant(10, true);
        assert_eq!(
            credit.next_update(0),
            Some(CreditUpdate {
                limit: 10,
                drain: true
            })
        );
        deliver(&mut credit, 3);
        assert!(credit.finish_drain());
        credit.grant(15, false);
        assert_eq!(
            credit.next_update(0),
            Some(CreditUpdate {
                limit: 15,
                drain: false
            })
        );
    }

    #[test]
    fn a_drain_that_is_taken_back_costs_the_client_no_credit() {
        let mut credit = Credit::default();
        credit.grant(10, true);
        credit.next_update(0);
        deliver(&mut credit, 3);
        credit.grant(15, false);
        assert_eq!(
            credit.next_update(0),
            None,
            "the broker is at work on the drain"
        );
        assert!(!credit.finish_drain());
        // The broker counts 10, the client 3: twelve more are welcome.
        assert_eq!(
            credit.next_update(0),
            Some(CreditUpdate {
                limit: 22,
                drain: false
            })
        );
    }

    #[test]
    fn credit_given_while_draining_is_skipped_by_the_answer() {
        let mut credit = Credit::default();
        credit.grant(5, true);
        credit.next_update(0);
        credit.grant(9, true);
        assert_eq!(credit.next_update(0), None);
        assert!(credit.finish_drain());
        credit.grant(12, false);
        assert_eq!(
            credit.next_update(0),
            Some(CreditUpdate {
                limit: 8,
                drain: false
            })
        );
    }

    #[test]
    fn a_stop_leaves_the_broker_nothing_to_deliver() {
        let mut credit = Credit::default();
        credit.grant(10, false);
        credit.next_update(0);
        deliver(&mut credit, 2);
        credit.grant(2, false);
        credit.next_update(0);
        credit.handed();
        assert_eq!(
            credit.stop(1),
            CreditUpdate {
                limit: 2,
                drain: false
            }
        );
        credit.grant(4, false);
        assert_eq!(
            credit.next_update(0),
            Some(CreditUpdate {
                limit: 4,
                drain: false
            })
        );
    }

    #[test]
    fn kept_deliveries_use_credit_before_new_ones() {
        let mut credit = Credit::default();
        credit.grant(1, false);
        credit.next_update(0);
        for _ in 0..3 {
            credit.handed();
        }
        credit.sent();
        credit.grant(4, false);
        assert_eq!(
            credit.next_update(2),
            Some(CreditUpdate {
                limit: 4,
                drain: false
            })
        );
    }

    #[test]
    fn an_answer_to_a_drain_that_nobody_asked_for_means_nothing() {
        let mut credit = Credit::default();
        credit.grant(10, false);
        assert!(!credit.finish_drain());
        assert_eq!(
            credit.next_update(0),
            Some(CreditUpdate {
                limit: 10,
                drain: false
            })
        );
    }
}
