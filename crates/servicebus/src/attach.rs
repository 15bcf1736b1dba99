//! Attach: letting a client's link in, or saying why not. (docs/spec/amqp.md#3)
//!
//! Addresses and settle modes are echoed exactly as they were sent, whatever we made of them.
//! Rights are checked before existence, so that nobody learns of entities without a key.

use std::collections::VecDeque;
use std::sync::Arc;

use amqp::performative::SenderSettleMode;
use amqp::{Attach, Error, Role, TargetTerminus, Value};
use broker::{ReceiveMode, Subqueue};
use endpoint::{LinkId, SessionId};

use crate::accepting::{self, Accepting, Wish};
use crate::address::{Node, Place};
use crate::admission;
use crate::choice::Choice;
use crate::client::Client;
use crate::coordinator;
use crate::credit::Credit;
use crate::directory::Entity;
use crate::echo;
use crate::link::{Intake, Kind, Link, Standing};
use crate::operation::Operation;
use crate::receiver::Receiver;
use crate::refusal;
use crate::refused::{Origin, Subject};
use crate::request_response::{REQUEST_CREDIT, RequestLink, ResponseLink};
use crate::rights::Need;
use crate::sender::Sender;

/// Largest request to `$cbs`: a token and little more.
const MAX_CBS_REQUEST: u64 = 64 << 10;
/// A request that schedules the largest message has to fit, with all that is around it.
const ENVELOPE: u64 = 64 << 10;
/// Absent, 0 and 2^64-1 each break a client library (rule 7).
const MAX_LIMIT: u64 = i64::MAX as u64;

/// A link request, seen whole.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) link: LinkId,
    session: SessionId,
    pub(crate) attach: Box<Attach>,
    node: Node,
}

impl Client {
    /// Answers a client's attach.
    pub(crate) fn handle_attach(&mut self, link: LinkId, session: SessionId, attach: Box<Attach>) {
        if coordinator::is_wanted(&attach) {
            return self.join_coordinator(link, session, &attach);
        }
        let (name, node) = (attach.name.clone(), wanted_node(&attach));
        let entity = node.as_ref().ok().map(Node::name);
        let result = node.and_then(|node| {
            self.join(Wanted {
                link,
                session,
                attach,
                node,
            })
        });
        if let Err(error) = result {
            let origin = Origin {
                link: Some(&name),
                entity: entity.as_deref(),
                ..Origin::default()
            };
            self.refusals.note(Subject::Attach, origin, &error);
            self.connection.refuse(link, error);
        }
    }

    fn join(&mut self, wanted: Wanted) -> Result<(), Error> {
        match (wanted.node.clone(), wanted.attach.role) {
            (Node::Cbs, _) => {
                self.join_node(
                    wanted,
                    Operation::PutToken.need(),
                    "",
                    None,
                    MAX_CBS_REQUEST,
                );
                Ok(())
            }
            (Node::Management(place), _) => self.join_management(wanted, place),
            (Node::Entity(place), Role::Sender) => self.join_sender(wanted, &place),
            (Node::Entity(place), Role::Receiver) => self.join_receiver(wanted, &place),
        }
    }

    fn join_management(&mut self, wanted: Wanted, place: Option<Place>) -> Result<(), Error> {
        let Some(place) = place else {
            self.authorize(Operation::AttachManagement.need(), "")?;
            let limit = self.settings.max_message_size;
            self.join_node(wanted, Operation::AttachManagement.need(), "", None, limit);
            return Ok(());
        };
        let (standing, entity) = self.enter(Operation::AttachManagement.need(), &place)?;
        let limit = self.max_message_size(&entity);
        let limit = limit.saturating_add(ENVELOPE).min(MAX_LIMIT);
        self.join_node(
            wanted,
            Operation::AttachManagement.need(),
            &place.path(),
            Some(standing),
            limit,
        );
        Ok(())
    }

    /// Half a request-response pair, on a node that may be attached.
    fn join_node(
        &mut self,
        wanted: Wanted,
        need: Need,
        path: &str,
        entity: Option<Standing>,
        max_message_size: u64,
    ) {
        let node = wanted.node.key();
        let asks = wanted.attach.role == Role::Sender;
        let kind = if asks {
            Kind::Request(RequestLink {
                node,
                intake: Intake::new(REQUEST_CREDIT),
            })
        } else {
            let reply_to = target_text(&wanted.attach).map(str::to_owned);
            Kind::Response(ResponseLink::new(node, reply_to))
        };
        let reply = echo::reply(&wanted.attach, max_message_size);
        self.accept(wanted, reply, need, path, entity, kind);
    }

    fn join_sender(&mut self, wanted: Wanted, place: &Place) -> Result<(), Error> {
        let (standing, entity) = self.enter(Operation::Send.need(), place)?;
        if place.subqueue != Subqueue::Main {
            return Err(refusal::no_sends_to_subqueue(&self.resource(&place.path())));
        }
        let resource = self.resource(&place.path());
        if let Some(error) = admission::objection_to_sender(&entity, &resource) {
            return Err(error);
        }
        let max_message_size = self.max_message_size(&entity);
        let intake = Intake::new(self.settings.sender_credit);
        let kind = Kind::Sender(Sender {
            entity: entity.id,
            intake,
            max_message_size,
        });
        let mut reply = echo::reply(&wanted.attach, max_message_size);
        echo::announce_batch_size(reply.properties.get_or_insert_default(), max_message_size);
        self.accept(
            wanted,
            reply,
            Operation::Send.need(),
            &place.path(),
            Some(standing),
            kind,
        );
        Ok(())
    }

