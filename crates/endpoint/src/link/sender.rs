//! Sender: our end of a link that we send on, as far as credit goes. [AMQP 2.6.7]
//!
//! Credit is the receiver's grant less the sent deliveries; `queued` of it belongs to deliveries
//! that wait for the session's window. A drain is answered when the owner has declared that it has
//! no more, and its queued deliveries are sent or have lost their credit.

use amqp::Flow;

use crate::serial;

/// More usable credit than this cannot be told apart from less than none.
const MAX_USABLE: u32 = (1 << 31) - 1;

pub(crate) struct Sender {
    /// Deliveries whose last frame was written.
    pub(crate) delivery_count: u32,
    initial_delivery_count: u32,
    pub(crate) credit: u32,
    pub(crate) queued: u32,
    /// Whether the receiver waits for the answer to its drain.
    drain_owed: bool,
    /// Whether the owner has no more for the drain.
    drained: bool,
    /// The limit that was last reported to the owner.
    announced: u32,
}

/// What a flow asks of the sender besides credit.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum FlowAction {
    Nothing,
    /// Tell the owner of its new limit.
    Announce,
    /// Tell the owner to drain.
    Drain,
    /// A drain was cancelled before it was answered: write the link's state.
    Answer,
}

impl Sender {
    pub(crate) fn new(initial_delivery_count: u32) -> Self {
        Self {
            delivery_count: initial_delivery_count,
            initial_delivery_count,
            credit: 0,
            queued: 0,
            drain_owed: false,
            drained: false,
            announced: initial_delivery_count,
        }
    }

    /// Starts over from the count that the attach says.
    pub(crate) fn start_from(&mut self, initial_delivery_count: u32) {
        *self = Self::new(initial_delivery_count);
    }

    /// Deliveries that may still be sent.
    pub(crate) fn usable(&self) -> u32 {
        if self.drained {
            return 0;
        }
        self.credit.saturating_sub(self.queued)
    }

    /// Takes the receiver's view in: credit is absolute, counted from what the receiver has seen.
    /// [AMQP 2.6.7]
    pub(crate) fn handle_flow(&mut self, flow: &Flow) -> FlowAction {
        let called_off = self.drain_owed && !flow.drain;
        if let Some(credit) = flow.link_credit {
            self.grant(flow, credit);
            self.drain_owed = flow.drain;
            self.drained = false;
        }
        match flow.link_credit {
            None => FlowAction::Nothing,
            Some(_) if flow.drain => FlowAction::Drain,
            Some(_) if called_off => FlowAction::Answer,
            Some(_) => FlowAction::Announce,
        }
    }

    fn grant(&mut self, flow: &Flow, credit: u32) {
        // Null until the receiver has seen our attach. [AMQP 2.7.4]
        let seen = flow.delivery_count.unwrap_or(self.initial_delivery_count);
        // A receiver that claims to have seen more than was sent is taken to have seen all.
        let on_their_way = serial::distance(seen, self.delivery_count).unwrap_or(0);
        self.credit = credit.saturating_sub(on_their_way).min(MAX_USABLE);
    }

    /// Counts a delivery as sent.
    pub(crate) fn count(&mut self) {
        self.delivery_count = self.delivery_count.wrapping_add(1);
        self.credit = self.credit.saturating_sub(1);
    }

    /// The owner has no more for a drain that is asked for.
    pub(crate) fn set_drained(&mut self) {
        self.drained = self.drain_owed;
    }

    /// Uses all credit up if the drain can be answered now. [AMQP 2.6.7]
    #[must_use]
    pub(crate) fn exhaust(&mut self) -> bool {
        let unsent = self.queued.min(self.credit);
        if !self.drain_owed || unsent > 0 || !(self.drained || self.credit == 0) {
            return false;
        }
        self.delivery_count = self.delivery_count.wrapping_add(self.credit);
        self.credit = 0;
        self.drain_owed = false;
        self.drained = false;
        self.announced = self.position();
        true
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain_owed
    }

    /// Sets the limit to report to the owner, at most `room` deliveries from here. Returns whether
    /// it is new.
    pub(crate) fn announce(&mut self, room: u32) -> bool {
        let limit = self.position().wrapping_add(self.usable().min(room));
        let news = limit != self.announced;
        self.announced = limit;
        news
    }

    /// The owner was refused: it reckons with no more credit than it has used.
    pub(crate) fn withdraw(&mut self) {
        self.announced = self.position();
    }

    /// The limit that was last reported to the owner.
    pub(crate) fn announced(&self) -> u32 {
        self.announced
    }

    /// Whether the owner has used up the reported limit, though there is more.
    pub(crate) fn is_behind(&self) -> bool {
        self.position() == self.announced && self.usable() > 0
    }

    /// Deliveries accepted from the owner, sent or queued.
    fn position(&self) -> u32 {
        self.delivery_count.wrapping_add(self.queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(delivery_count: Option<u32>, credit: u32) -> Flow {
        Flow {
            delivery_count,
            link_credit: Some(credit),
            ..Flow::default()
        }
    }

    #[test]
    fn credit_counts_from_what_the_receiver_has_seen() {
        let mut sender = Sender::new(u32::MAX - 1);
        sender.handle_flow(&flow(None, 4));
        assert_eq!(sender.usable(), 4);
        sender.count();
        sender.count();
        sender.count();
        sender.handle_flow(&flow(Some(u32::MAX), 4));
        assert_eq!(sender.delivery_count, 1);
        assert_eq!(sender.usable(), 2);
    }

    #[test]
    fn less_credit_takes_credit_back() {
        let mut sender = Sender::new(0);
        sender.handle_flow(&flow(Some(0), 10));
        sender.handle_flow(&flow(Some(0), 0));
        assert_eq!(sender.usable(), 0);
    }

    #[test]
    fn a_receiver_that_saw_more_than_was_sent_gets_no_more_than_it_grants() {
        let mut sender = Sender::new(0);
        sender.handle_flow(&flow(Some(77), 3));
        assert_eq!(sender.usable(), 3);
    }

    #[test]
    fn the_largest_credit_stays_comparable() {
        let mut sender = Sender::new(5);
        sender.handle_flow(&flow(None, u32::MAX));
        assert!(sender.announce(u32::MAX));
        assert_eq!(serial::distance(5, sender.announced()), Some(MAX_USABLE));
    }
}
