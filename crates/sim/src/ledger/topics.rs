//! Topics: what is published, and the copies that subscriptions take of it. (I13, I1, I6, I12)
//!
//! The ledger knows each message's number and each rule by its name, so it knows which subscription
//! is to have what. A message leaves its topic in the write set in which all of its copies arrive,
//! or past its deadline without any. A copy is a message like any other from then on, which no
//! client sent: it is there for good once its write set is durable, and was never there if that is
//! lost.

use std::collections::BTreeSet;

use bytes::Bytes;
use store::image::Image;
use store::{CommitId, EntityId, MessageRow, Part, SequenceNumber};

use super::entry::{CopyKind, Entry, Sent};
use super::moves::contains;
use super::{Ledger, Queue};
use crate::books::{Changes, FanOut, Move, Offers, Place};
use crate::message::{self, MessageId};
use crate::rule::{Rule, Verdict};
use crate::session::Session;
use crate::violation::Violation;

/// Why a message without a session is dead-lettered where it needs one.
const NO_SESSION: &[u8] = b"Session id is null";

impl Ledger {
    /// Whether what leaves a place is published by that.
    pub(super) fn is_topic(&self, from: Place) -> bool {
        let queue = self.queue_of(from.entity);
        from.part == Part::Active && queue.is_some_and(|queue| self.queues[queue].is_topic)
    }

    /// A subscription takes a copy.
    pub(super) fn explain_copy(
        &mut self,
        moved: &Move,
        parent: MessageId,
        to: Place,
        commit: CommitId,
    ) -> Result<(), Violation> {
        let Move { id, row, .. } = *moved;
        let wrong = |invariant, what: &str| {
            let what = format!("copy {id} of message {parent} in {to:?} {what}");
            Err(Violation::new(invariant, what))
        };
        let queue = self.queue_of(to.entity);
        let queue = queue.filter(|queue| self.queues[*queue].topic.is_some());
        let (Some(queue), Some(source)) = (queue, self.entries.get(&parent)) else {
            return wrong("I13", "was made of nothing, or for no subscription");
        };
        if self.queues[queue].topic != Some(source.queue) {
            return wrong("I13", "is of another topic");
        }
        let Some(body) = self.body_of(&row).cloned() else {
            return wrong("I12", "has no body");
        };
        let own = row.body.home == to.entity;
        let patch = self.books.patch(to).cloned().unwrap_or_default();
        let made = if own {
            match made_by(source, &body) {
                Some(rule) => CopyKind::Changed(rule),
                None => return wrong("I12", "is neither as it was sent nor as a rule makes it"),
            }
        } else if body != source.payload {
            return wrong("I12", "is not as it was sent");
        } else if to.part == Part::DeadLetter && !contains(&patch, NO_SESSION) {
            CopyKind::Dead
        } else {
            CopyKind::AsSent
        };
        let dead = made == CopyKind::Dead || !self.has_session(queue, id);
        if dead != (to.part == Part::DeadLetter) || !dead && to.part != Part::Active {
            return wrong("I13", "should be in another part");
        }
        let ttl = source.ttl.min(self.queues[queue].default_ttl);
        let mut copy = Entry::new(queue, body, ttl, self.turn.now.wall, self.epoch);
        copy.key = source.key;
        copy.copy_of = Some(parent);
        copy.home = Some((to.entity, to.number));
        copy.marked = source.marked + i64::from(own);
        copy.made = Some(made);
        copy.confirmed = true;
        copy.arrived = Some(to.number);
        copy.number = Some(to.number);
        copy.enqueued = source.enqueued;
        copy.source = source.source;
        copy.changed = dead || source.changed;
        let enqueued = copy.enqueued;
        self.entries.insert(id, copy);
        self.undurable.insert(id, commit);
        self.report.copies += 1;
        if Some(SequenceNumber(row.enqueued_number)) != enqueued {
            return wrong("I8", "forgot its first number");
        }
        self.check_enqueued(moved)
    }

    fn has_session(&self, queue: usize, id: MessageId) -> bool {
        !self.queues[queue].sessions || Session::of(id).is_some()
    }

