//! Publisher: a link on which the client sends to a queue, to an exchange, or to where each message
//! says. (docs/spec/rabbitmq.md#9)
//!
//! The answer is `accepted` when each queue that the message was routed to has stored it,
//! `released` when there is none, and `rejected` when one refuses it.

use amqp::error::condition;
use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Error};
use broker::{
    Command, DEFAULT_ROUTER, EntityKind, Publication, PublishError, RequestId, Routed, SendError,
    Subqueue,
};
use bytes::Bytes;
use dialect::{CreditWindow, LinkContext, Subject, owner_token};
use endpoint::{Event, LinkId, SessionId};
use store::EntityId;

use crate::address::{self, Address, DEFAULT_EXCHANGE};
use crate::dynamic_queue;
use crate::errors;
use crate::links::{Links, Pending, register};
use crate::message::incoming::{self, Parsed};
use crate::rights::Permission;

/// Credit of a publisher; it is topped up at half.
pub(crate) const CREDIT: u32 = 170;
/// The cost of every message beside its bytes while it waits for its answer.
const OVERHEAD: usize = 256;

/// A publisher's own state.
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) target: Target,
    settle_mode: Option<SenderSettleMode>,
    credit_window: CreditWindow,
}

/// Where the messages of a publisher go.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// To a queue, or to a topic as to an exchange.
    Entity(EntityTarget),
    Exchange {
        name: String,
        key: String,
    },
    /// To where each message says.
    Anonymous,
}

/// A queue or topic.
#[derive(Clone, Debug)]
pub(crate) struct EntityTarget {
    pub(crate) id: EntityId,
    pub(crate) path: String,
    pub(crate) max_message_size: u64,
    /// The exchange and the routing key that its consumers are told: of a topic.
    topic: Option<(String, String)>,
}

/// A delivery that the broker has not answered.
#[derive(Debug)]
pub(crate) struct PendingPublish {
    pub(crate) link: LinkId,
    session: SessionId,
    delivery_id: u32,
    settled: bool,
    tag: Bytes,
    /// The queue, for the text of a refusal.
    queue: Option<String>,
}

/// How a publication ends.
enum Outcome {
    State(DeliveryState),
    /// The link is detached too.
    Detach(DeliveryState, Error),
}

impl Publisher {
    pub(crate) fn new(target: Target, settle_mode: Option<SenderSettleMode>) -> Self {
        Self {
            target,
            settle_mode,
            credit_window: CreditWindow::new(CREDIT),
        }
    }
}

impl Target {
    pub(crate) fn queue(id: EntityId, path: String, max_message_size: u64) -> Self {
        Self::Entity(EntityTarget {
            id,
            path,
            max_message_size,
            topic: None,
        })
    }

    /// Whether it is a dynamic queue.
    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self, Self::Entity(target) if target.id.is_volatile())
    }

    /// As the operator's log names it.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Entity(target) => Some(&target.path),
            Self::Exchange { name, .. } => Some(name),
            Self::Anonymous => None,
        }
    }
}

/// The entity whose path a message's `to` is, as it is where no dialect is RabbitMQ's.
/// (docs/spec/rabbitmq.md#1)
fn entity_of(cx: &LinkContext<'_>, to: &str) -> Option<Address> {
    let entity = cx.directory.get(to.strip_prefix('/').unwrap_or(to))?;
    let name = entity.path.clone();
    Some(match entity.kind {
        EntityKind::Topic => Address::Exchange {
            name,
            key: String::new(),
        },
        EntityKind::Queue | EntityKind::Subscription => Address::Queue(name),
    })
}

impl Links {
    /// The queue that messages for a name go to.
    pub(crate) fn queue_for_send(&self, cx: &LinkContext<'_>, name: &str) -> Result<Target, Error> {
        if let Some((_, node)) = dynamic_queue::node_of(name) {
            return Ok(self.node_target(node, name.to_owned()));
        }
        let (path, subqueue) = address::entity_of(name);
        let entity = cx.directory.get(path).filter(|it| it.path == path);
        let entity = entity.filter(|it| it.kind != EntityKind::Topic);
        let entity = entity.ok_or_else(|| errors::not_found(self.virtual_host.queue(name)))?;
        if subqueue != Subqueue::Main || entity.kind == EntityKind::Subscription {
            return Err(errors::no_sends(name));
        }
        let limit = entity.settings.max_message_size;
        let limit = limit.unwrap_or(self.settings.max_message_size);
        Ok(Target::queue(entity.id, entity.path.clone(), limit))
    }

    /// The topic that has the name of an exchange, if there is one.
    pub(crate) fn topic_for_send(
        &self,
        cx: &LinkContext<'_>,
        name: &str,
        key: &str,
    ) -> Result<Option<Target>, Error> {
        let topic = cx.directory.get(name).filter(|it| it.path == name);
        let Some(topic) = topic.filter(|it| it.kind == EntityKind::Topic) else {
            return Ok(None);
        };
        let limit = topic.settings.max_message_size;
        Ok(Some(Target::Entity(EntityTarget {
            id: topic.id,
            path: topic.path.clone(),
            max_message_size: limit.unwrap_or(self.settings.max_message_size),
            topic: Some((name.to_owned(), key.to_owned())),
        })))
    }

