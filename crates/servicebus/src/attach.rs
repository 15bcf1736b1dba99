//! Attach: accepts or refuses a link that the client attaches. (docs/spec/amqp.md#3)
//!
//! The reply repeats addresses and settle modes exactly as the client sent them. Rights are checked
//! before existence, so a client without a key cannot find out which entities exist.

pub(crate) mod admission;
pub(crate) mod attach_reply;
pub(crate) mod dynamic_terminus;
pub(crate) mod node_attach;
pub(crate) mod pending_attach;
pub(crate) mod receiver_source;
pub(crate) mod requested_session;
pub(crate) mod sender_attach;
pub(crate) mod session_attach;
pub(crate) mod transfer_destination;

use std::collections::VecDeque;
use std::sync::Arc;

use access::{Entity, Operation, RequiredRight};
use amqp::performative::SenderSettleMode;
use amqp::{Attach, Error, Role, TargetTerminus, Value};
use broker::{ReceiveMode, Subqueue};
use dialect::{Credit, CreditWindow, Origin, Subject};
use endpoint::{LinkId, SessionId};

use crate::address::{EntityAddress, Node};
use crate::attach::pending_attach::{AttachRequest, PendingAttach};
use crate::attach::receiver_source::ReceiverSource;
use crate::attach::requested_session::RequestedSession;
use crate::client::Client;
use crate::errors;
use crate::jms::{self, DELAYED_DELIVERY};
use crate::links::link::{EntityRef, Link, LinkKind, Sender, SenderDestination};
use crate::links::node_links::{RequestLink, ResponseLink};
use crate::links::receiver_link::Receiver;
use crate::request_response::REQUEST_CREDIT;
use crate::sender::relay::Relay;
use crate::transactions::coordinator;

/// Largest request to `$cbs`: a token and little more.
const MAX_CBS_REQUEST: u64 = 64 << 10;
/// A request that schedules the largest message has to fit, with all that is around it.
const ENVELOPE: u64 = 64 << 10;
/// So has one that schedules a few thousand small ones, whatever the largest may be. Clients wait
/// for an answer, which a request that is too large cannot have.
const MIN_MANAGEMENT_REQUEST: u64 = 4 << 20;
/// Absent, 0 and 2^64-1 each break a client library (rule 7).
const MAX_LIMIT: u64 = i64::MAX as u64;

impl Client {
    /// Answers a client's attach.
    pub(crate) fn handle_attach(&mut self, link: LinkId, session: SessionId, attach: Box<Attach>) {
        if coordinator::is_coordinator_attach(&attach) {
            if !self.settings.tier.has_transactions() {
                let origin = Origin {
                    link: Some(&attach.name),
                    ..Origin::default()
                };
                let error = self.tracked(errors::not_in_basic("Transactions"));
                self.refusals.note(Subject::Attach, origin, &error);
                return self.connection.refuse(link, error);
            }
            return self.attach_coordinator(link, session, &attach);
        }
        let (name, node) = (attach.name.clone(), requested_node(&attach));
        self.namespace.has_entity_link |= !matches!(node, Ok(Node::Cbs));
        let entity = node.as_ref().ok().map(Node::name);
        let entity = entity.filter(|name| !name.is_empty());
        let result = node.and_then(|node| {
            self.attach(AttachRequest {
                link,
                session,
                attach,
                node,
            })
        });
        if let Err(error) = result {
            let error = self.tracked(error);
            let origin = Origin {
                link: Some(&name),
                entity: entity.as_deref(),
                ..Origin::default()
            };
            self.refusals.note(Subject::Attach, origin, &error);
            self.connection.refuse(link, error);
        }
    }

    fn attach(&mut self, request: AttachRequest) -> Result<(), Error> {
        match (request.node.clone(), request.attach.role) {
            (Node::Cbs, role) => {
                if self.links.has_cbs_link(role) {
                    return Err(errors::cbs_link_is_open(self.id));
                }
                self.attach_node(
                    request,
                    Operation::PutToken.required_right(),
                    "",
                    None,
                    MAX_CBS_REQUEST,
                );
                Ok(())
            }
            (Node::Management(address), _) => self.attach_management(request, address),
            (Node::Anonymous, _) => self.attach_relay(request),
            (Node::Dynamic, _) => self.attach_dynamic(request),
            (Node::Entity(address), _) if let Some(node) = broker::node_at(&address.entity) => {
                self.attach_to_node(request, &address, node)
            }
            (Node::Entity(address), _) if self.settings.jms => {
                self.attach_with_jms(request, &address, true)
            }
            (Node::Entity(address), _) => self.attach_to_entity(request, &address),
            (Node::DurableSubscription, _) => self.attach_to_unsubscribe(request),
        }
    }

