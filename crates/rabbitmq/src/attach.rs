//! Attach: accepts or refuses a link by its address. (docs/spec/rabbitmq.md#1, #3, #4, #10.1)
//!
//! A refusal leaves the session as it is, but for a missing right, which ends the session as it
//! does in RabbitMQ.

use access::Rights;
use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Error, Role, Symbol, TargetTerminus, Value};
use broker::{
    Access, Answer, Command, EntityError, EntityKind, Order, ReceiveMode, RouterError, RouterOrder,
    Subqueue, SubqueueId,
};
use dialect::{LinkContext, Subject};
use endpoint::{LinkId, SessionId};

use crate::address::{self, Address, DEFAULT_EXCHANGE, MANAGEMENT};
use crate::consumer::Consumer;
use crate::dynamic_queue::{self, DynamicQueue, MOVE};
use crate::errors;
use crate::links::{Link, LinkKind, Links, Pending, register};
use crate::management::pair;
use crate::publisher::{CREDIT, Publisher, Target};
use crate::rights::Permission;

/// The link property with the priority of a consumer.
const PRIORITY: &str = "rabbitmq:priority";
/// The link property with the time for which a consumer may hold a message.
const CONSUMER_TIMEOUT: &str = "rabbitmq:consumer-timeout";

const OUTCOMES: [Symbol; 4] = [
    Symbol::new("amqp:accepted:list"),
    Symbol::new("amqp:rejected:list"),
    Symbol::new("amqp:released:list"),
    Symbol::new("amqp:modified:list"),
];

/// An attach to an exchange that the broker looks up.
#[derive(Debug)]
pub(crate) struct PendingAttach {
    attach: Box<Attach>,
    exchange: String,
    key: String,
}

/// Why a link is not attached.
pub(crate) enum AttachRefusal {
    Detach(Error),
    End(Error),
}

impl From<Error> for AttachRefusal {
    fn from(error: Error) -> Self {
        Self::Detach(error)
    }
}

/// Whether a link may have the name of another link: clients name all links to one address alike.
#[must_use]
pub fn may_share_name(attach: &Attach) -> bool {
    let is_ours = |address: &str| address.is_empty() || address::is_ours(address);
    DynamicQueue::asked_for(attach) == Some(DynamicQueue::Reply)
        || far_address(attach).is_some_and(is_ours)
}

/// The address of the terminus at our end; empty for the anonymous one.
pub(crate) fn far_address(attach: &Attach) -> Option<&str> {
    let address = match attach.role {
        Role::Receiver => {
            let source = attach.source.as_deref()?;
            (!source.dynamic).then_some(&source.address)?
        }
        Role::Sender => match attach.target.as_deref() {
            None => return Some(""),
            Some(TargetTerminus::Coordinator(_)) => return None,
            Some(TargetTerminus::Node(target)) if target.dynamic => return None,
            Some(TargetTerminus::Node(target)) if target.address.is_none() => return Some(""),
            Some(TargetTerminus::Node(target)) => &target.address,
        },
    };
    address.as_ref()?.as_text()
}

impl Links {
    /// Answers an attach of this dialect, or gives back another.
    pub(crate) fn attach(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
    ) -> Option<Box<Attach>> {
        // Clients of both dialects ask for temporary queues in the same way.
        let asked = DynamicQueue::asked_for(&attach)
            .filter(|it| *it == DynamicQueue::Reply || self.virtual_host.is_named());
        let address = far_address(&attach).unwrap_or("/").to_owned();
        let is_ours = asked.is_some() || address.is_empty() || address::is_ours(&address);
        // An entity that another dialect's clients have given such a path is theirs.
        let is_entity = || {
            let path = address.trim_start_matches('/');
            address != MANAGEMENT && cx.directory.get(path).is_some()
        };
        let is_left = address.is_empty() && self.leaves_anonymous_senders;
        if !is_ours || is_left || is_entity() {
            return Some(attach);
        }
        let name = attach.name.clone();
        let result = match attach.role {
            _ if recovers(&attach) => Err(errors::not_implemented("the recovery of a link").into()),
            _ if let Some(kind) = asked => self.attach_dynamic(cx, link, session, attach, kind),
            _ if address == MANAGEMENT => self.attach_half(cx, link, session, &attach),
            Role::Sender => self.attach_publisher(cx, link, session, attach, &address),
            Role::Receiver => self.attach_consumer(cx, link, session, attach, &address),
        };
        match result {
            Ok(()) => {}
            Err(AttachRefusal::Detach(error)) => {
                cx.note(Subject::Attach, &name, Some(&address), &error);
                cx.connection.refuse(link, error);
            }
            Err(AttachRefusal::End(error)) => self.end_session(cx, session, &name, error),
        }
        None
    }

