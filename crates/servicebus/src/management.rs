//! Management: operations on an entity by request and response. (docs/spec/amqp.md#7)
//!
//! An operation is checked here, carried out by the broker, and answered when the broker has
//! answered. Each has a file of its own. An unknown operation gets 501, because an empty success
//! would mislead the client.

use access::Operation;
use amqp::{Error, Value, decode};
use broker::RequestError;
use dialect::{Origin, Subject};
use store::SequenceNumber;

use crate::attach::requested_session;
use crate::client::Client;
use crate::client::refusals::path_of;
use crate::errors;
use crate::links::link::EntityRef;
use crate::pending_requests::{PendingOperation, PendingRequest};
use crate::request_response::Request;
use crate::request_response::response::{self, NodeKind, Status};
use crate::transactions::enlist;

mod batch_delete;
mod cancel_scheduled;
mod message_sessions;
mod peek;
mod receive_deferred;
mod renew_lock;
mod renew_session_lock;
mod rules;
mod schedule;
mod session_holder;
mod session_state;
mod update_disposition;

/// The cost of a request beside its bytes while it waits for its answer.
const OVERHEAD: usize = 1_024;

/// Makes an operation's command once its request has an id.
type CommandBuilder = Box<dyn FnOnce(broker::RequestId) -> broker::Command>;

/// An operation whose request was sound.
struct Prepared {
    command: CommandBuilder,
    /// The number of elements in the request.
    count: usize,
    /// Bytes that the answer may have; they count until it was given.
    answer: usize,
    /// Whether the messages of the answer are wanted without their bodies.
    without_bodies: bool,
}

/// Reads an operation's arguments.
type ArgumentReader = fn(&EntityRef, &Body) -> Result<Prepared, Error>;

impl Client {
    /// Passes the operation of a request to the broker, or refuses it.
    pub(crate) fn handle_management(&mut self, request: Request) {
        let link = self.links.get(request.request_link);
        let name = request.text("operation").unwrap_or_default();
        let operation = Operation::of_request(name);
        let resource = link.map(|link| link.resource.clone()).unwrap_or_default();
        let result = self.prepare(operation, &request);
        let answer = result.as_ref().map_or(0, |operation| operation.answer);
        let cost = request.size + OVERHEAD + answer;
        let transaction = request.transaction;
        let scope = self.scope_of(request.request_link);
        let pending = PendingOperation {
            request_link: request.request_link,
            response_link: request.response_link,
            correlation: request.correlation,
            resource,
            operation: operation.and_then(Operation::name),
            count: result.as_ref().map_or(0, |operation| operation.count),
            without_bodies: matches!(&result, Ok(operation) if operation.without_bodies),
        };
        match result {
            Err(error) => self.refuse_request(&pending, error),
            Ok(operation) => {
                let id = self.register_request(PendingRequest::Manage(Box::new(pending)), cost);
                let command = (operation.command)(id);
                self.command(match transaction {
                    Some(transaction) => enlist::enlist_command(transaction, scope, command),
                    None => command,
                });
            }
        }
    }

    fn prepare(
        &mut self,
        operation: Option<Operation>,
        request: &Request,
    ) -> Result<Prepared, Error> {
        let link = self.links.get(request.request_link);
        let link = link.ok_or_else(|| errors::entity_missing(""))?;
        let unknown = || errors::unknown_operation(request.text("operation").unwrap_or_default());
        let operation = operation.ok_or_else(unknown)?;
        let required_right = operation.required_right();
        let entity_ref = link.entity.as_ref().ok_or_else(unknown)?;
        // Some are a receiver's, some a sender's. (docs/spec/entities.md#2.6)
        // The link outlives its token for a while, and so does what it is for.
        if !self.rights_within_grace(&link.path).allow(required_right) {
            return Err(errors::unauthorized(required_right, &link.resource));
        }
        let mut body = Body::decode(request)?;
        if entity_ref.sessions && session_holder::is_of_holder(operation) {
            let link_name = request.text("associated-link-name");
            body.held_session = self.held_session(entity_ref.id, body.session()?, link_name)?;
        }
        if operation == Operation::Schedule {
            return schedule::read(&entity_ref.clone(), &body, &mut self.ids);
        }
        let prepared = reader(operation).ok_or_else(unknown)?;
        let prepared = prepared(entity_ref, &body)?;
        if operation == Operation::DeleteBatch {
            batch_delete::check_count(prepared.count, self.settings.batch_delete)?;
        }
        Ok(prepared)
    }

    /// Takes the request that the broker has answered.
    fn answered(&mut self, request: broker::RequestId) -> Option<Box<PendingOperation>> {
        match self.pending_requests.remove(request.token)? {
            PendingRequest::Manage(pending) => Some(pending),
            _ => None,
        }
    }

    fn answer_request(
        &mut self,
        pending: &PendingOperation,
        status: Status,
        body: impl FnOnce(&mut bytes::BytesMut),
    ) {
        let payload = response::encode(
            NodeKind::Management,
            pending.correlation.clone(),
            status,
            body,
        );
        self.respond(pending.request_link, pending.response_link, payload);
    }

    fn refuse_request(&mut self, pending: &PendingOperation, error: Error) {
        let error = self.tracked(error);
        let origin = Origin {
            entity: path_of(&pending.resource),
            operation: pending.operation,
            ..Origin::default()
        };
        self.note_request(Subject::Request, pending.request_link, origin, &error);
        self.answer_request(pending, Status::of(error), response::empty_map);
    }

    fn refuse_by_broker(&mut self, pending: &PendingOperation, error: &RequestError) {
        let error = errors::request(error, &self.entity_name(pending.request_link));
        self.refuse_request(pending, error);
    }
}

