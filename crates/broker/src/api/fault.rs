//! Faults: failures that a user asks for, to see what a client does about them.
//!
//! A rule says which operations fail and how. What it does depends on its counts alone, so the same
//! operations in the same order fail in the same way. Rules are not stored: a broker that starts
//! has none.

pub(crate) mod check;

use std::fmt;

use serde::{Deserialize, Serialize};
use store::NamespaceId;

use crate::api::id::{ConnectionId, ReceiverId, RequestId};
use crate::api::injected_error::InjectedError;
use crate::api::time::Wall;

/// The most rules of a namespace.
pub const MAX_FAULTS: usize = 100;
/// The operations that are about messages which a client is given, or was before.
pub(crate) const OF_GIVEN: &[FaultOperation] = &[
    FaultOperation::Receive,
    FaultOperation::Complete,
    FaultOperation::Abandon,
    FaultOperation::Defer,
    FaultOperation::DeadLetter,
    FaultOperation::Renew,
    FaultOperation::ReceiveDeferred,
];

/// Which operations fail, and how. Of several rules that have one fail, the first decides.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FaultRule {
    /// Its own in the namespace.
    pub name: String,
    /// Which operations.
    #[serde(rename = "match", default)]
    pub matches: FaultMatch,
    /// How.
    pub effect: FaultEffect,
}

/// Which operations a rule is for: those that fit all that is said here.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FaultMatch {
    /// The path of a queue, topic or subscription, with its dead-letter queues. Without it all of
    /// the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Any that the effect can be had on, if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<FaultOperation>,
    /// The container id of the client's connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The name of the key that the client has signed in with, or of its identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The session that the operation names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The id of a message that is sent, or that the operation is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// A condition in the language of rules, for the same messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The method and the path of HTTP requests. The rule is for them alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The same; from this moment on the rule is without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// How many of those that fit are left alone first.
    pub skip: u64,
    /// Of the others each third one if it is 3, from the first on.
    pub every: u64,
    /// Of those, how likely each is, from 0 to 1.
    pub probability: f64,
    /// By what chance is decided.
    pub seed: u64,
    /// How many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

impl Default for FaultMatch {
    fn default() -> Self {
        Self {
            entity: None,
            operations: Vec::new(),
            client: None,
            key: None,
            session: None,
            message_id: None,
            filter: None,
            http: None,
            from: None,
            until: None,
            skip: 0,
            every: 1,
            probability: 1.0,
            seed: 0,
            times: None,
        }
    }
}

/// What a client asks for. Within a transaction it is the same operation.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum FaultOperation {
    /// Of a sender or a receiver.
    Attach,
    AttachSender,
    /// Without a session that is asked for.
    AttachReceiver,
    AcceptSession,
    /// A message is handed out to a receiver.
    Receive,
    Send,
    /// A send of messages for later.
    Schedule,
    CancelScheduled,
    Complete,
    Abandon,
    Defer,
    DeadLetter,
    /// Of the locks of messages.
    Renew,
    ReceiveDeferred,
    Peek,
    BatchDelete,
    RenewSession,
    GetSessionState,
    SetSessionState,
    ListSessions,
    /// To a router.
    Publish,
    /// Of a queue, a topic, a subscription or a router, as are the next two.
    CreateEntity,
    UpdateEntity,
    DeleteEntity,
    AddRule,
    RemoveRule,
    ListRules,
    /// Of a router to a queue, a topic or another router.
    Bind,
    Unbind,
    /// A transaction begins.
    Declare,
    /// A transaction is discharged, as is done by the next one.
    Commit,
    Rollback,
}

/// What happens instead of an operation, or to it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultEffect {
    /// It is not carried out, and refused with this.
    Refuse(InjectedError),
    /// The connection is dropped.
    Disconnect(DisconnectTime),
    /// It is not carried out, and its link is detached with this.
    Detach(InjectedError),
    /// The same, and the session of its link ends with this.
    End(InjectedError),
    /// The same, and the connection is closed with this.
    Close(InjectedError),
    /// It is carried out after this number of milliseconds.
    DelayMs(u64),
    /// It is carried out, and answered this number of milliseconds later.
    DelayAnswerMs(u64),
    /// It waits until no more than this number of them is carried out in a second.
    ThrottlePerSecond(u32),
    /// It is carried out, and its connection has no credit to send for this number of milliseconds.
    WithholdCreditMs(u64),
    /// It is not carried out, and its client's token for the entity has expired.
    ExpireToken,
    /// The message's lock is lost just before, and its delivery has failed.
    LoseLock,
    /// A completion is answered as done, and the message is delivered again.
    DeliverAgain,
}

/// When a connection is dropped.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisconnectTime {
    /// The operation is not carried out.
    Before,
    /// It is carried out and stored, and its answer is lost.
    After,
}

/// An HTTP request, as fault rules see it before it is carried out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpRequest {
    /// The one that it belongs to.
    pub namespace: NamespaceId,
    /// In capital letters.
    pub method: String,
    /// Decoded, without the query.
    pub path: String,
    /// The name of its key or identity, if a rule asks for that.
    pub key: Option<String>,
}

/// What a rule does to an HTTP request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HttpFault {
    /// It is not carried out, and refused with this.
    Refuse(InjectedError),
    /// The connection is dropped.
    Disconnect(DisconnectTime),
}

