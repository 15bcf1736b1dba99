//! Dynamic queue: a queue that a link asks for, in memory alone, which goes with that link.
//! (docs/spec/rabbitmq.md#4, #10.8)
//!
//! It is a dynamic node of the broker, whose name no client can guess. The reply queue of a
//! requester is read by the link that asked for it, and responders send to it directly. A temporary
//! queue is read by all links of the connection that asked for it. A link that attaches to one
//! waits until the broker has said that it is there.
//! Invariant: the broker counts a link of a node exactly as long as the link is in `Links`.

use amqp::performative::SenderSettleMode;
use amqp::{Attach, Role, Symbol, TargetTerminus, Value};
use broker::{
    Access, Command, LifetimePolicy, Node, NodeError, NodeKind, NodeLinkId, NodeRequest, NodeUse,
    ReceiveMode, Subqueue, SubqueueId, node_of_token, node_token,
};
use dialect::{LinkContext, Subject};
use endpoint::{LinkId, SessionId};
use store::EntityId;

use crate::address::{Address, DEFAULT_EXCHANGE, queue_address};
use crate::attach::{AttachRefusal, far_address, mode_of, reply};
use crate::consumer::Consumer;
use crate::errors;
use crate::links::{Link, LinkKind, Links};
use crate::publisher::Target;
use crate::rights::Permission;

pub(crate) const MOVE: Symbol = Symbol::new("move");
/// A dynamic queue goes with its link.
const LINK_DETACH: Symbol = Symbol::new("link-detach");
/// The lifetime policy of these queues. [AMQP 3.5.10]
const DELETE_ON_CLOSE: u64 = 0x2b;

/// What a link asks for by the capability of its dynamic terminus.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DynamicQueue {
    Reply,
    Temporary,
}

impl DynamicQueue {
    const ALL: [Self; 2] = [Self::Reply, Self::Temporary];

    const fn capability(self) -> &'static str {
        match self {
            Self::Reply => "rabbitmq:volatile-queue",
            Self::Temporary => "temporary-queue",
        }
    }

    /// What a name begins with; the rest is the token of the node.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Reply => "amq.rabbitmq.reply-to.",
            Self::Temporary => "amq.dyn-",
        }
    }

    fn name(self, node: EntityId) -> String {
        format!("{}{}", self.prefix(), node_token(node))
    }

    /// What an attach asks for. Only requesters ask for reply queues.
    pub(crate) fn asked_for(attach: &Attach) -> Option<Self> {
        let capabilities = match (attach.role, attach.target.as_deref()) {
            (Role::Receiver, _) => {
                let source = attach.source.as_deref().filter(|source| source.dynamic)?;
                &source.capabilities
            }
            (Role::Sender, Some(TargetTerminus::Node(target))) if target.dynamic => {
                &target.capabilities
            }
            (Role::Sender, _) => return None,
        };
        let is_asked = |kind: &Self| {
            let mut capabilities = capabilities.iter();
            capabilities.any(|it| it.as_str() == kind.capability())
        };
        let asked = Self::ALL.into_iter().find(is_asked)?;
        (asked == Self::Temporary || attach.role == Role::Receiver).then_some(asked)
    }
}

/// The node of a dynamic queue's name and what it is, whether it is there or not.
pub(crate) fn node_of(name: &str) -> Option<(DynamicQueue, EntityId)> {
    let mut kinds = DynamicQueue::ALL.into_iter();
    kinds.find_map(|kind| {
        let token = name.strip_prefix(kind.prefix())?;
        Some((kind, node_of_token(token)?))
    })
}

fn link_id(cx: &LinkContext<'_>, link: LinkId) -> NodeLinkId {
    NodeLinkId {
        connection: cx.id,
        link: link.0,
    }
}

/// A link that uses a node, or waits for it, is gone.
pub(crate) fn close(cx: &mut LinkContext<'_>, link: LinkId) {
    let link = link_id(cx, link);
    cx.commands.push(Command::CloseNode { link });
}

impl Links {
    /// Asks the broker for a queue for a link.
    pub(crate) fn attach_dynamic(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
        kind: DynamicQueue,
    ) -> Result<(), AttachRefusal> {
        match kind {
            DynamicQueue::Reply => {
                if attach.snd_settle_mode != Some(SenderSettleMode::Settled) {
                    return Err(errors::not_implemented("a reply queue with settlement").into());
                }
                let queue = self.virtual_host.queue("amq.rabbitmq.reply-to");
                self.check(cx, Permission::Read, "", queue)?;
            }
            DynamicQueue::Temporary => self.check_temporary(cx, &attach)?,
        }
        cx.commands.push(Command::CreateNode {
            link: link_id(cx, link),
            namespace: cx.directory.namespace(),
            node: NodeRequest {
                kind: NodeKind::Queue,
                lifetime: LifetimePolicy::DeleteOnClose,
                exclusive: true,
            },
        });
        self.wait_for_node(link, session, attach);
        Ok(())
    }

    /// Whether the connection may have temporary queues, and serve such a link.
    fn check_temporary(&self, cx: &LinkContext<'_>, attach: &Attach) -> Result<(), AttachRefusal> {
        let address = match (attach.role, attach.target.as_deref()) {
            (Role::Sender, Some(TargetTerminus::Node(target))) => target.address.as_ref(),
            _ => {
                mode_of(attach)?;
                attach.source.as_deref().and_then(|it| it.address.as_ref())
            }
        };
        if address.is_some_and(|it| *it != Value::Null) {
            return Err(errors::not_implemented("a dynamic terminus with an address").into());
        }
        let needed = self.settings.dynamic_nodes;
        let needed = needed.ok_or_else(|| errors::not_implemented("a dynamic terminus"))?;
        let rights = cx
            .claims
            .namespace_rights(cx.directory.access(), cx.now.wall);
        if needed.iter().all(|right| rights.allow(*right)) {
            return Ok(());
        }
        let queue = self.virtual_host.queue("amq.dyn-");
        let error = errors::no_access("configure", queue, &self.user);
        Err(AttachRefusal::End(error))
    }

