//! Routing: what is published to routers, and the queues that are to have it. (I13, I1, I12)
//!
//! The ledger knows the bindings by the orders that made them (`routing/topology.rs`).
//! All copies of a message arrive in one write set, one in each queue that a binding leads to. From
//! then on a copy is a message like any other, which no client sent.

use std::collections::{BTreeMap, BTreeSet};

use amqp::DeliveryState;
use broker::{Binding, Publication, PublishError, RequestId, Routed, RouterInfo, SendError};
use bytes::Bytes;
use store::{CommitId, Part};

use super::Ledger;
use super::answers::Asked;
use super::entry::{CopyKind, Entry};
use crate::books::{Move, Place};
use crate::message::{self, MessageId};
use crate::violation::Violation;

mod topology;

pub(super) use topology::{Bound, Topology, listed};

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Routing {
    pub topology: Topology,
    published: BTreeMap<MessageId, Published>,
    /// What is published in this turn.
    fresh: Vec<MessageId>,
    /// What got a copy in the write set at hand.
    routed: BTreeSet<MessageId>,
}

/// What became of a message, as its publisher is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Stored,
    /// No queue takes it.
    Unmatched,
    Refused,
}

#[derive(Debug)]
struct Published {
    payload: Bytes,
    ttl: u64,
    /// The queues that bindings lead to, by their paths; `None` without such a router.
    expected: Option<BTreeSet<String>>,
    /// Those of them that go in the same turn.
    going: BTreeSet<String>,
    found: BTreeSet<String>,
    fate: Option<Fate>,
}

impl Published {
    fn destinations(&self) -> usize {
        self.expected.as_ref().map_or(0, BTreeSet::len)
    }

    /// Whether it is in all queues where it is to be, and in no others.
    fn is_complete(&self) -> bool {
        let mut expected = self.expected.iter().flatten();
        expected.all(|path| self.found.contains(path) || self.going.contains(path))
    }
}

impl Routing {
    pub(super) fn is_published(&self, id: MessageId) -> bool {
        self.published.contains_key(&id)
    }

    /// All that this turn's requests remove is known.
    pub(super) fn note_going(&mut self, goes: impl Fn(&str) -> bool) {
        for id in std::mem::take(&mut self.fresh) {
            if let Some(published) = self.published.get_mut(&id) {
                let expected = published.expected.iter().flatten();
                published.going = expected.filter(|path| goes(path)).cloned().collect();
            }
        }
    }
}

impl Ledger {
    /// What a crash has left of routers and bindings.
    ///
    /// # Errors
    /// I1 or I13, if that cannot be.
    pub fn learn_topology(
        &mut self,
        routers: &[RouterInfo],
        bindings: &[Binding],
    ) -> Result<(), Violation> {
        let mut topology = std::mem::take(&mut self.routing.topology);
        let learned = topology.learn(routers, bindings, |path| self.live(path).is_some());
        self.routing.topology = topology;
        learned
    }

    /// A message is about to be published.
    pub(super) fn observe_publish(&mut self, request: RequestId, publication: &Publication) {
        let payload = &publication.message.payload;
        let id = message::id_of(payload).expect("it was made here");
        let topology = &self.routing.topology;
        let published = Published {
            payload: payload.clone(),
            ttl: publication.message.ttl_ms.unwrap_or(u64::MAX),
            expected: topology.route(&publication.router, &publication.keys),
            going: BTreeSet::new(),
            found: BTreeSet::new(),
            fate: None,
        };
        self.routing.published.insert(id, published);
        self.routing.fresh.push(id);
        self.books.note_published(id);
        self.answers.expect(request, Asked::Publish(id));
    }