    fn join_receiver(&mut self, wanted: Wanted, place: &Place) -> Result<(), Error> {
        let (standing, entity) = self.enter(Operation::Receive.need(), place)?;
        let resource = self.resource(&place.path());
        let objection = admission::objection_to_receiver(&entity, place.subqueue, &resource);
        if let Some(error) = objection {
            return Err(error);
        }
        accepting::check_exclusive(&wanted.attach)?;
        let mut choice = Choice::of(&wanted.attach)?;
        let wish = match (standing.sessions, Wish::of(&wanted.attach)) {
            (false, Some(_)) => return Err(refusal::sessionful_receiver()),
            (true, Some(_)) if !choice.is_plain() => {
                return Err(refusal::choosy_session_receiver());
            }
            (true, None) if !choice.browses => return Err(refusal::sessionless_receiver()),
            (_, wish) => wish,
        };
        let mode = match wanted.attach.snd_settle_mode {
            Some(SenderSettleMode::Settled) => ReceiveMode::ReceiveAndDelete,
            _ => ReceiveMode::PeekLock,
        };
        let default_outcome = wanted
            .attach
            .source
            .as_ref()
            .and_then(|source| source.default_outcome.clone());
        let (id, subqueue) = (standing.id, standing.subqueue);
        let receiver = self.receiver_id(wanted.link);
        let credit = Credit::default();
        let (session, kept) = (wanted.session, VecDeque::new());
        let state = Receiver {
            session,
            entity: id,
            subqueue,
            mode,
            browses: choice.browses,
            lent: None,
            default_outcome,
            credit,
            kept,
        };
        let mut reply = echo::reply(&wanted.attach, self.max_message_size(&entity));
        if let Some(source) = reply.source.as_deref_mut() {
            source.filter = choice.filter.take();
        }
        if let Some(wish) = wish {
            let session = wish.filter(&wanted.attach)?;
            let accepting = Accepting {
                wanted,
                reply,
                wish,
                standing,
                path: place.path(),
                receiver: state,
            };
            self.seek_session(accepting, session);
            return Ok(());
        }
        let kind = Kind::Receiver(state);
        self.command(choice.command(receiver, id, subqueue, mode));
        self.accept(
            wanted,
            reply,
            Operation::Receive.need(),
            &place.path(),
            Some(standing),
            kind,
        );
        Ok(())
    }

    /// Keeps the link, answers its attach, and gives it credit if the client sends on it.
    pub(crate) fn accept(
        &mut self,
        wanted: Wanted,
        reply: Attach,
        need: Need,
        path: &str,
        entity: Option<Standing>,
        kind: Kind,
    ) {
        let credit = match &kind {
            Kind::Sender(_) => Some(self.settings.sender_credit),
            Kind::Request(_) => Some(REQUEST_CREDIT),
            Kind::Receiver(_) | Kind::Response(_) | Kind::Coordinator(_) => None,
        };
        let asks = matches!(kind, Kind::Request(_));
        let Wanted {
            link,
            session,
            attach,
            ..
        } = wanted;
        let (resource, path) = (self.resource(path), path.to_lowercase());
        self.links.insert(
            link,
            Link {
                session,
                name: attach.name,
                path,
                resource,
                need,
                entity,
                kind,
            },
        );
        self.connection.accept(link, reply);
        if asks {
            // The Python SDK's lock renewer repeats them. (docs/spec/amqp.md#7.1)
            self.connection.allow_repeated_ids(link);
        }
        if let Some(credit) = credit {
            self.connection.set_credit(link, credit, false);
        }
    }

    /// Checks that the connection has a right at a place, and that there is such a place.
    fn enter(&self, need: Need, place: &Place) -> Result<(Standing, Arc<Entity>), Error> {
        let path = place.path();
        self.authorize(need, &path)?;
        let entity = self.directory.get(&place.entity).cloned();
        let entity = entity.ok_or_else(|| refusal::entity_missing(&self.resource(&path)))?;
        let standing = Standing {
            id: entity.id,
            path: entity.path.clone(),
            subqueue: place.subqueue,
            // A subqueue is never session-aware. (docs/spec/amqp.md#3.4)
            sessions: entity.settings.requires_session && place.subqueue == Subqueue::Main,
            max_message_size: self.max_message_size(&entity),
        };
        Ok((standing, entity))
    }

    fn authorize(&self, need: Need, path: &str) -> Result<(), Error> {
        let access = self.directory.access();
        let rights = self
            .claims
            .rights(access, &path.to_lowercase(), self.now.wall);
        if rights.meet(need) {
            return Ok(());
        }
        Err(refusal::unauthorized(need, &self.resource(path)))
    }

    fn max_message_size(&self, entity: &Entity) -> u64 {
        let size = entity
            .settings
            .max_message_size
            .unwrap_or(self.settings.max_message_size);
        size.clamp(1, MAX_LIMIT)
    }
}

/// The node that an attach names by its far terminus.
fn wanted_node(attach: &Attach) -> Result<Node, Error> {
    let (address, dynamic) = match attach.role {
        Role::Receiver => {
            let source = attach.source.as_deref().ok_or_else(refusal::no_address)?;
            (&source.address, source.dynamic)
        }
        Role::Sender => match attach.target.as_deref() {
            None | Some(TargetTerminus::Coordinator(_)) => return Err(refusal::no_address()),
            Some(TargetTerminus::Node(target)) => (&target.address, target.dynamic),
        },
    };
    if dynamic {
        return Err(refusal::no_dynamic_nodes());
    }
    let address = address
        .as_ref()
        .and_then(Value::as_text)
        .ok_or_else(refusal::no_address)?;
    Ok(Node::parse(address))
}

fn target_text(attach: &Attach) -> Option<&str> {
    match attach.target.as_deref()? {
        TargetTerminus::Node(target) => target.address.as_ref()?.as_text(),
        TargetTerminus::Coordinator(_) => None,
    }
}
