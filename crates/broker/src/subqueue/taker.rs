//! Taker: the receiver whose turn it is to take a message.
//!
//! Receivers with credit stand in a ring. One whose connection has too much unwritten output, or
//! that has no credit any more, leaves the ring when its turn comes. Receivers of one priority take
//! turns; where only one is active, it alone has turns. (docs/spec/rabbitmq.md#10.1)

use std::collections::VecDeque;

use crate::api::id::ReceiverId;
use crate::api::receive_mode::ReceiveMode;
use crate::context::Context;
use crate::context::clients::ReceiverSlot;
use crate::subqueue::SubqueueState;

/// A receiver whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub slot: ReceiverSlot,
    pub id: ReceiverId,
    pub mode: ReceiveMode,
    /// Its own, in milliseconds.
    pub consumer_timeout: Option<u64>,
}

/// The receiver whose turn it is in a ring. A receiver that cannot take a message now leaves the
/// ring.
pub(crate) fn next_taker(
    takers: &mut VecDeque<ReceiverSlot>,
    cx: &mut Context<'_>,
) -> Option<Taker> {
    loop {
        let taker = taker(*takers.front()?, cx);
        if taker.is_some() {
            return taker;
        }
        takers.pop_front();
    }
}

/// A receiver that can take a message now.
fn taker(slot: ReceiverSlot, cx: &mut Context<'_>) -> Option<Taker> {
    let output_buffer_bytes = cx.shared.settings.output_buffer_bytes;
    let clients = &mut cx.shared.clients;
    let is_ready = clients.make_ready(slot, output_buffer_bytes);
    is_ready.then(|| {
        let receiver = clients.get(slot);
        Taker {
            slot,
            id: receiver.id,
            mode: receiver.mode,
            consumer_timeout: receiver.consumer_timeout,
        }
    })
}

impl SubqueueState {
    /// The receiver whose turn it is, at the front of the ring: the active one where there is one,
    /// else one of the highest priority.
    pub(crate) fn next_taker(&mut self, cx: &mut Context<'_>) -> Option<Taker> {
        loop {
            if self.active.is_some() || self.prioritized > 0 {
                let place = self.preferred(cx)?;
                self.takers.rotate_left(place);
            }
            let taker = taker(*self.takers.front()?, cx);
            if taker.is_some() {
                return taker;
            }
            self.takers.pop_front();
        }
    }

    /// Where the receiver stands in the ring that comes before others.
    fn preferred(&self, cx: &Context<'_>) -> Option<usize> {
        if let Some(active) = self.active {
            return self.takers.iter().position(|slot| *slot == active);
        }
        let priority = |slot: &ReceiverSlot| cx.shared.clients.get(*slot).priority;
        let most = self.takers.iter().map(priority).max()?;
        self.takers.iter().position(|slot| priority(slot) == most)
    }
}