    /// Hands a message to the broker, or refuses it.
    pub(crate) fn publish(&mut self, cx: &mut LinkContext<'_>, event: Event) {
        let Event::Delivery {
            link,
            session,
            delivery_id,
            tag,
            settled,
            payload,
            state,
            ..
        } = event
        else {
            return;
        };
        if matches!(
            state,
            Some(DeliveryState::Declared { .. } | DeliveryState::Transactional { .. })
        ) {
            let error = errors::not_implemented("a transactional state");
            return self.end_session_of(cx, link, error);
        }
        let Some(publisher) = self.publisher(link) else {
            return;
        };
        if !publisher.credit_window.arrived() {
            return self.detach(cx, link, errors::credit_overrun());
        }
        let is_contrary = match publisher.settle_mode {
            Some(SenderSettleMode::Settled) => !settled,
            Some(SenderSettleMode::Unsettled) => settled,
            Some(SenderSettleMode::Mixed) | None => false,
        };
        if is_contrary {
            return self.detach(cx, link, errors::contrary_settlement(settled));
        }
        let target = publisher.target.clone();
        let pending = PendingPublish {
            link,
            session,
            delivery_id,
            settled,
            tag,
            queue: None,
        };
        let user = self.is_named.then_some(self.user.as_str());
        let parsed = match incoming::parse(&payload, user, &mut self.ids) {
            Ok(parsed) => parsed,
            Err(error) => return self.detach(cx, link, error),
        };
        let resolved = self.resolve(cx, target, &parsed);
        let resolved = resolved.and_then(|target| self.check_further_keys(cx, target, &parsed));
        match resolved {
            Ok(target) => self.hand_over(cx, target, parsed, pending),
            Err(None) => self.answer(cx, &pending, Outcome::State(DeliveryState::Released)),
            Err(Some(error)) if error.condition == condition::UNAUTHORIZED_ACCESS => {
                self.end_session_of(cx, link, error);
            }
            Err(Some(error)) if settled => {
                self.detach(cx, link, errors::of_delivery(error, pending.tag));
            }
            Err(Some(error)) => {
                let state = DeliveryState::Rejected(Some(error));
                self.answer(cx, &pending, Outcome::State(state));
            }
        }
    }

    /// Where a message goes that says so itself; `Err(None)` if no queue takes it.
    fn resolve(
        &self,
        cx: &LinkContext<'_>,
        target: Target,
        parsed: &Parsed,
    ) -> Result<Target, Option<Error>> {
        if !matches!(target, Target::Anonymous) {
            return Ok(target);
        }
        let to = parsed
            .to
            .as_deref()
            .ok_or_else(errors::no_message_address)?;
        let address = match Address::of_target(to) {
            Ok(address) => address,
            Err(error) => match entity_of(cx, to) {
                Some(address) => address,
                None => return Err(Some(errors::message_address(&error))),
            },
        };
        match address {
            Address::Queue(name) => {
                if !Permission::Write.is_given(cx, &name) {
                    return Err(Some(self.no_write(DEFAULT_EXCHANGE)));
                }
                self.queue_for_send(cx, &name).map_err(|error| {
                    let is_missing = error.condition == condition::NOT_FOUND;
                    (!is_missing).then_some(error)
                })
            }
            Address::Exchange { name, key } => {
                let topic = self.topic_for_send(cx, &name, &key)?;
                let path = topic.as_ref().map_or("", |_| &name);
                if !Permission::Write.is_given(cx, path) {
                    return Err(Some(self.no_write(&name)));
                }
                Ok(topic.unwrap_or(Target::Exchange { name, key }))
            }
        }
    }

    /// A message to a queue goes to the queues of its further keys too, as the default exchange
    /// takes them. The same rights hold for each.
    fn check_further_keys(
        &self,
        cx: &LinkContext<'_>,
        target: Target,
        parsed: &Parsed,
    ) -> Result<Target, Option<Error>> {
        let Target::Entity(entity) = &target else {
            return Ok(target);
        };
        if entity.topic.is_some() || entity.id.is_volatile() || parsed.further_keys.is_empty() {
            return Ok(target);
        }
        let may_write = |key: &String| Permission::Write.is_given(cx, key);
        if !parsed.further_keys.iter().all(may_write) {
            return Err(Some(self.no_write(DEFAULT_EXCHANGE)));
        }
        Ok(Target::Exchange {
            name: DEFAULT_ROUTER.to_owned(),
            key: entity.path.clone(),
        })
    }

    fn no_write(&self, exchange: &str) -> Error {
        let permission = Permission::Write.name();
        errors::no_access(permission, self.virtual_host.exchange(exchange), &self.user)
    }

