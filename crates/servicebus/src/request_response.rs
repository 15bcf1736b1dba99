//! Request-response: pairs of links to `$cbs` and to management nodes.
//! (docs/spec/amqp.md#2.1, #7.1)
//!
//! A request finds the response link of its node by its reply-to, in the several ways that client
//! libraries use it. Answers are sent settled and wait for credit, which some clients grant only
//! after the request.

pub(crate) mod cbs;
pub(crate) mod response;

use amqp::message::{BodyKind, Properties, decode_map_section, scan_in_any_order};
use amqp::{DecodeError, DeliveryState, Error, Map, Value};
use broker::TransactionId;
use bytes::Bytes;
use dialect::{Origin, Subject};
use endpoint::{LinkId, Outgoing, SessionId};

use crate::client::Client;
use crate::client::events::IncomingDelivery;
use crate::errors;
use crate::links::link::{Link, LinkKind};
use crate::links::node_links::{RequestLink, ResponseLink, Waiting};
use crate::transactions;
use amqp::items;

/// Credit of a request link. (docs/spec/amqp.md#2.1)
pub(crate) const REQUEST_CREDIT: u32 = 100;
/// Most bytes of answers that wait for credit on one connection.
const MAX_WAITING_BYTES: usize = 16 << 20;
/// The same limit before the client has authenticated.
const MAX_WAITING_BYTES_UNAUTHENTICATED: usize = 1 << 20;

/// A parsed request. It may hold a token, so it has no `Debug`.
pub(crate) struct Request {
    pub(crate) request_link: LinkId,
    pub(crate) response_link: LinkId,
    /// The message id, to be given back as it came (rule 11).
    pub(crate) correlation: Option<Value>,
    /// Application properties.
    pub(crate) properties: Map,
    /// The value of an amqp-value body, still encoded.
    pub(crate) body: Option<Bytes>,
    /// The transaction that it is part of.
    pub(crate) transaction: Option<TransactionId>,
    /// Bytes of the whole request.
    pub(crate) size: usize,
}

impl Request {
    /// An application property that is text in one of the types that clients use for it.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        text(amqp::value::lookup(&self.properties, key)?)
    }
}

/// A string, a symbol, or a binary that holds text. (docs/spec/amqp.md#2.2)
pub(crate) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Binary(bytes) => std::str::from_utf8(bytes).ok(),
        other => other.as_text(),
    }
}

/// The parts of a request, before its response link is known.
struct Parts {
    message_id: Option<Value>,
    reply_to: Option<Value>,
    properties: Map,
    body: Option<Bytes>,
}

impl Parts {
    fn read(payload: &Bytes) -> Result<Self, DecodeError> {
        let (payload, sections) = scan_in_any_order(payload)?;
        let properties = match sections.properties.is_empty() {
            true => Properties::default(),
            false => Properties::decode(&payload.slice(sections.properties.clone()))?,
        };
        let application = match sections.application_properties.is_empty() {
            true => Map::new(),
            false => decode_map_section(&payload.slice(sections.application_properties.clone()))?,
        };
        let body = match sections.body_kind {
            BodyKind::Value => {
                let section = payload.slice(sections.body.clone());
                Some(section.slice_ref(items::undescribed(&section)?))
            }
            _ => None,
        };
        Ok(Self {
            message_id: properties.message_id,
            reply_to: properties.reply_to,
            properties: application,
            body,
        })
    }
}

impl Client {
    /// Reads a request, finds its response link, and passes it to its node.
    pub(crate) fn handle_request(&mut self, delivery: &IncomingDelivery) {
        let Some(request) = self.links.request(delivery.link) else {
            return;
        };
        if !request.credit_window.arrived() {
            self.detach(delivery.link, errors::credit_overrun());
            return;
        }
        match self.read_request(delivery) {
            Err(error) => {
                let error = self.tracked(error);
                self.note_request(Subject::Request, delivery.link, Origin::default(), &error);
                self.settle_request(delivery, DeliveryState::Rejected(Some(error)));
                self.request_answered(delivery.link);
            }
            Ok(request) => {
                self.settle_request(delivery, DeliveryState::Accepted);
                self.perform(request);
            }
        }
    }

    fn read_request(&self, delivery: &IncomingDelivery) -> Result<Request, Error> {
        let parts = Parts::read(&delivery.payload).map_err(|error| errors::undecodable(&error))?;
        let reply_to = parts.reply_to.as_ref().and_then(text);
        let response_link = self.route(delivery.link, delivery.session, reply_to)?;
        Ok(Request {
            request_link: delivery.link,
            response_link,
            correlation: parts.message_id,
            properties: parts.properties,
            body: parts.body,
            transaction: transactions::of_state(delivery.state.as_ref()),
            size: delivery.payload.len(),
        })
    }

