//! Client: one connection of the dialect, from its first byte to its last.
//!
//! It owns an AMQP endpoint. It turns the endpoint's events into commands for the broker, and the
//! broker's outputs into frames. This file holds the connection's state and the dispatch; each kind
//! of event has a file of its own.
//!
//! Invariant: the connection's last command is `Disconnect`, and it is issued once.

pub(crate) mod events;
mod host;
mod injected_end;
pub(crate) mod namespace;
mod other_links;
mod outputs;
pub(crate) mod refusals;
pub(crate) mod sasl;
mod state;
pub(crate) mod teardown;
pub(crate) mod unauthenticated;
mod written;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use access::{Directory, Locality};
use amqp::Symbol;
use broker::{Command, ConnectionId, Output, RequestId};
use bytes::BytesMut;
use dialect::{
    Claims, ClockReading, ConnectionState, Dialect, ForcedClose, LinkOwner, MessageIds, Origin,
    PendingRequests, Refusals, RefusedCredentials, Subject,
};
use endpoint::{Connection, Event, LinkId, Mono, Scope, Side};

use crate::attach::pending_attach::PendingAttach;
use crate::client::events::{IncomingDelivery, OversizeDelivery, ReceivedDisposition};
use crate::client::namespace::NamespaceChoice;
use crate::errors;
use crate::jms::Jms;
use crate::links::Links;
use crate::links::dynamic_nodes::DynamicNodes;
use crate::links::link::LinkKind;
use crate::links::open_deliveries::OpenDeliveries;
use crate::links::receiver_link::DetachedReceiver;
use crate::pending_requests::PendingRequest;
use crate::settings::Settings;
use crate::transactions::Transactions;
use crate::transactions::scope::SessionScopes;

/// One client's connection, from its first byte to its last.
pub struct Client {
    pub(crate) id: ConnectionId,
    pub(crate) settings: Arc<Settings>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) namespace: NamespaceChoice,
    pub(crate) connection: Connection,
    pub(crate) claims: Claims,
    pub(crate) links: Links,
    pub(crate) pending_requests: PendingRequests<PendingRequest>,
    /// Links that wait for a session.
    pub(crate) pending_attaches: BTreeMap<LinkId, Box<PendingAttach>>,
    /// Nodes that its links made or use.
    pub(crate) dynamic_nodes: DynamicNodes,
    pub(crate) jms: Jms,
    pub(crate) transactions: Transactions,
    pub(crate) session_scopes: SessionScopes,
    /// Receivers that were detached lately.
    pub(crate) detached_receivers: VecDeque<DetachedReceiver>,
    /// Receivers whose deliveries can still be settled.
    pub(crate) open_deliveries: OpenDeliveries,
    /// The time of the current event.
    pub(crate) now: ClockReading,
    /// Ids for messages that have none.
    pub(crate) ids: MessageIds,
    /// The buffer for the new sections of a delivery.
    pub(crate) head: BytesMut,
    /// Bytes of deliveries that the broker does not know to be written.
    pub(crate) unreported_bytes: usize,
    /// Whether the rules of a topic took long for the last delivery.
    pub(crate) is_slow: bool,
    /// Whether the client has not presented a valid credential yet.
    pub(crate) is_unauthenticated: bool,
    /// Tokens that were refused since the last accepted one.
    pub(crate) failures: u32,
    /// Whether a fault rule withholds the credit of its senders.
    pub(crate) withholds_credit: bool,
    /// Whether the broker is asked before a sender is attached.
    pub(crate) asks_for_senders: bool,
    /// Bytes of answers that wait for their response links' credit.
    pub(crate) waiting_bytes: usize,
    commands: Vec<Command>,
    /// Another dialect, which owns the links that it takes over.
    pub(crate) link_owner: Option<Box<dyn LinkOwner>>,
    /// The host name that the client used for this server.
    host: Option<String>,
    /// The name of the client's container, for operators.
    container_id: String,
    /// When the connection's last link was detached.
    pub(crate) idle_since: Option<Mono>,
    pub(crate) ended: bool,
    /// When the connection is closed unless the client has authenticated.
    pub(crate) authentication_deadline: Option<Mono>,
    pub(crate) refused_credentials: RefusedCredentials,
    /// Refusals that the owner has not taken yet.
    pub(crate) refusals: Refusals,
    /// Where the client is.
    pub(crate) locality: Locality,
    /// The names in the client's verified certificate.
    pub(crate) certificate: Vec<String>,
    /// A token came that needs keys which are not loaded.
    pub(crate) needs_keys: bool,
}