    /// A message left its topic: each subscription has what its rules say, and nothing else.
    pub(super) fn explain_fan_out(
        &mut self,
        fan_out: &FanOut,
        changes: &Changes,
    ) -> Result<(), Violation> {
        let id = fan_out.message;
        if changes.removed.contains(&fan_out.topic) {
            return Ok(());
        }
        let Some(entry) = self.entries.get(&id) else {
            return Err(wrong(format!("{fan_out:?} is of nothing")));
        };
        let expected = self.wanted_copies(&fan_out.offered, entry.marked)?;
        // A subscription that has gone takes nothing.
        let is_left = |(id, _): &&(EntityId, _)| fan_out.offered.iter().any(|(left, _)| left == id);
        let first = fan_out.offered_first.as_ref();
        let first = first.map(|first| first.iter().filter(is_left).cloned().collect());
        let first = first.map(|first| self.wanted_copies(&first, entry.marked));
        let expected_first = first.transpose()?;
        let made = |(copy, place): &(MessageId, Place)| {
            let made = self.entries.get(copy).and_then(|copy| copy.made);
            made.map(|made| (place.entity, made))
        };
        let mut found: Vec<_> = fan_out.copies.iter().filter_map(made).collect();
        found.sort_unstable();
        let expires = self
            .departure(id, changes)
            .is_some_and(|row| row.expires_ms <= self.turn.now.wall.0);
        let expired = found.is_empty() && !expected.is_empty() && expires;
        if found != expected && Some(&found) != expected_first.as_ref() && !expired {
            let what = format!("message {id} should be {expected:?} and is {found:?}");
            return Err(wrong(what));
        }
        self.report.published += u64::from(!expired);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.published = true;
        }
        Ok(())
    }

    /// The copies that rules make of a message with this mark.
    fn wanted_copies(
        &self,
        offers: &Offers,
        marked: i64,
    ) -> Result<Vec<(EntityId, CopyKind)>, Violation> {
        let mut expected = Vec::new();
        for (subscription, rules) in offers {
            let queue = self
                .queue_of(*subscription)
                .map(|queue| &self.queues[queue]);
            let rules: Option<Vec<_>> = rules.iter().copied().collect();
            let (Some(queue), Some(rules)) = (queue, rules) else {
                return Err(wrong(format!(
                    "{subscription:?} has rules of its own making"
                )));
            };
            let made = wanted(queue, &rules, marked);
            expected.extend(made.into_iter().map(|made| (*subscription, made)));
        }
        expected.sort_unstable();
        Ok(expected)
    }

    /// The row of a message that went nowhere.
    fn departure(&self, id: MessageId, changes: &Changes) -> Option<MessageRow> {
        let mut moves = changes.moves.iter().rev();
        let moved = moves.find(|moved| moved.id == id && moved.to.is_none())?;
        Some(moved.row)
    }

    /// What has become durable stays: copies among it are promised as if a client had been told.
    pub(super) fn note_durable(&mut self, durable: CommitId) {
        let entries = &mut self.entries;
        self.undurable.retain(|id, commit| {
            let stays = *commit > durable;
            if let Some(entry) = entries.get_mut(id).filter(|_| !stays) {
                entry.keep_copy();
            }
            stays
        });
    }

    /// A crash has taken copies that were not durable, all of a message's or none.
    ///
    /// # Errors
    /// I13, when it took some; I1, when it took what was durable.
    pub(super) fn copies_crashed(&mut self, image: &Image) -> Result<(), Violation> {
        let mut lost = Vec::new();
        let mut kept = BTreeSet::new();
        for (id, entry) in &mut self.entries {
            let (Some(parent), Some((home, number))) = (entry.copy_of, entry.home) else {
                continue;
            };
            let next = image.heads.get(&home).map(|head| head.next_number);
            let arrived = next.is_some_and(|next| number.arrival() < next);
            let known = image.last_entity.is_none_or(|last| home <= last);
            // Nothing comes to an entity after it was removed.
            let removed = known && !image.entities.contains_key(&home);
            entry.removed_with_entity |= removed && self.books.place(*id).is_none();
            if arrived || removed || self.books.place(*id).is_some() {
                entry.keep_copy();
                kept.insert(parent);
            } else if entry.sent == Sent::Accepted {
                let what = format!("a crash took copy {id} of message {parent}, which was durable");
                return Err(Violation::new("I1", what));
            } else {
                lost.push((*id, parent));
            }
        }
        for (id, parent) in lost {
            self.entries.remove(&id);
            if kept.contains(&parent) {
                let what = format!("a crash took copy {id} of message {parent} and left others");
                return Err(wrong(what));
            }
            if let Some(parent) = self.entries.get_mut(&parent) {
                parent.published = false;
            }
        }
        for (id, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.published) {
            let place = self.books.place(*id);
            entry.published = place.is_none();
        }
        Ok(())
    }
}

impl Entry {
    /// If it is a copy, it will not be lost any more.
    fn keep_copy(&mut self) {
        if self.copy_of.is_some() && self.sent == Sent::Asked {
            self.sent = Sent::Accepted;
        }
    }
}

/// What a subscription is to have of a message with that number. (docs/spec/entities.md#17.2,
/// #17.9)
fn wanted(queue: &Queue, rules: &[Rule], number: i64) -> Vec<CopyKind> {
    let judged: Vec<_> = rules
        .iter()
        .map(|rule| (rule, rule.judge(number)))
        .collect();
    let selecting = judged
        .iter()
        .filter(|(_, verdict)| *verdict == Verdict::Selected);
    let selecting = selecting.map(|(rule, _)| **rule);
    let (changing, plain): (Vec<_>, Vec<_>) = selecting.partition(|rule| rule.raises);
    let failed = judged
        .iter()
        .any(|(_, verdict)| *verdict == Verdict::Failed);
    let mut made: Vec<_> = changing.into_iter().map(CopyKind::Changed).collect();
    if !plain.is_empty() {
        made.push(CopyKind::AsSent);
    }
    if failed && queue.dead_letters_failures {
        made.push(CopyKind::Dead);
    }
    made
}

/// By the action of which rule a copy was made of `source`, if it is as that rule makes it.
fn made_by(source: &Entry, copy: &Bytes) -> Option<Rule> {
    let (number, rule) = message::marks_of(copy)?;
    let rule = Rule::named(&rule?).filter(|rule| rule.raises)?;
    let same = message::same_bare(&source.payload, copy, false, true);
    (same && number == source.marked + 1).then_some(rule)
}

fn wrong(what: String) -> Violation {
    Violation::new("I13", what)
}
