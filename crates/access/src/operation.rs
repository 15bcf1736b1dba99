//! Operation: every operation of a client, and the right that it requires.
//! (docs/spec/entities.md#2.6; docs/spec/amqp.md#2.6)
//!
//! This table is the only source: each check of every protocol takes its right from here, and a
//! test tries each operation with every combination of rights.

use crate::rights::RequiredRight;

macro_rules! operations {
    ($($(#[$doc:meta])* $operation:ident: $required_right:ident $(, $name:literal)?;)*) => {
/// An operation of a client.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum Operation { $($(#[$doc])* $operation,)* }

        impl Operation {
            /// The whole table.
            pub const ALL: &[Self] = &[$(Self::$operation,)*];

/// The right that it requires.
            #[must_use]
            pub const fn required_right(self) -> RequiredRight {
                match self { $(Self::$operation => RequiredRight::$required_right,)* }
            }

/// The operation's name in a request to a management node, if it has one. (docs/spec/amqp.md#7.3)
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self { $(Self::$operation => [$($name)?].first().copied(),)* }
            }
        }
    };
}

operations! {
/// Sending a token to `$cbs`.
    PutToken: Nothing;
    /// A coordinator link; what is done within a transaction takes its own right.
    Transact: Nothing;
    /// A link on which the client sends messages.
    Send: Send;
    /// A link on which it receives and settles them, or only looks at them.
    Receive: Listen;
    /// Links to a management node, of an entity or the namespace.
    AttachManagement: SendOrListen;
/// Browsing messages.
    Peek: Listen, "com.microsoft:peek-message";
    /// Renewing the locks of messages.
    RenewLock: Listen, "com.microsoft:renew-lock";
    /// Deferred messages by number.
    ReceiveDeferred: Listen, "com.microsoft:receive-by-sequence-number";
    /// Settling by lock token.
    UpdateDisposition: Listen, "com.microsoft:update-disposition";
/// Scheduling messages.
    Schedule: Send, "com.microsoft:schedule-message";
/// Cancelling scheduled messages.
    CancelScheduled: Send, "com.microsoft:cancel-scheduled-message";
/// Deleting the oldest messages.
    DeleteBatch: Listen, "com.microsoft:batch-delete-messages";
    /// Renewing the lock of a session.
    RenewSessionLock: Listen, "com.microsoft:renew-session-lock";
    /// The state of a session.
    GetSessionState: Listen, "com.microsoft:get-session-state";
/// Replacing the state of a session.
    SetSessionState: Listen, "com.microsoft:set-session-state";
/// Listing the sessions.
    ListSessions: Listen, "com.microsoft:get-message-sessions";
    /// A rule of a subscription, as the SDKs' rule managers make them.
    AddRule: Listen, "com.microsoft:add-rule";
/// Removing such a rule.
    RemoveRule: Listen, "com.microsoft:remove-rule";
    /// The rules of a subscription.
    ListRules: Listen, "com.microsoft:enumerate-rules";
    /// Messages sent by a request of HTTP.
    PostMessages: Send;
    /// One received by such a request, locked or deleted.
    TakeMessage: Listen;
    /// One that is locked completed, unlocked, or its lock renewed.
    SettleMessage: Listen;
/// Management over HTTP, reads and changes.
    Administer: Manage;
    /// The broker's own interface, under `/$railbus/`, but for what the next two say.
    Operate: Manage;
    /// Reading entities, counts and messages there.
    Observe: Listen;
    /// Sending a message there.
    Submit: Send;
    /// `/metrics`.
    ReadMetrics: Manage;
    /// `/health`.
    CheckHealth: Nothing;
}

impl Operation {
    /// The operation that a request to a management node names.
    #[must_use]
    pub fn of_request(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|operation| operation.name() == Some(name))
    }
}