    fn hand_over(
        &mut self,
        cx: &mut LinkContext<'_>,
        target: Target,
        parsed: Parsed,
        mut pending: PendingPublish,
    ) {
        match target {
            Target::Entity(target) => {
                let limit = target.max_message_size;
                if parsed.message.payload.len() as u64 > limit {
                    let state = DeliveryState::Rejected(Some(errors::too_large(limit)));
                    return self.answer(cx, &pending, Outcome::State(state));
                }
                let mut message = match &target.topic {
                    Some((exchange, key)) => parsed.routed_by(exchange, key),
                    None => parsed.unrouted(),
                };
                // The name of a dynamic queue does not tell its namespace.
                let is_dynamic = target.id.is_volatile();
                message.only_in = is_dynamic.then(|| cx.directory.namespace());
                pending.queue = Some(target.path);
                let cost = message.size() + OVERHEAD;
                let request = register(&mut self.pending, cx, Pending::Publish(pending), cost);
                cx.commands.push(Command::Send {
                    request,
                    entity: target.id,
                    messages: vec![message],
                });
            }
            Target::Exchange { name, key } => {
                let mut keys = vec![key.clone()];
                keys.extend(parsed.further_keys.iter().cloned());
                let publication = Publication {
                    namespace: cx.directory.namespace(),
                    message: parsed.routed_by(&name, &key),
                    router: name,
                    keys,
                };
                let cost = publication.size() + OVERHEAD;
                let request = register(&mut self.pending, cx, Pending::Publish(pending), cost);
                cx.commands.push(Command::Publish {
                    request,
                    publication: Box::new(publication),
                });
            }
            Target::Anonymous => unreachable!("each message has been resolved"),
        }
    }

    /// The broker has answered a message for a queue or topic.
    pub(crate) fn handle_sent(
        &mut self,
        cx: &mut LinkContext<'_>,
        request: RequestId,
        result: &Result<(), SendError>,
    ) {
        let Some(pending) = self.take_publish(request) else {
            return;
        };
        let queue = pending.queue.as_deref().unwrap_or_default();
        let state = match result {
            Ok(()) => DeliveryState::Accepted,
            Err(SendError::NotFound) => DeliveryState::Released,
            Err(error) => DeliveryState::Rejected(Some(errors::send(error, queue))),
        };
        self.answer(cx, &pending, Outcome::State(state));
    }

    /// The broker has answered a message for an exchange.
    pub(crate) fn handle_published(
        &mut self,
        cx: &mut LinkContext<'_>,
        request: RequestId,
        result: &Result<Routed, PublishError>,
    ) {
        let Some(pending) = self.take_publish(request) else {
            return;
        };
        let is_fixed = self
            .publisher(pending.link)
            .is_some_and(|publisher| !matches!(publisher.target, Target::Anonymous));
        let host = &self.virtual_host;
        let outcome = match result {
            Ok(Routed::Stored { .. }) => Outcome::State(DeliveryState::Accepted),
            Ok(Routed::Unmatched) => Outcome::State(DeliveryState::Released),
            Err(error @ PublishError::NotFound(_)) if is_fixed => {
                Outcome::Detach(DeliveryState::Released, errors::publish(error, host))
            }
            // Its sender sees no rejection.
            Err(error @ PublishError::NotFound(_)) if pending.settled => {
                let error = errors::of_delivery(errors::publish(error, host), pending.tag.clone());
                Outcome::Detach(DeliveryState::Released, error)
            }
            Err(error) => {
                Outcome::State(DeliveryState::Rejected(Some(errors::publish(error, host))))
            }
        };
        self.answer(cx, &pending, outcome);
    }

    fn take_publish(&mut self, request: RequestId) -> Option<PendingPublish> {
        match self.pending.remove(owner_token(request)?)? {
            Pending::Publish(pending) => Some(pending),
            _ => None,
        }
    }

    /// Settles a delivery, unless it came settled, and gives credit for more.
    fn answer(&mut self, cx: &mut LinkContext<'_>, pending: &PendingPublish, outcome: Outcome) {
        let (state, error) = match outcome {
            Outcome::State(state) => (state, None),
            Outcome::Detach(state, error) => (state, Some(error)),
        };
        if let DeliveryState::Rejected(Some(error)) = &state
            && let Some(known) = self.links.get(&pending.link)
        {
            let entity = pending.queue.as_deref().or(known.entity());
            cx.note(Subject::Message, &known.name, entity, error);
        }
        if !pending.settled {
            let (session, id) = (pending.session, pending.delivery_id);
            cx.connection.dispose_received(session, id, state, true);
        }
        if let Some(error) = error {
            return self.detach(cx, pending.link, error);
        }
        let Some(publisher) = self.publisher(pending.link) else {
            return;
        };
        publisher.credit_window.answered();
        let left = cx.connection.credit_left(pending.link);
        if let Some(credit) = publisher.credit_window.top_up(left) {
            cx.connection.set_credit(pending.link, credit, false);
        }
    }
}
