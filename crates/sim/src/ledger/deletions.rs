//! Deletions: messages that go because a client wants the oldest to go, unseen. (I2, I3)
//!
//! Only what is available, was enqueued before the moment that the request names, and is not locked
//! goes; all answers of a queue together name as many as went.

use std::collections::BTreeMap;

use broker::{RequestId, Subqueue, Wall};
use store::{CommitId, EntityId};

use super::Ledger;
use super::answers::Asked;
use super::clients::Source;
use crate::books::{Move, Place};
use crate::message::MessageId;
use crate::violation::Violation;

/// What was deleted and is not part of an answer yet.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    certain: usize,
    /// They may have gone for another reason.
    perhaps: usize,
}

#[derive(Debug)]
struct Deletion {
    source: Source,
    before: Wall,
    most: usize,
}

/// Deletions that have not been answered, and what they have done.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    pending: BTreeMap<RequestId, Deletion>,
    /// How many went and were not told of.
    unanswered: BTreeMap<Source, Unanswered>,
    /// Gone for good once that is durable.
    gone: Vec<(CommitId, MessageId)>,
}

impl Ledger {
    pub(super) fn observe_delete(
        &mut self,
        request: RequestId,
        source: (EntityId, Subqueue),
        before: Wall,
        most: usize,
    ) {
        self.answers.expect(request, Asked::Deletion);
        let deletion = Deletion {
            source,
            before,
            most,
        };
        self.deletions.pending.insert(request, deletion);
    }

    /// A message goes for a reason of its own, or is deleted.
    pub(super) fn note_perhaps_deleted(&mut self, moved: &Move, from: Place) {
        if let Some(source) = self.wants_deleted(moved, from) {
            self.deletions.unanswered.entry(source).or_default().perhaps += 1;
        }
    }

    pub(super) fn wants_deleted(&self, moved: &Move, from: Place) -> Option<Source> {
        let wanted = |deletion: &&Deletion| {
            let (entity, subqueue) = deletion.source;
            let here = (entity, subqueue.part()) == (from.entity, from.part);
            here && moved.row.enqueued_ms < deletion.before.0 && deletion.most > 0
        };
        let mut pending = self.deletions.pending.values();
        pending.find(wanted).map(|deletion| deletion.source)
    }

    /// Whether a message that goes is one that a request wants deleted.
    pub(super) fn is_deleted(
        &mut self,
        moved: &Move,
        from: Place,
        commit: CommitId,
    ) -> Result<bool, Violation> {
        let Some(source) = self.wants_deleted(moved, from) else {
            return Ok(false);
        };
        let most = self.deletions.pending.values();
        let most = most
            .filter(|it| it.source == source)
            .fold(0, |sum, it| it.most.saturating_add(sum));
        let unanswered = self.deletions.unanswered.entry(source).or_default();
        unanswered.certain += 1;
        if unanswered.certain > most {
            let what = format!("more than {most} messages of {source:?} were deleted");
            return Err(Violation::new("I2", what));
        }
        self.check_not_locked(moved.id, "deleted")?;
        self.deletions.gone.push((commit, moved.id));
        if let Some(entry) = self.entries.get_mut(&moved.id) {
            entry.may_be_gone = true;
        }
        self.report.deleted += 1;
        Ok(true)
    }

    /// The shard says how many messages went.
    pub(super) fn verify_deleted(
        &mut self,
        request: RequestId,
        count: Option<usize>,
    ) -> Result<(), Violation> {
        let Some(deletion) = self.deletions.pending.remove(&request) else {
            return Ok(());
        };
        let source = deletion.source;
        let count = count.unwrap_or(0);
        let unanswered = self.deletions.unanswered.entry(source).or_default();
        let went = *unanswered;
        unanswered.certain = went.certain.saturating_sub(count);
        unanswered.perhaps -= count.saturating_sub(went.certain).min(went.perhaps);
        let others = self.deletions.pending.values();
        let last = !others.map(|it| it.source).any(|other| other == source);
        let queue = self.queue_of(source.0);
        let gone = queue.is_none_or(|queue| self.queues[queue].gone);
        if last {
            self.deletions.unanswered.remove(&source);
        }
        let most = deletion.most.min(went.certain + went.perhaps);
        if count > most || last && went.certain > count && !gone {
            let what = format!("{count} messages of {source:?} are said to be deleted: {went:?}");
            return Err(Violation::new("I2", what));
        }
        Ok(())
    }

    /// What has gone for good never comes back.
    pub(super) fn note_deleted(&mut self, durable: CommitId) {
        let entries = &mut self.entries;
        self.deletions.gone.retain(|(commit, id)| {
            if *commit > durable {
                return true;
            }
            if let Some(entry) = entries.get_mut(id) {
                entry.gone = true;
            }
            false
        });
    }
}
