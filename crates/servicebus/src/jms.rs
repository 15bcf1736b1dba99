//! JMS 2.0: subscriptions and entities that a client makes by attaching, and how it unsubscribes.
//! (docs/spec/amqp.md#13)
//!
//! An attach that is about to make something waits for the broker's answer. All of this needs the
//! setting `jms`; queues, temporary destinations, browsers and transactions are those of any other
//! client.

pub(crate) mod connection;
mod entity;
mod subscribe;
mod subscription;
mod unsubscribe;

use std::collections::BTreeMap;

use access::Operation;
use amqp::{Attach, Error, Role, Symbol, TargetTerminus};
use broker::{Answer, Command, EntityError, EntityKind, RequestId, Subqueue};
use dialect::{Origin, Subject};
use endpoint::LinkId;

use crate::address::EntityAddress;
use crate::attach::pending_attach::AttachRequest;
use crate::attach::receiver_source::ReceiverSource;
use crate::client::Client;
use crate::errors;
use crate::jms::connection::JmsConnection;
use crate::pending_requests::{JmsRequest, PendingRequest};

pub(crate) const DELAYED_DELIVERY: Symbol = Symbol::new("DELAYED_DELIVERY");
pub(crate) const SHARED_SUBS: Symbol = Symbol::new("SHARED-SUBS");
const QUEUE: &str = "queue";
const TOPIC: &str = "topic";

/// What a connection has of JMS.
#[derive(Debug, Default)]
pub(crate) struct Jms {
    pub(crate) connection: JmsConnection,
    pending: BTreeMap<LinkId, Box<PendingJmsAttach>>,
    /// Durable subscriptions, by their names below their topics, of links whose close unsubscribes.
    durable: BTreeMap<LinkId, String>,
}

/// An attach that waits for the broker.
#[derive(Debug)]
struct PendingJmsAttach {
    request: AttachRequest,
    wanted: Wanted,
}

#[derive(Debug)]
enum Wanted {
    /// The entity of an address, which is being made.
    Entity(EntityAddress),
    Subscription {
        receiver_source: ReceiverSource,
        is_durable: bool,
    },
    /// The durable subscription of this name below its topic, to unsubscribe.
    Unsubscribe(String),
}

impl Client {
    /// Attaches a link of a namespace that has JMS. `may_make` tells whether an entity that is not
    /// there may be made for it.
    pub(crate) fn attach_with_jms(
        &mut self,
        request: AttachRequest,
        address: &EntityAddress,
        may_make: bool,
    ) -> Result<(), Error> {
        let Some(kind) = requested_kind(&request.attach) else {
            return self.attach_to_entity(request, address);
        };
        let operation = match request.attach.role {
            Role::Sender => Operation::Send,
            Role::Receiver => Operation::Receive,
        };
        let path = address.path();
        self.authorize(operation.required_right(), &path)?;
        let there = self
            .directory
            .get(&address.entity)
            .map(|entity| entity.kind);
        match (kind, there) {
            (_, None) if may_make && self.may_make_entity(address) => {
                self.make_entity(request, address, kind);
                Ok(())
            }
            (EntityKind::Queue, Some(EntityKind::Topic))
                if request.attach.role == Role::Receiver && address.subqueue == Subqueue::Main =>
            {
                Err(errors::not_a_queue(&self.resource(&path)))
            }
            (EntityKind::Topic, Some(EntityKind::Queue | EntityKind::Subscription)) => {
                Err(errors::not_a_topic(&self.resource(&path)))
            }
            (EntityKind::Topic, Some(EntityKind::Topic))
                if request.attach.role == Role::Receiver && address.subqueue == Subqueue::Main =>
            {
                self.subscribe(request, address)
            }
            _ => self.attach_to_entity(request, address),
        }
    }

    /// Handles the broker's answer about an entity.
    pub(crate) fn handle_administered(
        &mut self,
        request: RequestId,
        result: Result<Answer, EntityError>,
    ) {
        match self.pending_requests.remove(request.token) {
            Some(PendingRequest::Jms(JmsRequest::Make(link))) => self.handle_made(link, result),
            Some(PendingRequest::Jms(JmsRequest::Find(link))) => self.handle_found(link, result),
            Some(PendingRequest::Jms(JmsRequest::Unsubscribe(link))) => {
                self.handle_unsubscribed(link, result);
            }
            _ => {}
        }
    }

    fn wait_for_jms(&mut self, request: AttachRequest, wanted: Wanted) {
        let pending = PendingJmsAttach { request, wanted };
        let pending = Box::new(pending);
        self.jms.pending.insert(pending.request.link, pending);
    }

    fn refuse_jms(&mut self, request: &AttachRequest, error: Error) {
        let entity = request.node.name();
        let origin = Origin {
            link: Some(&request.attach.name),
            entity: Some(entity.as_str()).filter(|entity| !entity.is_empty()),
            ..Origin::default()
        };
        let error = self.tracked(error);
        self.refusals.note(Subject::Attach, origin, &error);
        self.connection.refuse(request.link, error);
        self.start_idle_timer();
    }

    /// A link is detached. If that was the client's close and it waits for an answer, the client
    /// unsubscribes.
    pub(crate) fn leave_jms(&mut self, link: LinkId) {
        if let Some(pending) = self.jms.pending.remove(&link) {
            if let Wanted::Subscription { .. } = pending.wanted {
                self.detach_at_broker(link);
            }
            self.start_idle_timer();
        }
        if let Some(subscription) = self.jms.durable.remove(&link)
            && self.connection.is_closing(link)
        {
            self.unsubscribe(link, subscription);
        }
    }

    /// A receiver of the broker's goes whose link was not accepted.
    fn detach_at_broker(&mut self, link: LinkId) {
        let receiver = self.receiver_id(link);
        self.command(Command::Detach { receiver });
    }
}

impl Jms {
    /// The links that wait for the broker.
    pub(crate) fn pending_attaches(&self) -> Vec<LinkId> {
        self.pending.keys().copied().collect()
    }
}

/// The kind of entity that an attach asks for by a capability of its far terminus.
fn requested_kind(attach: &Attach) -> Option<EntityKind> {
    let capabilities = match attach.role {
        Role::Receiver => &attach.source.as_deref()?.capabilities,
        Role::Sender => match attach.target.as_deref()? {
            TargetTerminus::Node(target) => &target.capabilities,
            TargetTerminus::Coordinator(_) => return None,
        },
    };
    if has(capabilities, TOPIC) {
        Some(EntityKind::Topic)
    } else {
        has(capabilities, QUEUE).then_some(EntityKind::Queue)
    }
}

pub(crate) fn has(capabilities: &[Symbol], name: &str) -> bool {
    capabilities.iter().any(|it| it.as_str() == name)
}