impl Client {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(
        id: ConnectionId,
        settings: Arc<Settings>,
        directory: Arc<Directory>,
        ids: MessageIds,
        now: ClockReading,
    ) -> Self {
        let mut client = Self {
            id,
            ids,
            connection: Connection::new(Side::Server, settings.endpoint_config(), now.mono),
            claims: Claims::default(),
            settings,
            directory,
            namespace: NamespaceChoice::default(),
            links: Links::default(),
            pending_requests: PendingRequests::default(),
            pending_attaches: BTreeMap::new(),
            dynamic_nodes: DynamicNodes::default(),
            jms: Jms::default(),
            transactions: Transactions::default(),
            session_scopes: SessionScopes::default(),
            detached_receivers: VecDeque::new(),
            open_deliveries: OpenDeliveries::default(),
            now,
            head: BytesMut::new(),
            unreported_bytes: 0,
            is_slow: false,
            is_unauthenticated: true,
            failures: 0,
            withholds_credit: false,
            asks_for_senders: false,
            waiting_bytes: 0,
            commands: Vec::new(),
            link_owner: None,
            host: None,
            container_id: String::new(),
            idle_since: Some(now.mono),
            ended: false,
            authentication_deadline: None,
            refused_credentials: RefusedCredentials::default(),
            refusals: Refusals::default(),
            locality: Locality::Network,
            certificate: Vec::new(),
            needs_keys: false,
        };
        client.begin_unauthenticated();
        client
    }

    /// The same for a client there: some tokens count on this machine only.
    #[must_use]
    pub fn located(mut self, locality: Locality) -> Self {
        self.locality = locality;
        self
    }

    pub(crate) fn handle_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            if self.is_event_of_others(&event) {
                self.pass_event(event);
            } else {
                self.handle_own_event(event);
            }
        }
    }

    /// Handles an event of the connection, or of a link of this dialect.
    fn handle_own_event(&mut self, event: Event) {
        match event {
            Event::Delivery {
                link,
                session,
                delivery_id,
                message_format,
                settled,
                state,
                payload,
                ..
            } => {
                self.handle_delivery(&IncomingDelivery {
                    link,
                    session,
                    delivery_id,
                    message_format,
                    settled,
                    state,
                    payload,
                });
            }
            Event::Disposed {
                link,
                cookie,
                delivery_id,
                settled,
                state,
            } => {
                self.handle_disposed(&ReceivedDisposition {
                    link,
                    cookie,
                    delivery_id,
                    settled,
                    state,
                });
            }
            Event::Missed { state, .. } => self.handle_missed(state.as_ref()),
            Event::Credit { link, limit, drain } => self.handle_any_credit(link, limit, drain),
            Event::AttachRequested {
                link,
                session,
                attach,
            } => {
                if let Some(attach) = self.offer_attach(link, session, attach) {
                    self.handle_attach(link, session, attach);
                }
            }
            Event::TooLarge {
                link,
                session,
                delivery_id,
                settled,
                state,
                limit,
            } => {
                let oversize = OversizeDelivery {
                    link,
                    session,
                    delivery_id,
                    settled,
                    state,
                    limit,
                };
                self.handle_oversize(&oversize);
            }
            Event::Detached {
                link,
                closed,
                error,
                ..
            } => {
                self.note_findings();
                self.handle_detached(link, closed || error.is_some());
            }
            Event::SaslInit {
                mechanism,
                initial_response,
                hostname,
            } => {
                self.handle_sasl(&mechanism, initial_response.as_ref(), hostname.as_deref());
            }
            Event::Opened(open) => self.handle_opened(*open),
            Event::Closed { in_order, .. } => self.handle_closed(in_order),
            // Links of an ended session are reported one by one before it.
            Event::Ended { session, .. } => {
                self.session_scopes.ended(session);
                self.open_deliveries.ended(session);
                self.end_nodes(session);
            }
            // Of interest to the side that opens links.
            Event::Begun { .. }
            | Event::Drained { .. }
            | Event::Updated { .. }
            | Event::Attached { .. }
            | Event::SaslOutcome(_) => {}
        }
    }

    fn handle_delivery(&mut self, delivery: &IncomingDelivery) {
        match self.links.get(delivery.link).map(|link| &link.kind) {
            Some(LinkKind::Sender(_)) => self.handle_send(delivery),
            Some(LinkKind::Request(_)) => self.handle_request(delivery),
            Some(LinkKind::Coordinator(_)) => self.handle_control(delivery),
            // A delivery on a link that we have detached meanwhile.
            Some(LinkKind::Receiver(_) | LinkKind::Response(_)) | None => {}
        }
    }

    pub(crate) fn command(&mut self, command: Command) {
        if !self.ended {
            self.commands.push(command);
        }
    }

    pub(crate) fn register_request(&mut self, request: PendingRequest, cost: usize) -> RequestId {
        RequestId {
            connection: self.id,
            token: self.pending_requests.insert(request, cost),
        }
    }
}

