//! Detach: links end, by either side or for an error. [AMQP 2.6.4-6]
//!
//! The peer's detach is answered at once and the link is gone, unless the owner answers a close
//! itself. Ours waits for the peer's answer;
//! until then frames for the link are dropped, except settlements of sent deliveries.

use amqp::error::condition;
use amqp::{Detach, Error, Performative};

use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::event::Event;
use crate::id::LinkId;
use crate::link::{DetachReason, End, Stage};
use crate::session;

impl Connection {
    pub(crate) fn handle_detach(&mut self, channel: u16, detach: Detach) -> Result<(), Fault> {
        if self.ended_channels.contains(&channel) {
            // The link went with its session, and Python's SDK detaches it once more. [amqp 1.5]
            return Ok(());
        }
        let session_key = self.session_on(channel)?;
        let Some(session) = self.sessions.get_mut(session_key) else {
            return Ok(());
        };
        if session.stage == session::Stage::Ending {
            return Ok(());
        }
        let Some(key) = session.remote_handles.get(detach.handle) else {
            return match session.detached_handles.remove(detach.handle) {
                true => Ok(()),
                false => Err(unattached(detach.handle)),
            };
        };
        if self
            .links
            .get(key)
            .is_some_and(|link| link.stage == Stage::Detaching)
        {
            session.detached_handles.insert(detach.handle);
        }
        if self.is_closing(LinkId(key)) {
            return Err(unattached(detach.handle));
        }
        let closed = detach.closed;
        let is_held = closed && detach.error.is_none() && self.hold_closed(key);
        self.report_detached(
            key,
            DetachReason {
                closed,
                error: detach.error,
                with_session: false,
            },
        );
        if is_held {
            self.release_name(key);
            return Ok(());
        }
        self.answer_detach(key, session_key, closed);
        self.remove_link(key);
        Ok(())
    }

    /// Whether the owner answers the close of this link.
    fn hold_closed(&mut self, key: u32) -> bool {
        let Some(link) = self.links.get_mut(key) else {
            return false;
        };
        let is_held = link.holds_close && link.stage == Stage::Attached;
        if is_held {
            link.stage = Stage::Closing;
        }
        is_held
    }

    /// From now on the peer's close of the link without an error waits for
    /// [`answer_close`](Self::answer_close). Its other detaches are answered at once.
    pub fn hold_close(&mut self, link: LinkId) {
        if let Some(link) = self.links.get_mut(link.0) {
            link.holds_close = true;
        }
    }

    /// Whether the peer has closed the link and waits for the answer.
    #[must_use]
    pub fn is_closing(&self, link: LinkId) -> bool {
        let link = self.links.get(link.0);
        link.is_some_and(|link| link.stage == Stage::Closing)
    }

    /// Answers the close of a link that waits for it; with an error it was not done.
    pub fn answer_close(&mut self, link: LinkId, error: Option<Error>) {
        if self.is_closing(link) {
            self.detach(link, true, error);
        }
    }

    fn answer_detach(&mut self, key: u32, session: u32, closed: bool) {
        let Some(stage) = self.links.get(key).map(|link| link.stage) else {
            return;
        };
        match stage {
            Stage::Detaching | Stage::Closing => return,
            // A link that was never answered cannot be detached without attaching it first.
            Stage::Requested if !self.write_refusal(key) => return,
            _ => {}
        }
        self.write_dispositions(session);
        self.write_detach(
            key,
            DetachReason {
                closed,
                error: None,
                with_session: false,
            },
        );
    }

    /// Detaches a link. Cookies of deliveries that were not settled come back in `Detached`.
    pub fn detach(&mut self, link: LinkId, closed: bool, error: Option<Error>) {
        let key = link.0;
        let Some(link) = self.links.get(key) else {
            return;
        };
        let (session, stage) = (link.session, link.stage);
        match stage {
            Stage::Detaching => return,
            Stage::Requested if !self.write_refusal(key) => return,
            _ => {}
        }
        self.write_dispositions(session);
        self.drop_waiting(key);
        self.drop_received(key);
        let reason = DetachReason {
            closed,
            error,
            with_session: false,
        };
        if let Some(link) = self.links.get_mut(key) {
            link.keeps_deliveries = link.keeps_deliveries(&reason);
        }
        self.write_detach(key, reason);
        if stage == Stage::Closing {
            return self.remove_link(key);
        }
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        link.stage = Stage::Detaching;
        // The name still leads the peer's answer to an attach of ours here.
        if !link.awaits_attach() {
            self.release_name(key);
            self.drop_name(key);
        }
    }

