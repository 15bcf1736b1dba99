//! Check: what must hold of the books after every write set, looked at only where the set wrote.

use store::image::{ExpiryKey, MessageKey, NumberKey};
use store::record::EXPIRY_BLOCK;
use store::{EntityId, Part, PartHead, SequenceNumber};

use super::{Books, Page};
use crate::violation::Violation;

impl Books {
    pub(super) fn check(&mut self, page: &Page) -> Result<(), Violation> {
        // Of a tombstone only what it shares with others counts, and of what was removed nothing.
        let counts = |entity: EntityId| self.live.contains(&entity);
        let changes = &page.changes;
        let headed = changes.entities.difference(&changes.removed);
        for entity in headed {
            self.check_head(*entity)?;
        }
        for key in &page.bodies {
            self.check_body(*key)?;
        }
        for key in page.numbers.iter().filter(|key| counts(key.0)) {
            self.check_number(*key)?;
        }
        let dated = page.dated.iter();
        for (key, expires) in dated.filter(|(key, _)| counts(key.0)) {
            self.check_deadline(*key, *expires)?;
        }
        for block in page.blocks.iter().filter(|key| counts(key.0)) {
            self.check_block(*block)?;
        }
        for (entity, due) in page.due.iter().filter(|key| counts(key.0)) {
            self.check_due(*entity, *due)?;
        }
        for place in page.history.iter().filter(|key| counts(key.0)) {
            self.check_remembered(place)?;
        }
        let members = page.members.iter().filter(|key| counts(key.0));
        let states = page.states.keys().filter(|key| counts(key.0));
        let (members, states): (Vec<_>, Vec<_>) = (members.collect(), states.collect());
        for member in members {
            self.check_member(*member)?;
        }
        for place in states {
            self.check_state(*place)?;
        }
        Ok(())
    }

    /// Numbers are given out one after the other, and a message keeps its own. (I8)
    /// Some may be left out, to be given out later or never; how many is returned.
    pub(super) fn check_numbering(
        &mut self,
        page: &Page,
    ) -> Result<Vec<(EntityId, u64)>, Violation> {
        let mut skipped = Vec::new();
        for moved in &page.changes.moves {
            let Some(to) = moved.to else { continue };
            let stays = moved
                .from
                .is_some_and(|from| (from.entity, from.number) == (to.entity, to.number));
            let arrival = to.number.arrival();
            let old = arrival < self.next_number(to.entity);
            if stays || old && self.skipped.remove(&(to.entity, arrival)) {
                continue;
            }
            self.skip_to(to.entity, arrival, &mut skipped);
            let tally = self.tallies.entry(to.entity).or_default();
            if arrival != tally.next {
                let what = format!("{:?} gave out {}, not {}", to.entity, to.number, tally.next);
                return Err(Violation::new("I8", what));
            }
            tally.next = arrival.next();
        }
        for entity in &page.changes.entities {
            if let Some(head) = self.heads.get(entity) {
                let next = head.next_number;
                self.skip_to(*entity, next, &mut skipped);
            }
        }
        Ok(skipped)
    }

    /// Numbers below that one were left out.
    fn skip_to(
        &mut self,
        entity: EntityId,
        next: SequenceNumber,
        skipped: &mut Vec<(EntityId, u64)>,
    ) {
        let tally = self.tallies.entry(entity).or_default();
        if next > tally.next {
            skipped.push((entity, next.0 - tally.next.0));
            let left_out = tally.next.0..next.0;
            let left_out = left_out.map(|number| (entity, SequenceNumber(number)));
            self.skipped.extend(left_out);
            tally.next = next;
        }
    }

    /// A head says what is there and from where it is found. (I9)
    fn check_head(&self, entity: EntityId) -> Result<(), Violation> {
        let tally = self.tallies.get(&entity).copied().unwrap_or_default();
        let head = self
            .heads
            .get(&entity)
            .ok_or_else(|| Violation::new("I9", format!("{entity:?} has messages and no head")))?;
        if head.next_number != tally.next {
            let what = format!(
                "{entity:?} goes on with {}, not {}",
                head.next_number, tally.next
            );
            return Err(Violation::new("I8", what));
        }
        for part in Part::ALL {
            let (says, counted) = (head.part(part), tally.parts[part as usize]);
            if (says.count, says.bytes) != counted {
                let what =
                    format!("{entity:?} {part:?} claims {says:?}, a count finds {counted:?}");
                return Err(Violation::new("I9", what));
            }
            if says.count > 0 {
                self.check_reach(entity, part, says)?;
            }
        }
        if head.session_state_bytes != tally.state_bytes {
            let (says, counted) = (head.session_state_bytes, tally.state_bytes);
            let what = format!("{entity:?} claims {says} bytes of states, a count finds {counted}");
            return Err(Violation::new("I9", what));
        }
        self.check_start(entity, head)?;
        self.check_period(entity, head)
    }

    /// A restart finds every row: it is a straggler or not below `resume`. (I1)
    fn check_reach(&self, entity: EntityId, part: Part, head: &PartHead) -> Result<(), Violation> {
        let first = (entity, part, SequenceNumber(0));
        let below = first..(entity, part, SequenceNumber(head.resume));
        for (_, _, number) in self.rows.range(below).map(|(key, _)| *key) {
            if !head.stragglers.contains(&number) {
                let what = format!("a restart would not find {number} of {entity:?} {part:?}");
                return Err(Violation::new("I1", what));
            }
        }
        Ok(())
    }

    fn check_body(&self, key: NumberKey) -> Result<(), Violation> {
        match self.bodies.get(&key) {
            Some(body) if body.pointers == 0 => Err(Violation::new(
                "I9",
                format!("the body of message {} outlives it", body.id),
            )),
            Some(body) if body.pointers != body.shares.unwrap_or(1) => Err(Violation::new(
                "I9",
                format!(
                    "the body of message {} has {} rows, not {:?}",
                    body.id, body.pointers, body.shares
                ),
            )),
            _ => Ok(()),
        }
    }

    /// What belongs to a message goes with it.
    fn check_number(&self, key: NumberKey) -> Result<(), Violation> {
        let rest = self.counts.contains_key(&key) || self.patches.contains_key(&key);
        if rest && self.find(key).is_none() {
            let what = format!("{key:?} has a count or a patch and no message");
            return Err(Violation::new("I9", what));
        }
        Ok(())
    }

    /// The block of a message is due by the message's deadline, so the broker looks in time. (I6)
    fn check_deadline(&self, key: MessageKey, expires: u64) -> Result<(), Violation> {
        let (entity, part, number) = key;
        let block = (entity, part, number.0 / EXPIRY_BLOCK);
        let seen = self.expiries.get(&block).is_some_and(|due| *due <= expires);
        if seen || !self.rows.contains_key(&key) {
            return Ok(());
        }
        let what = format!("the deadline of {number} of {entity:?} would be forgotten");
        Err(Violation::new("I6", what))
    }

    fn check_block(&self, (entity, part, block): ExpiryKey) -> Result<(), Violation> {
        let first = (entity, part, SequenceNumber(block * EXPIRY_BLOCK));
        let end = (entity, part, SequenceNumber((block + 1) * EXPIRY_BLOCK));
        let dated = self.rows.range(first..end);
        for (key, (_, row)) in dated.filter(|(_, (_, row))| row.expires_ms != u64::MAX) {
            self.check_deadline(*key, row.expires_ms)?;
        }
        Ok(())
    }
}