/// The reader of an operation's arguments, if management nodes have it. Schedules are read with the
/// connection's message ids.
fn reader(operation: Operation) -> Option<ArgumentReader> {
    Some(match operation {
        Operation::Peek => peek::read,
        Operation::RenewLock => renew_lock::read,
        Operation::ReceiveDeferred => receive_deferred::read,
        Operation::UpdateDisposition => update_disposition::read,
        Operation::CancelScheduled => cancel_scheduled::read,
        Operation::DeleteBatch => batch_delete::read,
        Operation::RenewSessionLock => renew_session_lock::read,
        Operation::GetSessionState => session_state::read_get,
        Operation::SetSessionState => session_state::read_set,
        Operation::ListSessions => message_sessions::read,
        Operation::AddRule => rules::read_add,
        Operation::RemoveRule => rules::read_remove,
        Operation::ListRules => rules::read_list,
        _ => return None,
    })
}

/// Some operations are about sessions, so their entity must have them.
fn check_sessions(entity_ref: &EntityRef) -> Result<(), Error> {
    let has = entity_ref.sessions.then_some(());
    has.ok_or_else(errors::sessionful_receiver)
}

/// A request's arguments.
struct Body {
    arguments: amqp::Map,
    /// The session that the client holds and that the request is about.
    held_session: Option<bytes::Bytes>,
}

impl Body {
    fn decode(request: &Request) -> Result<Self, Error> {
        let body = request
            .body
            .as_ref()
            .ok_or_else(|| errors::bad_argument("The request has no map in its body."))?;
        match decode::value(body).map_err(|error| errors::undecodable(&error))? {
            Value::Map(arguments) => Ok(Self {
                arguments,
                held_session: None,
            }),
            _ => Err(errors::bad_argument("The request's body must be a map.")),
        }
    }

    /// An argument that is there and not null.
    fn get(&self, key: &str) -> Option<&Value> {
        amqp::value::lookup(&self.arguments, key).filter(|value| **value != Value::Null)
    }

    /// A number of any integral type.
    fn integer(&self, key: &str) -> Result<Option<i64>, Error> {
        match self.get(key).map(Value::as_integer) {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => Err(errors::bad_argument(format!(
                "The argument '{key}' must be a number."
            ))),
        }
    }

    /// A yes or no; no if it is missing.
    fn flag(&self, key: &str) -> Result<bool, Error> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(errors::bad_argument(format!(
                "The argument '{key}' must be a boolean."
            ))),
        }
    }

    /// A time in milliseconds since 1970.
    fn time(&self, key: &str) -> Result<Option<i64>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Timestamp(time)) => Ok(Some(*time)),
            Some(_) => Err(errors::bad_argument(format!(
                "The argument '{key}' must be a timestamp."
            ))),
        }
    }

    fn text(&self, key: &str) -> Result<Option<&str>, Error> {
        match self.get(key).map(crate::request_response::text) {
            None => Ok(None),
            Some(Some(text)) => Ok(Some(text)),
            Some(None) => Err(errors::bad_argument(format!(
                "The argument '{key}' must be text."
            ))),
        }
    }

    /// The elements of an array or list that has some, each read by `read`.
    fn entries(&self, key: &str) -> Result<&[(Value, Value)], Error> {
        match self.get(key).map(Value::as_map) {
            None => Ok(&[]),
            Some(Some(map)) => Ok(map),
            Some(None) => Err(errors::bad_argument(format!(
                "The argument '{key}' must be a map."
            ))),
        }
    }

    fn elements<T>(&self, key: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, Error> {
        let elements = match self.get(key) {
            Some(Value::Array(elements) | Value::List(elements)) if !elements.is_empty() => {
                elements
            }
            _ => {
                return Err(errors::bad_argument(format!(
                    "The argument '{key}' must be an array with at least one element."
                )));
            }
        };
        let values: Option<Vec<T>> = elements.iter().map(read).collect();
        values.ok_or_else(|| {
            errors::bad_argument(format!(
                "An element of the argument '{key}' has the wrong type."
            ))
        })
    }

    /// The argument `sequence-numbers`, at most `most` of them. No message has a number below zero.
    fn sequence_numbers(&self, most: usize) -> Result<Vec<SequenceNumber>, Error> {
        let numbers = self.elements("sequence-numbers", Value::as_integer)?;
        if numbers.len() > most {
            let what = "The array 'sequence-numbers'";
            return Err(errors::out_of_range(what, most, "elements"));
        }
        let number = |number: i64| match u64::try_from(number) {
            Ok(number) => Ok(SequenceNumber(number)),
            Err(_) => Err(errors::message_not_found(number)),
        };
        numbers.into_iter().map(number).collect()
    }

    /// The argument `session-id`.
    fn session(&self) -> Result<Option<&str>, Error> {
        let session = self.text("session-id")?;
        session.map_or(Ok(()), requested_session::check_id)?;
        Ok(session)
    }

    /// The argument `session-id` of an operation that requires it.
    fn needed_session(&self) -> Result<bytes::Bytes, Error> {
        let text = "The argument 'session-id' is missing.";
        let session = self.session()?.ok_or_else(|| errors::bad_argument(text))?;
        Ok(bytes::Bytes::copy_from_slice(session.as_bytes()))
    }

    /// The argument `lock-tokens`.
    fn lock_tokens(&self) -> Result<Vec<broker::LockToken>, Error> {
        self.elements("lock-tokens", |value| match value {
            Value::Uuid(bytes) => Some(broker::LockToken(u128::from_be_bytes(*bytes))),
            _ => None,
        })
    }
}