    /// A queue takes a copy of what was published.
    pub(super) fn explain_routed(
        &mut self,
        moved: &Move,
        parent: MessageId,
        to: Place,
        commit: CommitId,
    ) -> Result<(), Violation> {
        let Move { id, row, .. } = *moved;
        let body = self.body_of(&row).cloned();
        let queue = self.queue_of(to.entity);
        let source = self.routing.published.get_mut(&parent);
        let source = source.expect("only what was published has such copies");
        let path = queue.map_or("", |queue| self.queues[queue].path);
        let mut expected = source.expected.iter().flatten();
        let is_wanted = expected.any(|it| it == path) && to.part == Part::Active;
        let (true, Some(queue)) = (is_wanted && source.found.insert(path.to_owned()), queue) else {
            let what = format!("copy {id} of message {parent} in {to:?} is one too many");
            return Err(Violation::new("I13", what));
        };
        let Some(body) = body.filter(|body| *body == source.payload) else {
            let what = format!("copy {id} of message {parent} in {to:?} is not as it was sent");
            return Err(Violation::new("I12", what));
        };
        let ttl = source.ttl.min(self.queues[queue].default_ttl);
        let mut copy = Entry::new(queue, body, ttl, self.turn.now.wall, self.epoch);
        copy.key = parent;
        copy.copy_of = Some(parent);
        copy.home = Some((to.entity, to.number));
        copy.marked = message::number_of(parent);
        copy.made = Some(CopyKind::AsSent);
        copy.confirmed = true;
        copy.arrived = Some(to.number);
        copy.number = Some(to.number);
        copy.enqueued = Some(to.number);
        self.entries.insert(id, copy);
        self.undurable.insert(id, commit);
        self.routing.routed.insert(parent);
        self.report.routed += 1;
        self.check_enqueued(moved)
    }

    /// A write set is complete: what got one copy in it has all of them.
    pub(super) fn check_routed(&mut self) -> Result<(), Violation> {
        for id in std::mem::take(&mut self.routing.routed) {
            let published = &self.routing.published[&id];
            if !published.is_complete() {
                let what = format!("message {id} should be in {published:?}");
                return Err(Violation::new("I13", what));
            }
        }
        Ok(())
    }

    /// The shard says what became of a message that was published.
    pub(super) fn verify_published(
        &mut self,
        asked: Option<&Asked>,
        result: &Result<Routed, PublishError>,
    ) -> Result<(), Violation> {
        let Some(Asked::Publish(id)) = asked else {
            return Ok(());
        };
        let published = self.routing.published.get_mut(id);
        let published = published.expect("it was noted when it was asked for");
        let destinations = published.destinations();
        let has_router = published.expected.is_some();
        let (is_right, fate) = match result {
            Ok(Routed::Unmatched) => (has_router && destinations == 0, Fate::Unmatched),
            Err(PublishError::NotFound(_)) => (!has_router, Fate::Unmatched),
            Ok(Routed::Stored { destinations: said }) => {
                let is_stored = destinations > 0 && published.is_complete();
                (*said == destinations && is_stored, Fate::Stored)
            }
            Err(PublishError::Rejected { error, .. }) => {
                let is_full = *error == SendError::DiskNearlyFull && published.found.is_empty();
                (is_full, Fate::Refused)
            }
            Err(_) => (false, Fate::Refused),
        };
        if !is_right {
            let what = format!("message {id} was answered with {result:?} and is {published:?}");
            return Err(Violation::new("I13", what));
        }
        published.fate = Some(fate);
        Ok(())
    }

    /// A client is told what became of a message that it has published.
    ///
    /// # Errors
    /// I13, when the shard has not said so.
    pub fn publish_answered(
        &mut self,
        id: MessageId,
        state: Option<&DeliveryState>,
    ) -> Result<(), Violation> {
        let told = match state {
            Some(DeliveryState::Accepted) => Some(Fate::Stored),
            Some(DeliveryState::Released) => Some(Fate::Unmatched),
            Some(DeliveryState::Rejected(_)) => Some(Fate::Refused),
            _ => None,
        };
        let published = self.routing.published.get(&id);
        let fate = published.and_then(|published| published.fate);
        if told.is_none() || told != fate {
            let what = format!("the publisher of message {id} is told {state:?}: {published:?}");
            return Err(Violation::new("I13", what));
        }
        self.report.publications += u64::from(told == Some(Fate::Stored));
        self.report.unroutable += u64::from(told == Some(Fate::Unmatched));
        Ok(())
    }
}
