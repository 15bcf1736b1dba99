//! Concern: what a command is about, as fault rules see it: operation, place, client, session and
//! messages.
//!
//! A command without a concern is no operation of a client, and no rule applies to it: ticks, rows
//! that were read, credit, releases.

mod order;
mod transaction;

use std::borrow::Cow;

use filter::{Facts, Message, Selector};
use store::{EntityId, NamespaceId, SequenceNumber};

use crate::api::command::{Command, SessionFilter};
use crate::api::fault::{FaultOperation, Requester};
use crate::api::id::{LockToken, ReceiverId, RequestId, TransactionId};
use crate::api::incoming::Incoming;
use crate::api::outcome::Outcome;
use crate::lineage::record::id_text;
use crate::queue::session_key::is_same_session;

/// What a client's command is about.
#[derive(Debug)]
pub(super) struct Concern<'a> {
    pub place: Place<'a>,
    pub operation: FaultOperation,
    /// Of a settlement whose client wants no answer it is the receiver that holds the lock, which
    /// the command does not say.
    pub requester: Option<Requester>,
    pub named: Named<'a>,
    session: Option<&'a [u8]>,
    messages: &'a [Incoming],
}

/// The messages that an operation is about without bringing them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named<'a> {
    Nothing,
    /// Those with these locks.
    Locks(&'a [LockToken]),
    Numbers(&'a [SequenceNumber]),
}

/// Where an operation is.
#[derive(Debug)]
pub(super) enum Place<'a> {
    Entity(EntityId),
    /// What has this path in a namespace, or would have it: a router too.
    Path(NamespaceId, Cow<'a, str>),
    /// No entity.
    Namespace(NamespaceId),
    /// In the namespace of this transaction of the requester, and no entity.
    Transaction(TransactionId),
}

impl<'a> Concern<'a> {
    /// `None` for what is no operation of a client on an entity.
    pub fn of(command: &'a Command) -> Option<Self> {
        let of = |entity, operation, requester| Self {
            place: Place::Entity(entity),
            operation,
            requester: Some(requester),
            named: Named::Nothing,
            session: None,
            messages: &[],
        };
        let asked = |entity, operation, request: &RequestId| {
            of(entity, operation, Requester::Request(*request))
        };
        let came = |entity, operation, receiver: &ReceiverId| {
            of(entity, operation, Requester::Receiver(*receiver))
        };
        let concern = match command {
            Command::Send {
                request,
                entity,
                messages,
            } => Self {
                messages,
                ..asked(*entity, sending(messages), request)
            },
            Command::Attach {
                receiver, subqueue, ..
            } => came(subqueue.entity, FaultOperation::AttachReceiver, receiver),
            Command::AttachSender { request, entity } => {
                asked(*entity, FaultOperation::AttachSender, request)
            }
            Command::AcceptSession {
                receiver,
                entity,
                session,
                ..
            } => Self {
                session: match session {
                    SessionFilter::ById(id) => Some(id),
                    SessionFilter::Next { .. } => None,
                },
                ..came(*entity, FaultOperation::AcceptSession, receiver)
            },
            Command::Settle {
                request,
                subqueue,
                session,
                token,
                outcome,
            } => Self {
                place: Place::Entity(subqueue.entity),
                operation: operation_of(outcome)?,
                requester: request.map(Requester::Request),
                named: Named::Locks(std::slice::from_ref(token)),
                session: session.as_deref(),
                messages: &[],
            },
            Command::SettleMany {
                request,
                subqueue,
                session,
                tokens,
                outcome,
            } => Self {
                named: Named::Locks(tokens),
                session: session.as_deref(),
                ..asked(subqueue.entity, operation_of(outcome)?, request)
            },
            Command::Renew {
                request,
                subqueue,
                tokens,
            } => Self {
                named: Named::Locks(tokens),
                ..asked(subqueue.entity, FaultOperation::Renew, request)
            },
            Command::Peek {
                request, subqueue, ..
            } => asked(subqueue.entity, FaultOperation::Peek, request),
            Command::PeekSession {
                request,
                entity,
                session,
                ..
            } => Self {
                session: Some(session),
                ..asked(*entity, FaultOperation::Peek, request)
            },
            Command::PeekSchedule {
                request, entity, ..
            } => asked(*entity, FaultOperation::Peek, request),
            Command::ReceiveDeferred {
                request,
                subqueue,
                session,
                numbers,
                ..
            } => Self {
                named: Named::Numbers(numbers),
                session: session.as_deref(),
                ..asked(subqueue.entity, FaultOperation::ReceiveDeferred, request)
            },
            Command::CancelScheduled {
                request, entity, ..
            } => asked(*entity, FaultOperation::CancelScheduled, request),
            Command::DeleteMessages {
                request,
                subqueue,
                session,
                ..
            } => Self {
                session: session.as_deref(),
                ..asked(subqueue.entity, FaultOperation::BatchDelete, request)
            },
            Command::ListSessions {
                request, entity, ..
            } => asked(*entity, FaultOperation::ListSessions, request),
            Command::RenewSession {
                request,
                entity,
                session,
            } => Self {
                session: Some(session),
                ..asked(*entity, FaultOperation::RenewSession, request)
            },
            Command::GetSessionState {
                request,
                entity,
                session,
            }
            | Command::ShowSessionState {
                request,
                entity,
                session,
            } => Self {
                session: Some(session),
                ..asked(*entity, FaultOperation::GetSessionState, request)
            },
            Command::SetSessionState {
                request,
                entity,
                session,
                ..
            } => Self {
                session: Some(session),
                ..asked(*entity, FaultOperation::SetSessionState, request)
            },
            Command::Publish {
                request,
                publication,
            } => Self {
                place: Place::Path(publication.namespace, Cow::Borrowed(&publication.router)),
                operation: FaultOperation::Publish,
                requester: Some(Requester::Request(*request)),
                named: Named::Nothing,
                session: None,
                messages: std::slice::from_ref(&publication.message),
            },
            Command::AddRule {
                request, entity, ..
            } => asked(*entity, FaultOperation::AddRule, request),
            Command::RemoveRule {
                request, entity, ..
            } => asked(*entity, FaultOperation::RemoveRule, request),
            Command::ListRules {
                request, entity, ..
            } => asked(*entity, FaultOperation::ListRules, request),
            Command::Administer {
                request,
                namespace,
                order,
            } => return order::concern(*request, *namespace, order),
            Command::Declare {
                request, namespace, ..
            } => transaction::declare(*request, *namespace),
            Command::Enlist {
                request, operation, ..
            } => return transaction::operation(*request, operation),
            Command::Discharge {
                request,
                transaction,
                fail,
            } => transaction::discharge(*request, *transaction, *fail),
            Command::Subscribe { .. }
            | Command::Credit { .. }
            | Command::Detach { .. }
            | Command::LoseReceiver { .. }
            | Command::Redrive { .. }
            | Command::AdvanceClock { .. }
            | Command::CreateNode { .. }
            | Command::OpenNode { .. }
            | Command::CloseNode { .. }
            | Command::FailTransaction { .. }
            | Command::EndTransactions { .. }
            | Command::Written { .. }
            | Command::Introduce { .. }
            | Command::Disconnect { .. }
            | Command::Leave { .. }
            | Command::Loaded { .. }
            | Command::StoreSpace { .. }
            | Command::Durable
            | Command::SetLimits(_)
            | Command::Tick => return None,
        };
        Some(concern)
    }

    /// A message of an entity, of a session if it has one, is handed out.
    pub fn of_delivery(
        receiver: ReceiverId,
        entity: EntityId,
        number: &'a SequenceNumber,
        session: Option<&'a [u8]>,
    ) -> Self {
        Self {
            place: Place::Entity(entity),
            operation: FaultOperation::Receive,
            requester: Some(Requester::Receiver(receiver)),
            named: Named::Numbers(std::slice::from_ref(number)),
            session,
            messages: &[],
        }
    }

    /// Whether it is about that session, or sends a message of it.
    pub fn names_session(&self, id: &str) -> bool {
        let messages = self.messages.iter();
        let of_messages = messages.filter_map(|it| it.session_id.as_deref());
        let mut sessions = self.session.into_iter().chain(of_messages);
        sessions.any(|it| is_same_session(it, id.as_bytes()))
    }

    /// Whether it sends a message of that id.
    pub fn sends(&self, id: &str) -> bool {
        let mut ids = self.messages.iter().filter_map(|it| it.message_id.as_ref());
        ids.any(|encoded| id_text(encoded) == id)
    }

    /// Whether it sends a message that is selected.
    pub fn sends_selected(&self, selector: &Selector) -> bool {
        let read = |message: &'a Incoming| Message::read(&message.payload, Facts::default()).ok();
        let mut read = self.messages.iter().filter_map(read);
        read.any(|message| selector.selects(&message))
    }
}

fn sending(messages: &[Incoming]) -> FaultOperation {
    match messages.iter().any(|message| message.scheduled.is_some()) {
        true => FaultOperation::Schedule,
        false => FaultOperation::Send,
    }
}

/// A release is no operation: SDKs give back what they have fetched in advance by it.
fn operation_of(outcome: &Outcome) -> Option<FaultOperation> {
    match outcome {
        Outcome::Complete => Some(FaultOperation::Complete),
        Outcome::Abandon { .. } => Some(FaultOperation::Abandon),
        Outcome::Defer { .. } => Some(FaultOperation::Defer),
        Outcome::DeadLetter { .. } => Some(FaultOperation::DeadLetter),
        Outcome::Annotated { outcome, .. } | Outcome::Reported { outcome, .. } => {
            operation_of(outcome)
        }
        Outcome::Release | Outcome::ReleaseLater(_) | Outcome::Undelivered => None,
    }
}
