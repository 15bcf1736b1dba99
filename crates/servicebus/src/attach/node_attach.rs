//! Node attach: a link that makes a dynamic node, or uses one. (docs/spec/amqp.md#3.7)
//!
//! The attach waits until the broker has made or found the node. The connection that made a node
//! uses it without further rights; another one needs the right to send or to receive.

use access::{Operation, RequiredRight};
use amqp::{Error, Role};
use broker::{
    Command, EntityKind, Node as OpenedNode, NodeError, NodeKind, NodeLinkId, NodeUse, node_path,
};
use dialect::{CreditWindow, Origin, Subject};
use endpoint::{LinkId, SessionId};
use store::EntityId;

use crate::address::EntityAddress;
use crate::attach::attach_reply;
use crate::attach::dynamic_terminus;
use crate::attach::pending_attach::AttachRequest;
use crate::attach::receiver_source::ReceiverSource;
use crate::attach::requested_session::{self, RequestedSession};
use crate::attach::transfer_destination;
use crate::client::Client;
use crate::errors;
use crate::links::dynamic_nodes::{PendingNode, Wanted};
use crate::links::link::{EntityRef, LinkKind, Sender, SenderDestination};

impl Client {
    /// Asks the broker for a node for a link.
    pub(crate) fn attach_dynamic(&mut self, request: AttachRequest) -> Result<(), Error> {
        let node = dynamic_terminus::request_of(&request.attach)?;
        let is_receiver = request.attach.role == Role::Receiver;
        if is_receiver && node.kind == NodeKind::Topic {
            return Err(errors::no_dynamic_topic_for_receiver());
        }
        self.authorize_dynamic_node()?;
        let link = self.node_link_id(request.link);
        self.wait_for_node(request, Wanted::New(node.lifetime))?;
        let namespace = self.directory.namespace();
        self.command(Command::CreateNode {
            link,
            namespace,
            node,
        });
        Ok(())
    }

    /// Asks the broker for a node that another link has made.
    pub(crate) fn attach_to_node(
        &mut self,
        request: AttachRequest,
        address: &EntityAddress,
        node: EntityId,
    ) -> Result<(), Error> {
        let (operation, used) = match request.attach.role {
            Role::Sender => (Operation::Send, NodeUse::Send),
            Role::Receiver => (Operation::Receive, NodeUse::Receive),
        };
        let path = address.path();
        self.authorize(self.right_at_node(operation, node), &path)?;
        if used == NodeUse::Send {
            self.check_send_address(address)?;
        }
        let link = self.node_link_id(request.link);
        self.wait_for_node(request, Wanted::Existing(node, address.subqueue))?;
        let namespace = self.directory.namespace();
        self.command(Command::OpenNode {
            link,
            namespace,
            node,
            used,
        });
        Ok(())
    }

    fn wait_for_node(&mut self, request: AttachRequest, wanted: Wanted) -> Result<(), Error> {
        let receiver_source = match request.attach.role {
            Role::Receiver => Some(self.plain_receiver_source(&request)?),
            Role::Sender => {
                transfer_destination::check_none(&request.attach)?;
                None
            }
        };
        let link = request.link;
        let pending = PendingNode {
            request,
            wanted,
            receiver_source,
        };
        self.dynamic_nodes.pending.insert(link, Box::new(pending));
        Ok(())
    }

    /// What a receiver wants where there are no sessions.
    pub(crate) fn plain_receiver_source(
        &self,
        request: &AttachRequest,
    ) -> Result<ReceiverSource, Error> {
        requested_session::check_exclusive(&request.attach)?;
        if RequestedSession::of(&request.attach).is_some() {
            return Err(errors::sessionful_receiver());
        }
        ReceiverSource::of(&request.attach)
    }

    /// Whether the connection may make nodes: by its rights for the namespace, whatever its tokens
    /// are for.
    fn authorize_dynamic_node(&self) -> Result<(), Error> {
        let access = self.directory.access();
        let rights = self.claims.namespace_rights(access, self.now.wall);
        let needed = self.settings.dynamic_nodes.required();
        let needed = needed.ok_or_else(errors::no_dynamic_nodes)?;
        match needed.iter().find(|right| !rights.allow(**right)) {
            None => Ok(()),
            Some(right) => Err(errors::unauthorized(*right, &self.resource(""))),
        }
    }

    /// The right that an operation requires at a node.
    pub(crate) fn right_at_node(&self, operation: Operation, node: EntityId) -> RequiredRight {
        match self.dynamic_nodes.is_own(node) {
            true => RequiredRight::Nothing,
            false => operation.required_right(),
        }
    }