    fn perform(&mut self, request: Request) {
        match self.links.get(request.request_link).map(|link| &link.kind) {
            Some(LinkKind::Request(node)) if node.node == crate::address::CBS => {
                self.handle_cbs(&request);
            }
            _ => self.handle_management(request),
        }
    }

    /// The response link for a request: by the session's links first, then by the connection's.
    /// (docs/spec/amqp.md#2.1, #rule-12)
    fn route(
        &self,
        request: LinkId,
        session: SessionId,
        reply_to: Option<&str>,
    ) -> Result<LinkId, Error> {
        let Some(Link {
            kind: LinkKind::Request(RequestLink { node, .. }),
            ..
        }) = self.links.get(request)
        else {
            return Err(errors::no_response_link(reply_to.unwrap_or_default()));
        };
        let all = self.links.iter().filter_map(|(id, link)| match &link.kind {
            LinkKind::Response(response) if response.node == *node => Some((id, link, response)),
            _ => None,
        });
        let (near, far): (Vec<_>, Vec<_>) = all.partition(|(_, link, _)| link.session == session);
        // Of several that fit the newest is alive: a client that recovers opens another pair.
        let newest = |fits: &dyn Fn(&Link, &ResponseLink) -> bool| {
            let fitting = near
                .iter()
                .filter(|(_, link, response)| fits(link, response));
            fitting.map(|(id, ..)| *id).max()
        };
        let by_target = reply_to.and_then(|reply_to| {
            newest(&|_, response| response.reply_to.as_deref() == Some(reply_to))
        });
        let by_name = || reply_to.and_then(|reply_to| newest(&|link, _| link.name == reply_to));
        let only = |links: &[(LinkId, &Link, &ResponseLink)]| match links {
            [(id, ..)] => Some(*id),
            _ => None,
        };
        by_target
            .or_else(by_name)
            .or_else(|| only(&near))
            .or_else(|| only(&far).filter(|_| near.is_empty()))
            .ok_or_else(|| errors::no_response_link(reply_to.unwrap_or_default()))
    }

    fn settle_request(&mut self, delivery: &IncomingDelivery, state: DeliveryState) {
        if !delivery.settled {
            self.connection
                .dispose_received(delivery.session, delivery.delivery_id, state, true);
        }
    }

    /// Queues an answer and sends what there is credit for. An answer without a link, or beyond
    /// what may wait, is dropped: its client does not take answers.
    pub(crate) fn respond(&mut self, request_link: LinkId, response_link: LinkId, payload: Bytes) {
        let all_waiting_bytes = self.waiting_bytes;
        let limit = match self.is_unauthenticated {
            true => MAX_WAITING_BYTES_UNAUTHENTICATED,
            false => MAX_WAITING_BYTES,
        };
        match self.links.response(response_link) {
            Some(response) if response.has_room(all_waiting_bytes, payload.len(), limit) => {
                self.waiting_bytes += payload.len();
                response.waiting.push_back(Waiting {
                    request_link,
                    payload,
                });
                self.send_responses(response_link);
            }
            _ => self.request_answered(request_link),
        }
    }

    /// Sends waiting answers as far as credit goes.
    pub(crate) fn send_responses(&mut self, link: LinkId) {
        while let Some(response) = self.links.response(link) {
            let Some(Waiting {
                request_link,
                payload,
            }) = response.waiting.front()
            else {
                return;
            };
            let tag = response.sent.to_le_bytes();
            let outgoing = Outgoing {
                tag: &tag,
                settled: true,
                ..Outgoing::default()
            };
            if self.connection.send(link, &outgoing, &[payload]).is_err() {
                return;
            }
            let request_link = *request_link;
            self.waiting_bytes -= payload.len();
            response.sent = response.sent.wrapping_add(1);
            response.waiting.pop_front();
            self.request_answered(request_link);
        }
    }

    /// A response link's credit changed.
    pub(crate) fn handle_response_credit(&mut self, link: LinkId, drain: bool) {
        self.send_responses(link);
        if drain {
            self.connection.drained(link);
        }
    }

    /// Gives a request link credit for what it has had answered.
    pub(crate) fn request_answered(&mut self, link: LinkId) {
        let Some(request) = self.links.request(link) else {
            return;
        };
        request.credit_window.answered();
        if let Some(credit) = request
            .credit_window
            .top_up(self.connection.credit_left(link))
        {
            self.connection.set_credit(link, credit, false);
        }
    }

    /// Drops the answers of a response link that was detached.
    pub(crate) fn drop_responses(&mut self, response: &ResponseLink) {
        for waiting in &response.waiting {
            self.waiting_bytes -= waiting.payload.len();
            self.request_answered(waiting.request_link);
        }
    }
}
