//! Session attach: a receiver link that asks for a session. (docs/spec/amqp.md#3.4)
//!
//! Its attach waits until the broker has assigned a session, at most as long as the client is ready
//! to wait. Meanwhile the endpoint remembers the client's flow for the link; if the client
//! detaches, it gets no answer. The reply names the session in the same form as the request, and
//! the end of its lock.

use access::Operation;
use amqp::{Error, Map, Symbol, Value};
use broker::{Command, ReceiverId, SessionError, SessionFilter};
use bytes::Bytes;
use dialect::{Origin, Subject};
use endpoint::LinkId;

use crate::attach::pending_attach::{AttachRequest, PendingAttach};
use crate::client::Client;
use crate::errors;
use crate::links::link::LinkKind;

const LOCKED_UNTIL: Symbol = Symbol::new("com.microsoft:locked-until-utc");
/// From the year 1 to 1970, in units of 100 ns.
const TICKS_TO_1970: i64 = 621_355_968_000_000_000;

impl Client {
    /// Requests a session from the broker for a link. The link counts for the scope of its AMQP
    /// session from now on, however long it waits. (docs/spec/amqp.md#8.3)
    pub(crate) fn request_session(
        &mut self,
        pending_attach: PendingAttach,
        session: SessionFilter,
    ) {
        let AttachRequest {
            link, session: on, ..
        } = pending_attach.request;
        let top_level = pending_attach.entity_ref.top_level;
        self.session_scopes.link_attached(on, Some(top_level));
        let command = Command::AcceptSession {
            receiver: self.receiver_id(link),
            entity: pending_attach.entity_ref.id,
            mode: pending_attach.receiver.mode,
            session,
        };
        self.pending_attaches.insert(link, Box::new(pending_attach));
        self.command(command);
    }

    /// Handles a session that the broker has assigned. If its link is detached, the broker has been
    /// told already.
    pub(crate) fn handle_session_accepted(
        &mut self,
        receiver: ReceiverId,
        session_id: &Bytes,
        lock_ms: u64,
    ) {
        let link = LinkId(receiver.link);
        let Some(pending_attach) = self.pending_attaches.remove(&link) else {
            return;
        };
        let required_right = Operation::Receive.required_right();
        let path = pending_attach.path.to_lowercase();
        if !self.rights_within_grace(&path).allow(required_right) {
            let error = errors::unauthorized(required_right, &self.resource(&pending_attach.path));
            self.command(Command::Detach {
                receiver: self.receiver_id(link),
            });
            return self.refuse_pending_attach(&pending_attach, error);
        }
        let PendingAttach {
            request,
            mut reply,
            requested_session,
            entity_ref,
            path,
            mut receiver,
        } = *pending_attach;
        if let Some(source) = reply.source.as_deref_mut() {
            source.filter = Some(requested_session.granted(session_id));
        }
        let until = self.now.wall.0.saturating_add(lock_ms);
        announce_lock(reply.properties.get_or_insert_default(), until);
        receiver.held_session = Some(session_id.clone());
        let kind = LinkKind::Receiver(receiver);
        self.accept(
            request,
            reply,
            required_right,
            &path,
            Some(entity_ref),
            kind,
        );
    }

    /// Handles the broker's refusal of a session.
    pub(crate) fn handle_session_refused(&mut self, receiver: ReceiverId, error: SessionError) {
        let link = LinkId(receiver.link);
        if let Some(pending_attach) = self.pending_attaches.remove(&link) {
            let error = errors::session(error, &pending_attach.requested_session.value);
            self.refuse_pending_attach(&pending_attach, error);
        }
    }

    /// Handles the loss of a link's session.
    pub(crate) fn handle_session_lost(&mut self, receiver: ReceiverId) {
        let link = LinkId(receiver.link);
        if self.links.get(link).is_some() {
            self.detach(link, errors::session_lock_lost());
        }
        self.pending_attaches.remove(&link);
    }

    /// Removes a pending attach whose link is gone, and tells the broker.
    pub(crate) fn cancel_pending_attach(&mut self, link: LinkId) -> Option<Box<PendingAttach>> {
        let pending_attach = self.pending_attaches.remove(&link)?;
        self.command(Command::Detach {
            receiver: self.receiver_id(link),
        });
        self.start_idle_timer();
        Some(pending_attach)
    }

    /// Refuses a link whose attach was pending.
    pub(crate) fn refuse_pending_attach(&mut self, pending_attach: &PendingAttach, error: Error) {
        let origin = Origin {
            link: Some(pending_attach.name()),
            entity: Some(&pending_attach.path),
            ..Origin::default()
        };
        let error = self.tracked(error);
        self.refusals.note(Subject::Attach, origin, &error);
        self.connection.refuse(pending_attach.request.link, error);
        self.start_idle_timer();
    }
}

/// Adds the end of the session's lock, as .NET counts time.
fn announce_lock(properties: &mut Map, until_ms: u64) {
    let until = i64::try_from(until_ms).unwrap_or(i64::MAX);
    let ticks = until.saturating_mul(10_000).saturating_add(TICKS_TO_1970);
    properties.retain(|(key, _)| key.as_text() != Some(LOCKED_UNTIL.as_str()));
    properties.push((Value::Symbol(LOCKED_UNTIL), Value::Long(ticks)));
}
