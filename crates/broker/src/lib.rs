//! The deterministic broker core: queues, locks, expiry and dead letters.
//!
//! Commands and [`Now`] go in, effects come out; nothing here has a clock, a socket, a disk or a
//! random source. [`Shard`] joins a [`Broker`] to a store: it decides all that arrived, submits
//! the writes as one, and hands out what has become safe to say.

pub mod command;
mod deletion_scheduler;
pub mod id;
pub mod output;
pub mod settings;
pub mod shard;
pub mod time;

mod administration;
mod attach;
mod bodies;
mod broker;
mod browse;
mod cancel;
mod clients;
mod dead_letter;
mod deferred;
mod definition;
mod delete;
mod directory;
mod dispatch;
mod duplicates;
mod eviction;
mod expire;
mod expiry;
mod fetch;
mod forward;
mod head;
mod idle;
mod journal;
mod kind;
mod lock;
mod name;
mod number_map;
mod outbox;
mod patch;
mod peek;
mod properties;
mod queue;
mod read;
mod read_ahead;
mod redrive;
mod refill;
mod remove;
mod renew;
mod row;
mod rules;
mod schedule;
mod selections;
mod send;
mod sessions;
mod settle;
mod shared;
mod step;
mod store_only;
mod sub;
mod subscription;
mod sweep;
mod timetable;
mod token;
mod tombstone;
mod topic;
mod traffic;
mod transaction;
mod window;

pub use administration::{
    Answer, Batch, Below, Ensured, EntityDescription, EntityError, EntityInfo, EntityPath, Listing,
    MAX_BATCH, MAX_BATCH_BYTES, NamespaceInfo, Order, Page,
};
pub use amqp::Value;
pub use broker::{Broker, Deadline, Effects, QueueInfo};
pub use command::{Access, Command, Incoming, Operation, Outcome, ReceiveMode, SessionFilter};
pub use filter::{Correlation, Selector};
pub use forward::{DeadLetterReason, DescribeForwardError, ForwardError};
pub use id::{
    ConnectionId, LockToken, ReadId, ReceiverId, RequestId, Subqueue, SubqueueId, TransactionId,
};
pub use kind::EntityKind;
pub use name::{DEFAULT_RULE, NameError, check_path, check_rule_name, check_subscription_name};
pub use output::{
    Browsed, Delivery, EntityChange, Eviction, LockTime, MessageState, Output, RequestError,
    SendError, SessionError, SessionPage, SettleError, TransactionError,
};
pub use rules::{FilterDescription, RuleDescription, RuleError};
pub use send::MAX_GROWTH;
pub use settings::{
    BrokerLimits, BrokerSettings, Expiry, ForwardFailures, LocksOnDisconnect, QueueSettings,
    Status, SubscriptionSettings, TransactionSettings,
};
pub use shard::{ReadRequest, Shard};
pub use store_only::{AuthorizationRule, OriginalTexts, StoreOnlyProperties};
pub use time::{Mono, Now, Wall};
pub use topic::{Distribution, RuleSnapshot, RuleUsage};
pub use traffic::Traffic;