    pub(crate) fn attach_to_entity(
        &mut self,
        request: AttachRequest,
        address: &EntityAddress,
    ) -> Result<(), Error> {
        match request.attach.role {
            Role::Sender => self.attach_sender(request, address),
            Role::Receiver => self.attach_receiver(request, address),
        }
    }

    fn attach_management(
        &mut self,
        request: AttachRequest,
        address: Option<EntityAddress>,
    ) -> Result<(), Error> {
        let Some(address) = address else {
            self.authorize(Operation::AttachManagement.required_right(), "")?;
            let limit = self.settings.max_message_size;
            self.attach_node(
                request,
                Operation::AttachManagement.required_right(),
                "",
                None,
                limit,
            );
            return Ok(());
        };
        let (entity_ref, entity) =
            self.resolve_entity(Operation::AttachManagement.required_right(), &address)?;
        let limit = self.max_message_size(&entity);
        let limit = limit.saturating_add(ENVELOPE);
        let limit = limit.clamp(MIN_MANAGEMENT_REQUEST, MAX_LIMIT);
        self.attach_node(
            request,
            Operation::AttachManagement.required_right(),
            &address.path(),
            Some(entity_ref),
            limit,
        );
        Ok(())
    }

    /// Attaches one half of a request-response pair.
    fn attach_node(
        &mut self,
        request: AttachRequest,
        required_right: RequiredRight,
        path: &str,
        entity: Option<EntityRef>,
        max_message_size: u64,
    ) {
        let node = request.node.key();
        let asks = request.attach.role == Role::Sender;
        let kind = if asks {
            LinkKind::Request(RequestLink {
                node,
                credit_window: CreditWindow::new(REQUEST_CREDIT),
            })
        } else {
            let reply_to = target_text(&request.attach).map(str::to_owned);
            LinkKind::Response(ResponseLink::new(node, reply_to))
        };
        let reply = attach_reply::reply(&request.attach, max_message_size);
        self.accept(request, reply, required_right, path, entity, kind);
    }

    fn attach_sender(
        &mut self,
        request: AttachRequest,
        address: &EntityAddress,
    ) -> Result<(), Error> {
        let (entity_ref, entity) =
            self.resolve_entity(Operation::Send.required_right(), address)?;
        self.check_send_address(address)?;
        let resource = self.resource(&address.path());
        if let Some(error) = admission::sender_error(&entity, &resource) {
            return Err(error);
        }
        let destination = transfer_destination::of(&request.attach)?;
        if let Some(destination) = &destination {
            if !self.settings.tier.has_forwarding() {
                return Err(errors::not_in_basic("Transfer destinations"));
            }
            self.authorize(Operation::Send.required_right(), &destination.entity)?;
        }
        let max_message_size = self.max_message_size(&entity);
        let credit_window = CreditWindow::new(self.settings.sender_credit);
        let kind = LinkKind::Sender(Sender {
            destination: SenderDestination::Entity(entity.id),
            transfer_to: destination.map(|destination| Arc::from(destination.entity)),
            credit_window,
            max_message_size,
        });
        let mut reply = attach_reply::reply(&request.attach, max_message_size);
        attach_reply::announce_batch_size(
            reply.properties.get_or_insert_default(),
            max_message_size,
        );
        self.accept(
            request,
            reply,
            Operation::Send.required_right(),
            &address.path(),
            Some(entity_ref),
            kind,
        );
        Ok(())
    }

