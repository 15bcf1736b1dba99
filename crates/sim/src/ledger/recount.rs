//! Recount: the ledger against a full look at the store.

use std::collections::BTreeMap;

use broker::QueueInfo;
use store::audit::Finding;
use store::image::Image;
use store::{Part, SequenceNumber};

use super::{Entry, Ledger};
use crate::message::{self, MessageId};
use crate::violation::Violation;

/// Where a full scan found a message.
struct Found {
    queue: usize,
    part: Part,
    number: SequenceNumber,
    count: u32,
    patched: bool,
}

impl Ledger {
    /// Checks everything that is in `image` and everything that should be.
    ///
    /// # Errors
    /// I1, I2, I6 or I9.
    pub fn recount(&self, image: &Image) -> Result<(), Violation> {
        let alive = |finding: &&Finding| self.is_about_live_entity(finding);
        if let Some(finding) = image.audit().iter().find(alive) {
            return Err(Violation::new("I9", finding.to_string()));
        }
        let found = self.find_all(image)?;
        if !self.books.has_entries(image) {
            let what = "the store does not hold the entries that were written";
            return Err(Violation::new("I9", what.to_owned()));
        }
        self.check_books(&found)?;
        for (id, entry) in &self.entries {
            self.check_entry(*id, entry, found.get(id))?;
        }
        Ok(())
    }

    /// Checks a broker's own counters of one queue against the count of what it wrote.
    ///
    /// # Errors
    /// I9, when they differ.
    pub fn check_counters(&self, info: &QueueInfo) -> Result<(), Violation> {
        let tallies = Part::ALL.map(|part| self.books.tally(info.id, part));
        let count = |part: Part| tallies[part as usize].0;
        let counted = (
            count(Part::Active),
            count(Part::DeadLetter) + count(Part::DeadLetterDeferred),
            count(Part::Deferred),
            count(Part::Scheduled),
            tallies.iter().map(|(_, bytes)| bytes).sum::<u64>() + self.books.state_bytes(info.id),
        );
        let claimed = (
            info.active,
            info.dead_letter,
            info.deferred,
            info.scheduled,
            info.bytes,
        );
        if counted == claimed {
            return Ok(());
        }
        Err(Violation::new(
            "I9",
            format!(
                "{} claims {claimed:?}, a count finds {counted:?}",
                info.path
            ),
        ))
    }

    /// Checks that nothing is left but what clients deferred or may have deferred, once all was
    /// drained.
    ///
    /// # Errors
    /// I14, when something still waits.
    pub fn nothing_waits(&self, image: &Image) -> Result<(), Violation> {
        for (id, found) in self.find_all(image)? {
            if matches!(
                found.part,
                Part::Active | Part::DeadLetter | Part::Scheduled
            ) {
                return Err(Violation::new(
                    "I14",
                    format!("message {id} still waits in {:?}", found.part),
                ));
            }
        }
        Ok(())
    }

    /// Checks that no message of a deleted subscription is left, once there was time.
    ///
    /// # Errors
    /// I1, when something is.
    pub fn check_no_tombstones(&self) -> Result<(), Violation> {
        let left = self.books.len() - self.books.living();
        if left == 0 {
            return Ok(());
        }
        let what = format!("{left} messages of deleted subscriptions are still there");
        Err(Violation::new("I1", what))
    }

    /// Checks that no message stands in its queue although its deadline is past. For a time when
    /// nothing is locked and the sweep has had its second.
    ///
    /// # Errors
    /// I6, when something was left.
    pub fn nothing_expired(&self, image: &Image, wall_ms: u64) -> Result<(), Violation> {
        for ((entity, part, number), row) in &image.messages {
            let mut queues = self.queues.iter();
            let waits = queues.any(|queue| queue.id == *entity && queue.cloud);
            if *part == Part::Active && row.expires_ms < wall_ms && !waits {
                let late = wall_ms - row.expires_ms;
                let what =
                    format!("{number} of {entity:?} expired {late} ms ago and is still there");
                return Err(Violation::new("I6", what));
            }
        }
        Ok(())
    }

    /// The books were kept from the writes alone, so they are checked too.
    fn check_books(&self, found: &BTreeMap<MessageId, Found>) -> Result<(), Violation> {
        let differs = |(id, found): &(&MessageId, &Found)| {
            let place = self.books.place(**id);
            place.is_none_or(|place| {
                (place.part, place.number, self.books.count(place))
                    != (found.part, found.number, found.count)
            })
        };
        let differs = found.iter().find(differs).map(|(id, _)| *id);
        if differs.is_none() && self.books.living() == found.len() {
            return Ok(());
        }
        let what = format!("the store does not hold what was written, see {differs:?}");
        Err(Violation::new("I9", what))
    }

    fn find_all(&self, image: &Image) -> Result<BTreeMap<MessageId, Found>, Violation> {
        let mut found = BTreeMap::new();
        for ((entity, part, number), row) in &image.messages {
            if !self.books.is_live(*entity) {
                continue;
            }
            let body = image.bodies.get(&(row.body.home, row.body.number));
            let root = body.and_then(|body| message::id_of(body));
            let id = self.books.named(*entity, *number);
            let id = id
                .filter(|id| root == Some(message::root_of(*id)))
                .ok_or_else(|| Violation::new("I12", format!("{number} has no body")))?;
            let queue = self.queues.iter().position(|queue| queue.id == *entity);
            let queue =
                queue.ok_or_else(|| Violation::new("I9", format!("{entity:?} is no queue")))?;
            let count = image
                .delivery_counts
                .get(&(*entity, *number))
                .copied()
                .unwrap_or(0);
            let patched = image.patches.contains_key(&(*entity, *number));
            let here = Found {
                queue,
                part: *part,
                number: *number,
                count,
                patched,
            };
            if found.insert(id, here).is_some() {
                return Err(Violation::new("I6", format!("message {id} is there twice")));
            }
        }
        Ok(found)
    }

    /// A tombstone is emptied in pieces, and what belongs to its messages goes at its end.
    fn is_about_live_entity(&self, finding: &Finding) -> bool {
        match finding {
            Finding::OrphanDeliveryCount((entity, _)) | Finding::OrphanPatch((entity, _)) => {
                self.books.is_live(*entity)
            }
            _ => true,
        }
    }

    fn check_entry(
        &self,
        id: MessageId,
        entry: &Entry,
        found: Option<&Found>,
    ) -> Result<(), Violation> {
        let queue = &self.queues[entry.queue];
        let Some(found) = found else {
            if entry.may_be_absent(queue, self.max_wall) {
                return Ok(());
            }
            return Err(Violation::new(
                "I1",
                format!("message {id} was accepted and is not there"),
            ));
        };
        let wrong = |invariant, what: &str| {
            Err(Violation::new(
                invariant,
                format!("message {id}, {} of {}, {what}", found.number, queue.path),
            ))
        };
        if entry.published {
            return wrong("I13", "was published and is still there");
        }
        if found.queue != entry.queue {
            return wrong("I6", "is in another queue");
        }
        if entry.must_not_be_in(found.part) {
            return wrong("I2", &format!("is still in {:?}", found.part));
        }
        if entry.must_give_up(found.part, found.count, queue.max_delivery_count) {
            return wrong("I6", "has used up its deliveries and is still there");
        }
        let is_dead = matches!(found.part, Part::DeadLetter | Part::DeadLetterDeferred);
        if is_dead && !entry.dead_letter_asked && !found.patched {
            return wrong("I6", "was dead-lettered without a reason");
        }
        Ok(())
    }
}
