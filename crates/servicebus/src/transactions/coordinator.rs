//! Coordinator: links on which the client declares and discharges transactions.
//! [AMQP 4.2, 4.3, 4.5.1-4.5.5; docs/spec/amqp.md#8]
//!
//! Any client may attach one: every operation of a transaction uses a link or a node that requires
//! its own right. A message other than declare or discharge is rejected. All coordinators of a
//! connection see the same transactions; when one detaches, the transactions that it declared end.

use access::Operation;
use amqp::message::{BodyKind, scan_in_any_order};
use amqp::{
    Attach, DecodeError, DeliveryState, Error, Role, Symbol, TargetTerminus, Value, decode,
};
use broker::{Command, RequestId, TransactionError, TransactionId};
use bytes::Bytes;
use dialect::{CreditWindow, Subject};
use endpoint::{LinkId, SessionId};

use crate::attach::attach_reply;
use crate::client::Client;
use crate::client::events::IncomingDelivery;
use crate::errors;
use crate::links::link::{Coordinator, Link, LinkKind};
use crate::pending_requests::{Control, Discharge, PendingDisposition, PendingRequest};
use crate::transactions;
use amqp::items;

/// Credit of a coordinator link. (docs/spec/amqp.md#8)
const COORDINATOR_CREDIT: u32 = 100;
/// Largest declare or discharge: an id and little more.
const MAX_CONTROL: u64 = 64 << 10;
/// The cost in bytes of a declare or discharge while it waits for its answer.
const OVERHEAD: usize = 256;
const REJECTED: &str = "amqp:rejected:list";
const DECLARE: (u64, &str) = (0x31, "amqp:declare:list");
const DISCHARGE: (u64, &str) = (0x32, "amqp:discharge:list");

/// What a client may ask of a coordinator and gets. [AMQP 4.5.7; docs/spec/amqp.md#8]
const CAPABILITIES: [&str; 3] = [
    "amqp:local-transactions",
    "amqp:multi-txns-per-ssn",
    "amqp:multi-ssns-per-txn",
];

/// A request to a coordinator.
#[derive(Debug, Eq, PartialEq)]
enum Request {
    Declare,
    Discharge { txn_id: Bytes, fail: bool },
}

/// Whether an attach is for a coordinator: its target's type says so, there is no address.
pub(crate) fn is_coordinator_attach(attach: &Attach) -> bool {
    let target = attach.target.as_deref();
    attach.role == Role::Sender && matches!(target, Some(TargetTerminus::Coordinator(_)))
}

/// Whether the client takes `rejected` for an answer: its source lists it, or nothing at all.
/// [AMQP 4.2; docs/spec/amqp.md#8.1]
fn understands_rejected(attach: &Attach) -> bool {
    let source = attach.source.as_deref();
    let outcomes = source.map_or(&[][..], |source| &source.outcomes);
    let is_rejected = |outcome: &Symbol| outcome.as_str() == REJECTED;
    outcomes.is_empty() || outcomes.iter().any(is_rejected)
}

impl Client {
    /// Attaches a coordinator. It requires no right. (docs/spec/README.md#settled)
    pub(crate) fn attach_coordinator(&mut self, link: LinkId, session: SessionId, attach: &Attach) {
        let kind = LinkKind::Coordinator(Coordinator {
            credit_window: CreditWindow::new(COORDINATOR_CREDIT),
            understands_rejected: understands_rejected(attach),
        });
        let coordinator = Link {
            session,
            name: attach.name.clone(),
            path: String::new(),
            resource: self.resource(""),
            required_right: Operation::Transact.required_right(),
            entity: None,
            kind,
        };
        self.links.insert(link, coordinator);
        self.note_session_scope(session, link);
        let mut reply = attach_reply::reply(attach, MAX_CONTROL);
        if let Some(TargetTerminus::Coordinator(capabilities)) = reply.target.as_deref_mut() {
            capabilities.retain(|it| CAPABILITIES.contains(&it.as_str()));
        }
        self.connection.accept(link, reply);
        self.connection.set_credit(link, COORDINATOR_CREDIT, false);
    }

    /// Has the broker begin or end a transaction, or refuses it.
    pub(crate) fn handle_control(&mut self, delivery: &IncomingDelivery) {
        let Some(coordinator) = self.links.coordinator(delivery.link) else {
            return;
        };
        if !coordinator.credit_window.arrived() {
            self.detach(delivery.link, errors::credit_overrun());
            return;
        }
        let control = Control {
            link: delivery.link,
            session: delivery.session,
            delivery_id: delivery.delivery_id,
            settled: delivery.settled,
        };
        match Request::read(&delivery.payload) {
            Err(error) => self.answer_control(&control, DeliveryState::Rejected(Some(error))),
            // The client could not learn its id.
            Ok(Request::Declare) if control.settled => {
                self.detach(control.link, errors::settled_control());
            }
            Ok(Request::Declare) => self.declare(control),
            Ok(Request::Discharge { txn_id, fail }) => {
                let transaction = transactions::parse_id(&txn_id);
                self.try_discharge(control, transaction, fail);
            }
        }
    }