    /// A sender whose messages name their nodes. (docs/spec/amqp.md#3.9)
    fn attach_relay(&mut self, request: AttachRequest) -> Result<(), Error> {
        if !self.settings.anonymous_relay {
            return Err(errors::no_address());
        }
        let max_message_size = self.settings.max_message_size;
        let kind = LinkKind::Sender(Sender {
            destination: SenderDestination::Relay(Relay::default()),
            transfer_to: None,
            credit_window: CreditWindow::new(self.settings.sender_credit),
            max_message_size,
        });
        transfer_destination::check_none(&request.attach)?;
        let reply = attach_reply::reply(&request.attach, max_message_size);
        // The right to send is checked for each message.
        self.accept(request, reply, RequiredRight::Nothing, "", None, kind);
        Ok(())
    }

    fn attach_receiver(
        &mut self,
        request: AttachRequest,
        address: &EntityAddress,
    ) -> Result<(), Error> {
        let (entity_ref, entity) =
            self.resolve_entity(Operation::Receive.required_right(), address)?;
        let resource = self.resource(&address.path());
        let objection = admission::receiver_error(&entity, address.subqueue, &resource);
        if let Some(error) = objection {
            return Err(error);
        }
        self.check_receiver_scope(request.session, &entity_ref)?;
        requested_session::check_exclusive(&request.attach)?;
        let mut receiver_source = ReceiverSource::of(&request.attach)?;
        let requested_session = match (entity_ref.sessions, RequestedSession::of(&request.attach)) {
            (false, Some(_)) => return Err(errors::sessionful_receiver()),
            (true, Some(_)) if !receiver_source.is_plain() => {
                return Err(errors::session_receiver_with_filter());
            }
            (true, None) if !receiver_source.browses => return Err(errors::sessionless_receiver()),
            (_, requested_session) => requested_session,
        };
        let state = Self::receiver_state(&request, &entity_ref, &receiver_source);
        let (id, subqueue, mode) = (state.entity, state.subqueue, state.mode);
        let receiver = self.receiver_id(request.link);
        let mut reply = attach_reply::reply(&request.attach, self.max_message_size(&entity));
        if let Some(source) = reply.source.as_deref_mut() {
            source.filter = receiver_source.filter.take();
        }
        if let Some(requested_session) = requested_session {
            let session = requested_session.filter(&request.attach)?;
            let pending_attach = PendingAttach {
                request,
                reply,
                requested_session,
                entity_ref,
                path: address.path(),
                receiver: state,
            };
            self.request_session(pending_attach, session);
            return Ok(());
        }
        let kind = LinkKind::Receiver(state);
        self.command(receiver_source.command(receiver, id, subqueue, mode));
        self.accept(
            request,
            reply,
            Operation::Receive.required_right(),
            &address.path(),
            Some(entity_ref),
            kind,
        );
        Ok(())
    }

    /// The state of a receiver link that begins.
    pub(crate) fn receiver_state(
        request: &AttachRequest,
        entity_ref: &EntityRef,
        receiver_source: &ReceiverSource,
    ) -> Receiver {
        // A browser is given copies: there is nothing to settle. (docs/spec/amqp.md#3.3)
        let is_settled = request.attach.snd_settle_mode == Some(SenderSettleMode::Settled);
        let mode = match is_settled || receiver_source.browses {
            true => ReceiveMode::ReceiveAndDelete,
            false => ReceiveMode::PeekLock,
        };
        let source = request.attach.source.as_ref();
        Receiver {
            session: request.session,
            entity: entity_ref.id,
            subqueue: entity_ref.subqueue,
            mode,
            browses: receiver_source.browses,
            held_session: None,
            default_outcome: source.and_then(|source| source.default_outcome.clone()),
            credit: Credit::default(),
            waiting: VecDeque::new(),
        }
    }

    /// Only the broker writes to a dead-letter subqueue.
    pub(crate) fn check_send_address(&self, address: &EntityAddress) -> Result<(), Error> {
        match address.subqueue {
            Subqueue::Main => Ok(()),
            Subqueue::DeadLetter | Subqueue::TransferDeadLetter => Err(
                errors::no_sends_to_subqueue(&self.resource(&address.path())),
            ),
        }
    }

