//! Ending: a detach, end or close of a client takes effect behind all that came before it.
//! (docs/spec/amqp.md#3.3) [AMQP 2.4.2, 2.6.3-4]
//!
//! First the owner takes the events of the frames ahead of it, attaches included. Then the
//! deliveries that it would cut off are answered, for which there are two seconds. Input behind it
//! waits as well, and the owner should read no more meanwhile.

use amqp::Performative;

use crate::config::Side;
use crate::connection::Connection;
use crate::id::Mono;
use crate::link::{End, Stage};
use crate::phase::Phase;
use crate::receiver::Receiver;
use crate::session::Session;
use crate::timers::LINGER;
use crate::timers::later;

/// A frame that ends something, and has something ahead of it.
pub(crate) struct EndingFrame {
    channel: u16,
    performative: Performative,
    /// When it takes effect without the answers.
    pub(crate) deadline: Mono,
}

impl Connection {
    /// Whether input waits until deliveries that came before the end of their link are answered.
    /// What is read meanwhile is kept.
    #[must_use]
    pub fn holds_input(&self) -> bool {
        self.ending.is_some() && self.phase == Phase::Opened
    }

    /// Keeps a frame if it has to wait, and returns it if not.
    pub(crate) fn hold_ending(
        &mut self,
        channel: u16,
        performative: Performative,
    ) -> Option<Performative> {
        let waits = self.side == Side::Server
            && is_end(&performative)
            && (!self.events.is_empty() || self.cuts_off(channel, &performative));
        if !waits {
            return Some(performative);
        }
        self.ending = Some(EndingFrame {
            channel,
            performative,
            deadline: later(self.timers.now, LINGER),
        });
        None
    }

    /// Handles the frame that waits, if it need not wait any longer. Returns whether none is left.
    pub(crate) fn resume_ending(&mut self) -> bool {
        let Some(ending) = self.ending.take() else {
            return true;
        };
        let is_due = ending.deadline <= self.timers.now;
        if self.phase == Phase::Opened
            && !is_due
            && self.cuts_off(ending.channel, &ending.performative)
        {
            self.ending = Some(ending);
            return false;
        }
        self.handle_ending(ending.channel, ending.performative);
        true
    }

    /// Whether deliveries would be left without an answer, or without having been taken.
    fn cuts_off(&self, channel: u16, performative: &Performative) -> bool {
        let session = || self.sessions.get(self.remote_channels.get(channel.into())?);
        match performative {
            Performative::Detach(detach) => session().is_some_and(|session| {
                let link = session.remote_handles.get(detach.handle);
                link.is_some_and(|link| self.owes(session, |key| key == link))
            }),
            Performative::End(_) => session().is_some_and(|session| self.owes(session, |_| true)),
            _ => {
                let sessions = self.sessions.keys();
                let mut sessions = sessions.filter_map(|key| self.sessions.get(key));
                sessions.any(|session| self.owes(session, |_| true))
            }
        }
    }

    /// Whether chosen links of a session have whole deliveries that wait for an answer, or for that
    /// of their link.
    fn owes(&self, session: &Session, is_chosen: impl Fn(u32) -> bool) -> bool {
        let receiver = |key: u32, stage: Stage| {
            let link = self.links.get(key).filter(|_| is_chosen(key))?;
            match &link.end {
                End::Receiver(receiver) if link.stage == stage => Some(receiver),
                _ => None,
            }
        };
        let is_answerable = |(id, key): (u32, u32)| {
            let is_partial = |receiver: &Receiver| {
                let partial = receiver.partial.as_ref();
                partial.is_some_and(|partial| partial.waits && partial.delivery_id == id)
            };
            receiver(key, Stage::Attached).is_some_and(|receiver| !is_partial(receiver))
        };
        let repeated = session.repeated.iter().copied();
        let holds = |key: &u32| {
            receiver(*key, Stage::Requested).is_some_and(|receiver| !receiver.held.is_empty())
        };
        session.incoming.ids().chain(repeated).any(is_answerable) || session.links.iter().any(holds)
    }
}

fn is_end(performative: &Performative) -> bool {
    matches!(
        performative,
        Performative::Detach(_) | Performative::End(_) | Performative::Close(_)
    )
}