    /// Discharges a transaction. Its client must want to know how it ends, and have sent all of its
    /// deliveries; else it is rolled back. [AMQP 4.3, 4.4.1; docs/spec/amqp.md#8.1]
    fn try_discharge(&mut self, control: Control, transaction: TransactionId, fail: bool) {
        let of_it = |state: &_| transactions::of_state(Some(state)) == Some(transaction);
        let error = if control.settled {
            Some(errors::settled_control())
        } else if self.connection.has_unfinished(of_it) {
            Some(errors::unfinished_delivery())
        } else {
            None
        };
        let link = control.link;
        self.discharge(Discharge {
            control,
            transaction,
            fail: fail || error.is_some(),
        });
        if let Some(error) = error {
            self.detach(link, error);
        }
    }

    fn declare(&mut self, control: Control) {
        let coordinator = control.link.0;
        let request = self.register_request(PendingRequest::Declare(control), OVERHEAD);
        self.command(Command::Declare {
            request,
            namespace: self.directory.namespace(),
            coordinator,
        });
    }

    fn discharge(&mut self, discharge: Discharge) {
        let (transaction, fail) = (discharge.transaction, discharge.fail);
        self.transactions.discharge(transaction);
        let request = self.register_request(PendingRequest::Discharge(discharge), OVERHEAD);
        self.command(Command::Discharge {
            request,
            transaction,
            fail,
        });
    }

    /// The broker has begun a transaction, or has not.
    pub(crate) fn handle_declared(
        &mut self,
        request: RequestId,
        result: Result<TransactionId, TransactionError>,
    ) {
        let Some(PendingRequest::Declare(control)) = self.pending_requests.remove(request.token)
        else {
            return;
        };
        let state = match result {
            Ok(transaction) => {
                // The transaction of a detached coordinator has ended with it.
                if self.links.coordinator(control.link).is_some() {
                    self.transactions.declared(transaction, control.link);
                }
                let txn_id = transactions::encode_id(transaction);
                DeliveryState::Declared { txn_id }
            }
            Err(error) => DeliveryState::Rejected(Some(errors::transaction(&error))),
        };
        self.answer_control(&control, state);
    }

    /// Handles the end of a transaction: its deliveries are settled finally.
    pub(crate) fn handle_discharged(
        &mut self,
        request: RequestId,
        result: Result<(), TransactionError>,
    ) {
        let Some(PendingRequest::Discharge(discharge)) =
            self.pending_requests.remove(request.token)
        else {
            return;
        };
        let Discharge {
            control,
            transaction,
            fail,
        } = discharge;
        // A second discharge of one that waits for its decision does not end it.
        if result != Err(TransactionError::Unknown) {
            let enlisted = self.transactions.end(transaction);
            if result.is_ok() && !fail {
                self.settle_enlisted(enlisted);
            }
        }
        let state = match result {
            Ok(()) => DeliveryState::Accepted,
            Err(error) => DeliveryState::Rejected(Some(errors::transaction(&error))),
        };
        self.answer_control(&control, state);
    }

    fn settle_enlisted(&mut self, enlisted: Vec<PendingDisposition>) {
        for pending in enlisted {
            let (session, delivery_id) = (pending.session, pending.delivery_id);
            let state = pending.settlement.state();
            self.connection
                .settle_sent(session, delivery_id, state, true);
        }
    }

    /// Settles a declare or discharge (unless it came settled) and gives credit for more.
    pub(crate) fn answer_control(&mut self, control: &Control, state: DeliveryState) {
        let Some(coordinator) = self.links.coordinator(control.link) else {
            return;
        };
        coordinator.credit_window.answered();
        let left = self.connection.credit_left(control.link);
        let credit = coordinator.credit_window.top_up(left);
        let understands_rejected = coordinator.understands_rejected;
        let state =
            match state {
                DeliveryState::Rejected(Some(error)) if !understands_rejected => {
                    return self.detach(control.link, error);
                }
                DeliveryState::Rejected(Some(error)) => DeliveryState::Rejected(Some(
                    self.refused(Subject::Request, control.link, None, error),
                )),
                state => state,
            };
        if !control.settled {
            self.connection
                .dispose_received(control.session, control.delivery_id, state, true);
        }
        if let Some(credit) = credit {
            self.connection.set_credit(control.link, credit, false);
        }
    }