    /// Keeps the link, answers its attach, and gives it credit if the client sends on it.
    pub(crate) fn accept(
        &mut self,
        request: AttachRequest,
        mut reply: Attach,
        required_right: RequiredRight,
        path: &str,
        entity: Option<EntityRef>,
        kind: LinkKind,
    ) {
        let asked_for = self.entity_to_ask_for(&kind);
        let asks = matches!(kind, LinkKind::Request(_));
        let AttachRequest {
            link,
            session,
            attach,
            ..
        } = request;
        let is_sender = matches!(kind, LinkKind::Sender(_));
        let wants_delay = jms::has(&attach.desired_capabilities, DELAYED_DELIVERY.as_str());
        if is_sender && wants_delay && self.settings.jms {
            reply.offered_capabilities.push(DELAYED_DELIVERY);
        }
        let (resource, path) = (self.resource(path), path.to_lowercase());
        self.links.insert(
            link,
            Link {
                session,
                name: attach.name,
                path,
                resource,
                required_right,
                entity,
                kind,
            },
        );
        self.note_session_scope(session, link);
        if let Some(entity) = asked_for {
            return self.ask_for_sender(link, reply, entity);
        }
        self.connection.accept(link, reply);
        if is_sender {
            self.give_sender_credit(link);
        }
        if asks {
            // The Python SDK's lock renewer repeats them. (docs/spec/amqp.md#7.1)
            self.connection.allow_repeated_ids(link);
            self.connection.set_credit(link, REQUEST_CREDIT, false);
        }
    }

    /// Checks that the connection has a right at an address, and that its entity exists.
    pub(crate) fn resolve_entity(
        &self,
        required_right: RequiredRight,
        address: &EntityAddress,
    ) -> Result<(EntityRef, Arc<Entity>), Error> {
        let path = address.path();
        self.authorize(required_right, &path)?;
        let entity = self.directory.get(&address.entity).cloned();
        let entity = entity.ok_or_else(|| errors::entity_missing(&self.resource(&path)))?;
        let entity_ref = EntityRef {
            id: entity.id,
            path: entity.path.clone(),
            subqueue: address.subqueue,
            top_level: self.top_level(entity.kind, entity.id, &entity.path),
            // A subqueue is never session-aware. (docs/spec/amqp.md#3.4)
            sessions: entity.settings.requires_session && address.subqueue == Subqueue::Main,
            max_message_size: self.max_message_size(&entity),
        };
        Ok((entity_ref, entity))
    }

    pub(crate) fn authorize(&self, required_right: RequiredRight, path: &str) -> Result<(), Error> {
        let access = self.directory.access();
        let rights = self
            .claims
            .rights(access, &path.to_lowercase(), self.now.wall);
        if rights.allow(required_right) {
            return Ok(());
        }
        Err(errors::unauthorized(required_right, &self.resource(path)))
    }

    /// That of a subscription is its topic's. (docs/spec/entities.md#2.3)
    fn max_message_size(&self, entity: &Entity) -> u64 {
        let topic = self.topic_of(entity.kind, &entity.path);
        let size = topic
            .map_or(entity, |topic| &**topic)
            .settings
            .max_message_size
            .unwrap_or(self.settings.max_message_size);
        size.clamp(1, MAX_LIMIT)
    }
}

/// The node that an attach names by its far terminus.
fn requested_node(attach: &Attach) -> Result<Node, Error> {
    if dynamic_terminus::is_dynamic(attach) {
        return Ok(Node::Dynamic);
    }
    let address = match attach.role {
        Role::Receiver => {
            let Some(source) = attach.source.as_deref() else {
                return Ok(Node::DurableSubscription);
            };
            &source.address
        }
        Role::Sender => match attach.target.as_deref() {
            None | Some(TargetTerminus::Coordinator(_)) => return Err(errors::no_address()),
            Some(TargetTerminus::Node(target)) => match &target.address {
                None | Some(Value::Null) => return Ok(Node::Anonymous),
                address => address,
            },
        },
    };
    let address = address
        .as_ref()
        .and_then(Value::as_text)
        .ok_or_else(errors::no_address)?;
    match Node::parse(address) {
        // Of `amqp://orders` the name is taken for a host. The refusal tells what was written.
        Node::Entity(entity) if entity.path().is_empty() && !address.is_empty() => {
            Err(errors::entity_missing(address))
        }
        node => Ok(node),
    }
}

fn target_text(attach: &Attach) -> Option<&str> {
    match attach.target.as_deref()? {
        TargetTerminus::Node(target) => target.address.as_ref()?.as_text(),
        TargetTerminus::Coordinator(_) => None,
    }
}
