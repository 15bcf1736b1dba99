//! Read-ahead: how far bodies of a subqueue are read before their turn.
//!
//! Without it, a receiver of a backlog would wait for each read. When the messages of at most two
//! reads lie ahead, the next ones are asked for: twice as many each time, as long as they are still
//! in memory when their turn comes, and half as many when they are not, because other entities need
//! the memory more. A read takes longer than handing out what it brings, so two are on their way as
//! a rule.

use store::SequenceNumber;

/// Least number of messages before the next look, after there was nothing to read ahead.
const REST: usize = 64;
/// Reads whose messages lie ahead.
const DISTANCE: u64 = 2;

/// Why there are numbers.
const NOT_EMPTY: &str = "a read asks for at least one body";

/// What has been read of a subqueue's bodies.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    /// The last message whose body was asked for.
    until: u64,
    /// The next ones are asked for when this message is handed out, or one behind it.
    due_at: Option<u64>,
    /// How many messages are worth asking for.
    count: usize,
}

impl ReadAhead {
    /// How many messages to ask for, if it is time when `number` is handed out.
    pub fn due(&self, number: SequenceNumber) -> Option<usize> {
        let is_due = self.due_at.is_some_and(|due_at| number.0 >= due_at);
        (is_due && self.count > 0).then_some(self.count)
    }

    /// Behind what has been asked for already.
    pub fn next(&self) -> SequenceNumber {
        SequenceNumber(self.until.saturating_add(1))
    }

    /// Bodies were asked for because a receiver waits for the first of them.
    pub fn waited_for(&mut self, numbers: &[SequenceNumber]) {
        let first = numbers.first().expect(NOT_EMPTY);
        self.count = if first.0 > self.until {
            self.count.max(numbers.len())
        } else {
            self.count / 2
        };
        self.asked(numbers);
    }

    /// Bodies were asked for ahead of their turn.
    pub fn read_ahead(&mut self, numbers: &[SequenceNumber], most: usize) {
        self.count = self.count.saturating_mul(2).min(most);
        self.asked(numbers);
    }

    /// There was nothing to ask for when `number` was handed out, among twice as many as `most`
    /// messages, or no room for it.
    pub fn rest(&mut self, number: SequenceNumber, most: usize) {
        self.due_at = Some(number.0.saturating_add(most.max(REST) as u64));
    }

    fn asked(&mut self, numbers: &[SequenceNumber]) {
        let first = numbers.first().expect(NOT_EMPTY);
        let last = numbers.last().expect(NOT_EMPTY);
        self.until = self.until.max(last.0);
        let distance = last.0.saturating_sub(first.0).saturating_mul(DISTANCE);
        self.due_at = Some(self.until.saturating_sub(distance));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(first: u64, last: u64) -> Vec<SequenceNumber> {
        (first..=last).map(SequenceNumber).collect()
    }

    #[test]
    fn more_is_read_ahead_whenever_no_more_than_two_reads_are_left() {
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.due(SequenceNumber(5)), None);
        ahead.waited_for(&numbers(1, 10));
        assert_eq!(ahead.due(SequenceNumber(1)), Some(10));
        assert_eq!(ahead.next(), SequenceNumber(11));
        ahead.read_ahead(&numbers(11, 20), 30);
        assert_eq!(ahead.due(SequenceNumber(1)), None);
        assert_eq!(ahead.due(SequenceNumber(2)), Some(20));
        ahead.read_ahead(&numbers(21, 40), 30);
        assert_eq!(ahead.due(SequenceNumber(2)), Some(30));
        ahead.read_ahead(&numbers(41, 70), 30);
        assert_eq!(ahead.due(SequenceNumber(11)), None);
        assert_eq!(ahead.due(SequenceNumber(12)), Some(30));
        // What comes next is in memory.
        ahead.rest(SequenceNumber(12), 30);
        assert_eq!(ahead.due(SequenceNumber(75)), None);
        assert_eq!(ahead.due(SequenceNumber(76)), Some(30));
    }

    #[test]
    fn less_is_read_ahead_when_it_does_not_stay_in_memory() {
        let mut ahead = ReadAhead::default();
        ahead.waited_for(&numbers(1, 4));
        ahead.waited_for(&numbers(3, 4));
        assert_eq!(ahead.due(SequenceNumber(4)), Some(2));
        // Those behind it that have gone too count as well.
        ahead.waited_for(&numbers(1, 1));
        ahead.waited_for(&numbers(2, 2));
        assert_eq!(ahead.due(SequenceNumber(2)), None);
        ahead.waited_for(&numbers(5, 6));
        assert_eq!(ahead.due(SequenceNumber(6)), Some(2));
    }
}
