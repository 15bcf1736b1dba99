//! Attach: receivers that come with a selector. (docs/spec/amqp.md#3.5)

use std::sync::Arc;

use filter::Selector;

use crate::attach::admit;
use crate::clients::{Choice, Place};
use crate::command::ReceiveMode;
use crate::directory::Directory;
use crate::id::ReceiverId;
use crate::shared::Context;

/// A receiver appears that is given only what its selector selects, without credit.
pub(crate) fn attach(
    directory: &mut Directory,
    receiver: ReceiverId,
    place: Place,
    mode: ReceiveMode,
    selector: Arc<Selector>,
    cx: &mut Context<'_>,
) {
    let Some(queue) = admit(directory, receiver, place, false, cx) else {
        return;
    };
    let slot = cx.shared.clients.attach(receiver, place, mode);
    let sub = queue.sub_mut(place.subqueue);
    sub.attached += 1;
    let selection = sub.selections.join(selector);
    cx.shared.clients.get_mut(slot).choice = Choice::Selected(selection);
    queue.run(cx);
}