    /// Asks the broker whether the queue of a publisher is there.
    pub(crate) fn attach_responder(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
        node: EntityId,
    ) -> Result<(), AttachRefusal> {
        let exchange = self.virtual_host.exchange(DEFAULT_EXCHANGE);
        self.check(cx, Permission::Write, "", exchange)?;
        self.open_node(cx, link, node, NodeUse::Send);
        self.wait_for_node(link, session, attach);
        Ok(())
    }

    /// Asks the broker whether the temporary queue of a consumer is there, and this connection's.
    pub(crate) fn attach_to_temporary(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
        node: EntityId,
    ) -> Result<(), AttachRefusal> {
        mode_of(&attach)?;
        self.open_node(cx, link, node, NodeUse::Receive);
        self.wait_for_node(link, session, attach);
        Ok(())
    }

    fn open_node(&self, cx: &mut LinkContext<'_>, link: LinkId, node: EntityId, used: NodeUse) {
        cx.commands.push(Command::OpenNode {
            link: link_id(cx, link),
            namespace: cx.directory.namespace(),
            node,
            used,
        });
    }

    fn wait_for_node(&mut self, link: LinkId, session: SessionId, attach: Box<Attach>) {
        let waiting = Link {
            session,
            name: attach.name.clone(),
            kind: LinkKind::WaitsForNode(attach),
        };
        self.links.insert(link, waiting);
    }

    /// The broker has answered a link that waits for its node.
    pub(crate) fn handle_node_opened(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        result: Result<Node, NodeError>,
    ) {
        let waits = |link: &Link| matches!(link.kind, LinkKind::WaitsForNode(_));
        if !self.links.get(&link).is_some_and(waits) {
            return;
        }
        let Some(Link {
            session,
            kind: LinkKind::WaitsForNode(attach),
            ..
        }) = self.links.remove(&link)
        else {
            return;
        };
        let address = far_address(&attach).unwrap_or_default();
        match result {
            Ok(node) => {
                let mut reply = reply(&attach, self.settings.max_message_size);
                let asked = DynamicQueue::asked_for(&attach);
                let name = match asked {
                    Some(kind) => kind.name(node.entity),
                    None => Address::of_source(address).unwrap_or_default(),
                };
                if asked.is_some() {
                    announce(&mut reply, queue_address(&name));
                }
                match attach.role {
                    Role::Receiver => {
                        let place = (node.entity, name);
                        self.accept_reader(cx, link, session, &attach, reply, place);
                    }
                    Role::Sender => {
                        let target = self.node_target(node.entity, name);
                        self.accept_publisher(cx, link, session, reply, target);
                    }
                }
            }
            Err(error) => {
                let name = Address::of_source(address).unwrap_or_default();
                let error = errors::node(self.virtual_host.queue(&name), error);
                cx.note(Subject::Attach, &attach.name, Some(address), &error);
                cx.connection.refuse(link, error);
            }
        }
    }

    /// A link reads its queue.
    fn accept_reader(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: &Attach,
        mut reply: Attach,
        (entity, name): (EntityId, String),
    ) {
        let place = SubqueueId {
            entity,
            subqueue: Subqueue::Main,
        };
        let mode = mode_of(attach).unwrap_or(ReceiveMode::ReceiveAndDelete);
        cx.commands.push(Command::Attach {
            receiver: cx.receiver_id(link),
            subqueue: place,
            access: Access::Consume(mode),
            selector: None,
        });
        reply.max_message_size = attach.max_message_size;
        reply.target = None;
        reply.snd_settle_mode = Some(match mode {
            ReceiveMode::ReceiveAndDelete => SenderSettleMode::Settled,
            _ => SenderSettleMode::Unsettled,
        });
        let kind = LinkKind::Consumer(Box::new(Consumer::new(place, name, mode)));
        self.accept(cx, link, session, reply, kind);
    }

    /// A dynamic queue as the target of messages.
    pub(crate) fn node_target(&self, node: EntityId, name: String) -> Target {
        Target::queue(node, name, self.settings.max_message_size)
    }
}

/// Tells the client the address of its queue, and what holds for it.
fn announce(reply: &mut Attach, address: String) {
    let policy = Value::described(DELETE_ON_CLOSE, Value::List(Vec::new()));
    let modes = Value::Array(vec![Value::Symbol(MOVE)]);
    let properties = Value::Map(vec![
        (Value::Symbol("lifetime-policy".into()), policy),
        (Value::Symbol("supported-dist-modes".into()), modes),
    ]);
    let address = Some(Value::String(address));
    match (reply.role, reply.target.as_deref_mut()) {
        // The client sends.
        (Role::Receiver, Some(TargetTerminus::Node(target))) => {
            target.address = address;
            target.dynamic_node_properties = Some(properties);
            target.expiry_policy = Some(LINK_DETACH);
            (target.durable, target.timeout) = (0, 0);
        }
        _ => {
            if let Some(source) = reply.source.as_deref_mut() {
                source.address = address;
                source.dynamic_node_properties = Some(properties);
                source.distribution_mode = Some(MOVE);
                source.expiry_policy = Some(LINK_DETACH);
                (source.durable, source.timeout) = (0, 0);
            }
        }
    }
}
