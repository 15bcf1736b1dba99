//! Change: an entity is given other settings, and receivers that it does not let in any more go.
//!
//! An evicted receiver is told the reason and is given no more messages. Its locks stay, as when it
//! detaches by itself. (docs/spec/entities.md#3, #14.1)

use store::EntityId;

use crate::api::output::Output;
use crate::api::settings::QueueSettings;
use crate::context::Context;
use crate::entities::directory::{CHANGED, Directory, publish};
use crate::queue::kind::Kind;
use crate::receive::attach;
use crate::receive::run::run;

/// An entity takes over settings that it may be given, and what only a subscription has.
pub(crate) fn take_over(
    directory: &mut Directory,
    id: EntityId,
    settings: QueueSettings,
    dead_lettering: Option<bool>,
    cx: &mut Context<'_>,
) {
    let mut differs = directory.describe(id, settings);
    let queue = directory.get_mut(id).expect(CHANGED);
    if let (Kind::Subscription(subscription), Some(wanted)) = (&mut queue.kind, dead_lettering) {
        let flag = &mut subscription.dead_lettering_on_filter_evaluation_exceptions;
        differs |= *flag != wanted;
        *flag = wanted;
    }
    if differs {
        changed(directory, id, cx);
    }
}

/// An entity is not what it was: that is written and said, and receivers that it does not let
/// in any more go.
pub(crate) fn changed(directory: &mut Directory, id: EntityId, cx: &mut Context<'_>) {
    directory.note_change(id);
    let queue = directory.get_mut(id).expect(CHANGED);
    queue.times.updated = cx.now.wall;
    // It is not idle, but no client has used it. (docs/spec/entities.md#16)
    queue.idle.note_use_at(cx.now.mono);
    publish(queue, cx);
    enforce(directory, id, cx);
    let queue = directory.get_mut(id).expect(CHANGED);
    queue.wake_pumps();
    run(queue, cx);
}

/// The settings of an entity have changed: receivers that would not be let in now have to go.
fn enforce(directory: &mut Directory, entity: EntityId, cx: &mut Context<'_>) {
    let queue = directory.get(entity);
    let queue = queue.expect("its settings have just been changed");
    let clients = &cx.shared.clients;
    let receivers = clients.receivers_at(entity).map(|slot| clients.get(slot));
    let evicted = receivers.filter_map(|receiver| {
        let reason = queue.objection(receiver.place.subqueue)?;
        Some((receiver, reason))
    });
    let mut evicted: Vec<_> = evicted
        .map(|(receiver, reason)| (receiver.holds_session(), receiver.id, reason))
        .collect();
    // Holders last, or others would be given what they leave.
    evicted.sort_by_key(|(holds, ..)| *holds);
    for (_, receiver, reason) in evicted {
        attach::detach(directory, receiver, cx);
        cx.emit(Output::Evicted { receiver, reason });
    }
}
