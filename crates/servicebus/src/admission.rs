//! Admission: which links an entity lets in and keeps, by its settings. (docs/spec/entities.md#3, #14.1)
//!
//! Asked when a link is attached, and again whenever entities change. Management nodes are open in
//! every status: each of their operations is the broker's to refuse.

use amqp::Error;
use broker::{EntityKind, Eviction, ReceiverId, Subqueue};
use endpoint::LinkId;

use crate::client::Client;
use crate::directory::Entity;
use crate::link::{Kind, Link, Standing};
use crate::refusal;

/// Why nobody may send to an entity, if so.
pub(crate) fn objection_to_sender(entity: &Entity, resource: &str) -> Option<Error> {
    if entity.kind == EntityKind::Subscription {
        return Some(refusal::sender_to_subscription(resource));
    }
    let allowed = entity.settings.status.allows_send();
    (!allowed).then(|| refusal::disabled_for_send(resource))
}

/// Why nobody may receive from a subqueue, if so.
pub(crate) fn objection_to_receiver(
    entity: &Entity,
    subqueue: Subqueue,
    resource: &str,
) -> Option<Error> {
    if entity.kind == EntityKind::Topic {
        return Some(refusal::receiver_from_topic(resource));
    }
    let settings = &entity.settings;
    let forwards = match subqueue {
        Subqueue::Main => settings.forward_to.is_some(),
        Subqueue::DeadLetter => settings.forward_dead_lettered_messages_to.is_some(),
        Subqueue::TransferDeadLetter => false,
    };
    if !settings.status.allows_receive() {
        return Some(refusal::disabled(resource));
    }
    forwards.then(refusal::forwarding_source)
}

impl Client {
    /// Entities have changed: links that would not be let in any more are detached, and those that
    /// wait for a session are refused.
    pub(crate) fn check_entities(&mut self) {
        let links = self.links.iter();
        let lost = links.filter_map(|(id, link)| Some((id, self.objection(link)?)));
        for (link, error) in lost.collect::<Vec<_>>() {
            self.detach(link, error);
        }
        let waiting = self.accepting.iter().filter_map(|(link, accepting)| {
            let resource = self.resource(&accepting.path);
            let error = self.objection_to_standing(&accepting.standing, &resource)?;
            Some((*link, error))
        });
        for (link, error) in waiting.collect::<Vec<_>>() {
            if let Some(accepting) = self.stop_waiting(link) {
                self.refuse_waiting(&accepting, error);
            }
        }
    }

    /// The broker has ended a receiver, or has not let it in.
    pub(crate) fn handle_evicted(&mut self, receiver: ReceiverId, reason: Eviction) {
        let link = LinkId(receiver.link);
        if let Some(attached) = self.links.get(link) {
            let error = refusal::eviction(reason, &attached.resource);
            self.detach(link, error);
        } else if let Some(accepting) = self.accepting.remove(&link) {
            let error = refusal::eviction(reason, &self.resource(&accepting.path));
            self.refuse_waiting(&accepting, error);
        }
    }

    fn objection(&self, link: &Link) -> Option<Error> {
        let (standing, resource) = (link.entity.as_ref()?, &link.resource);
        match &link.kind {
            Kind::Receiver(_) => self.objection_to_standing(standing, resource),
            Kind::Sender(_) => match self.entity_of(standing) {
                Some(entity) => objection_to_sender(entity, resource),
                None => Some(refusal::entity_missing(resource)),
            },
            Kind::Request(_) | Kind::Response(_) | Kind::Coordinator(_) => {
                let is_gone = self.entity_of(standing).is_none();
                is_gone.then(|| refusal::entity_missing(resource))
            }
        }
    }

    /// Why a receiver may not stand where it stands.
    fn objection_to_standing(&self, standing: &Standing, resource: &str) -> Option<Error> {
        match self.entity_of(standing) {
            Some(entity) => objection_to_receiver(entity, standing.subqueue, resource),
            None => Some(refusal::entity_missing(resource)),
        }
    }

    /// The entity a link stands on, unless it is gone: another may have its path by now.
    fn entity_of(&self, standing: &Standing) -> Option<&Entity> {
        let entity = self.directory.get(&standing.path)?;
        (entity.id == standing.id).then_some(&**entity)
    }
}
