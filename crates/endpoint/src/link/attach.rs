//! Attach: links begin, requested by the peer or by us. [AMQP 2.6.1-3]
//!
//! The peer's attach is an event for the owner, which answers it now or later. Until then flow and
//! deliveries for the link are kept, and a detach withdraws the request. A name belongs to one link
//! per role: a second attach steals it from the first (docs/spec/amqp.md#3.6).

use amqp::error::condition;
use amqp::performative::Role;
use amqp::{Attach, Error, Performative};

use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::event::Event;
use crate::id::{LinkId, SessionId};
use crate::link::{DetachReason, End, Link, Stage};
use crate::session;
use crate::slab::NONE;

/// Longer link names are refused; the longest in use are a few hundred bytes.
const MAX_NAME: usize = 2_048;
/// Links beyond the limit that are refused one by one; for a peer that requests still more the
/// session ends.
const MAX_REFUSED: usize = 256;

impl Connection {
    pub(crate) fn handle_attach(&mut self, channel: u16, attach: Box<Attach>) -> Result<(), Fault> {
        let key = self.session_on(channel)?;
        let handle_max = self.handle_max();
        let Some(session) = self.sessions.get(key) else {
            return Ok(());
        };
        if session.stage == session::Stage::Ending {
            return Ok(());
        }
        if attach.handle > handle_max {
            let handle = attach.handle;
            let text = format!("handle {handle} is above the handle-max of {handle_max}");
            return Err(Fault::connection(condition::FRAMING_ERROR, text));
        }
        if session.remote_handles.get(attach.handle).is_some() {
            let text = format!("handle {} is already attached", attach.handle);
            return Err(Fault::session(condition::HANDLE_IN_USE, text));
        }
        self.match_name(key, attach)
    }

    /// An attach either answers ours of the same name or requests a link.
    fn match_name(&mut self, session: u32, attach: Box<Attach>) -> Result<(), Fault> {
        let name = (attach.role == Role::Receiver, attach.name.clone());
        let shares_name = (self.config.shares_name)(&attach);
        if let Some(existing) = self.named_by(&attach) {
            let answers = self
                .links
                .get(existing)
                .is_some_and(|link| link.awaits_attach() && link.session == session);
            if answers {
                self.handle_attach_reply(existing, attach);
                return Ok(());
            }
            self.steal(existing);
            self.names.remove(&name);
        }
        let Some(key) = self.links.insert(|_| Link::requested(session, &attach)) else {
            let text = "the connection has the maximum number of links";
            return Err(Fault::session(condition::RESOURCE_LIMIT_EXCEEDED, text));
        };
        if !shares_name {
            self.names.insert(name, key);
        }
        self.request(key, session, attach)
    }

    /// The link that has the name and role of an attach.
    fn named_by(&self, attach: &Attach) -> Option<u32> {
        let name = (attach.role == Role::Receiver, attach.name.clone());
        let existing = self.names.get(&name).copied();
        existing.filter(|_| !(self.config.shares_name)(attach))
    }

    /// The link that an attach of the peer detaches, as it has its name.
    pub(crate) fn stolen_by(&self, attach: &Attach) -> Option<u32> {
        let existing = self.named_by(attach)?;
        let link = self.links.get(existing)?;
        (!link.awaits_attach()).then_some(existing)
    }

    /// The same name and role again: the older link goes. [AMQP 2.6.1]
    fn steal(&mut self, link: u32) {
        let text = "another link with the same name and role was attached";
        self.break_link(
            link,
            DetachReason::with(Error::new(condition::STOLEN, text)),
        );
    }