    /// Handles what the broker has for a link that asked for a node. If the link is detached, the
    /// broker has been told already.
    pub(crate) fn handle_node_opened(
        &mut self,
        link: NodeLinkId,
        result: Result<OpenedNode, NodeError>,
    ) {
        let link = LinkId(link.link);
        let Some(pending) = self.dynamic_nodes.pending.remove(&link) else {
            return;
        };
        match result {
            Ok(node) => self.accept_at_node(*pending, node),
            Err(error) => {
                let path = match pending.wanted {
                    Wanted::New(_) => String::new(),
                    Wanted::Existing(node, _) => node_path(node),
                };
                let error = errors::node(&error, &self.resource(&path));
                self.refuse_at_node(&pending, &path, error);
            }
        }
    }

    fn refuse_at_node(&mut self, pending: &PendingNode, path: &str, error: Error) {
        let origin = Origin {
            link: Some(&pending.request.attach.name),
            entity: Some(path).filter(|path| !path.is_empty()),
            ..Origin::default()
        };
        let error = self.tracked(error);
        self.refusals.note(Subject::Attach, origin, &error);
        self.connection.refuse(pending.request.link, error);
        self.start_idle_timer();
    }

    fn accept_at_node(&mut self, pending: PendingNode, opened: OpenedNode) {
        let link = pending.request.link;
        let (node, subqueue) = match pending.wanted {
            Wanted::New(_) => (opened.entity, broker::Subqueue::Main),
            Wanted::Existing(node, subqueue) => (node, subqueue),
        };
        self.dynamic_nodes.join(link, &pending, node);
        let PendingNode {
            request,
            wanted,
            receiver_source,
        } = pending;
        let max_message_size = self.settings.max_message_size;
        let path = node_path(node);
        let entity_ref = EntityRef {
            id: opened.entity,
            path: path.clone(),
            subqueue,
            top_level: node,
            sessions: false,
            max_message_size,
        };
        let mut reply = attach_reply::reply(&request.attach, max_message_size);
        if let Wanted::New(lifetime) = wanted {
            dynamic_terminus::announce(&mut reply, path.clone(), lifetime);
        }
        let (operation, kind) = match receiver_source {
            Some(mut receiver_source) => {
                if let Some(source) = reply.source.as_deref_mut() {
                    source.filter = receiver_source.filter.take();
                }
                let state = Self::receiver_state(&request, &entity_ref, &receiver_source);
                let (receiver, mode) = (self.receiver_id(link), state.mode);
                self.command(receiver_source.command(receiver, opened.entity, subqueue, mode));
                (Operation::Receive, LinkKind::Receiver(state))
            }
            None => {
                attach_reply::announce_batch_size(
                    reply.properties.get_or_insert_default(),
                    max_message_size,
                );
                let sender = Sender {
                    destination: SenderDestination::Entity(opened.entity),
                    credit_window: CreditWindow::new(self.settings.sender_credit),
                    max_message_size,
                    transfer_to: None,
                };
                debug_assert!(
                    opened.kind != EntityKind::Subscription,
                    "only its topic sends to a subscription"
                );
                (Operation::Send, LinkKind::Sender(sender))
            }
        };
        let required_right = self.right_at_node(operation, node);
        self.accept(
            request,
            reply,
            required_right,
            &path,
            Some(entity_ref),
            kind,
        );
    }

    /// Handles the end of a link's node.
    pub(crate) fn handle_node_closed(&mut self, link: NodeLinkId) {
        let link = LinkId(link.link);
        self.dynamic_nodes.leave(link, true);
        if let Some(attached) = self.links.get(link) {
            let error = errors::node_deleted(&attached.resource);
            self.detach(link, error);
        }
    }

    /// A link is detached, or `over`: the broker hears when it uses no node any more.
    pub(crate) fn leave_node(&mut self, link: LinkId, over: bool) {
        let was_pending = self.dynamic_nodes.pending.remove(&link).is_some();
        if was_pending {
            self.start_idle_timer();
        }
        if was_pending || self.dynamic_nodes.leave(link, over) {
            let link = self.node_link_id(link);
            self.command(Command::CloseNode { link });
        }
    }

    /// A session is over: the nodes go that its links made and were detached without being closed.
    pub(crate) fn end_nodes(&mut self, session: SessionId) {
        for link in self.dynamic_nodes.ended(session) {
            let link = self.node_link_id(link);
            self.command(Command::CloseNode { link });
        }
    }

    fn node_link_id(&self, link: LinkId) -> NodeLinkId {
        NodeLinkId {
            connection: self.id,
            link: link.0,
        }
    }
}
