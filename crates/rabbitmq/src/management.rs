//! Management: requests of clients for queues, exchanges and bindings, answered in their order.
//! (docs/spec/rabbitmq.md#5, #6)
//!
//! A request is carried out in steps, each an order to the broker, one request of a pair at a time.
//! A missing right ends the session, as it does in RabbitMQ.

mod bindings;
mod exchanges;
pub(crate) mod pair;
mod queues;
mod request;
mod response;
mod tokens;

use amqp::{Error, Value};
use broker::{Answer, Command, EntityError, Order, RequestError, RequestId};
use dialect::{LinkContext, Subject};
use endpoint::Event;

use crate::errors;
use crate::links::{Links, Pending, register};
use crate::management::pair::PairId;
use crate::management::queues::QueueOperation;
use crate::management::request::{Method, Request};
use crate::management::response::Response;

pub use bindings::argument_hash;
pub use exchanges::{exchange_settings, router_refusal};

/// The cost of a request while it waits for its answer.
const OVERHEAD: usize = 4_096;

/// A request that is being carried out.
#[derive(Debug)]
pub(crate) struct Running {
    correlation: Option<Value>,
    /// What the request is for, for the log.
    path: String,
    operation: Operation,
}

/// What a request wants, and how far it is.
#[derive(Debug)]
enum Operation {
    Queue(QueueOperation),
    /// An exchange or binding that is made or removed in one order.
    Router,
    /// The same that is removed, which is done too if it is not there.
    Removal,
    ListBindings,
    /// A binding whose arguments have a hash is looked for among those of its place.
    Unbind {
        hash: String,
    },
}

/// What comes next of a request.
enum Step {
    Order(Order),
    Purge(Box<dyn FnOnce(RequestId) -> Command>),
    Respond(Response),
    /// The client lacks a right.
    End(Error),
    /// The client has shown a token that is not good.
    Close(Error),
}

impl From<Response> for Step {
    fn from(response: Response) -> Self {
        Self::Respond(response)
    }
}

impl Links {
    /// Takes a request of a pair.
    pub(crate) fn handle_request(&mut self, cx: &mut LinkContext<'_>, id: PairId, event: Event) {
        let Event::Delivery {
            link,
            session,
            delivery_id,
            settled,
            payload,
            ..
        } = event
        else {
            return;
        };
        if !settled {
            let accepted = amqp::DeliveryState::Accepted;
            cx.connection
                .dispose_received(session, delivery_id, accepted, true);
        }
        let Some(pair) = self.pairs.get_mut(id) else {
            return;
        };
        if !pair.is_whole() {
            let name = pair.name.clone();
            return self.end_session(cx, session, &name, errors::half_open());
        }
        if !pair.credit_window.arrived() {
            return self.detach(cx, link, errors::credit_overrun());
        }
        pair.requests.push_back(Request::read(&payload));
        self.advance(cx, id);
    }

    /// Begins requests as long as none is being carried out.
    fn advance(&mut self, cx: &mut LinkContext<'_>, id: PairId) {
        while let Some(pair) = self.pairs.get_mut(id)
            && pair.running.is_none()
            && let Some(request) = pair.requests.pop_front()
        {
            let (operation, step) = self.begin(cx, &request);
            let Some(pair) = self.pairs.get_mut(id) else {
                return;
            };
            pair.running = Some(Running {
                correlation: request.message_id,
                path: request.path,
                operation,
            });
            self.take_step(cx, id, step);
        }
    }

    fn take_step(&mut self, cx: &mut LinkContext<'_>, id: PairId, step: Step) {
        match step {
            Step::Order(order) => {
                let pending = Pending::Manage(id);
                let request = register(&mut self.pending, cx, pending, OVERHEAD);
                cx.commands.push(Command::Administer {
                    request,
                    namespace: cx.directory.namespace(),
                    order: Box::new(order),
                });
            }
            Step::Purge(command) => {
                let pending = Pending::Manage(id);
                let request = register(&mut self.pending, cx, pending, OVERHEAD);
                cx.commands.push(command(request));
            }
            Step::Respond(response) => self.respond(cx, id, &response),
            Step::Close(error) => {
                cx.note(Subject::Connection, "", None, &error);
                cx.connection.close(Some(error));
            }
            Step::End(error) => {
                if let Some(pair) = self.pairs.get_mut(id) {
                    let (session, name) = (pair.session, pair.name.clone());
                    self.end_session(cx, session, &name, error);
                }
            }
        }
    }

