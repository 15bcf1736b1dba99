//! Settings of queues and of the broker. Durations are milliseconds, sizes bytes; `u64::MAX` is
//! "never".

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use serde::{Deserialize, Serialize};

use crate::api::declared::{Declared, QueueType};
use crate::api::delayed_retry::DelayedRetry;
use crate::api::retry_backoff::RetryBackoff;
use crate::api::tier::Tier;
use crate::api::time::Wall;

/// When messages past their deadline leave. (docs/spec/README.md#settled)
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expiry {
    /// Within a second, wherever they stand, with no receiver attached.
    #[default]
    Eager,
    /// Only while a receiver is attached.
    Cloud,
}

/// What becomes of message locks when their connection goes. (docs/spec/README.md#settled)
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocksOnDisconnect {
    /// They run on and can be settled by token from elsewhere.
    #[default]
    Keep,
    /// The messages are available at once, each with its count raised.
    Drop,
}

/// What a lost connection does to the delivery counts of the sessions that its receivers hold.
/// (docs/spec/entities.md#10)
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionCountOnDisconnect {
    /// They stay as they are.
    #[default]
    Keep,
    /// Each message that was held comes back with its count raised.
    Raise,
}

/// Where messages go that cannot be forwarded. (docs/spec/README.md#settled)
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardFailures {
    /// To the source's transfer dead-letter queue.
    #[default]
    Transfer,
    /// To the source's ordinary dead-letter queue.
    DeadLetter,
}

/// How a forward to a full destination is tried again. (docs/spec/entities.md#14.4)
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ForwardRetry {
    /// Milliseconds between two tries.
    pub interval: u64,
    /// Milliseconds until it fails, from the moment at which the destination was found full, and
    /// not before the message has waited for as long.
    pub time_out: u64,
}

impl Default for ForwardRetry {
    fn default() -> Self {
        Self {
            interval: 1_000,
            time_out: 60_000,
        }
    }
}

/// What becomes of the message with which a queue has more than it may hold.
/// (docs/spec/rabbitmq.md#12.4)
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// The oldest available message is dead-lettered.
    #[default]
    DropHead,
    /// The new message is refused.
    RejectPublish,
    /// The new message is refused, and becomes a dead letter.
    RejectPublishDlx,
}

/// What becomes of a dead letter that a queue of its router does not take, or that has none.
/// (docs/spec/rabbitmq.md#12.5)
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadLetterStrategy {
    /// It is dropped there.
    #[default]
    AtMostOnce,
    /// It stays until all take it, in a queue that refuses messages at its limit; it is dropped in
    /// others.
    AtLeastOnce,
}

/// The levels of a queue that gives out messages of a higher priority first.
/// (docs/spec/rabbitmq.md#10.7)
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Priorities {
    /// The highest level, which is that of all higher priorities too.
    pub highest: u8,
    /// The level of a message without a priority.
    pub default: u8,
}

impl Priorities {
    /// Those of RabbitMQ's quorum queues.
    pub const QUORUM: Self = Self {
        highest: 31,
        default: 4,
    };

    /// The level of a message with this priority.
    #[must_use]
    pub fn level(self, priority: Option<u8>) -> u8 {
        priority.unwrap_or(self.default).min(self.highest)
    }
}

/// What an entity lets clients do. Settling what is lent, counting and managing work in all of
/// them. (docs/spec/entities.md#3)
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    #[default]
    Active,
    /// Neither to be sent to nor received from.
    Disabled,
    SendDisabled,
    ReceiveDisabled,
}

impl Status {
    /// Whether messages may be sent, forwarded or scheduled here.
    #[must_use]
    pub fn allows_send(self) -> bool {
        matches!(self, Self::Active | Self::ReceiveDisabled)
    }

    /// Whether messages may be received, browsed or forwarded from here.
    #[must_use]
    pub fn allows_receive(self) -> bool {
        matches!(self, Self::Active | Self::SendDisabled)
    }
}

