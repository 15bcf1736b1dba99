//! Client: one connection of the dialect, from its first byte to its last.
//!
//! Owns an AMQP endpoint: turns its events into commands for the broker, and the broker's outputs
//! into frames. Here is the connection's state and the dispatch; each kind of event has a file of
//! its own. Invariant: the connection's last command is `Disconnect`, and it comes once.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use amqp::{Open, Symbol};
use broker::{Command, ConnectionId, Output, ReceiverId, RequestId};
use bytes::BytesMut;
use endpoint::{Connection, Event, LinkId, Mono, Scope, Side};

use crate::accepting::Accepting;
use crate::claims::Claims;
use crate::directory::Directory;
use crate::link::Kind;
use crate::links::Links;
use crate::message_id::MessageIds;
use crate::moment::Moment;
use crate::oversize::Oversize;
use crate::pending::{Pending, Question};
use crate::receiver::{Departed, Disposed};
use crate::refusal;
use crate::refused::{Origin, Refusals, Subject};
use crate::sender::Arrival;
use crate::settings::Settings;
use crate::transactions::Transactions;

/// Most characters of a host name that error texts repeat.
const MAX_HOST: usize = 253;

/// One client's connection, from its first byte to its last.
pub struct Client {
    pub(crate) id: ConnectionId,
    pub(crate) settings: Arc<Settings>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) connection: Connection,
    pub(crate) claims: Claims,
    pub(crate) links: Links,
    pub(crate) pending: Pending,
    /// Links that wait for a session.
    pub(crate) accepting: BTreeMap<LinkId, Box<Accepting>>,
    pub(crate) transactions: Transactions,
    /// Receivers that went lately.
    pub(crate) departed: VecDeque<Departed>,
    /// The time of whatever is being handled.
    pub(crate) now: Moment,
    /// For messages that come without one.
    pub(crate) ids: MessageIds,
    /// What a delivery's fresh sections are written into.
    pub(crate) head: BytesMut,
    /// Bytes of deliveries that the broker does not know to be written.
    pub(crate) outlet: usize,
    /// Whether rules took long to look at what came last.
    pub(crate) is_slow: bool,
    /// Whether the client has shown no right yet.
    pub(crate) is_stranger: bool,
    /// Tokens that were refused since the last that was not.
    pub(crate) failures: u32,
    /// Bytes of answers that wait for their response links' credit.
    pub(crate) waiting_bytes: usize,
    commands: Vec<Command>,
    /// The client's word for us, for error texts.
    host: String,
    /// Since when there has been no link.
    pub(crate) linkless_since: Option<Mono>,
    pub(crate) ended: bool,
    /// When the client has to have shown a right, while it has not.
    pub(crate) known_by: Option<Mono>,
    pub(crate) refused_credentials: u64,
    /// Refusals that the owner has not taken.
    pub(crate) refusals: Refusals,
}

impl Client {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(
        id: ConnectionId,
        settings: Arc<Settings>,
        directory: Arc<Directory>,
        ids: MessageIds,
        now: Moment,
    ) -> Self {
        let mut client = Self {
            id,
            ids,
            connection: Connection::new(Side::Server, settings.endpoint.clone(), now.mono),
            claims: Claims::default(),
            settings,
            directory,
            links: Links::default(),
            pending: Pending::default(),
            accepting: BTreeMap::new(),
            transactions: Transactions::default(),
            departed: VecDeque::new(),
            now,
            head: BytesMut::new(),
            outlet: 0,
            is_slow: false,
            is_stranger: true,
            failures: 0,
            waiting_bytes: 0,
            commands: Vec::new(),
            host: "localhost".to_owned(),
            linkless_since: Some(now.mono),
            ended: false,
            known_by: None,
            refused_credentials: 0,
            refusals: Refusals::default(),
        };
        client.begin_as_stranger();
        client
    }

    /// Takes all whole frames off `input` and acts on them.
    pub fn handle_input(&mut self, now: Moment, input: &mut BytesMut) {
        self.now = now;
        self.ids.expect(input.len());
        self.connection.handle_input(now.mono, input);
        self.handle_events();
        self.ids.release();
    }