    fn attach_half(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: &Attach,
    ) -> Result<(), AttachRefusal> {
        if attach.snd_settle_mode != Some(SenderSettleMode::Settled) {
            let address = address::AddressError::Unknown(MANAGEMENT.to_owned());
            return Err(errors::address(&address).into());
        }
        let paired =
            amqp::value::lookup(attach.properties.as_deref().unwrap_or_default(), "paired");
        if paired != Some(&Value::Bool(true)) {
            return Err(errors::not_paired().into());
        }
        if !cx.claims.has_any() && cx.directory.access().anonymous() == Rights::NONE {
            let links = format!("links in vhost '{}'", self.virtual_host.name());
            let error = errors::no_access("management", links, &self.user);
            return Err(AttachRefusal::End(error));
        }
        let asks = attach.role == Role::Sender;
        let id = self.pairs.join(session, &attach.name, link, asks);
        let id = id.ok_or_else(errors::too_many_pairs)?;
        let reply = reply(attach, pair::MAX_REQUEST);
        let kind = match asks {
            true => LinkKind::Requests(id),
            false => LinkKind::Responses(id),
        };
        self.accept(cx, link, session, reply, kind);
        if asks {
            cx.connection.set_credit(link, pair::CREDIT, false);
        }
        Ok(())
    }

    fn attach_publisher(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
        address: &str,
    ) -> Result<(), AttachRefusal> {
        let target = match address {
            "" => Target::Anonymous,
            address => match Address::of_target(address).map_err(|it| errors::address(&it))? {
                Address::Queue(name) if let Some((_, node)) = dynamic_queue::node_of(&name) => {
                    return self.attach_responder(cx, link, session, attach, node);
                }
                Address::Queue(name) => self.queue_target(cx, &name)?,
                Address::Exchange { name, key } => match self.topic_target(cx, &name, &key)? {
                    Some(topic) => topic,
                    None => {
                        let exchange = self.virtual_host.exchange(&name);
                        self.check(cx, Permission::Write, "", exchange)?;
                        let order = Order::Router(RouterOrder::Describe { name: name.clone() });
                        let pending = Pending::Attach(link);
                        let request = register(&mut self.pending, cx, pending, 0);
                        cx.commands.push(Command::Administer {
                            request,
                            namespace: cx.directory.namespace(),
                            order: Box::new(order),
                        });
                        let link_name = attach.name.clone();
                        let pending = PendingAttach {
                            attach,
                            exchange: name,
                            key,
                        };
                        let kind = LinkKind::Pending(Box::new(pending));
                        let entry = Link {
                            session,
                            name: link_name,
                            kind,
                        };
                        self.links.insert(link, entry);
                        return Ok(());
                    }
                },
            },
        };
        let reply = self.publisher_reply(&attach, &target);
        self.accept_publisher(cx, link, session, reply, target);
        Ok(())
    }

    /// The broker has looked up the exchange of a publisher.
    pub(crate) fn handle_exchange(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        result: Result<Answer, EntityError>,
    ) {
        let Some(Link { session, kind, .. }) = self.links.remove(&link) else {
            return;
        };
        let LinkKind::Pending(pending) = kind else {
            return;
        };
        let PendingAttach {
            attach,
            exchange,
            key,
        } = *pending;
        let named = self.virtual_host.exchange(&exchange);
        let error = match result {
            Ok(_) => {
                let target = Target::Exchange {
                    name: exchange,
                    key,
                };
                let reply = self.publisher_reply(&attach, &target);
                return self.accept_publisher(cx, link, session, reply, target);
            }
            Err(EntityError::Router(RouterError::NotFound(_))) => errors::not_found(named),
            Err(error) => errors::unusable(named, &error.to_string()),
        };
        cx.note(Subject::Attach, &attach.name, Some(&exchange), &error);
        cx.connection.refuse(link, error);
    }

