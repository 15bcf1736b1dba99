//! Waiting frame: a frame of a client that takes effect behind all that came before it.
//! (docs/spec/amqp.md#3.3) [AMQP 2.4.2, 2.6.3-4]
//!
//! Before a detach, end or close the owner takes the events of the frames ahead of it, attaches
//! included. Then the deliveries that it would cut off are answered, for which there are two
//! seconds. Those behind an attach without an answer are taken first, however long that takes, as a
//! settled one would be lost. A transfer waits as long as another link has such deliveries. What is
//! wrong with a frame waits as the end does that it brings about; a fault of the connection for
//! attaches alone, since its close waits for answers itself. Input behind the frame waits as well,
//! and the owner should read no more meanwhile.

use amqp::{Performative, Transfer};
use bytes::Bytes;

use crate::config::Side;
use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::connection::phase::Phase;
use crate::connection::timers::{LINGER, later};
use crate::id::Mono;

/// A frame that has something ahead of it.
pub(crate) struct WaitingFrame {
    channel: u16,
    effect: Effect,
    /// When it takes effect without the answers. Nothing while it waits for an attach.
    pub(crate) deadline: Option<Mono>,
    /// What it has to wait for, of all that there may be. Nothing if that is not known yet.
    obstacle: Option<Obstacle>,
}

/// What a frame does once it need not wait any longer.
pub(crate) enum Effect {
    /// What it says, with the payload of a transfer.
    Frame(Performative, Bytes),
    /// It is wrong.
    Fault(Fault),
}

/// What would be cut off, or overtaken.
#[derive(Clone, Copy)]
pub(crate) enum Obstacle {
    /// A whole delivery of a session that has no answer.
    Delivery { session: u32, id: u32 },
    /// A link that is not answered and has deliveries.
    Link(u32),
}

impl Obstacle {
    fn is_delivery(self) -> bool {
        matches!(self, Self::Delivery { .. })
    }
}

impl Connection {
    /// Whether input waits behind a frame, until the owner has taken the events before that one and
    /// answered the deliveries, or the attach. What is read meanwhile is kept.
    #[must_use]
    pub fn holds_input(&self) -> bool {
        self.waiting_frame.is_some() && self.phase == Phase::Opened
    }

    /// Whether something that was read has not taken effect: deliveries behind an attach without an
    /// answer, or input that waits behind a frame. The end of the stream should not be told before.
    #[must_use]
    pub fn has_untaken_input(&self) -> bool {
        let holds = self.holding.is_some_and(|link| self.holds_deliveries(link));
        self.phase == Phase::Opened && (holds || self.waiting_frame.is_some())
    }

    /// Keeps a frame if it has to wait, and returns it if not.
    pub(crate) fn hold_ending(
        &mut self,
        channel: u16,
        performative: Performative,
    ) -> Option<Performative> {
        if self.side != Side::Server || !self.is_end(&performative) {
            return Some(performative);
        }
        match self.hold(channel, Effect::Frame(performative, Bytes::new())) {
            Some(Effect::Frame(performative, _)) => Some(performative),
            Some(Effect::Fault(_)) | None => None,
        }
    }

    /// Keeps a fault if the end that it brings about has to wait, and returns it if not.
    pub(crate) fn hold_fault(&mut self, channel: u16, fault: Fault) -> Option<Fault> {
        if self.side != Side::Server || self.phase != Phase::Opened {
            return Some(fault);
        }
        match self.hold(channel, Effect::Fault(fault)) {
            Some(Effect::Fault(fault)) => Some(fault),
            Some(Effect::Frame(..)) | None => None,
        }
    }

    fn hold(&mut self, channel: u16, effect: Effect) -> Option<Effect> {
        // Its obstacle is looked for once the owner has taken the events.
        let obstacle = match self.events.is_empty() {
            true => self.obstacle(channel, &effect, true),
            false => None,
        };
        if self.events.is_empty() && obstacle.is_none() {
            return Some(effect);
        }
        self.waiting_frame = Some(WaitingFrame {
            channel,
            effect,
            deadline: Some(later(self.timers.now, LINGER)),
            obstacle,
        });
        None
    }

    /// Keeps a transfer that would overtake deliveries of the link `holding`.
    pub(crate) fn hold_transfer(
        &mut self,
        channel: u16,
        transfer: Transfer,
        payload: Bytes,
        holding: u32,
    ) {
        self.waiting_frame = Some(WaitingFrame {
            channel,
            effect: Effect::Frame(Performative::Transfer(transfer), payload),
            deadline: None,
            obstacle: Some(Obstacle::Link(holding)),
        });
    }

    /// The link that has deliveries and no answer, unless it is the one of this handle. There is
    /// no second one: deliveries of others wait for it.
    pub(crate) fn holding_link(&self, channel: u16, handle: u32) -> Option<u32> {
        let holding = self.holding.filter(|link| self.holds_deliveries(*link))?;
        let session = self.remote_channels.get(channel.into());
        let session = session.and_then(|key| self.sessions.get(key));
        let own = session.and_then(|session| session.remote_handles.get(handle));
        (own != Some(holding)).then_some(holding)
    }

    /// Handles the frame that waits, if it need not wait any longer. Returns whether none is left.
    pub(crate) fn resume_waiting(&mut self) -> bool {
        let Some(mut frame) = self.waiting_frame.take() else {
            return true;
        };
        let now = self.timers.now;
        let is_due = frame.deadline.is_some_and(|deadline| deadline <= now);
        if self.phase == Phase::Opened {
            let counts = |it: &Obstacle| self.is_there(*it) && !(is_due && it.is_delivery());
            let same = frame.obstacle.filter(counts);
            let other = || self.obstacle(frame.channel, &frame.effect, !is_due);
            if let Some(obstacle) = same.or_else(other) {
                frame.deadline = frame.deadline.filter(|_| obstacle.is_delivery());
                frame.obstacle = Some(obstacle);
                self.waiting_frame = Some(frame);
                return false;
            }
        }
        self.handle_waiting(frame.channel, frame.effect);
        true
    }

    /// Gives the answers their time, if it is them that a frame waits for now.
    pub(crate) fn limit_wait(&mut self) {
        let deadline = later(self.timers.now, LINGER);
        if let Some(frame) = &mut self.waiting_frame
            && frame.obstacle.is_some_and(|it| it.is_delivery())
        {
            frame.deadline.get_or_insert(deadline);
        }
    }

    /// Takes the input behind what waits, for which nothing will be answered any more: it came
    /// before the end of the stream.
    pub(crate) fn take_held_input(&mut self) {
        while let Some(frame) = self.waiting_frame.take() {
            self.handle_waiting(frame.channel, frame.effect);
            self.resume();
        }
    }

    /// Whether a frame cuts a link off: by a detach, end or close, or by an attach of its name.
    fn is_end(&self, performative: &Performative) -> bool {
        match performative {
            Performative::Detach(_) | Performative::End(_) | Performative::Close(_) => true,
            Performative::Attach(attach) => self.stolen_by(attach).is_some(),
            _ => false,
        }
    }
}
