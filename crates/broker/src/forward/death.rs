//! Death: what is noted of a message that dies in a queue with a dead-letter router.
//! (docs/spec/rabbitmq.md#12.5)

use amqp::message::{Header, Sections};
use bytes::Bytes;

use super::transfer::Transfer;
use crate::api::death::{Death, DeathReason};
use crate::api::time::Wall;
use crate::message::patch::Patch;
use crate::message::route::Route;

/// Bytes of routing keys that are remembered of a death.
const MAX_KEY_BYTES: usize = 4 << 10;

/// Notes that a message has died in the queue of a path. Returns of what, and how it had come.
pub(super) fn note_death(
    patch: &mut Patch,
    path: &str,
    transfer: &Transfer,
    now: Wall,
) -> (DeathReason, Route) {
    let came = Route::of(&transfer.body.payload, patch, path);
    let reason = DeathReason::of(patch.dead_letter_reason().as_deref().unwrap_or_default());
    let mut bytes = 0;
    let remembered = came.keys.iter().take_while(|key| {
        bytes += key.len();
        bytes <= MAX_KEY_BYTES
    });
    let is_first = patch.deaths().is_none_or(|deaths| deaths.list.is_empty());
    let death = Death {
        queue: path.to_owned(),
        reason,
        count: 1,
        first_ms: now.0,
        last_ms: now.0,
        router: came.router.clone(),
        keys: remembered.cloned().collect(),
        ttl_ms: own_ttl(&transfer.body.payload).filter(|_| is_first),
        is_first,
    };
    let deaths = patch.deaths_mut();
    let rejected = u32::from(reason == DeathReason::Rejected);
    let failed = transfer.entry.delivery_count.saturating_add(rejected);
    deaths.failed = deaths.failed.saturating_add(failed);
    deaths.add(death);
    (reason, came)
}

/// The time to live that the sender has given a message.
fn own_ttl(payload: &Bytes) -> Option<u32> {
    let sections = Sections::scan(payload).ok()?;
    Header::decode(payload.get(sections.header)?).ok()?.ttl
}