    /// Handles a detached coordinator: the transactions that it declared end.
    pub(crate) fn end_coordinator(&mut self, link: LinkId) {
        self.transactions.end_coordinator(link);
        self.command(Command::EndTransactions {
            connection: self.id,
            coordinator: link.0,
        });
    }
}

impl Request {
    fn read(payload: &Bytes) -> Result<Self, Error> {
        let body = body_of(payload).map_err(|error| errors::undecodable(&error))?;
        let Some(Value::Described(body)) = body else {
            return Err(errors::no_control());
        };
        let (descriptor, Value::List(fields)) = *body else {
            return Err(errors::no_control());
        };
        let is = |(code, name): (u64, &str)| {
            descriptor == Value::Ulong(code)
                || matches!(&descriptor, Value::Symbol(symbol) if symbol.as_str() == name)
        };
        if is(DECLARE) {
            declare(&fields)
        } else if is(DISCHARGE) {
            discharge(&fields)
        } else {
            Err(errors::no_control())
        }
    }
}

/// The value of an amqp-value body.
fn body_of(payload: &Bytes) -> Result<Option<Value>, DecodeError> {
    let (payload, sections) = scan_in_any_order(payload)?;
    if sections.body_kind != BodyKind::Value {
        return Ok(None);
    }
    let section = payload.slice(sections.body);
    let value = section.slice_ref(items::undescribed(&section)?);
    decode::value(&value).map(Some)
}

/// A global id would have the transaction span brokers. [AMQP 4.5.3]
fn declare(fields: &[Value]) -> Result<Request, Error> {
    match fields {
        [] | [Value::Null] => Ok(Request::Declare),
        [_] => Err(errors::no_global_transactions()),
        _ => Err(errors::no_control()),
    }
}

/// [AMQP 4.5.4]
fn discharge(fields: &[Value]) -> Result<Request, Error> {
    let (txn_id, fail) = match fields {
        [Value::Binary(txn_id)] | [Value::Binary(txn_id), Value::Null] => (txn_id, false),
        [Value::Binary(txn_id), Value::Bool(fail)] => (txn_id, *fail),
        _ => return Err(errors::no_control()),
    };
    let txn_id = txn_id.clone();
    Ok(Request::Discharge { txn_id, fail })
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn read(body: &Value) -> Result<Request, String> {
        let mut payload = BytesMut::new();
        amqp::encode::descriptor(&mut payload, 0x77);
        amqp::encode::value(&mut payload, body);
        Request::read(&payload.freeze()).map_err(|error| error.condition.as_str().to_owned())
    }

    fn described(code: u64, fields: Vec<Value>) -> Value {
        Value::described(code, Value::List(fields))
    }

    fn id() -> Value {
        Value::Binary(Bytes::from_static(b"id"))
    }

    #[test]
    fn declares_and_discharges_are_read() {
        assert_eq!(read(&described(0x31, vec![])), Ok(Request::Declare));
        assert_eq!(
            read(&described(0x31, vec![Value::Null])),
            Ok(Request::Declare)
        );
        for (fields, fail) in [
            (vec![id()], false),
            (vec![id(), Value::Null], false),
            (vec![id(), Value::Bool(false)], false),
            (vec![id(), Value::Bool(true)], true),
        ] {
            let txn_id = Bytes::from_static(b"id");
            let expected = Request::Discharge { txn_id, fail };
            assert_eq!(read(&described(0x32, fields)), Ok(expected));
        }
        let named = Value::Described(Box::new((
            Value::Symbol(amqp::Symbol::new("amqp:declare:list")),
            Value::List(vec![]),
        )));
        assert_eq!(read(&named), Ok(Request::Declare));
    }

    #[test]
    fn everything_else_is_refused() {
        let wrong = [
            Value::Null,
            Value::from("declare"),
            Value::List(vec![]),
            Value::described(0x31, Value::Null),
            described(0x33, vec![id()]),
            described(0x31, vec![Value::Null, Value::Null]),
            described(0x32, vec![]),
            described(0x32, vec![Value::Null, Value::Bool(true)]),
            described(0x32, vec![Value::from("id")]),
            described(0x32, vec![id(), Value::Int(1)]),
            described(0x32, vec![id(), Value::Bool(true), Value::Null]),
        ];
        for body in wrong {
            assert_eq!(read(&body), Err("amqp:decode-error".to_owned()), "{body:?}");
        }
        let global = described(0x31, vec![id()]);
        assert_eq!(read(&global), Err("amqp:not-implemented".to_owned()));
    }
}