/// A queue's properties that change what it does. (docs/spec/entities.md#2.1)
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct QueueSettings {
    pub lock_duration: u64,
    pub max_delivery_count: u32,
    /// Default and ceiling of messages' own time to live.
    pub default_message_time_to_live: u64,
    pub dead_lettering_on_message_expiration: bool,
    /// Bytes of the entity, subqueues included.
    pub max_size: u64,
    /// Bytes of one message; `None` takes the broker's.
    pub max_message_size: Option<u64>,
    /// `None` takes the broker's.
    pub expiry: Option<Expiry>,
    pub requires_session: bool,
    pub requires_duplicate_detection: bool,
    pub duplicate_detection_history_time_window: u64,
    pub forward_to: Option<String>,
    pub forward_dead_lettered_messages_to: Option<String>,
    /// The router that dead letters go to, if they are not forwarded. It may be missing.
    /// (docs/spec/rabbitmq.md#12.5)
    pub dead_letter_router: Option<String>,
    /// The key with which they are routed there; without one, the keys they had come by.
    pub dead_letter_key: Option<String>,
    pub dead_letter_strategy: DeadLetterStrategy,
    pub status: Status,
    /// Deleted with all that is in it when it has been unused for this long. Never, where messages
    /// are forwarded from. (docs/spec/entities.md#15)
    pub auto_delete_on_idle: u64,
    /// Deleted with all that is in it when it has had no receiver for this long.
    /// (docs/spec/rabbitmq.md#12.3)
    pub expires: u64,
    /// Deleted with all that is in it when its last receiver goes.
    pub auto_delete: bool,
    /// Whether only the connection that made it receives from it. It goes with that connection.
    /// (docs/spec/rabbitmq.md#7)
    pub exclusive: bool,
    /// Whether one receiver at a time is given messages: the first one, and when that goes, of the
    /// highest priority the oldest. (docs/spec/rabbitmq.md#10.1)
    pub single_active_receiver: bool,
    /// Whether messages of a higher priority are given out before others.
    pub priorities: Option<Priorities>,
    /// Available messages that it may hold, and their bytes. (docs/spec/rabbitmq.md#12.4)
    pub max_length: Option<u64>,
    pub max_length_bytes: Option<u64>,
    pub overflow: Overflow,
    pub retry_backoff: Option<RetryBackoff>,
    pub delayed_retry: DelayedRetry,
    /// Milliseconds for which a receiver may hold a message by a `LinkLock`; 0 for any time.
    /// (docs/spec/rabbitmq.md#10.6)
    pub consumer_timeout: Option<u64>,
    /// Of a queue that a client of RabbitMQ has declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
}

impl QueueSettings {
    /// The type that policies know a queue by.
    pub(crate) fn queue_type(&self) -> QueueType {
        let declared = self.declared;
        declared.map_or(QueueType::Quorum, |declared| declared.queue_type)
    }

    /// Whether dead letters are dropped, as in RabbitMQ: of a declared queue that says nowhere
    /// where they go. (docs/spec/rabbitmq.md#12.5)
    #[must_use]
    pub fn drops_dead_letters(&self) -> bool {
        self.declared.is_some()
            && self.dead_letter_router.is_none()
            && self.forward_dead_lettered_messages_to.is_none()
    }

