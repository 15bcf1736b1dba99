//! Obstacle: what a frame has to wait for before it takes effect. (docs/spec/amqp.md#3.3)

use amqp::Performative;

use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::connection::waiting_frame::{Effect, Obstacle};
use crate::link::receiver::Receiver;
use crate::link::{End, Stage};

/// What a frame ends.
enum Scope {
    Link { session: u32, link: u32 },
    Session(u32),
    Connection,
}

impl Connection {
    /// A delivery that would be left without an answer, if those count, or a link whose deliveries
    /// would not have been taken.
    pub(crate) fn obstacle(
        &self,
        channel: u16,
        effect: &Effect,
        answers: bool,
    ) -> Option<Obstacle> {
        if let Effect::Frame(Performative::Transfer(transfer), _) = effect {
            let holding = self.holding_link(channel, transfer.handle);
            return holding.map(Obstacle::Link);
        }
        match self.scope(channel, effect)? {
            Scope::Link { session, link } => {
                self.obstacle_in(session, answers, |other| other == link)
            }
            Scope::Session(session) => self.obstacle_in(session, answers, |_| true),
            Scope::Connection => {
                // After a fault the close waits for the answers by itself.
                let answers = answers && matches!(effect, Effect::Frame(..));
                let mut sessions = self.sessions.keys();
                sessions.find_map(|key| self.obstacle_in(key, answers, |_| true))
            }
        }
    }

    /// What a frame ends, if that is there.
    fn scope(&self, channel: u16, effect: &Effect) -> Option<Scope> {
        let session = self.remote_channels.get(channel.into());
        match effect {
            Effect::Frame(Performative::Detach(detach), _) => {
                let session = session?;
                let handles = &self.sessions.get(session)?.remote_handles;
                let link = handles.get(detach.handle)?;
                Some(Scope::Link { session, link })
            }
            Effect::Frame(Performative::Attach(attach), _) => {
                let link = self.stolen_by(attach)?;
                let session = self.links.get(link)?.session;
                Some(Scope::Link { session, link })
            }
            Effect::Frame(Performative::End(_), _) => session.map(Scope::Session),
            Effect::Fault(Fault::Link(link, _)) => {
                let (link, session) = (*link, self.links.get(*link)?.session);
                Some(Scope::Link { session, link })
            }
            Effect::Fault(Fault::Session(_)) => {
                Some(session.map_or(Scope::Connection, Scope::Session))
            }
            Effect::Frame(..) | Effect::Fault(Fault::Connection(_)) => Some(Scope::Connection),
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

    pub(crate) fn is_there(&self, obstacle: Obstacle) -> bool {
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
    pub(crate) fn holds_deliveries(&self, link: u32) -> bool {
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
