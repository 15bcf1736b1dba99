//! Waiting frame: a frame of a client that takes effect behind all that came before it.
//! (docs/spec/amqp.md#3.3) [AMQP 2.4.2, 2.6.3-4]
//!
//! Before a detach, end or close the owner takes the events of the frames ahead of it, attaches
//! included. Then the deliveries that it would cut off are answered, for which there are two
//! seconds. Those behind an attach without an answer are taken first, however long that takes, as a
//! settled one would be lost. A transfer waits as long as another link has such deliveries. Input
//! behind the frame waits as well, and the owner should read no more meanwhile.

use amqp::{Performative, Transfer};
use bytes::Bytes;

use crate::config::Side;
use crate::connection::Connection;
use crate::connection::phase::Phase;
use crate::connection::timers::{LINGER, later};
use crate::id::Mono;
use crate::link::receiver::Receiver;
use crate::link::{End, Stage};

/// A frame that has something ahead of it.
pub(crate) struct WaitingFrame {
    channel: u16,
    performative: Performative,
    /// Of a transfer.
    payload: Bytes,
    /// When it takes effect without the answers. Nothing while it waits for an attach.
    pub(crate) deadline: Option<Mono>,
    /// What it has to wait for, of all that there may be. Nothing if that is not known yet.
    obstacle: Option<Obstacle>,
}

/// What would be cut off, or overtaken.
#[derive(Clone, Copy)]
enum Obstacle {
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

    /// Keeps a frame if it has to wait, and returns it if not.
    pub(crate) fn hold_ending(
        &mut self,
        channel: u16,
        performative: Performative,
    ) -> Option<Performative> {
        if self.side != Side::Server || !is_end(&performative) {
            return Some(performative);
        }
        // Its obstacle is looked for once the owner has taken the events.
        let obstacle = match self.events.is_empty() {
            true => self.obstacle(channel, &performative, true),
            false => None,
        };
        if self.events.is_empty() && obstacle.is_none() {
            return Some(performative);
        }
        self.waiting_frame = Some(WaitingFrame {
            channel,
            performative,
            payload: Bytes::new(),
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
            performative: Performative::Transfer(transfer),
            payload,
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
            let other = || self.obstacle(frame.channel, &frame.performative, !is_due);
            if let Some(obstacle) = same.or_else(other) {
                frame.deadline = frame.deadline.filter(|_| obstacle.is_delivery());
                frame.obstacle = Some(obstacle);
                self.waiting_frame = Some(frame);
                return false;
            }
        }
        self.handle_waiting(frame.channel, frame.performative, frame.payload);
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
            self.handle_waiting(frame.channel, frame.performative, frame.payload);
            self.resume();
        }
    }

    /// A delivery that would be left without an answer, if those count, or a link whose deliveries
    /// would not have been taken.
    fn obstacle(
        &self,
        channel: u16,
        performative: &Performative,
        answers: bool,
    ) -> Option<Obstacle> {
        let key = self.remote_channels.get(channel.into());
        match performative {
            Performative::Transfer(transfer) => {
                let holding = self.holding_link(channel, transfer.handle);
                holding.map(Obstacle::Link)
            }
            Performative::Detach(detach) => {
                let handles = &self.sessions.get(key?)?.remote_handles;
                let link = handles.get(detach.handle)?;
                self.obstacle_in(key?, answers, |key| key == link)
            }
            Performative::End(_) => self.obstacle_in(key?, answers, |_| true),
            _ => {
                let mut sessions = self.sessions.keys();
                sessions.find_map(|key| self.obstacle_in(key, answers, |_| true))
            }
        }
    }

    fn obstacle_in(
        &self,
        key: u32,
        answers: bool,
        is_chosen: impl Fn(u32) -> bool,
    ) -> Option<Obstacle> {
        let session = self.sessions.get(key)?;
        let is_owed =
            |(id, link): &(u32, u32)| answers && is_chosen(*link) && self.is_owed(*link, *id);
        let repeated = session.repeated.iter().copied();
        let delivery = session.incoming.ids().chain(repeated).find(is_owed);
        let delivery = delivery.map(|(id, _)| Obstacle::Delivery { session: key, id });
        let holds = |link: &&u32| is_chosen(**link) && self.holds_deliveries(**link);
        let link = || session.links.iter().find(holds);
        delivery.or_else(|| link().map(|link| Obstacle::Link(*link)))
    }

    fn is_there(&self, obstacle: Obstacle) -> bool {
        match obstacle {
            Obstacle::Delivery { session, id } => {
                let session = self.sessions.get(session);
                session.is_some_and(|session| session.has_incoming(id))
            }
            Obstacle::Link(link) => self.holds_deliveries(link),
        }
    }

    /// Whether the owner has still to answer an unsettled delivery of a link: it is whole, and the
    /// link is attached.
    fn is_owed(&self, link: u32, id: u32) -> bool {
        let receiver = self.receiver(link, Stage::Attached);
        receiver.is_some_and(|receiver| {
            let partial = receiver.partial.as_ref();
            !partial.is_some_and(|partial| partial.waits && partial.delivery_id == id)
        })
    }

    /// Whether a link waits for its own answer, with deliveries behind it.
    fn holds_deliveries(&self, link: u32) -> bool {
        let receiver = self.receiver(link, Stage::Requested);
        receiver.is_some_and(|receiver| !receiver.held.is_empty())
    }

    fn receiver(&self, link: u32, stage: Stage) -> Option<&Receiver> {
        let link = self.links.get(link).filter(|link| link.stage == stage)?;
        match &link.end {
            End::Receiver(receiver) => Some(receiver),
            End::Sender(_) => None,
        }
    }
}

fn is_end(performative: &Performative) -> bool {
    matches!(
        performative,
        Performative::Detach(_) | Performative::End(_) | Performative::Close(_)
    )
}