    fn publisher_reply(&self, attach: &Attach, target: &Target) -> Attach {
        let limit = match target {
            Target::Entity(target) => target.max_message_size,
            Target::Exchange { .. } | Target::Anonymous => self.settings.max_message_size,
        };
        Attach {
            rcv_settle_mode: Some(ReceiverSettleMode::First),
            ..reply(attach, limit)
        }
    }

    pub(crate) fn accept_publisher(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        reply: Attach,
        target: Target,
    ) {
        let kind = LinkKind::Publisher(Publisher::new(target, reply.snd_settle_mode));
        self.accept(cx, link, session, reply, kind);
        cx.connection.set_credit(link, CREDIT, false);
    }

    fn attach_consumer(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
        address: &str,
    ) -> Result<(), AttachRefusal> {
        let mode = mode_of(&attach)?;
        let name = Address::of_source(address).map_err(|it| errors::address(&it))?;
        if let Some((DynamicQueue::Temporary, node)) = dynamic_queue::node_of(&name) {
            return self.attach_to_temporary(cx, link, session, attach, node);
        }
        self.check(cx, Permission::Read, &name, self.virtual_host.queue(&name))?;
        let place = self.readable(cx, &name)?;
        cx.commands.push(Command::Attach {
            receiver: cx.receiver_id(link),
            subqueue: place,
            access: Access::Prioritized {
                mode,
                priority: priority(&attach),
                consumer_timeout: consumer_timeout(&attach),
                hears_activity: true,
            },
            selector: None,
        });
        let mut reply = reply(&attach, 0);
        reply.max_message_size = attach.max_message_size;
        reply.target = None;
        if let Some(source) = reply.source.as_deref_mut() {
            source.distribution_mode = Some(MOVE);
        }
        reply.snd_settle_mode = Some(match mode {
            ReceiveMode::ReceiveAndDelete => SenderSettleMode::Settled,
            _ => SenderSettleMode::Unsettled,
        });
        let consumer = Consumer::new(place, name, mode);
        let kind = LinkKind::Consumer(Box::new(consumer));
        self.accept(cx, link, session, reply, kind);
        Ok(())
    }

    /// The queue or subscription that consumers of a name read, and its part.
    fn readable(&self, cx: &LinkContext<'_>, name: &str) -> Result<SubqueueId, Error> {
        let (path, subqueue) = address::entity_of(name);
        let entity = cx.directory.get(path).filter(|it| it.path == path);
        let entity = entity.filter(|it| it.kind != EntityKind::Topic);
        let queue = self.virtual_host.queue(name);
        let entity = entity.ok_or_else(|| errors::not_found(queue))?;
        if self.exclusive.is_locked(cx.directory, path) {
            return Err(errors::locked(self.virtual_host.queue(path)));
        }
        let settings = &entity.settings;
        let forwards = match subqueue {
            Subqueue::Main => settings.forward_to.is_some(),
            Subqueue::DeadLetter => {
                settings.forward_dead_lettered_messages_to.is_some()
                    || settings.dead_letter_router.is_some()
            }
            Subqueue::TransferDeadLetter => false,
        };
        if settings.requires_session && subqueue == Subqueue::Main {
            return Err(errors::unusable(queue, "requires sessions"));
        }
        if forwards {
            return Err(errors::unusable(queue, "forwards its messages"));
        }
        if !settings.status.allows_receive() {
            return Err(errors::unusable(queue, "is disabled for receiving"));
        }
        Ok(SubqueueId {
            entity: entity.id,
            subqueue,
        })
    }

    fn queue_target(&self, cx: &LinkContext<'_>, name: &str) -> Result<Target, AttachRefusal> {
        let exchange = self.virtual_host.exchange(DEFAULT_EXCHANGE);
        self.check(cx, Permission::Write, name, exchange)?;
        Ok(self.queue_for_send(cx, name)?)
    }

    /// A Service Bus topic as an exchange of its name.
    fn topic_target(
        &self,
        cx: &LinkContext<'_>,
        name: &str,
        key: &str,
    ) -> Result<Option<Target>, AttachRefusal> {
        let Some(topic) = self.topic_for_send(cx, name, key)? else {
            return Ok(None);
        };
        self.check(
            cx,
            Permission::Write,
            name,
            self.virtual_host.exchange(name),
        )?;
        Ok(Some(topic))
    }

    pub(crate) fn accept(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        reply: Attach,
        kind: LinkKind,
    ) {
        let name = reply.name.clone();
        let entry = Link {
            session,
            name,
            kind,
        };
        self.links.insert(link, entry);
        cx.connection.accept(link, reply);
    }

