//! Subscribe: a receiver of a topic gets its subscription. (docs/spec/amqp.md#13.3)
//!
//! The broker finds or makes the subscription and attaches the receiver in one step; then the
//! client's attach is answered. The link is that of an ordinary receiver of the subscription.

use access::Operation;
use amqp::Error;
use broker::{
    ClientAffineProperties, Command, ReceiverId, SubscribeError, SubscribeRequest, Subscribed,
};
use endpoint::LinkId;

use crate::address::EntityAddress;
use crate::attach::attach_reply;
use crate::attach::pending_attach::AttachRequest;
use crate::attach::receiver_source::ReceiverSource;
use crate::client::Client;
use crate::errors;
use crate::jms::subscription::NamedSubscription;
use crate::jms::{SHARED_SUBS, Wanted, has};
use crate::links::link::LinkKind;

impl Client {
    /// Asks the broker for the subscription of a receiver.
    pub(super) fn subscribe(
        &mut self,
        request: AttachRequest,
        address: &EntityAddress,
    ) -> Result<(), Error> {
        let required_right = Operation::Receive.required_right();
        let (topic, entity) = self.resolve_entity(required_right, address)?;
        if !entity.settings.status.allows_receive() {
            return Err(errors::disabled(&self.resource(&address.path())));
        }
        self.check_receiver_scope(request.session, &topic)?;
        let receiver_source = self.plain_receiver_source(&request)?.consuming();
        let jms = &self.jms.connection;
        let named = NamedSubscription::of(&request.attach, &jms.client_id);
        let command = Command::Subscribe {
            receiver: self.receiver_id(request.link),
            request: Box::new(SubscribeRequest {
                topic: topic.id,
                name: named.name,
                properties: ClientAffineProperties {
                    client_id: named.client_id,
                    is_durable: named.is_durable,
                    is_shared: named.is_shared,
                    selector: receiver_source.selector_text().map(str::to_owned),
                },
                auto_delete_on_idle: jms.subscription_auto_delete,
                mode: Self::receiver_state(&request, &topic, &receiver_source).mode,
            }),
        };
        let wanted = Wanted::Subscription {
            receiver_source,
            is_durable: named.is_durable,
        };
        self.wait_for_jms(request, wanted);
        self.command(command);
        Ok(())
    }

    /// Handles the subscription that a receiver has got, or why it has none.
    pub(crate) fn handle_subscribed(
        &mut self,
        receiver: ReceiverId,
        result: Result<Subscribed, SubscribeError>,
    ) {
        let link = LinkId(receiver.link);
        // If the link is detached, the broker has been told already.
        let Some(pending) = self.jms.pending.remove(&link) else {
            return;
        };
        let Wanted::Subscription {
            receiver_source,
            is_durable,
        } = pending.wanted
        else {
            return;
        };
        let request = pending.request;
        match result {
            Ok(subscribed) => {
                self.accept_consumer(request, receiver_source, is_durable, subscribed);
            }
            Err(error) => {
                let resource = self.resource(&request.node.name());
                self.refuse_jms(&request, errors::subscribe(error, &resource));
            }
        }
    }

    fn accept_consumer(
        &mut self,
        request: AttachRequest,
        mut receiver_source: ReceiverSource,
        is_durable: bool,
        subscribed: Subscribed,
    ) {
        let link = request.link;
        let required_right = Operation::Receive.required_right();
        let address = EntityAddress {
            entity: subscribed.path,
            subqueue: broker::Subqueue::Main,
        };
        // It may have been deleted since, and the client may have lost its right.
        let (entity_ref, _) = match self.resolve_entity(required_right, &address) {
            Ok(found) => found,
            Err(error) => {
                self.detach_at_broker(link);
                return self.refuse_jms(&request, error);
            }
        };
        let mut reply = attach_reply::reply(&request.attach, entity_ref.max_message_size);
        if let Some(source) = reply.source.as_deref_mut() {
            source.filter = receiver_source.filter.take();
        }
        if has(&request.attach.desired_capabilities, SHARED_SUBS.as_str()) {
            reply.offered_capabilities.push(SHARED_SUBS);
        }
        let state = Self::receiver_state(&request, &entity_ref, &receiver_source);
        let path = address.path();
        self.accept(
            request,
            reply,
            required_right,
            &path,
            Some(entity_ref),
            LinkKind::Receiver(state),
        );
        if is_durable && let Some((_, name)) = path.rsplit_once('/') {
            self.hold_close(link, name.to_owned());
        }
    }
}