    /// Detaches a link for an error that we detected; the owner gets the event at once.
    pub(crate) fn break_link(&mut self, key: u32, reason: DetachReason) {
        let copy = DetachReason {
            closed: reason.closed,
            error: reason.error.clone(),
            with_session: reason.with_session,
        };
        if let (Some(link), Some(error)) = (self.links.get(key), &copy.error)
            && link.stage != Stage::Detaching
        {
            let attached = link.stage == Stage::Attached;
            self.record_link_error(key, attached, error);
        }
        self.detach(LinkId(key), reason.closed, reason.error);
        self.report_detached(key, copy);
    }

    /// Nothing asks for the name any more, and the peer may take its time with the answer.
    fn drop_name(&mut self, key: u32) {
        if let Some(link) = self.links.get_mut(key) {
            link.name = String::new();
        }
    }

    fn write_detach(&mut self, key: u32, reason: DetachReason) {
        let Some(link) = self.links.get(key) else {
            return;
        };
        let Some(handle) = link.local_handle else {
            return;
        };
        let detach = Performative::Detach(Detach {
            handle,
            closed: reason.closed,
            error: reason.error,
        });
        self.write_on(link.session, &detach);
    }

    /// Tells the owner, once, that the link is over. Its deliveries are forgotten, unless the link
    /// is detached without being closed: then they can still be settled in their session.
    /// [AMQP 2.6.4, 2.7.6]
    pub(crate) fn report_detached(&mut self, key: u32, reason: DetachReason) {
        self.drop_waiting(key);
        self.drop_received(key);
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        if std::mem::replace(&mut link.reported, true) {
            return;
        }
        let session_key = link.session;
        let lasts = link.keeps_deliveries(&reason);
        let mut unsettled = Vec::new();
        let mut unsent = std::mem::take(&mut link.unsent);
        // What is kept must leave room for the links that are attached.
        let most = self.config.max_unsettled / 4;
        let session = self.sessions.get_mut(session_key);
        let has_room = session.as_ref().is_some_and(|it| it.outgoing.len() <= most);
        if let Some(session) = session
            && !(lasts && has_room)
        {
            if lasts {
                let ids = session.outgoing.ids().filter(|(_, link)| *link == key);
                session.forgotten.add(ids.map(|(id, _)| id));
            }
            session.incoming.remove_link(key);
            session.repeated.retain(|(_, link)| *link != key);
            unsettled = session.outgoing.remove_link(key);
        }
        unsettled.append(&mut unsent);
        self.events.push_back(Event::Detached {
            link: LinkId(key),
            closed: reason.closed,
            error: reason.error,
            with_session: reason.with_session,
            unsettled,
        });
        self.notify_starved_senders(session_key);
    }

    /// What waits for the session's window is not sent any more.
    fn drop_waiting(&mut self, key: u32) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(link.session) else {
            return;
        };
        let before = session.waiting_bytes;
        link.unsent.append(&mut session.unqueue_link(key));
        self.waiting_bytes -= before - session.waiting_bytes;
        if let End::Sender(sender) = &mut link.end {
            sender.queued = 0;
        }
    }

    /// Drops the unfinished delivery and the held ones.
    fn drop_received(&mut self, key: u32) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        if let End::Receiver(receiver) = &mut link.end {
            let unfinished = receiver.partial.take();
            if let (Some(partial), Some(session)) =
                (&unfinished, self.sessions.get_mut(link.session))
                && partial.waits
            {
                session.settle_incoming(partial.delivery_id);
            }
            let partial = unfinished.map_or(0, |partial| partial.cost());
            receiver.held.clear();
            self.partial_bytes -= partial + std::mem::take(&mut receiver.held_bytes);
        }
    }

    /// The link is detached in both directions.
    pub(crate) fn remove_link(&mut self, key: u32) {
        self.release_name(key);
        let Some(link) = self.links.remove(key) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(link.session) else {
            return;
        };
        if let Some(handle) = link.local_handle {
            session.local_handles.release(handle);
        }
        if let Some(handle) = link.remote_handle {
            session.remote_handles.release(handle);
        }
        if let Some(index) = session.links.iter().position(|&link| link == key) {
            session.links.swap_remove(index);
        }
    }
}

/// The peer speaks of a handle that it has not attached. [AMQP 2.8.17]
pub(crate) fn unattached(handle: u32) -> Fault {
    let text = format!("handle {handle} is not attached");
    Fault::Session(Error::new(condition::UNATTACHED_HANDLE, text))
}
