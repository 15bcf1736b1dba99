//! Routing: what is published to routers, and the queues that are to have it. (I13, I1, I12)
//!
//! The ledger knows the bindings by the orders that made them, and by a list of them after a crash.
//! All copies of a message arrive in one write set, one in each queue that a binding leads to. From
//! then on a copy is a message like any other, which no client sent.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Binding, BindingDestination, Publication, PublishError, RequestId, Routed, RouterAnswer,
    RouterOrder, SendError,
};
use bytes::Bytes;
use store::{CommitId, EntityId, Part};

use super::Ledger;
use super::answers::Asked;
use super::entry::{CopyKind, Entry};
use crate::books::{Move, Place};
use crate::message::{self, MessageId};
use crate::violation::Violation;

/// The router whose bindings all match.
pub const FANOUT: &str = "amq.fanout";
/// The router of the bindings whose key is the message's.
pub const DIRECT: &str = "amq.direct";

/// A router, a key and a queue.
type Bound = (String, String, String);

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Routing {
    /// `None` after a crash, until they are listed.
    bindings: Option<BTreeSet<Bound>>,
    published: BTreeMap<MessageId, Published>,
    /// What got a copy in the write set at hand.
    routed: BTreeSet<MessageId>,
}

#[derive(Debug)]
struct Published {
    payload: Bytes,
    ttl: u64,
    expected: BTreeSet<EntityId>,
    found: BTreeSet<EntityId>,
}

impl Routing {
    /// Of a broker that has no bindings yet.
    pub(super) fn new() -> Self {
        Self {
            bindings: Some(BTreeSet::new()),
            ..Self::default()
        }
    }

    /// Which bindings were durable is not known, and what was published may be lost.
    pub(super) fn crashed(&mut self) {
        self.bindings = None;
    }

    pub(super) fn is_published(&self, id: MessageId) -> bool {
        self.published.contains_key(&id)
    }

    pub(super) fn observe(&mut self, order: &RouterOrder) {
        let Some(bindings) = &mut self.bindings else {
            return;
        };
        match order {
            RouterOrder::Bind(binding) => drop(bindings.insert(bound(binding))),
            RouterOrder::Unbind(binding) => drop(bindings.remove(&bound(binding))),
            _ => {}
        }
    }

    /// After a crash the broker has listed the bindings that are left.
    pub(super) fn learn(&mut self, answer: &RouterAnswer) {
        if let RouterAnswer::Bindings(page) = answer
            && self.bindings.is_none()
        {
            self.bindings = Some(page.items.iter().map(bound).collect());
        }
    }
}

fn bound(binding: &Binding) -> Bound {
    let (BindingDestination::Entity(to) | BindingDestination::Router(to)) = &binding.destination;
    (binding.source.clone(), binding.key.clone(), to.clone())
}

impl Ledger {
    /// Whether the bindings are known, so that messages can be published.
    #[must_use]
    pub fn knows_bindings(&self) -> bool {
        self.routing.bindings.is_some()
    }

    /// A message is about to be published.
    pub(super) fn observe_publish(&mut self, request: RequestId, publication: &Publication) {
        let payload = &publication.message.payload;
        let id = message::id_of(payload).expect("it was made here");
        let bindings = self.routing.bindings.iter().flatten();
        let matching = bindings.filter(|(router, key, _)| {
            *router == publication.router
                && (router == FANOUT || publication.keys.iter().any(|it| it == key))
        });
        let expected = matching
            .filter_map(|(.., queue)| self.live(queue))
            .collect();
        let published = Published {
            payload: payload.clone(),
            ttl: publication.message.ttl_ms.unwrap_or(u64::MAX),
            expected,
            found: BTreeSet::new(),
        };
        self.routing.published.insert(id, published);
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
        let is_wanted = source.expected.contains(&to.entity) && to.part == Part::Active;
        let (true, Some(queue)) = (is_wanted && source.found.insert(to.entity), queue) else {
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
            if published.found != published.expected {
                let what = format!("message {id} should be in {published:?}");
                return Err(Violation::new("I13", what));
            }
        }
        Ok(())
    }

    /// The shard says what became of a message that was published.
    pub(super) fn verify_published(
        &self,
        asked: Option<&Asked>,
        result: &Result<Routed, PublishError>,
    ) -> Result<(), Violation> {
        let Some(Asked::Publish(id)) = asked else {
            return Ok(());
        };
        let published = &self.routing.published[id];
        let destinations = published.expected.len();
        let is_right = match result {
            Ok(Routed::Unmatched) => destinations == 0,
            Ok(Routed::Stored { destinations: said }) => {
                *said == destinations && published.found == published.expected
            }
            Err(PublishError::Rejected { error, .. }) => {
                *error == SendError::DiskNearlyFull && published.found.is_empty()
            }
            Err(_) => false,
        };
        if is_right {
            return Ok(());
        }
        let what = format!("message {id} was answered with {result:?} and is {published:?}");
        Err(Violation::new("I13", what))
    }
}
