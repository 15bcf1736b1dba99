//! Unsubscribe: a client closes the link of a durable subscription, and so deletes it.
//! (docs/spec/amqp.md#13.3)
//!
//! Without a consumer the client first attaches a link of the subscription's name without a source,
//! and is told the source. The close is answered when the broker has deleted the subscription, or
//! with the reason why it has not.

use access::Operation;
use amqp::{Attach, Error, Source, Symbol, Value};
use broker::{Answer, Command, EntityError, Order, client_affine_name};
use endpoint::LinkId;

use crate::attach::attach_reply;
use crate::attach::pending_attach::AttachRequest;
use crate::client::Client;
use crate::errors;
use crate::jms::Wanted;
use crate::jms::subscription::{capabilities, to_unsubscribe};
use crate::pending_requests::JmsRequest;
use crate::pending_requests::PendingRequest;

/// The terminus of a durable subscription keeps its deliveries unsettled. [AMQP 3.5.5]
const UNSETTLED_STATE: u32 = 2;
const NEVER: Symbol = Symbol::new("never");
/// Between a topic's path and a subscription's name.
const SUBSCRIPTIONS: &str = "/Subscriptions/";

impl Client {
    /// Looks for the durable subscription of a link without a source.
    pub(crate) fn attach_to_unsubscribe(&mut self, request: AttachRequest) -> Result<(), Error> {
        if !self.settings.jms {
            return Err(errors::no_address());
        }
        let (name, client_id) = to_unsubscribe(&request.attach, &self.jms.connection.client_id);
        // There is no subscription of a name that none can have.
        let missing = |_| errors::entity_missing(&self.resource(name));
        let name = client_affine_name(name, &client_id, true).map_err(missing)?;
        let order = Order::FindDurable { name: name.clone() };
        let link = request.link;
        self.wait_for_jms(request, Wanted::Unsubscribe(name));
        self.order(order, JmsRequest::Find(link));
        Ok(())
    }

    /// Handles the subscription that was looked for.
    pub(super) fn handle_found(&mut self, link: LinkId, result: Result<Answer, EntityError>) {
        let Some(pending) = self.jms.pending.remove(&link) else {
            return;
        };
        let Wanted::Unsubscribe(name) = pending.wanted else {
            return;
        };
        let request = pending.request;
        let found = match result {
            Ok(Answer::Entity(info)) => self.durable_source(&info),
            _ => Err(errors::entity_missing(&self.resource(&name))),
        };
        match found {
            Ok(source) => {
                self.accept_unsubscribing(&request.attach, link, source);
                self.hold_close(link, name);
            }
            Err(error) => self.refuse_jms(&request, error),
        }
    }

    /// The source of a durable subscription, if the client may receive from it.
    fn durable_source(&self, info: &broker::EntityInfo) -> Result<Source, Error> {
        let path = &info.queue.path;
        self.authorize(Operation::Receive.required_right(), path)?;
        let properties = info.client_affine.as_ref();
        let topic = path.rsplit_once(SUBSCRIPTIONS).map(|(topic, _)| topic);
        Ok(Source {
            address: topic.map(Value::from),
            durable: UNSETTLED_STATE,
            expiry_policy: Some(NEVER),
            capabilities: properties.map_or_else(Vec::new, |it| {
                capabilities(it.is_shared, it.client_id.is_empty())
            }),
            ..Source::default()
        })
    }

    fn accept_unsubscribing(&mut self, attach: &Attach, link: LinkId, source: Source) {
        let reply = Attach {
            source: Some(Box::new(source)),
            ..attach_reply::reply(attach, 0)
        };
        self.connection.accept(link, reply);
    }

    /// The close of a link unsubscribes from now on.
    pub(super) fn hold_close(&mut self, link: LinkId, name: String) {
        self.connection.hold_close(link);
        self.jms.durable.insert(link, name);
    }

    pub(super) fn unsubscribe(&mut self, link: LinkId, name: String) {
        self.order(Order::Unsubscribe { name }, JmsRequest::Unsubscribe(link));
    }

    /// Handles the end of a subscription, or why it has not ended.
    pub(super) fn handle_unsubscribed(
        &mut self,
        link: LinkId,
        result: Result<Answer, EntityError>,
    ) {
        let error = match result {
            // Another connection has unsubscribed meanwhile: it is gone, as the client wants it.
            Ok(_) | Err(EntityError::NotFound) => None,
            Err(error) => Some(self.tracked(errors::unsubscribe(&error))),
        };
        self.connection.answer_close(link, error);
    }

    pub(super) fn order(&mut self, order: Order, request: JmsRequest) {
        let request = self.register_request(PendingRequest::Jms(request), 0);
        self.command(Command::Administer {
            request,
            namespace: self.directory.namespace(),
            order: Box::new(order),
        });
    }
}
