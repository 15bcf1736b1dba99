//! Session attach: a receiver link that asks for a session. (docs/spec/amqp.md#3.4)
//!
//! Its attach waits until the broker has assigned a session, at most as long as the client is ready
//! to wait. Meanwhile the endpoint remembers the client's flow for the link; if the client
//! detaches, it gets no answer. The reply names the session in the same form as the request, and
//! the end of its lock.

use access::Operation;
use amqp::{Attach, Error, Map, Symbol, Value};
use broker::{Command, ReceiverId, SessionError, SessionFilter};
use bytes::Bytes;
use dialect::{Origin, Subject};
use endpoint::LinkId;

use crate::attach::AttachRequest;
use crate::client::Client;
use crate::errors;
use crate::link::{EntityRef, LinkKind};
use crate::receiver::Receiver;

const FILTER: &str = "com.microsoft:session-filter";
const FILTER_CODE: u64 = 0x0000_0013_7000_000C;
const NON_EXCLUSIVE: &str = "com.microsoft:non-exclusive-session-filter";
const TIMEOUT: &str = "com.microsoft:timeout";
const LOCKED_UNTIL: Symbol = Symbol::new("com.microsoft:locked-until-utc");
/// How long a client waits by default.
const DEFAULT_TIMEOUT_MS: u64 = 65_000;
/// Most characters of a session's id. (docs/spec/entities.md#4)
const MAX_ID: usize = 128;
/// From the year 1 to 1970, in units of 100 ns.
const TICKS_TO_1970: i64 = 621_355_968_000_000_000;

/// The session filter of an attach, as it was received.
#[derive(Debug)]
pub(crate) struct RequestedSession {
    key: Value,
    value: Value,
}

/// An attach that waits for its session.
#[derive(Debug)]
pub(crate) struct PendingAttach {
    pub(crate) request: AttachRequest,
    pub(crate) reply: Attach,
    pub(crate) requested_session: RequestedSession,
    pub(crate) entity_ref: EntityRef,
    pub(crate) path: String,
    pub(crate) receiver: Receiver,
}

impl PendingAttach {
    /// The link's name.
    pub(crate) fn name(&self) -> &str {
        &self.request.attach.name
    }
}

/// Refuses a session that is not exclusive, with the text by which .NET knows that the server has
/// none. (docs/spec/amqp.md#3.5)
pub(crate) fn check_exclusive(attach: &Attach) -> Result<(), Error> {
    let source = attach.source.as_deref();
    let filters = source.and_then(|source| source.filter.as_deref());
    let mut keys = filters.unwrap_or_default().iter().map(|(key, _)| key);
    if keys.any(|key| key.as_text() == Some(NON_EXCLUSIVE)) {
        return Err(errors::non_exclusive_session());
    }
    Ok(())
}

impl RequestedSession {
    /// The session filter of an attach, if there is one.
    pub(crate) fn of(attach: &Attach) -> Option<Self> {
        let source = attach.source.as_deref()?;
        let mut filters = source.filter.as_deref()?.iter();
        let is_session_filter = |key: &Value, value: &Value| {
            let described = match value {
                Value::Described(pair) => {
                    pair.0 == Value::Ulong(FILTER_CODE) || pair.0.as_text() == Some(FILTER)
                }
                _ => false,
            };
            described || key.as_text() == Some(FILTER)
        };
        let (key, value) = filters
            .find(|(key, value)| is_session_filter(key, value))?
            .clone();
        Some(Self { key, value })
    }

    /// The session that it requests.
    pub(crate) fn filter(&self, attach: &Attach) -> Result<SessionFilter, Error> {
        let id = match &self.value {
            Value::Described(pair) => &pair.1,
            value => value,
        };
        match id {
            Value::Null => Ok(SessionFilter::Next {
                timeout_ms: timeout(attach)?,
            }),
            Value::String(id) => {
                check_id(id)?;
                Ok(SessionFilter::ById(Bytes::copy_from_slice(id.as_bytes())))
            }
            _ => Err(errors::bad_argument(
                "The session filter must be a string or null.",
            )),
        }
    }

    /// The filter of the reply: the assigned session, in the form that the client used.
    fn granted(self, id: &Bytes) -> Map {
        let id = Value::String(String::from_utf8_lossy(id).into_owned());
        let value = match self.value {
            Value::Described(pair) => Value::Described(Box::new((pair.0, id))),
            _ => id,
        };
        vec![(self.key, value)]
    }
}

/// Refuses ids that are too long.
pub(crate) fn check_id(id: &str) -> Result<(), Error> {
    // Bytes bound characters, so short ids need no counting.
    if id.len() > MAX_ID && id.chars().count() > MAX_ID {
        return Err(errors::out_of_range("The session id", MAX_ID, "characters"));
    }
    Ok(())
}

/// How long the client waits for its next session, in milliseconds of any integral type.
fn timeout(attach: &Attach) -> Result<u64, Error> {
    let properties = attach.properties.as_deref().unwrap_or_default();
    match amqp::value::lookup(properties, TIMEOUT) {
        None | Some(Value::Null) => Ok(DEFAULT_TIMEOUT_MS),
        Some(value) => {
            let timeout = value.as_integer().map(u64::try_from);
            timeout.and_then(Result::ok).ok_or_else(|| {
                errors::bad_argument(format!("The property '{TIMEOUT}' must be a number."))
            })
        }
    }
}

impl Client {
    /// Requests a session from the broker for a link.
    pub(crate) fn request_session(
        &mut self,
        pending_attach: PendingAttach,
        session: SessionFilter,
    ) {
        let link = pending_attach.request.link;
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
        self.refusals.note(Subject::Attach, origin, &error);
        self.connection.refuse(pending_attach.request.link, error);
        self.start_idle_timer();
    }

    /// Whether the connection holds a session of an entity, by one of its links.
    pub(crate) fn check_session(&self, entity_ref: &EntityRef, session: &str) -> Result<(), Error> {
        check_id(session)?;
        let held = self.links.iter().any(|(_, link)| match &link.kind {
            LinkKind::Receiver(receiver) => {
                receiver.entity == entity_ref.id
                    && receiver.held_session.as_deref() == Some(session.as_bytes())
            }
            _ => false,
        });
        held.then_some(()).ok_or_else(errors::session_lock_lost)
    }
}

/// Adds the end of the session's lock, as .NET counts time.
fn announce_lock(properties: &mut Map, until_ms: u64) {
    let until = i64::try_from(until_ms).unwrap_or(i64::MAX);
    let ticks = until.saturating_mul(10_000).saturating_add(TICKS_TO_1970);
    properties.retain(|(key, _)| key.as_text() != Some(LOCKED_UNTIL.as_str()));
    properties.push((Value::Symbol(LOCKED_UNTIL), Value::Long(ticks)));
}
