//! Dead letters: a queue's go where its dead-letter router tells. (docs/spec/rabbitmq.md#12.5)
//!
//! A dead letter leaves and arrives in one write set, so it is never there twice or not at all. It
//! goes once to each queue that takes it, and is not looked for among duplicates, since it is one.
//! What no queue takes is dropped, or waits if the queue is set so. A queue of Service Bus, which
//! has its router by a policy, keeps it as a dead letter of its own. A message that comes back to a
//! queue that it has died in is dropped there, unless a client has rejected it since: such a circle
//! would not end. One that comes back by a topic or a forward may stay there; it is dropped when it
//! dies there again.

use std::collections::BTreeSet;

use store::EntityId;

use super::death::note_death;
use super::hop::{self, HAS_PUMP, THERE};
use super::transfer::{Admission, Transfer, TransferFailure};
use crate::api::death::DeathReason;
use crate::api::id::SubqueueId;
use crate::api::lineage::{DropReason, MessageEvent};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::message::patch::Patch;
use crate::message::route::Route;
use crate::message::row;
use crate::queue::Queue;
use crate::receive::run::run;

/// Queues and reasons that a message can have died of; with more it is not routed any more.
const MAX_DEATHS: usize = 64;

/// Routes the next dead letter of a queue that has such a router. Returns whether it is worth going
/// on.
pub(super) fn route_one(
    directory: &mut Directory,
    place: SubqueueId,
    mut transfer: Transfer,
    cx: &mut Context<'_>,
) -> bool {
    let queue = directory.get_mut(place.entity).expect(HAS_PUMP);
    let mut patch = transfer
        .body
        .patch
        .take()
        .map_or_else(Patch::default, |it| *it);
    if row::is_stuck(&transfer.entry.row) || is_worn_out(&patch) {
        hop::pass_over(queue, place.subqueue, transfer.number, cx);
        run(queue, cx);
        return true;
    }
    let died_here = patch
        .deaths()
        .is_some_and(|deaths| deaths.is_circle(&queue.path));
    patch.set_source(&queue.path);
    let (reason, came) = note_death(&mut patch, &queue.path, &transfer, cx.now.wall);
    let hides_further_keys = queue.settings.dead_letter_key.is_some() && came.keys.len() > 1;
    let route = leads_to(queue, came);
    patch.route(&route, hides_further_keys);
    let namespace = queue.namespace;
    let mut targets = directory.dead_letter_targets(namespace, &route, &transfer.body.payload);
    let is_bound = !targets.is_empty();
    if reason != DeathReason::Rejected
        && let Some(deaths) = patch.deaths()
    {
        targets.retain(|id| {
            let target = directory.get(*id);
            !died_here && target.is_some_and(|it| !deaths.is_circle(&it.path))
        });
    }
    let is_circle = is_bound && targets.is_empty();
    transfer.body.patch = Some(Box::new(patch));
    // The message has no time to live of its own any more, and this is no hop of a forward.
    transfer.entry.row.ttl_ms = u64::MAX;
    row::forget_hops(&mut transfer.entry.row);
    directory.deliver(place, &targets, is_circle, &transfer, cx)
}

/// Whether nothing more can be noted of a message.
fn is_worn_out(patch: &Patch) -> bool {
    let deaths = patch.deaths();
    deaths.is_some_and(|deaths| deaths.list.len() >= MAX_DEATHS)
}

/// Where a dead letter goes that had come by a route.
fn leads_to(queue: &Queue, came: Route) -> Route {
    let settings = &queue.settings;
    let router = settings.dead_letter_router.clone();
    Route {
        router: router.expect("the caller has seen that there is one"),
        keys: match &settings.dead_letter_key {
            Some(key) => vec![key.clone()],
            None => came.keys,
        },
    }
}

impl Directory {
    /// Moves a dead letter to those of the targets that take it. In a circle there are none left.
    fn deliver(
        &mut self,
        place: SubqueueId,
        targets: &BTreeSet<EntityId>,
        is_circle: bool,
        transfer: &Transfer,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut takers = Vec::new();
        let mut waits = cx.shared.nearly_full;
        for id in targets {
            let target = self.get_mut(*id).expect(THERE);
            match hop::check_routed(target, transfer, cx) {
                Admission::Take => takers.push(*id),
                Admission::Failed(TransferFailure::Wait) => waits = true,
                _ => {}
            }
        }
        let source = self.get_mut(place.entity).expect(HAS_PUMP);
        let is_missed = takers.is_empty() || takers.len() < targets.len();
        if waits || is_missed && source.settings.keeps_dead_letters() {
            hop::pump_again_at(source, place.subqueue, cx);
            run(source, cx);
            return false;
        }
        if takers.is_empty() && !is_circle && source.settings.declared.is_none() {
            hop::pass_over(source, place.subqueue, transfer.number, cx);
            run(source, cx);
            return true;
        }
        hop::leave(source, place.subqueue, transfer, cx);
        for to in &takers {
            source.record(transfer.number, || MessageEvent::Forwarded { to: *to }, cx);
        }
        if takers.is_empty() {
            let event = || MessageEvent::Dropped {
                why: DropReason::Unroutable,
            };
            source.record(transfer.number, event, cx);
        }
        run(source, cx);
        for id in takers {
            let target = self.get_mut(id).expect(THERE);
            hop::arrive_routed(target, transfer.clone(), cx);
            run(target, cx);
        }
        true
    }
}
