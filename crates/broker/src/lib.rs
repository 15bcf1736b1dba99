//! The deterministic broker core: queues, locks, expiry and dead letters.
//!
//! Commands and [`Now`] go in, effects come out; nothing here has a clock, a socket, a disk or a
//! random source. [`Shard`] joins a [`Broker`] to a store: it decides all that arrived, submits
//! the writes as one, and hands out what has become safe to say.

pub mod shard;

mod administration;
mod api;
mod broker;
mod client_affine;
mod context;
mod delete;
mod entities;
mod expire;
mod fault;
mod forward;
mod lineage;
mod message;
mod node;
mod queue;
mod receive;
mod router;
mod send;
mod sessions;
mod settle;
mod snapshot;
mod subqueue;
mod topic;
mod transaction;

pub use amqp::Value;
pub use api::activity::{
    ActiveHold, ActiveLock, ActiveReceiver, ActiveSession, Activity, ActivityWanted,
};
pub use api::additions::Additions;
pub use api::batch::{Batch, Ensured, MAX_BATCH, MAX_BATCH_BYTES};
pub use api::client_affine::{
    ClientAffineProperties, SubscribeError, SubscribeRequest, Subscribed, client_affine_name,
};
pub use api::command::{Access, Command, RedrivenMessage, SessionFilter};
pub use api::contents::{Contents, FrozenEntity, LoadTarget, Piece};
pub use api::death::{Death, DeathReason, Deaths};
pub use api::declared::{Declared, QueueType};
pub use api::delayed_retry::{DelayedRetry, RetriedMessages};
pub use api::entity_error::EntityError;
pub use api::error::{
    Eviction, RequestError, SendError, SessionError, SettleError, TransactionError,
};
pub use api::fault::check::check_faults;
pub use api::fault::{
    ClientNames, DisconnectTime, FaultDescription, FaultEffect, FaultMatch, FaultOperation,
    FaultRule, HttpFault, HttpRequest, InjectedEnd, MAX_FAULTS, Requester,
};
pub use api::forward_error::{DeadLetterReason, DescribeForwardError, ForwardError};
pub use api::id::{
    ConnectionId, LockToken, ReadId, ReceiverId, RequestId, Subqueue, SubqueueId, TransactionId,
};
pub use api::incoming::Incoming;
pub use api::info::{Below, Deadline, EntityInfo, MessageCounts, QueueInfo, SentVia};
pub use api::injected_error::InjectedError;
pub use api::kind::EntityKind;
pub use api::latency::{LATENCY_BUCKETS, Latency};
pub use api::lineage::{
    DropReason, History, HistoryEvent, HistoryQuery, LineageEffects, LineageEvent, LockEnd,
    MessageEvent, MessagePlace, Settlement,
};
pub use api::name::{
    DEFAULT_RULE, NameError, check_path, check_rule_name, check_subscription_name,
};
pub use api::namespace::{
    DEFAULT_NAMESPACE, MAX_NAMESPACES, NamespaceAnswer, NamespaceChange, NamespaceDefinition,
    NamespaceDescription, NamespaceLimits, NamespaceOrder, name_in_host,
};
pub use api::node::{
    LifetimePolicy, Node, NodeError, NodeKind, NodeLinkId, NodeRequest, NodeUse, node_at,
    node_of_token, node_path, node_token,
};
pub use api::operation::{Operation, RefusalReport};
pub use api::order::{Answer, EntityDescription, EntityPath, Listing, NamespaceInfo, Order};
pub use api::outcome::{DeadLettering, Outcome, RetryTime};
pub use api::output::{
    Browsed, Delivery, EntityChange, LockTime, MessageState, Output, SessionPage,
};
pub use api::page::Page;
pub use api::policy::arguments::{IntegerType, QueueArguments};
pub use api::policy::{AppliedPolicy, ApplyTo, MAX_POLICIES, Policy, PolicyLayer};
pub use api::publication::{Publication, PublishError, Routed};
pub use api::receive_mode::ReceiveMode;
pub use api::resource::Resource;
pub use api::retry_backoff::RetryBackoff;
pub use api::router::{
    Binding, BindingDestination, DEFAULT_ROUTER, MAX_ARGUMENT_BYTES, MAX_BINDING_ARGUMENT_BYTES,
    MAX_BINDINGS, MAX_COPIED_BYTES, MAX_ROUTER_NAME, MAX_ROUTERS, MAX_ROUTING_STEPS,
    RESERVED_ROUTERS, RouterAnswer, RouterDifference, RouterError, RouterInfo, RouterKind,
    RouterOrder, RouterSettings, check_router_name,
};
pub use api::rule::{
    Distribution, FilterDescription, OriginalValue, RuleDescription, RuleError, RuleSnapshot,
    RuleUsage,
};
pub use api::settings::{
    BrokerLimits, BrokerSettings, DeadLetterStrategy, Expiry, ForwardFailures, ForwardRetry,
    LocksOnDisconnect, Overflow, Priorities, QueueSettings, SessionCountOnDisconnect, Status,
    SubscriptionSettings, TransactionSettings,
};
pub use api::snapshot::{MAX_SNAPSHOT_MESSAGES, MAX_SNAPSHOTS, SnapshotDescription};
pub use api::store_only::{AuthorizationRule, OriginalTexts, StoreOnlyProperties};
pub use api::tier::Tier;
pub use api::time::{Mono, Now, Wall};
pub use api::traffic::Traffic;
pub use api::{command, id, output, settings, time};
pub use broker::Broker;
pub use context::effects::{Effects, ReadRequest};
pub use filter::{Correlation, CorrelationField, GIVEN_ID, Selector};
pub use lineage::reader::LineageReader;
pub use message::route::{FURTHER_KEYS, ROUTER, ROUTING_KEY};
pub use queue::session_key::is_same_session;
pub use send::enqueue::MAX_GROWTH;
pub use shard::Shard;
