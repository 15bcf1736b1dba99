//! Scope: the entity that an operation of a transaction counts for. (docs/spec/amqp.md#8.3)
//!
//! In the cloud a transaction is about one top-level entity, unless its operations come over an
//! AMQP session that began with a coordinator. Such a session has a *via* entity, that of its first
//! entity link; its operations count for that, and its receivers must be on that. The broker
//! compares the scopes of one transaction.
//!
//! Invariant: a session keeps its kind and its via entity as long as it lives.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Entity;
use amqp::Error;
use broker::EntityKind;
use endpoint::{LinkId, SessionId};
use store::EntityId;

use crate::client::Client;
use crate::errors;
use crate::links::link::{EntityRef, LinkKind};
use crate::settings::CrossEntity;

/// Ends the path of a topic in that of its subscriptions.
const SUBSCRIPTIONS: &str = "/subscriptions/";

/// How a session began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Beginning {
    /// With a link to a node.
    Node,
    /// With a coordinator, and the entity of the first entity link since.
    Coordinator(Option<EntityId>),
}

/// How the sessions of a connection began.
#[derive(Debug, Default)]
pub(crate) struct SessionScopes(BTreeMap<SessionId, Beginning>);

impl SessionScopes {
    /// A coordinator is attached.
    pub(crate) fn coordinator_attached(&mut self, session: SessionId) {
        let beginning = Beginning::Coordinator(None);
        self.0.entry(session).or_insert(beginning);
    }

    /// Another link is attached, or waits for its session; `entity` is the top-level entity that it
    /// sends to or receives from.
    pub(crate) fn link_attached(&mut self, session: SessionId, entity: Option<EntityId>) {
        let beginning = self.0.entry(session).or_insert(Beginning::Node);
        if let Beginning::Coordinator(via) = beginning {
            *via = via.or(entity);
        }
    }

    /// A session is over.
    pub(crate) fn ended(&mut self, session: SessionId) {
        self.0.remove(&session);
    }

    fn via(&self, session: SessionId) -> Option<EntityId> {
        match self.0.get(&session)? {
            Beginning::Coordinator(via) => *via,
            Beginning::Node => None,
        }
    }
}

impl Client {
    /// Whether a transaction may touch the entities that it may touch in the cloud only.
    fn is_as_cloud(&self) -> bool {
        match self.settings.cross_entity {
            CrossEntity::Auto => self.claims.has_tokens(),
            CrossEntity::AsCloud => true,
            CrossEntity::Any => false,
        }
    }

    /// The queue or topic of an entity: a subscription's is its topic.
    pub(crate) fn top_level(&self, kind: EntityKind, id: EntityId, path: &str) -> EntityId {
        self.topic_of(kind, path).map_or(id, |topic| topic.id)
    }

    /// The topic of a subscription.
    pub(crate) fn topic_of(&self, kind: EntityKind, path: &str) -> Option<&Arc<Entity>> {
        if kind != EntityKind::Subscription {
            return None;
        }
        let path = path.to_lowercase();
        let (topic, _) = path.split_once(SUBSCRIPTIONS)?;
        self.directory.get(topic)
    }

    /// Refuses a receiver that is not on the via entity of its session.
    pub(crate) fn check_receiver_scope(
        &self,
        session: SessionId,
        entity: &EntityRef,
    ) -> Result<(), Error> {
        let via = self.session_scopes.via(session);
        let is_outside = via.is_some_and(|via| via != entity.top_level);
        if is_outside && self.is_as_cloud() {
            return Err(errors::other_entity());
        }
        Ok(())
    }

    /// Notes the first links of sessions.
    pub(crate) fn note_session_scope(&mut self, session: SessionId, link: LinkId) {
        let Some(link) = self.links.get(link) else {
            return;
        };
        let entity = match &link.kind {
            LinkKind::Coordinator(_) => return self.session_scopes.coordinator_attached(session),
            LinkKind::Sender(_) | LinkKind::Receiver(_) => link.entity.as_ref(),
            // A pair to a node does not say what a transaction is about.
            LinkKind::Request(_) | LinkKind::Response(_) => None,
        };
        let entity = entity.map(|entity| entity.top_level);
        self.session_scopes.link_attached(session, entity);
    }

    /// What an operation over a link counts for; `None` if its transaction may touch any entity.
    pub(crate) fn scope_of(&self, link: LinkId) -> Option<EntityId> {
        if !self.is_as_cloud() {
            return None;
        }
        let link = self.links.get(link)?;
        let entity = link.entity.as_ref().map(|entity| entity.top_level);
        self.session_scopes.via(link.session).or(entity)
    }

    /// The same for a message to a top-level entity over a sender without a target.
    pub(crate) fn scope_at(&self, session: SessionId, entity: EntityId) -> Option<EntityId> {
        let via = self.session_scopes.via(session);
        self.is_as_cloud().then(|| via.unwrap_or(entity))
    }
}
