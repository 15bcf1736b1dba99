//! Credit window: the credit of a link that the client sends on.
//!
//! The window is over what has arrived and was not answered, so what waits for an answer is
//! bounded.

/// How many windows of deliveries may wait for answers on one link. Some clients send beyond their
/// credit (rule 19); a client that exceeds this bound ignores credit altogether.
const WINDOWS: u32 = 4;

/// Credit of a link that the client sends on: a window over what has arrived and was not answered.
///
/// Invariant: credit given plus arrivals unanswered never exceed the window.
#[derive(Debug)]
pub struct CreditWindow {
    window: u32,
    unanswered: u32,
}

impl CreditWindow {
    /// A window of `window` deliveries, all of it free.
    #[must_use]
    pub const fn new(window: u32) -> Self {
        Self {
            window,
            unanswered: 0,
        }
    }

    /// Counts a delivery; false if it is one too many, and the link must be detached.
    #[must_use]
    pub fn arrived(&mut self) -> bool {
        self.unanswered = self.unanswered.saturating_add(1);
        self.unanswered <= self.window.saturating_mul(WINDOWS)
    }

    /// Counts the answer to a delivery.
    pub fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// The most credit that may be given now.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.window.saturating_sub(self.unanswered)
    }

    /// The credit to give when `left` is what the client has; `None` while it has more than half
    /// of what it could have. So one flow goes out for half a window of answers.
    #[must_use]
    pub fn top_up(&self, left: u32) -> Option<u32> {
        let room = self.room();
        let worth = (self.window / 2).max(1);
        (room.saturating_sub(left) >= worth).then_some(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_topped_up_once_half_a_window_is_answered() {
        let mut credit_window = CreditWindow::new(10);
        for _ in 0..10 {
            assert!(credit_window.arrived());
        }
        assert_eq!(credit_window.top_up(0), None);
        for _ in 0..4 {
            credit_window.answered();
        }
        assert_eq!(credit_window.top_up(0), None);
        credit_window.answered();
        assert_eq!(credit_window.top_up(0), Some(5));
        assert_eq!(credit_window.top_up(5), None);
    }

    #[test]
    fn a_client_that_overruns_its_credit_gets_none_until_it_is_answered() {
        let mut credit_window = CreditWindow::new(2);
        for _ in 0..5 {
            assert!(credit_window.arrived());
        }
        for _ in 0..3 {
            credit_window.answered();
            assert_eq!(credit_window.top_up(0), None);
        }
        credit_window.answered();
        assert_eq!(credit_window.top_up(0), Some(1));
    }

    #[test]
    fn four_windows_may_wait_for_answers_and_no_more() {
        let mut credit_window = CreditWindow::new(2);
        for _ in 0..8 {
            assert!(credit_window.arrived());
        }
        assert!(!credit_window.arrived());
        credit_window.answered();
        credit_window.answered();
        assert!(credit_window.arrived());
    }
}