impl Dialect for Client {
    fn handle_input(&mut self, now: ClockReading, input: &mut BytesMut) {
        self.now = now;
        self.ids.expect(input.len());
        self.connection.handle_input(now.mono, input);
        self.handle_events();
        self.ids.release();
    }

    fn handle_output(&mut self, now: ClockReading, output: Output) {
        self.now = now;
        if self.ended {
            return;
        }
        if self.is_output_of_others(&output) {
            self.pass_output(output);
        } else {
            self.handle_own_output(output);
        }
        // The output may have made room for more events.
        self.handle_events();
    }

    fn handle_timeout(&mut self, now: ClockReading) {
        self.now = now;
        self.connection.handle_timeout(now.mono);
        self.handle_events();
        if self.claims.expire(now.mono) {
            self.recheck_links(Self::token_expired);
            self.check_others();
        }
        self.close_unauthenticated();
        if self.idle_deadline().is_some_and(|due| due <= now.mono) {
            let allowed = self.settings.idle_connection.unwrap_or_default();
            self.idle_since = None;
            let error = self.tracked(errors::idle_connection(allowed));
            let origin = Origin::default();
            self.refusals.note(Subject::Connection, origin, &error);
            self.connection.close(Some(error));
        }
        self.handle_events();
    }

    fn handle_eof(&mut self, now: ClockReading) {
        self.now = now;
        self.connection.handle_eof();
        self.handle_events();
        self.end();
    }

    fn set_directory(&mut self, now: ClockReading, directory: Arc<Directory>) {
        self.now = now;
        let before = std::mem::replace(&mut self.directory, directory);
        if self.directory.is_deleted() {
            self.end_with_namespace();
            return self.handle_events();
        }
        if !self.directory.has_same_entities(&before) {
            self.check_entities();
        }
        if !self.directory.access().is_same(before.access()) {
            self.recheck_links(Self::token_expired);
        }
        self.check_others();
        self.handle_events();
    }

    fn ask_for_senders(&mut self, asks: bool) {
        self.asks_for_senders = asks;
    }

    fn directory(&self) -> &Directory {
        &self.directory
    }

    fn shed_partials(&mut self, now: ClockReading, bytes: usize) {
        self.now = now;
        self.connection.shed_partials(bytes);
        self.handle_events();
    }

    fn force_close(&mut self, now: ClockReading, why: ForcedClose) {
        self.now = now;
        self.close_by_force(why);
        self.handle_events();
    }

    fn deadline(&self) -> Option<Mono> {
        let claims = self.claims.deadline().filter(|_| !self.ended);
        let deadlines = [
            self.connection.deadline(),
            claims,
            self.idle_deadline(),
            self.authentication_deadline.filter(|_| !self.ended),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn commands(&mut self) -> &mut Vec<Command> {
        &mut self.commands
    }

    fn output(&mut self, now: ClockReading) -> &mut endpoint::Output {
        self.connection.output(now.mono)
    }

    fn lend(&mut self, memory: &mut BytesMut) {
        self.connection.lend_buffer(memory);
    }

    fn written(&mut self) {
        self.handle_written();
    }

    fn unwritten(&self) -> usize {
        self.connection.unwritten()
    }

    fn unanswered_bytes(&self) -> usize {
        let others = self.link_owner.as_ref();
        let others = others.map_or(0, |owner| owner.unanswered_bytes());
        self.pending_requests.cost().saturating_add(others)
    }

    fn partial_bytes(&self) -> usize {
        self.connection.partial_bytes()
    }

    fn is_slow(&self) -> bool {
        self.is_slow
    }

    fn is_opened(&self) -> bool {
        self.connection.is_opened()
    }

    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn is_unauthenticated(&self) -> bool {
        self.is_unauthenticated
    }

    fn holds_input(&self) -> bool {
        self.connection.holds_input()
    }

    fn has_untaken_input(&self) -> bool {
        self.connection.has_untaken_input()
    }

    fn is_finished(&self) -> bool {
        self.connection.is_finished()
    }

    fn refused_credentials(&self) -> RefusedCredentials {
        self.refused_credentials
    }

    fn take_error_counts(&mut self) -> BTreeMap<(Scope, Symbol), u64> {
        self.connection.take_error_counts()
    }

    fn take_refusals(&mut self) -> Option<Refusals> {
        self.note_findings();
        let has_some = !self.refusals.first.is_empty();
        has_some.then(|| std::mem::take(&mut self.refusals))
    }

    fn client_names(&self) -> Vec<String> {
        self.claims.client_names()
    }

    fn state(&self, most_links: usize) -> ConnectionState {
        self.connection_state(most_links)
    }

    fn take_key_demand(&mut self) -> bool {
        std::mem::take(&mut self.needs_keys)
    }
}

impl fmt::Debug for Client {
    /// Prints no secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("links", &self.links.len())
            .finish_non_exhaustive()
    }
}
