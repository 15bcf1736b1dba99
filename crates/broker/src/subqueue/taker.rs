//! Taker: the receiver whose turn it is to take a message.
//!
//! Receivers with credit stand in a ring. One whose connection has too much unwritten output, or
//! that has no credit any more, leaves the ring when its turn comes.

use std::collections::VecDeque;

use crate::api::command::ReceiveMode;
use crate::api::id::ReceiverId;
use crate::context::Context;
use crate::context::clients::ReceiverSlot;

/// A receiver whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub slot: ReceiverSlot,
    pub id: ReceiverId,
    pub mode: ReceiveMode,
}

/// The receiver whose turn it is in a ring. A receiver that cannot take a message now leaves the
/// ring.
pub(crate) fn next_taker(
    takers: &mut VecDeque<ReceiverSlot>,
    cx: &mut Context<'_>,
) -> Option<Taker> {
    let output_buffer_bytes = cx.shared.settings.output_buffer_bytes;
    let clients = &mut cx.shared.clients;
    loop {
        let slot = *takers.front()?;
        if clients.make_ready(slot, output_buffer_bytes) {
            let receiver = clients.get(slot);
            let (id, mode) = (receiver.id, receiver.mode);
            return Some(Taker { slot, id, mode });
        }
        takers.pop_front();
    }
}
