//! Admission: which links an entity accepts and keeps, by its settings.
//! (docs/spec/entities.md#3, #14.1)
//!
//! The check runs when a link is attached and again when entities change. Management nodes accept
//! links in every status; the broker refuses their operations one by one.

use access::Entity;
use amqp::Error;
use amqp::error::condition;
use broker::{EntityKind, Eviction, ReceiverId, Subqueue};
use endpoint::LinkId;

use crate::client::Client;
use crate::errors;
use crate::links::link::{EntityRef, Link, LinkKind};

/// The error for a sender link to an entity that accepts none.
pub(crate) fn sender_error(entity: &Entity, resource: &str) -> Option<Error> {
    if entity.kind == EntityKind::Subscription {
        return Some(errors::sender_to_subscription(resource));
    }
    let allowed = entity.settings.status.allows_send();
    (!allowed).then(|| errors::disabled_for_send(resource))
}

/// The error for a receiver link to a subqueue that accepts none.
pub(crate) fn receiver_error(entity: &Entity, subqueue: Subqueue, resource: &str) -> Option<Error> {
    // Messages that are sent via a topic may end there. (docs/spec/amqp.md#8.2)
    if entity.kind == EntityKind::Topic && subqueue != Subqueue::TransferDeadLetter {
        return Some(errors::receiver_from_topic(resource));
    }
    let settings = &entity.settings;
    let forwards = match subqueue {
        Subqueue::Main => settings.forward_to.is_some(),
        Subqueue::DeadLetter => settings.forward_dead_lettered_messages_to.is_some(),
        Subqueue::TransferDeadLetter => false,
    };
    if !settings.status.allows_receive() {
        return Some(errors::disabled(resource));
    }
    forwards.then(errors::forwarding_source)
}

/// The error that an open link is detached with, from that which its attach would be refused with.
fn detach_error(id: LinkId, link: &Link, error: Error) -> Error {
    if error.condition != condition::ENTITY_DISABLED {
        return error;
    }
    let what = match link.kind {
        LinkKind::Sender(_) => "publisher",
        _ => "consumer",
    };
    let code = format!("{what}(link{})", id.0);
    let details = error.description.unwrap_or_default();
    errors::force_detached(&link.name, &code, &details)
}

impl Client {
    /// Applies changed entities: detaches links that their entity would refuse now, and refuses
    /// pending attaches.
    pub(crate) fn check_entities(&mut self) {
        let links = self.links.iter();
        let lost = links.filter_map(|(id, link)| {
            let error = self.link_error(link)?;
            Some((id, detach_error(id, link, error)))
        });
        for (link, error) in lost.collect::<Vec<_>>() {
            self.detach(link, error);
        }
        let waiting = self
            .pending_attaches
            .iter()
            .filter_map(|(link, pending_attach)| {
                let resource = self.resource(&pending_attach.path);
                let error = self.receiver_link_error(&pending_attach.entity_ref, &resource)?;
                Some((*link, error))
            });
        for (link, error) in waiting.collect::<Vec<_>>() {
            if let Some(pending_attach) = self.cancel_pending_attach(link) {
                self.refuse_pending_attach(&pending_attach, error);
            }
        }
    }

    /// Handles the end of a receiver by the broker, or its refusal.
    pub(crate) fn handle_evicted(&mut self, receiver: ReceiverId, reason: Eviction) {
        let link = LinkId(receiver.link);
        if let Some(attached) = self.links.get(link) {
            let error = errors::eviction(reason, &attached.resource);
            let error = detach_error(link, attached, error);
            self.detach(link, error);
        } else if let Some(pending_attach) = self.pending_attaches.remove(&link) {
            let error = errors::eviction(reason, &self.resource(&pending_attach.path));
            self.refuse_pending_attach(&pending_attach, error);
        }
    }

    fn link_error(&self, link: &Link) -> Option<Error> {
        let (entity_ref, resource) = (link.entity.as_ref()?, &link.resource);
        // The broker tells when a dynamic node goes; no directory has it.
        if entity_ref.id.is_volatile() {
            return None;
        }
        match &link.kind {
            LinkKind::Receiver(_) => self.receiver_link_error(entity_ref, resource),
            LinkKind::Sender(_) => match self.entity_of(entity_ref) {
                Some(entity) => sender_error(entity, resource),
                None => Some(self.gone(entity_ref, resource)),
            },
            LinkKind::Request(_) | LinkKind::Response(_) | LinkKind::Coordinator(_) => {
                let is_gone = self.entity_of(entity_ref).is_none();
                is_gone.then(|| self.gone(entity_ref, resource))
            }
        }
    }

    /// The error for a receiver whose entity does not accept it any more.
    fn receiver_link_error(&self, entity_ref: &EntityRef, resource: &str) -> Option<Error> {
        match self.entity_of(entity_ref) {
            Some(entity) => receiver_error(entity, entity_ref.subqueue, resource),
            None => Some(self.gone(entity_ref, resource)),
        }
    }

    /// The error for a link whose entity is not there any more.
    fn gone(&self, entity_ref: &EntityRef, resource: &str) -> Error {
        // Ids rise, so those between the first one and the present one are replaced ones too.
        let first = self
            .directory
            .get(&entity_ref.path)
            .and_then(|entity| entity.replaces);
        if first.is_some_and(|first| first <= entity_ref.id) {
            errors::eviction(Eviction::Restored, resource)
        } else {
            errors::entity_missing(resource)
        }
    }

    /// The entity of a link, unless it was deleted: another entity may have its path by now.
    fn entity_of(&self, entity_ref: &EntityRef) -> Option<&Entity> {
        let entity = self.directory.get(&entity_ref.path)?;
        (entity.id == entity_ref.id).then_some(&**entity)
    }
}
