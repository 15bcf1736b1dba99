//! Entity: a queue or topic that a client makes by attaching to it. (docs/spec/amqp.md#13.2)
//!
//! Only clients that say so when they open the connection make entities, and only with Manage for
//! the address. For all others an entity that is not there is missing.

use access::RequiredRight;
use broker::{
    Answer, EntityDescription, EntityError, EntityKind, EntityPath, Order, QueueSettings, Subqueue,
};
use endpoint::LinkId;

use crate::address::EntityAddress;
use crate::attach::pending_attach::AttachRequest;
use crate::client::Client;
use crate::errors;
use crate::jms::Wanted;
use crate::pending_requests::JmsRequest;

impl Client {
    /// Whether an attach to an address makes the entity there.
    pub(super) fn may_make_entity(&self, address: &EntityAddress) -> bool {
        self.jms.connection.makes_entities
            && address.subqueue == Subqueue::Main
            && broker::check_path(&address.entity).is_ok()
            && self
                .authorize(RequiredRight::Manage, &address.path())
                .is_ok()
    }

    pub(super) fn make_entity(
        &mut self,
        request: AttachRequest,
        address: &EntityAddress,
        kind: EntityKind,
    ) {
        let (path, link) = (address.entity.clone(), request.link);
        let jms = &self.jms.connection;
        let (path, auto_delete_on_idle) = match kind {
            EntityKind::Topic => (EntityPath::Topic(path), jms.topic_auto_delete),
            _ => (EntityPath::Queue(path), jms.queue_auto_delete),
        };
        let description = EntityDescription {
            settings: QueueSettings {
                auto_delete_on_idle,
                ..QueueSettings::default()
            },
            ..EntityDescription::default()
        };
        self.wait_for_jms(request, Wanted::Entity(address.clone()));
        let order = Order::Create {
            path,
            description: Box::new(description),
            rules: None,
        };
        self.order(order, JmsRequest::Make(link));
    }

    /// Handles the entity that was made for a link, or that another client has made meanwhile.
    pub(super) fn handle_made(&mut self, link: LinkId, result: Result<Answer, EntityError>) {
        let Some(pending) = self.jms.pending.remove(&link) else {
            return;
        };
        let Wanted::Entity(address) = pending.wanted else {
            return;
        };
        let request = pending.request;
        let resource = self.resource(&address.path());
        let result = match result {
            Ok(_) | Err(EntityError::Exists(_)) => {
                let again = AttachRequest {
                    attach: request.attach.clone(),
                    node: request.node.clone(),
                    ..request
                };
                self.attach_with_jms(again, &address, false)
            }
            Err(error) => Err(errors::entity(&error, &resource)),
        };
        if let Err(error) = result {
            self.refuse_jms(&request, error);
        }
    }
}