    /// Reports the peer's request to the owner, unless there are too many links already.
    fn request(&mut self, key: u32, session_key: u32, attach: Box<Attach>) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(session_key) else {
            return Ok(());
        };
        session.remote_handles.bind(attach.handle, key);
        session.links.push(key);
        session.detached_handles.remove(attach.handle);
        let in_session = session.links.len();
        let excess = in_session
            .saturating_sub(self.config.max_links_per_session)
            .max(self.links.len().saturating_sub(self.bounds.links));
        if excess > 0 || attach.name.len() > MAX_NAME {
            if let Some(link) = self.links.get_mut(key) {
                link.reported = true;
            }
            let text = "the maximum number of links is reached, or the link name is too long";
            if excess > MAX_REFUSED {
                return Err(Fault::session(condition::RESOURCE_LIMIT_EXCEEDED, text));
            }
            let error = Error::new(condition::RESOURCE_LIMIT_EXCEEDED, text);
            self.record_link_error(key, false, &error);
            self.refuse(LinkId(key), error);
            return Ok(());
        }
        self.events.push_back(Event::AttachRequested {
            link: LinkId(key),
            session: SessionId(session_key),
            attach,
        });
        Ok(())
    }

    /// The peer answers our attach.
    fn handle_attach_reply(&mut self, key: u32, attach: Box<Attach>) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        link.remote_handle = Some(attach.handle);
        if let Some(session) = self.sessions.get_mut(link.session) {
            session.remote_handles.bind(attach.handle, key);
            session.detached_handles.remove(attach.handle);
        }
        if let End::Receiver(receiver) = &mut link.end {
            receiver.start_from(&attach);
        }
        if link.stage == Stage::Offered {
            link.stage = Stage::Attached;
            let link = LinkId(key);
            self.events.push_back(Event::Attached { link, attach });
        } else {
            self.release_name(key);
        }
    }

    /// Client: requests a link. `attach.handle` is chosen here. When there is no handle left or the
    /// session is gone, `Detached` is the answer.
    pub fn attach(&mut self, session: SessionId, mut attach: Attach) -> LinkId {
        let session_key = session.0;
        let usable = self
            .sessions
            .get(session_key)
            .is_some_and(|session| session.stage != session::Stage::Ending);
        let key = usable
            .then(|| self.links.insert(|_| Link::offered(session_key, &attach)))
            .flatten();
        let Some(key) = key else {
            return self.fail_offer(NONE, "the session is over");
        };
        let Some(handle) = self.bind_local_handle(key) else {
            self.links.remove(key);
            return self.fail_offer(key, "no handle is left");
        };
        let name = (attach.role == Role::Sender, attach.name.clone());
        attach.handle = handle;
        if attach.role == Role::Sender {
            attach.initial_delivery_count.get_or_insert(0);
        }
        if !self.try_write_on(session_key, &Performative::Attach(Box::new(attach))) {
            self.remove_link(key);
            return self.fail_offer(key, "the attach does not fit the peer's max-frame-size");
        }
        self.names.insert(name, key);
        LinkId(key)
    }

    fn fail_offer(&mut self, key: u32, text: &'static str) -> LinkId {
        let link = LinkId(key);
        if !self.over {
            self.events.push_back(Event::Detached {
                link,
                closed: true,
                error: Some(Error::new(condition::RESOURCE_LIMIT_EXCEEDED, text)),
                with_session: false,
                unsettled: Vec::new(),
            });
        }
        link
    }

    /// Binds our handle for a link, and the link to its session.
    fn bind_local_handle(&mut self, key: u32) -> Option<u32> {
        let link = self.links.get_mut(key)?;
        let session = self.sessions.get_mut(link.session)?;
        let handle = session
            .local_handles
            .bind_free(session.peer_handle_max, key)?;
        link.local_handle = Some(handle);
        if link.stage == Stage::Offered {
            session.links.push(key);
        }
        Some(handle)
    }

    /// Accepts the peer's link with `reply` (handle, name and role are filled in here), then
    /// handles the frames that were kept for it.
    pub fn accept(&mut self, link: LinkId, mut reply: Attach) {
        let key = link.0;
        if !self.is_requested(key) {
            return;
        }
        let Some(handle) = self.bind_local_handle(key) else {
            self.fail_handles(key);
            return;
        };
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        complete(link, &mut reply, handle);
        let session = link.session;
        if !self.try_write_on(session, &Performative::Attach(Box::new(reply))) {
            let text = "the attach does not fit the peer's max-frame-size";
            let error = Error::new(condition::FRAME_SIZE_TOO_SMALL, text);
            self.break_link(key, DetachReason::with(error));
            return;
        }
        if let Some(link) = self.links.get_mut(key) {
            link.stage = Stage::Attached;
        }
        self.replay(key);
    }

    fn is_requested(&self, key: u32) -> bool {
        self.links
            .get(key)
            .is_some_and(|link| link.stage == Stage::Requested)
    }

    /// Refuses the peer's link: attach with null termini, then detach with `error`
    /// (docs/spec/amqp.md#rule-8).
    pub fn refuse(&mut self, link: LinkId, error: Error) {
        if self.is_requested(link.0) {
            self.detach(link, true, Some(error));
        }
    }

    /// Writes the attach that a refusal starts with; false when the peer's limits forbid even
    /// that, which ends the session.
    pub(crate) fn write_refusal(&mut self, key: u32) -> bool {
        let bound = self.links.get(key).and_then(|link| link.local_handle);
        let Some(handle) = bound.or_else(|| self.bind_local_handle(key)) else {
            self.fail_handles(key);
            return false;
        };
        let Some(link) = self.links.get(key) else {
            return false;
        };
        let session = link.session;
        let refusal = Performative::Attach(Box::new(link.refusal(handle)));
        let written = self.try_write_on(session, &refusal);
        if !written {
            let text = "the link's name does not fit the peer's max-frame-size";
            self.fail_session(session, Error::new(condition::FRAME_SIZE_TOO_SMALL, text));
        }
        written
    }

    /// The peer's handle-max is too small to answer its attach at all.
    fn fail_handles(&mut self, key: u32) {
        if let Some(session) = self.links.get(key).map(|link| link.session) {
            let text = "handle-max leaves no handle to answer with";
            self.fail_session(
                session,
                Error::new(condition::RESOURCE_LIMIT_EXCEEDED, text),
            );
        }
    }

    /// Handles the frames that came for the link before the owner's answer.
    fn replay(&mut self, key: u32) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        let flow = link.held_flow.take();
        if let Some(flow) = flow {
            self.handle_link_flow(key, &flow);
        }
        self.deliver_held(key);
    }

    pub(crate) fn release_name(&mut self, key: u32) {
        if let Some(link) = self.links.get(key) {
            let name = (link.role() == Role::Sender, link.name.clone());
            if self.names.get(&name) == Some(&key) {
                self.names.remove(&name);
            }
        }
    }

    pub(crate) fn write_on(&mut self, session: u32, performative: &Performative) {
        if let Some(session) = self.sessions.get(session) {
            self.outbox.write(session.local_channel, performative);
        }
    }

    #[must_use]
    fn try_write_on(&mut self, session: u32, performative: &Performative) -> bool {
        self.sessions
            .get(session)
            .is_some_and(|session| self.outbox.try_write(session.local_channel, performative))
    }
}

/// Fills in the fields that the owner does not choose, and starts the link from the others.
fn complete(link: &mut Link, reply: &mut Attach, handle: u32) {
    reply.handle = handle;
    reply.role = link.role();
    reply.name.clone_from(&link.name);
    match &mut link.end {
        End::Sender(sender) => {
            sender.start_from(*reply.initial_delivery_count.get_or_insert(0));
        }
        End::Receiver(receiver) => {
            reply.initial_delivery_count = None;
            receiver.set_max_message_size(reply.max_message_size);
        }
    }
}