    /// Takes over what only a declaration of RabbitMQ's clients says, and it says it once. A
    /// description of Service Bus has the rest: the table of entity properties.
    pub(crate) fn keep_declared(&mut self, before: &Self) {
        // Every field is named, so that one that is added is decided on here.
        let Self {
            lock_duration: _,
            max_delivery_count: _,
            default_message_time_to_live: _,
            dead_lettering_on_message_expiration: _,
            max_size: _,
            max_message_size: _,
            expiry: _,
            requires_session: _,
            requires_duplicate_detection: _,
            duplicate_detection_history_time_window: _,
            forward_to: _,
            forward_dead_lettered_messages_to: _,
            dead_letter_router,
            dead_letter_key,
            dead_letter_strategy,
            status: _,
            auto_delete_on_idle: _,
            expires: _,
            auto_delete,
            exclusive,
            single_active_receiver,
            priorities,
            max_length: _,
            max_length_bytes: _,
            overflow: _,
            retry_backoff: _,
            delayed_retry,
            consumer_timeout,
            declared,
        } = self;
        dead_letter_router.clone_from(&before.dead_letter_router);
        dead_letter_key.clone_from(&before.dead_letter_key);
        *dead_letter_strategy = before.dead_letter_strategy;
        *auto_delete = before.auto_delete;
        *exclusive = before.exclusive;
        *single_active_receiver = before.single_active_receiver;
        *priorities = before.priorities;
        *delayed_retry = before.delayed_retry;
        *consumer_timeout = before.consumer_timeout;
        *declared = before.declared;
    }

    /// How long a message waits that comes back with this delivery count, which its return has
    /// raised if its delivery `failed`.
    pub(crate) fn retry_delay(&self, delivery_count: u32, failed: bool) -> Option<u64> {
        let backoff = self.retry_backoff.filter(|_| failed);
        let backoff = backoff.map(|backoff| backoff.delay(delivery_count));
        backoff.max(self.delayed_retry.delay(delivery_count, failed))
    }

    /// Whether dead letters wait for the queues that do not take them.
    pub(crate) fn keeps_dead_letters(&self) -> bool {
        self.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce
            && self.overflow == Overflow::RejectPublish
    }
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            lock_duration: 60_000,
            max_delivery_count: 10,
            default_message_time_to_live: u64::MAX,
            dead_lettering_on_message_expiration: false,
            max_size: 1 << 30,
            max_message_size: None,
            expiry: None,
            requires_session: false,
            requires_duplicate_detection: false,
            duplicate_detection_history_time_window: 600_000,
            forward_to: None,
            forward_dead_lettered_messages_to: None,
            dead_letter_router: None,
            dead_letter_key: None,
            dead_letter_strategy: DeadLetterStrategy::AtMostOnce,
            status: Status::Active,
            auto_delete_on_idle: u64::MAX,
            expires: u64::MAX,
            auto_delete: false,
            exclusive: false,
            single_active_receiver: false,
            priorities: None,
            max_length: None,
            max_length_bytes: None,
            overflow: Overflow::DropHead,
            retry_backoff: None,
            delayed_retry: DelayedRetry::default(),
            consumer_timeout: None,
            declared: None,
        }
    }
}

/// A subscription's properties that change what it does. (docs/spec/entities.md#2.3)
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SubscriptionSettings {
    /// Those that it has in common with a queue. Size, size of a message and duplicates are its
    /// topic's.
    pub queue: QueueSettings,
    /// Whether a message whose filters cannot be evaluated is dead-lettered; otherwise it is not
    /// selected. (docs/spec/entities.md#17.9)
    pub dead_lettering_on_filter_evaluation_exceptions: bool,
}

impl Default for SubscriptionSettings {
    fn default() -> Self {
        Self {
            queue: QueueSettings::default(),
            dead_lettering_on_filter_evaluation_exceptions: true,
        }
    }
}

