//! Link owner: another dialect on the same connection, which owns some of its links.
//!
//! The connection belongs to one dialect, its host. The host offers each attach to the owner first,
//! and passes on the events and the outputs of the broker that are for the owner's links and
//! requests. What both need of the connection is in a [`LinkContext`], lent for one call.
//!
//! Invariant: a link has one owner from its attach to its end.

use access::{Access, Credential, Directory, Locality, jwt};
use amqp::{Attach, Error, Open};
use broker::{Command, ConnectionId, Output, ReceiverId, RequestId};
use endpoint::{Connection, Event, LinkId, SessionId};

use crate::claims::{Claims, RenewalError};
use crate::clock_reading::ClockReading;
use crate::refusals::{Origin, Refusals, Subject};

/// Marks the tokens of the owner's requests, which the host never gives.
const OWNER_TOKEN: u64 = 1 << 31;

/// Another dialect on a connection.
pub trait LinkOwner: Send + 'static {
    /// The credential of a login that this dialect knows beside the names of rules, from there.
    /// Called once for each login that the host does not refuse by itself.
    fn log_in(
        &mut self,
        access: &Access,
        name: &str,
        password: &[u8],
        locality: Locality,
    ) -> Option<Credential>;

    /// Handles the client's open. Returns a credential for a client that has shown none.
    ///
    /// # Errors
    /// When the connection must be closed.
    fn handle_opened(
        &mut self,
        access: &Access,
        open: &Open,
        locality: Locality,
    ) -> Result<Option<Credential>, Error>;

    /// Answers an attach of this dialect now or later, or gives back one of the host's.
    fn handle_attach(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
    ) -> Option<Box<Attach>>;

    /// Whether it owns a link.
    fn owns(&self, link: LinkId) -> bool;

    /// The address of a link that it owns, if the link has one.
    fn address(&self, link: LinkId) -> Option<&str>;

    /// Whether it owns a link at all.
    fn has_links(&self) -> bool;

    /// Handles an event of a link that it owns.
    fn handle_event(&mut self, cx: &mut LinkContext<'_>, event: Event);

    /// Handles an output for one of its links or requests.
    fn handle_output(&mut self, cx: &mut LinkContext<'_>, output: Output);

    /// Detaches the links that changed entities, rights or claims no longer allow.
    fn check_links(&mut self, cx: &mut LinkContext<'_>);

    /// Gives up one of its requests, which has no answer any more; the link that asked.
    fn take_request(&mut self, request: RequestId) -> Option<LinkId>;

    /// Detaches a link that it owns.
    fn detach_link(&mut self, cx: &mut LinkContext<'_>, link: LinkId, error: Error);

    /// Detaches all links.
    fn detach_all(&mut self, cx: &mut LinkContext<'_>, error: &Error);

    /// Ends all links with their connection, which closes in good order.
    fn close_all(&mut self, cx: &mut LinkContext<'_>);

    /// Bytes of requests that the broker has not answered yet.
    fn unanswered_bytes(&self) -> usize;
}

/// What a link owner may use of its connection.
pub struct LinkContext<'a> {
    /// The connection's id.
    pub id: ConnectionId,
    /// The time of the event.
    pub now: ClockReading,
    /// The endpoint.
    pub connection: &'a mut Connection,
    /// From where the client is connected.
    pub locality: Locality,
    /// For how many milliseconds a token counts beyond its end.
    pub token_grace: u32,
    /// Whether keys of an issuer are missing or have to be loaded again.
    pub needs_keys: &'a mut bool,
    /// The credentials of the client.
    pub claims: &'a mut Claims,
    /// Entities and access rules.
    pub directory: &'a Directory,
    /// Commands for the broker.
    pub commands: &'a mut Vec<Command>,
    /// Refusals for the operator.
    pub refusals: &'a mut Refusals,
    /// Bytes of deliveries that the broker does not know to be written.
    pub unreported_bytes: &'a mut usize,
}

impl LinkContext<'_> {
    /// The id of a request of the owner's own numbering; numbers are below 2^31 in their lower
    /// half, as those of [`PendingRequests`](crate::PendingRequests) are.
    #[must_use]
    pub fn request_id(&self, token: u64) -> RequestId {
        RequestId {
            connection: self.id,
            token: token | OWNER_TOKEN,
        }
    }

    /// Takes a token for the whole namespace in the place of the one that the client has shown
    /// when it logged in. (docs/spec/rabbitmq.md#6.1)
    ///
    /// # Errors
    /// When the token is not good, or of another client.
    pub fn renew_token(&mut self, token: &str) -> Result<(), RenewalError> {
        let access = self.directory.access();
        let granted = access.verify_jwt(token, self.locality, self.now.wall);
        *self.needs_keys |= matches!(granted, Err(jwt::Error::KeysNotLoaded));
        let granted = granted?;
        let (grace, now) = (self.token_grace, self.now);
        self.claims.renew(access, granted, grace, now)
    }

    /// The receiver of a link.
    #[must_use]
    pub fn receiver_id(&self, link: LinkId) -> ReceiverId {
        ReceiverId {
            connection: self.id,
            link: link.0,
        }
    }

    /// Notes an error that the client is given.
    pub fn note(&mut self, subject: Subject, link: &str, entity: Option<&str>, error: &Error) {
        let origin = Origin {
            link: Some(link),
            entity,
            operation: None,
        };
        self.refusals.note(subject, origin, error);
    }
}

/// The owner's number of a request, if the request is the owner's.
#[must_use]
pub fn owner_token(request: RequestId) -> Option<u64> {
    (request.token & OWNER_TOKEN != 0).then_some(request.token & !OWNER_TOKEN)
}