    /// Detaches a link whose queue is gone, or whose client has lost its right.
    pub(crate) fn check_link(&mut self, cx: &mut LinkContext<'_>, link: LinkId) {
        let Some(attached) = self.links.get(&link) else {
            return;
        };
        let (permission, path, id) = match &attached.kind {
            // The broker tells when a dynamic queue is gone. A temporary one is its connection's.
            LinkKind::Consumer(it) if it.place.entity.is_volatile() => {
                match dynamic_queue::node_of(&it.path) {
                    Some((DynamicQueue::Temporary, _)) => return,
                    _ => (Permission::Read, "", None),
                }
            }
            LinkKind::Publisher(it) if it.target.is_dynamic() => (Permission::Write, "", None),
            LinkKind::Consumer(it) => (Permission::Read, it.path.as_str(), Some(it.place.entity)),
            LinkKind::Publisher(it) => match &it.target {
                Target::Entity(it) => (Permission::Write, it.path.as_str(), Some(it.id)),
                Target::Exchange { .. } => (Permission::Write, "", None),
                // Each message is checked by itself.
                Target::Anonymous => return,
            },
            LinkKind::Requests(_)
            | LinkKind::Responses(_)
            | LinkKind::Pending(_)
            | LinkKind::WaitsForNode(_) => return,
        };
        let entity = cx.directory.get(address::entity_of(path).0);
        if id.is_some() && entity.map(|entity| entity.id) != id {
            return self.detach(cx, link, errors::queue_deleted());
        }
        if !permission.is_kept(cx, path) {
            let entity = attached.entity().unwrap_or_default();
            let resource = format!("{entity} in vhost '{}'", self.virtual_host.name());
            let error = errors::no_access(permission.name(), resource, &self.user);
            self.end_session_of(cx, link, error);
        }
    }
}

/// Whether a client wants to go on with deliveries of a link that is gone.
fn recovers(attach: &Attach) -> bool {
    let unsettled = attach.unsettled.as_ref();
    attach.incomplete_unsettled || unsettled.is_some_and(|unsettled| !unsettled.is_empty())
}

/// How the messages of a consumer are settled.
pub(crate) fn mode_of(attach: &Attach) -> Result<ReceiveMode, Error> {
    let settled = attach.snd_settle_mode == Some(SenderSettleMode::Settled);
    match settled {
        true => Ok(ReceiveMode::ReceiveAndDelete),
        false if attach.rcv_settle_mode == Some(ReceiverSettleMode::Second) => {
            Err(errors::not_implemented("rcv-settle-mode second"))
        }
        false => Ok(ReceiveMode::LinkLock),
    }
}

/// The priority that a consumer asks for.
fn priority(attach: &Attach) -> i32 {
    let properties = attach.properties.as_deref().unwrap_or_default();
    let asked = amqp::value::lookup(properties, PRIORITY).and_then(Value::as_integer);
    let asked = asked.map(|it| it.clamp(i32::MIN.into(), i32::MAX.into()));
    asked.and_then(|it| i32::try_from(it).ok()).unwrap_or(0)
}

/// The milliseconds for which a consumer asks to be able to hold a message.
fn consumer_timeout(attach: &Attach) -> Option<u64> {
    let properties = attach.properties.as_deref().unwrap_or_default();
    let asked = amqp::value::lookup(properties, CONSUMER_TIMEOUT).and_then(Value::as_integer);
    asked.and_then(|it| u64::try_from(it).ok())
}

/// The reply repeats addresses and properties as they came; no filter is in force.
pub(crate) fn reply(attach: &Attach, max_message_size: u64) -> Attach {
    let role = match attach.role {
        Role::Sender => Role::Receiver,
        Role::Receiver => Role::Sender,
    };
    let mut source = attach.source.clone();
    if let (Role::Sender, Some(source)) = (role, &mut source) {
        source.filter = None;
        source.default_outcome = Some(DeliveryState::Released);
        source.outcomes = OUTCOMES.to_vec();
    }
    Attach {
        name: attach.name.clone(),
        handle: attach.handle,
        role,
        snd_settle_mode: attach.snd_settle_mode,
        rcv_settle_mode: attach.rcv_settle_mode,
        source,
        target: attach.target.clone(),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: (role == Role::Sender).then_some(0),
        max_message_size: Some(max_message_size),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: attach.properties.clone(),
    }
}
