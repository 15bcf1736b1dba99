//! Length: a queue that refuses what would be too much takes what it has room for. (I14)
//!
//! Only available messages count, and the ledger cannot tell at each moment which of them are
//! locked. It counts all that may be available when a send is decided: with fewer than the queue
//! takes there is room, whatever else has happened.

use broker::{Overflow, RequestId, SendError};
use store::{EntityId, Part, SequenceNumber};

use super::answers::Asked;
use super::{Ledger, Queue};
use crate::violation::Violation;

impl Queue {
    /// With more available messages than that it refuses new ones.
    fn refuses_beyond(&self) -> u64 {
        let refuses = self.overflow != Overflow::DropHead;
        self.max_length.filter(|_| refuses).unwrap_or(u64::MAX)
    }
}

impl Ledger {
    /// Messages come to an entity. Returns how many may be available with them.
    pub(super) fn note_arriving(&mut self, entity: EntityId, count: usize) -> u64 {
        let arriving = self.turn.arriving.entry(entity).or_default();
        *arriving += count as u64;
        let arriving = *arriving;
        let (stored, _) = self.books.tally(entity, Part::Active);
        let due = self.books.first_due(entity);
        let is_due = due.is_some_and(|(at, _)| at <= self.turn.now.wall.0);
        let (scheduled, _) = self.books.tally(entity, Part::Scheduled);
        let redriven = self.turn.redriven.len() as u64;
        stored + arriving + redriven + if is_due { scheduled } else { 0 }
    }

    /// A send is answered: it was not refused where there was room.
    pub(super) fn check_room(
        &mut self,
        request: RequestId,
        result: &Result<SequenceNumber, SendError>,
    ) -> Result<(), Violation> {
        let asked = self.answers.asked(request);
        let Some(&Asked::Send { entity, most, .. }) = asked else {
            return Ok(());
        };
        let queue = self.queue_of(entity).map(|queue| &self.queues[queue]);
        let limit = queue.map_or(u64::MAX, Queue::refuses_beyond);
        match result {
            Err(SendError::LengthExceeded { .. }) if most <= limit => {
                let path = queue.map(|queue| queue.path);
                let what =
                    format!("{path:?} refused a send with room: {most} messages, not {limit}");
                return Err(Violation::new("I14", what));
            }
            Err(SendError::LengthExceeded { .. }) => self.report.refused_by_length += 1,
            Ok(_) if limit < u64::MAX && most <= limit => self.report.accepted_with_room += 1,
            _ => {}
        }
        Ok(())
    }
}
