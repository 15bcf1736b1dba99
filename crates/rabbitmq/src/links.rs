//! Links: those links of one connection that have RabbitMQ's addresses.
//!
//! A link is a publisher's (messages come in), a consumer's (messages go out), one half of a
//! management pair, or waits until the broker has said whether its exchange exists.
//!
//! Invariant: a link that is here is attached or waits for its answer; what comes for others is
//! ignored.

use std::collections::BTreeMap;

use access::{Access, Credential, Locality};
use amqp::{Attach, Error, Open};
use broker::{Output, RequestId};
use dialect::{LinkContext, LinkOwner, MessageIds, PendingRequests, Subject, owner_token};
use endpoint::{Event, LinkId, SessionId};

use crate::attach::PendingAttach;
use crate::consumer::{Consumer, PendingSettle};
use crate::exclusive_queues::ExclusiveQueues;
use crate::management::pair::{PairId, Pairs};
use crate::publisher::{PendingPublish, Publisher};
use crate::virtual_host::VirtualHost;
use crate::{Settings, dynamic_queue, errors, open};

/// The user of a client that has shown no name.
const ANONYMOUS: &str = "guest";

/// One attached link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) session: SessionId,
    pub(crate) name: String,
    pub(crate) kind: LinkKind,
}

/// The kind of a link.
#[derive(Debug)]
pub(crate) enum LinkKind {
    Publisher(Publisher),
    Consumer(Box<Consumer>),
    /// The client's half of a management pair.
    Requests(PairId),
    /// The server's half.
    Responses(PairId),
    /// A publisher to an exchange that may be there.
    Pending(Box<PendingAttach>),
    /// Of a dynamic queue that the broker is to make or to find.
    WaitsForNode(Box<Attach>),
}

/// A request that the broker has not answered, by the kind of its answer.
#[derive(Debug)]
pub(crate) enum Pending {
    Publish(PendingPublish),
    Settle(PendingSettle),
    /// A delivery of a consumer that has not reached its client, and is given back.
    Return(LinkId),
    Attach(LinkId),
    Manage(PairId),
}

/// Those links of a connection that RabbitMQ's dialect owns.
pub struct Links {
    pub(crate) settings: Settings,
    pub(crate) ids: MessageIds,
    pub(crate) user: String,
    /// Whether the client has logged in by that name. Messages may only then have a user id.
    pub(crate) is_named: bool,
    pub(crate) virtual_host: VirtualHost,
    /// Whether senders without a target address are the host's.
    pub(crate) leaves_anonymous_senders: bool,
    pub(crate) links: BTreeMap<LinkId, Link>,
    pub(crate) pairs: Pairs,
    pub(crate) exclusive: ExclusiveQueues,
    pub(crate) pending: PendingRequests<Pending>,
}

impl Links {
    /// None yet. `ids` are given to messages that come without one.
    #[must_use]
    pub fn new(settings: Settings, ids: MessageIds) -> Self {
        Self {
            settings,
            ids,
            user: ANONYMOUS.to_owned(),
            is_named: false,
            virtual_host: VirtualHost::default(),
            leaves_anonymous_senders: false,
            links: BTreeMap::new(),
            pairs: Pairs::default(),
            exclusive: ExclusiveQueues::default(),
            pending: PendingRequests::default(),
        }
    }

    pub(crate) fn publisher(&mut self, link: LinkId) -> Option<&mut Publisher> {
        match &mut self.links.get_mut(&link)?.kind {
            LinkKind::Publisher(publisher) => Some(publisher),
            _ => None,
        }
    }

    pub(crate) fn consumer(&mut self, link: LinkId) -> Option<&mut Consumer> {
        match &mut self.links.get_mut(&link)?.kind {
            LinkKind::Consumer(consumer) => Some(consumer),
            _ => None,
        }
    }

    /// Detaches a link for an error.
    pub(crate) fn detach(&mut self, cx: &mut LinkContext<'_>, link: LinkId, error: Error) {
        if let Some(known) = self.links.get(&link) {
            cx.note(Subject::Link, &known.name, known.entity(), &error);
        }
        self.remove(cx, link, false);
        cx.connection.detach(link, true, Some(error));
    }