/// Whose connection it is, as fault rules compare it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClientNames {
    /// The container id of its open.
    pub container_id: String,
    /// The names of the keys and identities that it has signed in with.
    pub keys: Vec<String>,
}

/// Which part of a connection a rule ends, and with what.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InjectedEnd {
    /// The link of the operation is detached.
    Link(InjectedError),
    /// Its session ends.
    Session(InjectedError),
    /// Its connection is closed.
    Connection(InjectedError),
    /// The token for its entity has expired, and what depends on it is detached.
    Token,
}

/// The part of a client that asked for an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum Requester {
    Receiver(ReceiverId),
    Request(RequestId),
}

impl Requester {
    /// Its connection.
    #[must_use]
    pub fn connection(self) -> ConnectionId {
        match self {
            Self::Receiver(receiver) => receiver.connection,
            Self::Request(request) => request.connection,
        }
    }
}

/// A rule and what it has done.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the field is named for what it is")]
pub struct FaultDescription {
    pub rule: FaultRule,
    /// How many operations have fitted.
    pub matched: u64,
    /// How many of them have failed by it.
    pub injected: u64,
}

impl HttpFault {
    /// That of an effect which HTTP requests can have.
    pub(crate) fn of(effect: FaultEffect) -> Option<Self> {
        match effect {
            FaultEffect::Refuse(error) => Some(Self::Refuse(error)),
            FaultEffect::Disconnect(time) => Some(Self::Disconnect(time)),
            _ => None,
        }
    }
}

impl FaultRule {
    /// Whether it is for that operation, and its effect can be had on it.
    pub(crate) fn is_for(&self, operation: FaultOperation) -> bool {
        let operations = &self.matches.operations;
        let is_named = |named: &FaultOperation| *named == operation || named.includes(operation);
        self.effect.is_possible(operation)
            && (operations.is_empty() || operations.iter().any(is_named))
    }

    /// Whether it compares messages that clients are given.
    pub(crate) fn follows_messages(&self) -> bool {
        let compares = self.matches.message_id.is_some() || self.matches.filter.is_some();
        compares && OF_GIVEN.iter().any(|operation| self.is_for(*operation))
    }
}

impl FaultMatch {
    /// Whether it has to be known whose operation it is.
    pub(crate) fn names_client(&self) -> bool {
        self.client.is_some() || self.key.is_some()
    }

    /// Whether the rule has any effect at that moment.
    pub(crate) fn is_in_force(&self, now: Wall) -> bool {
        self.from.is_none_or(|from| from <= now.0) && self.until.is_none_or(|until| now.0 < until)
    }
}

impl FaultEffect {
    /// Whether something waits because of it.
    pub(crate) fn delays(self) -> bool {
        matches!(
            self,
            Self::DelayMs(_)
                | Self::DelayAnswerMs(_)
                | Self::ThrottlePerSecond(_)
                | Self::WithholdCreditMs(_)
        )
    }

    /// Whether it can be had on that operation.
    pub(crate) fn is_possible(self, operation: FaultOperation) -> bool {
        match self.scope() {
            Scope::Only(possible) => possible.contains(&operation),
            Scope::AllBut(impossible) => !impossible.contains(&operation),
        }
    }

    fn scope(self) -> Scope {
        use FaultOperation::{
            Abandon, AcceptSession, Attach, AttachReceiver, Commit, Complete, DeadLetter, Declare,
            Defer, Receive, Renew, Rollback,
        };
        match self {
            Self::DeliverAgain => Scope::Only(&[Complete]),
            Self::LoseLock => Scope::Only(&[Complete, Abandon, Defer, DeadLetter, Renew]),
            // Credit for a receiver that is not there yet would be lost, and commands of a
            // transaction keep their order.
            Self::DelayMs(_) | Self::ThrottlePerSecond(_) => Scope::AllBut(&[
                Attach,
                AttachReceiver,
                AcceptSession,
                Declare,
                Commit,
                Rollback,
            ]),
            // Messages would come before the answer to a receiver that is let in.
            Self::DelayAnswerMs(_) => {
                Scope::AllBut(&[Attach, AttachReceiver, AcceptSession, Receive])
            }
            // Its client has asked for nothing that could be refused.
            Self::Refuse(_) => Scope::AllBut(&[Receive]),
            Self::WithholdCreditMs(_)
            | Self::ExpireToken
            | Self::Disconnect(_)
            | Self::Detach(_)
            | Self::End(_)
            | Self::Close(_) => Scope::AllBut(&[]),
        }
    }
}

impl FaultOperation {
    /// Whether it stands for another one in the operations of a rule.
    fn includes(self, other: Self) -> bool {
        self == Self::Attach && matches!(other, Self::AttachSender | Self::AttachReceiver)
    }
}

/// The operations that an effect can be had on.
enum Scope {
    Only(&'static [FaultOperation]),
    AllBut(&'static [FaultOperation]),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, operations) = match self {
            Self::Only(possible) => ("possible for only", possible),
            Self::AllBut(impossible) => ("possible for all but", impossible),
        };
        write!(f, "{start} {}", list(operations))
    }
}

impl fmt::Display for FaultOperation {
    /// As JSON has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

fn list(operations: &[FaultOperation]) -> String {
    let names = operations.iter().map(FaultOperation::to_string);
    names.collect::<Vec<_>>().join(", ")
}
