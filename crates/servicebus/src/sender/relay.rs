//! Relay: a sender without a target address, whose messages name their nodes by `to`.
//! [AMQP 3.2.4] (docs/spec/amqp.md#3.9)
//!
//! Each message is for an entity or a dynamic node, and the right to send there is checked for each
//! of them. The last address is remembered, since most senders write to one node after the other.

use access::Operation;
use amqp::Error;
use bytes::Bytes;
use endpoint::SessionId;
use store::{EntityId, NamespaceId};

use crate::address::{EntityAddress, Node};
use crate::attach::admission;
use crate::client::Client;
use crate::errors;
use crate::message::incoming;

/// Most bytes of a `to`: a path, with the name of a host and a scheme before it.
const MAX_TO: usize = 1_024;

/// What a sender without a target remembers.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// The last `to`, and what it names.
    last: Option<(String, EntityAddress)>,
}

impl Relay {
    /// The entity that `to` names.
    fn parse(&self, to: &str) -> Result<EntityAddress, Error> {
        if let Some((last, address)) = &self.last
            && last == to
        {
            return Ok(address.clone());
        }
        if to.len() > MAX_TO {
            return Err(errors::relay_address_too_long(MAX_TO));
        }
        match Node::parse(to) {
            Node::Entity(address) => Ok(address),
            _ => Err(errors::no_relay_to_node(to)),
        }
    }
}

/// Where one message goes.
pub(crate) struct Destination {
    pub(crate) entity: EntityId,
    pub(crate) max_message_size: u64,
    /// What it counts for in a transaction.
    pub(crate) scope: Option<EntityId>,
    /// The namespace that a dynamic node has to be in: its address alone does not tell.
    pub(crate) only_in: Option<NamespaceId>,
    /// The path that the message names, on a link without a target.
    pub(crate) relayed_to: Option<Box<str>>,
}

impl Client {
    /// Where a message of a sender without a target goes, if the client may send there.
    pub(crate) fn relayed(
        &self,
        relay: &mut Relay,
        session: SessionId,
        payload: &Bytes,
    ) -> Result<Destination, Error> {
        let to = incoming::to(payload)?.ok_or_else(errors::no_to)?;
        let address = relay.parse(&to)?;
        let destination = self.destination(session, &address)?;
        // What the client may not send to is not kept.
        relay.last = Some((to, address));
        Ok(destination)
    }

    fn destination(
        &self,
        session: SessionId,
        address: &EntityAddress,
    ) -> Result<Destination, Error> {
        if let Some(node) = broker::node_at(&address.entity) {
            let right = self.right_at_node(Operation::Send, node);
            self.authorize(right, &address.path())?;
            self.check_send_address(address)?;
            return Ok(Destination {
                entity: node,
                max_message_size: self.settings.max_message_size,
                scope: self.scope_at(session, node),
                only_in: Some(self.directory.namespace()),
                relayed_to: Some(address.path().into()),
            });
        }
        let right = Operation::Send.required_right();
        let (entity_ref, entity) = self.resolve_entity(right, address)?;
        self.check_send_address(address)?;
        match admission::sender_error(&entity, &self.resource(&address.path())) {
            Some(error) => Err(error),
            None => Ok(Destination {
                entity: entity.id,
                max_message_size: entity_ref.max_message_size,
                scope: self.scope_at(session, entity_ref.top_level),
                only_in: None,
                relayed_to: Some(address.path().into()),
            }),
        }
    }
}