    /// Ends the session of a link for an error that this dialect knows no smaller answer to.
    pub(crate) fn end_session_of(&self, cx: &mut LinkContext<'_>, link: LinkId, error: Error) {
        if let Some(known) = self.links.get(&link) {
            cx.note(Subject::Session, &known.name, known.entity(), &error);
            cx.connection.end(known.session, Some(error));
        }
    }

    /// Ends a session for the same reason where the link is not known, or is one of a pair.
    pub(crate) fn end_session(
        &self,
        cx: &mut LinkContext<'_>,
        session: SessionId,
        link: &str,
        error: Error,
    ) {
        cx.note(Subject::Session, link, None, &error);
        cx.connection.end(session, Some(error));
    }

    /// Forgets a link that is detached or is about to be, perhaps with its session.
    fn remove(&mut self, cx: &mut LinkContext<'_>, link: LinkId, with_session: bool) {
        let Some(gone) = self.links.remove(&link) else {
            return;
        };
        match gone.kind {
            LinkKind::Consumer(consumer) => {
                let is_of_node = consumer.place.entity.is_volatile();
                consumer.end(cx, link, with_session);
                if is_of_node {
                    dynamic_queue::close(cx, link);
                }
            }
            LinkKind::Requests(pair) | LinkKind::Responses(pair) => self.pairs.leave(pair, link),
            LinkKind::Publisher(it) if it.target.is_dynamic() => dynamic_queue::close(cx, link),
            LinkKind::WaitsForNode(_) => dynamic_queue::close(cx, link),
            LinkKind::Publisher(_) | LinkKind::Pending(_) => {}
        }
    }

    fn handle_delivery(&mut self, cx: &mut LinkContext<'_>, event: Event) {
        let Event::Delivery { link, .. } = event else {
            return;
        };
        match self.links.get(&link).map(|link| &link.kind) {
            Some(LinkKind::Publisher(_)) => self.publish(cx, event),
            Some(LinkKind::Requests(pair)) => self.handle_request(cx, *pair, event),
            _ => {}
        }
    }
}

impl Link {
    /// The entity that the operator's log names.
    pub(crate) fn entity(&self) -> Option<&str> {
        match &self.kind {
            LinkKind::Publisher(publisher) => publisher.target.name(),
            LinkKind::Consumer(consumer) => Some(&consumer.path),
            _ => None,
        }
    }
}

impl LinkOwner for Links {
    fn log_in(
        &mut self,
        access: &Access,
        name: &str,
        password: &[u8],
        locality: Locality,
    ) -> Option<Credential> {
        name.clone_into(&mut self.user);
        self.is_named = true;
        open::log_in(access, name, password, locality)
    }

    fn handle_opened(
        &mut self,
        access: &Access,
        open: &Open,
        locality: Locality,
    ) -> Result<Option<Credential>, Error> {
        self.virtual_host = VirtualHost::new(open::named_virtual_host(open));
        self.leaves_anonymous_senders = open::leaves_anonymous_senders(open);
        let guest = open::guest(access, locality).filter(|_| self.virtual_host.is_named());
        self.is_named |= guest.is_some();
        Ok(guest)
    }

    fn handle_attach(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
    ) -> Option<Box<Attach>> {
        self.attach(cx, link, session, attach)
    }

    fn owns(&self, link: LinkId) -> bool {
        self.links.contains_key(&link)
    }

    fn address(&self, link: LinkId) -> Option<&str> {
        self.links.get(&link)?.entity()
    }

    fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    fn handle_event(&mut self, cx: &mut LinkContext<'_>, event: Event) {
        match event {
            Event::Delivery { .. } => self.handle_delivery(cx, event),
            Event::TooLarge { link, limit, .. } => {
                self.detach(cx, link, errors::too_large(limit));
            }
            Event::Disposed { .. } => self.handle_disposed(cx, event),
            Event::Credit { link, limit, drain } => match self.links.get(&link).map(|l| &l.kind) {
                Some(LinkKind::Consumer(_)) => self.handle_credit(cx, link, limit, drain),
                Some(LinkKind::Responses(pair)) => self.send_responses(cx, *pair, drain),
                _ => {}
            },
            Event::Detached {
                link, with_session, ..
            } => self.remove(cx, link, with_session),
            _ => {}
        }
    }

    fn handle_output(&mut self, cx: &mut LinkContext<'_>, output: Output) {
        match output {
            Output::Deliver { receiver, delivery } => {
                self.handle_deliver(cx, LinkId(receiver.link), delivery);
            }
            Output::Drained { receiver } => self.handle_drained(cx, LinkId(receiver.link)),
            Output::DeliveryTimedOut { receiver, token } => {
                self.handle_timed_out(cx, LinkId(receiver.link), token);
            }
            Output::Activity { receiver, active } => {
                self.handle_activity(cx, LinkId(receiver.link), active);
            }
            Output::Evicted { receiver, reason } => {
                self.handle_evicted(cx, LinkId(receiver.link), reason);
            }
            Output::Sent {
                request, result, ..
            } => self.handle_sent(cx, request, &result.map(drop)),
            Output::Published { request, result } => self.handle_published(cx, request, &result),
            Output::Settled { request, result } => self.handle_settled(cx, request, &result),
            Output::Administered { request, result } => {
                let token = owner_token(request);
                match token.and_then(|token| self.pending.remove(token)) {
                    Some(Pending::Attach(link)) => self.handle_exchange(cx, link, *result),
                    Some(Pending::Manage(pair)) => self.handle_administered(cx, pair, *result),
                    _ => {}
                }
            }
            Output::NodeOpened { link, result } => {
                self.handle_node_opened(cx, LinkId(link.link), result);
            }
            Output::NodeClosed { link } => {
                self.detach(cx, LinkId(link.link), errors::queue_deleted());
            }
            Output::Deleted { request, result } => {
                let token = owner_token(request);
                if let Some(Pending::Manage(pair)) = token.and_then(|it| self.pending.remove(it)) {
                    self.handle_purged(cx, pair, result);
                }
            }
            _ => {}
        }
    }

    fn check_links(&mut self, cx: &mut LinkContext<'_>) {
        self.exclusive.retain(cx.directory);
        for link in self.links.keys().copied().collect::<Vec<_>>() {
            self.check_link(cx, link);
        }
    }

    fn take_request(&mut self, request: RequestId) -> Option<LinkId> {
        match self.pending.remove(owner_token(request)?)? {
            Pending::Publish(publish) => Some(publish.link),
            Pending::Settle(settle) => Some(settle.link),
            Pending::Return(link) | Pending::Attach(link) => Some(link),
            Pending::Manage(pair) => self.pairs.abandon(pair),
        }
    }

    fn detach_link(&mut self, cx: &mut LinkContext<'_>, link: LinkId, error: Error) {
        self.detach(cx, link, error);
    }

    fn detach_all(&mut self, cx: &mut LinkContext<'_>, error: &Error) {
        for link in self.links.keys().copied().collect::<Vec<_>>() {
            self.remove(cx, link, false);
            cx.connection.detach(link, true, Some(error.clone()));
        }
    }

    /// Their messages go back as they were. (docs/spec/rabbitmq.md#10.3)
    fn close_all(&mut self, cx: &mut LinkContext<'_>) {
        for link in self.links.keys().copied().collect::<Vec<_>>() {
            self.remove(cx, link, false);
        }
    }

    fn unanswered_bytes(&self) -> usize {
        self.pending.cost().saturating_add(self.pairs.bytes())
    }
}

/// Keeps a request of `cost` bytes until its answer, and names it.
pub(crate) fn register(
    pending: &mut PendingRequests<Pending>,
    cx: &LinkContext<'_>,
    request: Pending,
    cost: usize,
) -> RequestId {
    cx.request_id(pending.insert(request, cost))
}