    /// Answers the request that is being carried out.
    fn respond(&mut self, cx: &mut LinkContext<'_>, id: PairId, response: &Response) {
        let Some(pair) = self.pairs.get_mut(id) else {
            return;
        };
        if let Some(error) = response.error() {
            let path = pair.running.as_ref().map(|running| &*running.path);
            cx.note(Subject::Request, &pair.name, path, &error);
        }
        if let Some(running) = pair.running.take() {
            pair.responses
                .push_back(response.encode(running.correlation));
        }
        pair.credit_window.answered();
        if let Some(link) = pair.request_link {
            let left = cx.connection.credit_left(link);
            if let Some(credit) = pair.credit_window.top_up(left) {
                cx.connection.set_credit(link, credit, false);
            }
        }
        self.send_responses(cx, id, false);
    }

    /// The first step of a request.
    fn begin(&self, cx: &mut LinkContext<'_>, request: &Request) -> (Operation, Step) {
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        let bad = |text: String| (Operation::Router, Response::new(400, text).into());
        match (request.method, path.as_slice()) {
            (None, _) => bad("the subject is not GET, PUT, POST or DELETE".to_owned()),
            (Some(Method::Put), ["queues", name]) => self.declare_queue(cx, name, request),
            (Some(Method::Get), ["queues", name]) => queues::get(name),
            (Some(Method::Delete), ["queues", name]) => self.delete_queue(cx, name),
            (Some(Method::Delete), ["queues", name, "messages"]) => self.purge_queue(cx, name),
            (Some(Method::Put), ["exchanges", name]) => self.declare_exchange(cx, name, request),
            (Some(Method::Delete), ["exchanges", name]) => self.delete_exchange(cx, name),
            (Some(Method::Post), ["bindings"]) => self.bind(cx, request),
            (Some(Method::Get), ["bindings"]) => bindings::list(request),
            (Some(Method::Delete), ["bindings", binding]) => self.unbind(cx, binding),
            (Some(Method::Put), ["auth", "tokens"]) => tokens::renew(cx, request),
            _ => {
                let text = format!("there is no operation at '{}'", request.path);
                (Operation::Router, Response::new(404, text).into())
            }
        }
    }

    /// The broker has carried out an order.
    pub(crate) fn handle_administered(
        &mut self,
        cx: &mut LinkContext<'_>,
        id: PairId,
        result: Result<Answer, EntityError>,
    ) {
        let node = self.settings.node.clone();
        let host = &self.virtual_host;
        let Some(running) = self
            .pairs
            .get_mut(id)
            .and_then(|pair| pair.running.as_mut())
        else {
            return;
        };
        let step = match &mut running.operation {
            Operation::Queue(operation) => {
                operation.go_on(result, &node, host, &mut self.exclusive)
            }
            Operation::Router => exchanges::answer(result, host).into(),
            Operation::Removal => exchanges::removed(result, host).into(),
            Operation::ListBindings => bindings::listed(result, host).into(),
            Operation::Unbind { hash } => {
                let step = bindings::remove_listed(hash, result, host);
                running.operation = Operation::Removal;
                step
            }
        };
        self.take_step(cx, id, step);
        self.advance(cx, id);
    }

    /// The broker has deleted the messages of a queue.
    pub(crate) fn handle_purged(
        &mut self,
        cx: &mut LinkContext<'_>,
        id: PairId,
        result: Result<usize, RequestError>,
    ) {
        let response = match result {
            Ok(count) => queues::message_count(count as u64),
            Err(error) => Response::new(400, error.to_string()),
        };
        self.take_step(cx, id, response.into());
        self.advance(cx, id);
    }
}