/// What holds for all entities of a broker, and the bounds of its memory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokerSettings {
    /// Seeds the generator of lock tokens.
    pub seed: [u8; 32],
    /// When the data directory was first used, if that is known: then the default namespace was
    /// made.
    pub first_start: Option<Wall>,
    pub tier: Tier,
    pub expiry: Expiry,
    pub locks_on_disconnect: LocksOnDisconnect,
    pub session_count_on_disconnect: SessionCountOnDisconnect,
    pub forward_failures: ForwardFailures,
    pub forward_retry: ForwardRetry,
    /// Whether queues that RabbitMQ's clients have declared without a dead-letter exchange keep
    /// their dead letters, as all other queues do. (docs/spec/rabbitmq.md#12.5)
    pub keep_undead_lettered: bool,
    /// The largest message, in bytes, that is forwarded into an entity without a limit of its own.
    pub max_message_size: u64,
    /// Most available messages of one subqueue known in memory.
    pub window: usize,
    /// The same of one held session to begin with. A holder that takes more of it gets more, while
    /// all sessions of a queue have no more than `window` beyond this.
    pub session_window: usize,
    /// Bytes of bodies kept in memory for receivers that come soon.
    pub body_bytes: usize,
    /// Bytes given to a connection that it has not written yet; beyond it nothing more is locked
    /// for it.
    pub output_buffer_bytes: usize,
    /// Units of background work (expiry) in one turn; at least 2.
    pub turn_work: usize,
    /// Most messages locked at once in one subqueue.
    pub max_locked: usize,
    /// Bytes of changed properties kept with the locks of one subqueue; beyond it none is given.
    pub locked_bytes: usize,
    /// Most dynamic nodes that are there by one connection.
    pub nodes_per_connection: usize,
    /// Bytes that all dynamic nodes may take, which are in memory alone.
    pub node_bytes: u64,
    pub transactions: TransactionSettings,
    /// Whether what happens to messages is recorded, in namespaces that do not say.
    pub lineage: bool,
    /// Bytes of such a record of one namespace; without any, nothing is recorded.
    pub lineage_bytes: usize,
}

/// Those of the settings that may change while the broker runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokerLimits {
    pub output_buffer_bytes: usize,
    pub forward_retry: ForwardRetry,
    pub nodes_per_connection: usize,
    pub node_bytes: u64,
    pub transactions: TransactionSettings,
}

impl BrokerSettings {
    /// What of them may change.
    #[must_use]
    pub fn limits(&self) -> BrokerLimits {
        BrokerLimits {
            output_buffer_bytes: self.output_buffer_bytes,
            forward_retry: self.forward_retry,
            nodes_per_connection: self.nodes_per_connection,
            node_bytes: self.node_bytes,
            transactions: self.transactions.clone(),
        }
    }

    /// Takes over what has changed. What is there already stays, however much it is.
    pub fn set_limits(&mut self, limits: BrokerLimits) {
        self.output_buffer_bytes = limits.output_buffer_bytes;
        self.forward_retry = limits.forward_retry;
        self.nodes_per_connection = limits.nodes_per_connection;
        self.node_bytes = limits.node_bytes;
        self.transactions = limits.transactions;
    }
}

/// Bounds of transactions. (docs/spec/amqp.md#8, docs/spec/entities.md#20)
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TransactionSettings {
    /// How long one may take from its first operation to its discharge, in milliseconds.
    pub life: u64,
    /// Most messages sent and settled in one.
    pub operations: usize,
    /// Most that are open at a time on one connection.
    pub open: usize,
    /// Bytes that one holds until it is discharged.
    pub bytes: usize,
    /// Bytes that all of a broker hold together.
    pub all_bytes: usize,
}

impl Default for TransactionSettings {
    fn default() -> Self {
        Self {
            life: 120_000,
            operations: 100,
            open: 64,
            bytes: 32 << 20,
            all_bytes: 128 << 20,
        }
    }
}

impl Default for BrokerSettings {
    fn default() -> Self {
        Self {
            seed: [0; 32],
            first_start: None,
            tier: Tier::Standard,
            expiry: Expiry::Eager,
            locks_on_disconnect: LocksOnDisconnect::Keep,
            session_count_on_disconnect: SessionCountOnDisconnect::Keep,
            forward_failures: ForwardFailures::Transfer,
            forward_retry: ForwardRetry::default(),
            keep_undead_lettered: false,
            max_message_size: u64::MAX,
            window: 65_536,
            session_window: 256,
            body_bytes: 16 << 20,
            output_buffer_bytes: 1 << 20,
            turn_work: 1_024,
            max_locked: 1 << 20,
            locked_bytes: 64 << 20,
            nodes_per_connection: 1_000,
            node_bytes: 256 << 20,
            transactions: TransactionSettings::default(),
            lineage: false,
            lineage_bytes: 16 << 20,
        }
    }
}
