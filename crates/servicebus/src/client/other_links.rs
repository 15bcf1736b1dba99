//! Other links: those links of the connection that another dialect owns.
//!
//! Which links these are is that dialect's to say: it is offered each attach first. Without another
//! dialect all links are ours.

use amqp::{Attach, Error, Open};
use broker::Output;
use dialect::{LinkContext, LinkOwner, owner_token};
use endpoint::{Event, LinkId, SessionId};

use crate::client::Client;
use crate::errors;

impl Client {
    /// The same, where `owner` may take links over.
    #[must_use]
    pub fn sharing(mut self, owner: Box<dyn LinkOwner>) -> Self {
        self.link_owner = Some(owner);
        self
    }

    /// Lets the other dialect act, if there is one and the connection has not ended.
    pub(crate) fn with_owner<T>(
        &mut self,
        act: impl FnOnce(&mut dyn LinkOwner, &mut LinkContext<'_>) -> T,
    ) -> Option<T> {
        if self.ended {
            return None;
        }
        let owner = self.link_owner.as_deref_mut()?;
        let mut cx = LinkContext {
            id: self.id,
            now: self.now,
            connection: &mut self.connection,
            locality: self.locality,
            token_grace: self.settings.token_grace,
            needs_keys: &mut self.needs_keys,
            claims: &mut self.claims,
            directory: &self.directory,
            commands: &mut self.commands,
            refusals: &mut self.refusals,
            unreported_bytes: &mut self.unreported_bytes,
        };
        let result = act(owner, &mut cx);
        if self.claims.take_weakened() {
            self.recheck_links(|_, required_right, resource| {
                errors::unauthorized(required_right, resource)
            });
            self.check_others();
        }
        Some(result)
    }

    /// Offers an attach; returns it if it is ours to answer.
    pub(crate) fn offer_attach(
        &mut self,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
    ) -> Option<Box<Attach>> {
        if self.link_owner.is_none() {
            return Some(attach);
        }
        self.with_owner(|owner, cx| owner.handle_attach(cx, link, session, attach))?
    }

    /// Whether the other dialect owns a link.
    pub(crate) fn is_others(&self, link: LinkId) -> bool {
        let owner = self.link_owner.as_ref();
        owner.is_some_and(|owner| owner.owns(link))
    }

    /// Whether the connection has links of the other dialect.
    pub(crate) fn has_others(&self) -> bool {
        let owner = self.link_owner.as_ref();
        owner.is_some_and(|owner| owner.has_links())
    }

    /// Whether an event is of a link that the other dialect owns.
    pub(crate) fn is_event_of_others(&self, event: &Event) -> bool {
        self.has_others() && link_of(event).is_some_and(|link| self.is_others(link))
    }

    /// Passes on an event of a link that the other dialect owns.
    pub(crate) fn pass_event(&mut self, event: Event) {
        self.note_findings();
        self.with_owner(|owner, cx| owner.handle_event(cx, event));
        self.start_idle_timer();
    }

    /// Whether an output is for a link or a request of the other dialect.
    pub(crate) fn is_output_of_others(&self, output: &Output) -> bool {
        match output {
            Output::Deliver { receiver, .. }
            | Output::Drained { receiver }
            | Output::DeliveryTimedOut { receiver, .. }
            | Output::Activity { receiver, .. }
            | Output::Evicted { receiver, .. } => self.is_others(LinkId(receiver.link)),
            Output::NodeOpened { link, .. } | Output::NodeClosed { link } => {
                self.is_others(LinkId(link.link))
            }
            Output::Sent { request, .. }
            | Output::Published { request, .. }
            | Output::Settled { request, .. }
            | Output::Deleted { request, .. }
            | Output::Administered { request, .. } => owner_token(*request).is_some(),
            _ => false,
        }
    }

    /// Passes on an output for a link or a request of the other dialect.
    pub(crate) fn pass_output(&mut self, output: Output) {
        self.with_owner(|owner, cx| owner.handle_output(cx, output));
        self.start_idle_timer();
    }

    /// Has the other dialect check its links.
    pub(crate) fn check_others(&mut self) {
        if self.has_others() {
            self.with_owner(|owner, cx| owner.check_links(cx));
            self.start_idle_timer();
        }
    }

    /// Detaches the links of the other dialect.
    pub(crate) fn detach_others(&mut self, error: &Error) {
        self.with_owner(|owner, cx| owner.detach_all(cx, error));
    }

    /// Ends the links of the other dialect with the connection, which closes in good order.
    pub(crate) fn close_others(&mut self) {
        self.with_owner(|owner, cx| owner.close_all(cx));
    }

    /// Tells the other dialect how the client has opened the connection.
    pub(crate) fn open_for_others(&mut self, open: &Open) -> Result<(), Error> {
        let Some(owner) = self.link_owner.as_deref_mut() else {
            return Ok(());
        };
        let credential = owner.handle_opened(self.directory.access(), open, self.locality)?;
        if let Some(credential) = credential.filter(|_| !self.claims.has_any()) {
            self.claims.log_in(credential);
            self.mark_authenticated();
        }
        Ok(())
    }
}

/// The link that an event is about, once it is attached.
fn link_of(event: &Event) -> Option<LinkId> {
    match event {
        Event::Delivery { link, .. }
        | Event::TooLarge { link, .. }
        | Event::Disposed { link, .. }
        | Event::Credit { link, .. }
        | Event::Detached { link, .. } => Some(*link),
        _ => None,
    }
}
