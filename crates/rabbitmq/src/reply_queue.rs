//! Reply queue: the volatile queue of a requester, to which responders send directly.
//! (docs/spec/rabbitmq.md#10.8)
//!
//! It is a dynamic node of the broker: it lives in memory, only the link that asked for it reads
//! it, and it goes with that link. No client can guess its name. A publisher that attaches to it
//! waits until the broker has said that it is there.
//! Invariant: the broker counts a link of a node exactly as long as the link is in `Links`.

use amqp::performative::SenderSettleMode;
use amqp::{Attach, Role, Symbol, Value};
use broker::{
    Access, Command, LifetimePolicy, Node, NodeError, NodeKind, NodeLinkId, NodeRequest, NodeUse,
    ReceiveMode, Subqueue, SubqueueId, node_of_token, node_token,
};
use dialect::{LinkContext, Subject};
use endpoint::{LinkId, SessionId};
use store::EntityId;

use crate::address::{Address, queue_address};
use crate::attach::{Refusal, far_address, reply};
use crate::consumer::Consumer;
use crate::errors;
use crate::links::{Link, LinkKind, Links};
use crate::publisher::Target;
use crate::rights::Permission;

/// The capability of a source that asks for a reply queue.
const VOLATILE_QUEUE: &str = "rabbitmq:volatile-queue";
/// What its name begins with; the rest is the token of the node.
const PREFIX: &str = "amq.rabbitmq.reply-to.";
const MOVE: Symbol = Symbol::new("move");
/// The lifetime policy of a reply queue. [AMQP 3.5.10]
const DELETE_ON_CLOSE: u64 = 0x2b;

/// Whether an attach asks for a reply queue.
pub(crate) fn is_asked_for(attach: &Attach) -> bool {
    let source = attach.source.as_deref().filter(|source| source.dynamic);
    let mut capabilities = source.iter().flat_map(|source| &source.capabilities);
    attach.role == Role::Receiver && capabilities.any(|it| it.as_str() == VOLATILE_QUEUE)
}

/// The node of a reply queue's name, whether it is there or not.
pub(crate) fn node_of(name: &str) -> Option<EntityId> {
    node_of_token(name.strip_prefix(PREFIX)?)
}

fn name_of(node: EntityId) -> String {
    format!("{PREFIX}{}", node_token(node))
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
    /// Asks the broker for a reply queue. The requester has to have the right to read in the
    /// namespace.
    pub(crate) fn attach_requester(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
    ) -> Result<(), Refusal> {
        if attach.snd_settle_mode != Some(SenderSettleMode::Settled) {
            return Err(errors::not_implemented("a reply queue with settlement").into());
        }
        self.check(cx, Permission::Read, "", "queue 'amq.rabbitmq.reply-to'")?;
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

    /// Asks the broker whether the reply queue of a publisher is there.
    pub(crate) fn attach_responder(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: Box<Attach>,
        node: EntityId,
    ) -> Result<(), Refusal> {
        self.check(cx, Permission::Write, "", "exchange 'amq.default'")?;
        cx.commands.push(Command::OpenNode {
            link: link_id(cx, link),
            namespace: cx.directory.namespace(),
            node,
            used: NodeUse::Send,
        });
        self.wait_for_node(link, session, attach);
        Ok(())
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
        let Some(Link { session, kind, .. }) = self.links.remove(&link) else {
            return;
        };
        let LinkKind::WaitsForNode(attach) = kind else {
            unreachable!("no other link asks for a node");
        };
        match result {
            Ok(node) if attach.role == Role::Receiver => {
                self.accept_requester(cx, link, session, &attach, node.entity);
            }
            Ok(node) => {
                let target = self.reply_target(node.entity);
                self.accept_publisher(cx, link, session, &attach, target);
            }
            Err(error) => {
                let address = far_address(&attach).unwrap_or_default();
                let name = Address::of_source(address).unwrap_or_default();
                let error = errors::node(&name, error);
                cx.note(Subject::Attach, &attach.name, Some(address), &error);
                cx.connection.refuse(link, error);
            }
        }
    }

    fn accept_requester(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        session: SessionId,
        attach: &Attach,
        node: EntityId,
    ) {
        let place = SubqueueId {
            entity: node,
            subqueue: Subqueue::Main,
        };
        let mode = ReceiveMode::ReceiveAndDelete;
        cx.commands.push(Command::Attach {
            receiver: cx.receiver_id(link),
            subqueue: place,
            access: Access::Consume(mode),
            selector: None,
        });
        let mut reply = reply(attach, 0);
        reply.max_message_size = attach.max_message_size;
        reply.target = None;
        if let Some(source) = reply.source.as_deref_mut() {
            let policy = Value::described(DELETE_ON_CLOSE, Value::List(Vec::new()));
            let modes = Value::Array(vec![Value::Symbol(MOVE)]);
            source.address = Some(Value::String(queue_address(&name_of(node))));
            source.dynamic_node_properties = Some(vec![
                (Value::Symbol("lifetime-policy".into()), policy),
                (Value::Symbol("supported-dist-modes".into()), modes),
            ]);
            source.distribution_mode = Some(MOVE);
            (source.durable, source.timeout) = (0, 0);
        }
        let consumer = Consumer::new(place, name_of(node), mode);
        let kind = LinkKind::Consumer(Box::new(consumer));
        self.accept(cx, link, session, reply, kind);
    }

    /// A reply queue as the target of messages.
    pub(crate) fn reply_target(&self, node: EntityId) -> Target {
        Target::queue(node, name_of(node), self.settings.max_message_size)
    }
}