    /// Acts on what the broker says.
    pub fn handle_output(&mut self, now: Moment, output: Output) {
        self.now = now;
        if self.ended {
            return;
        }
        match output {
            Output::Sent {
                request,
                result,
                duplicates,
            } => self.handle_sent(request, result, &duplicates),
            Output::Deliver { receiver, delivery } => self.handle_deliver(receiver, delivery),
            Output::Settled { request, result } => self.handle_settled(request, result),
            Output::Drained { receiver } => self.handle_drained(receiver),
            Output::Renewed { request, result } => self.handle_renewed(request, result),
            Output::Browsed { request, result } => self.handle_browsed(request, result),
            Output::Deferred { request, result } => self.handle_deferred(request, result),
            Output::Cancelled { request, result } => self.handle_cancelled(request, result),
            Output::Deleted { request, result } => self.handle_deleted(request, result),
            Output::Evicted { receiver, reason } => self.handle_evicted(receiver, reason),
            Output::SessionAccepted {
                receiver,
                session_id,
                lock_ms,
            } => self.handle_session_accepted(receiver, &session_id, lock_ms),
            Output::SessionRefused { receiver, error } => {
                self.handle_session_refused(receiver, error);
            }
            Output::SessionLost { receiver } => self.handle_session_lost(receiver),
            Output::SessionRenewed { request, result } => {
                self.handle_session_renewed(request, result);
            }
            Output::SessionState { request, result } => self.handle_state(request, result),
            Output::SessionStateSet { request, result } => self.handle_state_set(request, result),
            Output::Sessions { request, result } => self.handle_sessions(request, result),
            Output::Declared { request, result } => self.handle_declared(request, result),
            Output::Discharged { request, result } => self.handle_discharged(request, result),
            Output::TimedOut { transaction, .. } => drop(self.transactions.end(transaction)),
            Output::RuleChanged { request, result } => self.handle_rule_changed(request, result),
            Output::Rules { request, result } => self.handle_rules(request, result),
            // Entities are the server's to create and remove, never a connection's.
            Output::Administered { .. } | Output::EntityChanged(_) | Output::RulesChanged(_) => {}
        }
        // What was said may have made room for more.
        self.handle_events();
    }

    /// The socket is gone.
    pub fn handle_eof(&mut self, now: Moment) {
        self.now = now;
        self.connection.handle_eof();
        self.handle_events();
        self.end();
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.now = now;
        self.connection.handle_timeout(now.mono);
        self.handle_events();
        if self.claims.expire(now.mono) {
            self.check_links_again(Self::renew_token);
        }
        self.dismiss_stranger();
        if self.idle_deadline().is_some_and(|due| due <= now.mono) {
            let allowed = self.settings.idle_connection.unwrap_or_default();
            self.linkless_since = None;
            let error = refusal::idle_connection(allowed);
            let origin = Origin::default();
            self.refusals.note(Subject::Connection, origin, &error);
            self.connection.close(Some(error));
        }
        self.handle_events();
    }

    /// The server stops: closes the connection with `amqp:connection:forced`.
    pub fn shut_down(&mut self, now: Moment) {
        self.now = now;
        self.leave(refusal::shut_down());
        self.handle_events();
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let claims = if self.ended {
            None
        } else {
            self.claims.deadline()
        };
        let deadlines = [
            self.connection.deadline(),
            claims,
            self.idle_deadline(),
            self.known_by.filter(|_| !self.ended),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Commands for the broker since the last call; the caller takes them all out.
    /// After the connection's end the last one is `Disconnect`.
    pub fn commands(&mut self) -> &mut Vec<Command> {
        &mut self.commands
    }

    /// Bytes for the socket; the caller takes out what it writes, then calls [`written`](Self::written).
    pub fn output(&mut self, now: Moment) -> &mut endpoint::Output {
        self.connection.output(now.mono)
    }

    /// Memory for what will be written, see [`endpoint::Output::lend_buffer`].
    pub fn lend(&mut self, memory: &mut BytesMut) {
        self.connection.lend_buffer(memory);
    }

    /// Bytes that wait in [`output`](Self::output), pending dispositions aside.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.connection.unwritten()
    }

    /// Everything taken out of [`output`](Self::output) so far is written: tells the broker what its
    /// deliveries no longer occupy.
    pub fn written(&mut self) {
        // What still waits for a session window or in the output is at most so much of the outlet.
        let waiting = self.outlet.min(self.connection.buffered());
        let written = self.outlet - waiting;
        self.outlet = waiting;
        self.report_written(written);
    }

    /// Bytes of messages given to the broker that it has not answered yet. The owner stops
    /// reading its socket while there are too many.
    #[must_use]
    pub fn unanswered_bytes(&self) -> usize {
        self.pending.cost()
    }

    /// Bytes of messages that have begun to arrive and are not whole.
    #[must_use]
    pub fn partial_bytes(&self) -> usize {
        self.connection.partial_bytes()
    }

    /// Gives up messages that are not whole, the largest first, until so many bytes are free:
    /// their links are detached with `amqp:resource-limit-exceeded`.
    pub fn shed_partials(&mut self, now: Moment, bytes: usize) {
        self.now = now;
        self.connection.shed_partials(bytes);
        self.handle_events();
    }

    /// Whether the rules of a topic take so long to look at what the client sends that no more
    /// than a little should be read before it is somebody else's turn.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// Whether the client has shown no right yet.
    #[must_use]
    pub fn is_stranger(&self) -> bool {
        self.is_stranger
    }

    /// How often the client has shown what was not accepted: a name with its key, or a token.
    #[must_use]
    pub fn refused_credentials(&self) -> u64 {
        self.refused_credentials
    }

    /// How often the client was told each condition since the last call, by what it ended.
    pub fn take_told(&mut self) -> BTreeMap<(Scope, Symbol), u64> {
        self.connection.take_error_counts()
    }

    /// Whether the socket may be closed once the output is written.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.connection.is_finished()
    }

    /// Entities or rules of access changed: links of entities that are gone, or that do not let them
    /// in any more, are detached, and so are those whose right is gone.
    pub fn set_directory(&mut self, now: Moment, directory: Arc<Directory>) {
        self.now = now;
        let before = std::mem::replace(&mut self.directory, directory);
        if !self.directory.has_same_entities(&before) {
            self.check_entities();
        }
        if !self.directory.access().is_same(before.access()) {
            self.check_links_again(Self::renew_token);
        }
        self.handle_events();
    }

    pub(crate) fn handle_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            self.handle_event(event);
        }
    }

    fn handle_event(&mut self, event: Event) {
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
                self.handle_delivery(&Arrival {
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
                self.handle_disposed(&Disposed {
                    link,
                    cookie,
                    delivery_id,
                    settled,
                    state,
                });
            }
            Event::Credit { link, limit, drain } => self.handle_any_credit(link, limit, drain),
            Event::AttachRequested {
                link,
                session,
                attach,
            } => self.handle_attach(link, session, attach),
            Event::TooLarge {
                link,
                session,
                delivery_id,
                settled,
                state,
                limit,
            } => {
                let oversize = Oversize {
                    link,
                    session,
                    delivery_id,
                    settled,
                    state,
                    limit,
                };
                self.handle_oversize(&oversize);
            }
            Event::Detached { link, .. } => {
                self.note_findings();
                self.forget(link);
            }
            Event::SaslInit {
                mechanism,
                initial_response,
                ..
            } => {
                self.handle_sasl(&mechanism, initial_response.as_ref());
            }
            Event::Opened(open) => self.handle_opened(*open),
            Event::Closed { .. } => self.end(),
            // Links of an ended session are reported one by one before it; the rest is of
            // interest to the side that opens links.
            Event::Ended { .. }
            | Event::Begun { .. }
            | Event::Drained { .. }
            | Event::Updated { .. }
            | Event::Attached { .. }
            | Event::SaslOutcome(_) => {}
        }
    }

    fn handle_delivery(&mut self, arrival: &Arrival) {
        match self.links.get(arrival.link).map(|link| &link.kind) {
            Some(Kind::Sender(_)) => self.handle_send(arrival),
            Some(Kind::Request(_)) => self.handle_request(arrival),
            Some(Kind::Coordinator(_)) => self.handle_control(arrival),
            // A delivery on a link that we have detached meanwhile.
            Some(Kind::Receiver(_) | Kind::Response(_)) | None => {}
        }
    }

    fn handle_any_credit(&mut self, link: LinkId, limit: u32, drain: bool) {
        match self.links.get(link).map(|link| &link.kind) {
            Some(Kind::Receiver(_)) => self.handle_credit(link, limit, drain),
            Some(Kind::Response(_)) => self.handle_response_credit(link, drain),
            Some(Kind::Sender(_) | Kind::Request(_) | Kind::Coordinator(_)) | None => {}
        }
    }

    fn handle_opened(&mut self, open: Open) {
        if let Some(host) = open.hostname.filter(|host| !host.is_empty()) {
            self.host = host
                .chars()
                .filter(|character| !character.is_control())
                .take(MAX_HOST)
                .collect();
        }
        self.linkless_since = Some(self.now.mono);
    }

    pub(crate) fn command(&mut self, command: Command) {
        if !self.ended {
            self.commands.push(command);
        }
    }

    pub(crate) fn ask(&mut self, question: Question, cost: usize) -> RequestId {
        RequestId {
            connection: self.id,
            token: self.pending.ask(question, cost),
        }
    }

    pub(crate) fn report_written(&mut self, bytes: usize) {
        if bytes > 0 {
            self.command(Command::Written {
                connection: self.id,
                bytes,
            });
        }
    }

    pub(crate) fn receiver_id(&self, link: LinkId) -> ReceiverId {
        ReceiverId {
            connection: self.id,
            link: link.0,
        }
    }

    /// A path as error texts name it.
    pub(crate) fn resource(&self, path: &str) -> String {
        format!("sb://{}/{path}", self.host)
    }
}

impl fmt::Debug for Client {
    /// Only what can be shown to anyone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("links", &self.links.len())
            .finish_non_exhaustive()
    }
}
