//! Errors: the conditions of the dialect and the texts that its contract fixes, in one place. A bad
//! argument gets its text where it is read.
//!
//! Clients decide by the condition, and some by parts of the text, so the wording is that of the
//! contract where it gives one (docs/spec/amqp.md#2.6, #2.7, #3.4, #3.6, #5.2, #5.5). No text ever
//! repeats a token, a signature or a key.

use access::RequiredRight;
use amqp::error::condition;
use amqp::{DecodeError, Error, Value};
use broker::{ConnectionId, Eviction, SessionError, TransactionError};

mod dynamic;
mod entity_name;
mod forced;
mod from_broker;
mod jms;
mod namespace;

pub(crate) use dynamic::{
    bad_distribution_modes, bad_lifetime_policy, bad_node_properties, dynamic_with_address,
    no_dynamic_nodes, no_dynamic_topic_for_receiver, no_relay_to_node, no_to, node, node_deleted,
    relay_address_too_long, unknown_lifetime, unsupported_distribution_modes,
};
pub(crate) use entity_name::EntityName;
pub(crate) use forced::{connection_forced, link_forced};
pub use from_broker::describe_forward_error;
pub(crate) use from_broker::{injected, message_not_found, request, rule, send, settle};
pub(crate) use jms::{entity, not_a_queue, not_a_topic, subscribe, unsubscribe};
pub(crate) use namespace::{ambiguous_namespace, namespace_deleted, unknown_virtual_host};

/// An entity that is not there. Two SDKs match on the words. (docs/spec/amqp.md#3.6)
pub(crate) fn entity_missing(resource: &str) -> Error {
    Error::new(condition::NOT_FOUND, missing_text(resource))
}

/// The words that an SDK knows a missing entity by.
pub(crate) fn missing_text(resource: &str) -> String {
    format!(
        "The messaging entity '{resource}' could not be found. To know more visit \
         https://aka.ms/sbResourceMgrExceptions."
    )
}

/// An entity that is disabled for receivers. (docs/spec/amqp.md#3.6)
pub(crate) fn disabled(resource: &str) -> Error {
    Error::new(
        condition::ENTITY_DISABLED,
        format!("Messaging entity '{resource}' is currently disabled."),
    )
}

/// An open link whose entity was disabled. Retriable, so that SDKs attach again and get the
/// entity's own error. `code` names the link. (docs/spec/amqp.md#10)
pub(crate) fn force_detached(link: &str, code: &str, details: &str) -> Error {
    Error::new(
        condition::DETACH_FORCED,
        format!("The link '{link}' is force detached. Code: {code}. Details: {details}"),
    )
}

/// An entity that is disabled for senders. (docs/spec/amqp.md#3.6)
pub(crate) fn disabled_for_send(resource: &str) -> Error {
    Error::new(
        condition::ENTITY_DISABLED,
        format!("Messaging entity '{resource}' is currently disabled for Send operations."),
    )
}

/// Only a topic writes to a subscription. (docs/spec/entities.md#1; docs/spec/amqp.md#3.6)
pub(crate) fn sender_to_subscription(resource: &str) -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        format!("'{resource}' is a subscription: messages are sent to its topic."),
    )
}

/// A topic keeps nothing to be received. (docs/spec/amqp.md#3.6)
pub(crate) fn receiver_from_topic(resource: &str) -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        format!("'{resource}' is a topic: messages are received from its subscriptions."),
    )
}

/// Why the broker has ended a receiver, or has not let it in.
pub(crate) fn eviction(reason: Eviction, resource: &str) -> Error {
    match reason {
        Eviction::NotFound => entity_missing(resource),
        Eviction::Disabled => disabled(resource),
        Eviction::Forwarding => forwarding_source(),
        Eviction::SessionRequired => sessionless_receiver(),
        Eviction::Exclusive => Error::new(
            condition::RESOURCE_LOCKED,
            format!("{reason}. Resource: '{resource}'."),
        ),
        // Retriable: the entity is there again, with the messages of the snapshot.
        Eviction::Restored => Error::new(
            condition::DETACH_FORCED,
            format!("{reason}; the link is to be attached again. Resource: '{resource}'."),
        ),
        Eviction::Injected(error) => injected(error, resource),
        Eviction::Unreadable { .. } => Error::new(
            condition::INTERNAL_ERROR,
            format!("{reason}. Resource: '{resource}'."),
        ),
    }
}

/// A second link to `$cbs` in one direction. (docs/spec/amqp.md#2.1)
pub(crate) fn cbs_link_is_open(connection: ConnectionId) -> Error {
    let ConnectionId(number) = connection;
    Error::new(
        condition::NOT_ALLOWED,
        format!("A link to connection '{number}' $cbs node has already been opened."),
    )
}

/// A right that the connection does not have. (docs/spec/amqp.md#2.6)
pub(crate) fn unauthorized(required_right: RequiredRight, resource: &str) -> Error {
    Error::new(
        condition::UNAUTHORIZED_ACCESS,
        unauthorized_text(required_right, resource),
    )
}

/// The words for a right that is not there.
pub(crate) fn unauthorized_text(required_right: RequiredRight, resource: &str) -> String {
    format!(
        "Unauthorized access. '{}' claim(s) are required to perform this operation. Resource: '{resource}'.",
        required_right.claim()
    )
}

/// A link whose token expired. Retriable, so that SDKs renew and reconnect. (docs/spec/amqp.md#2.7)
pub(crate) fn token_expired(link: &str, required_right: RequiredRight, resource: &str) -> Error {
    Error::new(
        condition::DETACH_FORCED,
        format!(
            "The link '{link}' is force detached. Code: RenewToken. Details: {}.",
            unauthorized_text(required_right, resource)
        ),
    )
}

/// A link for something that the tier does not have. (docs/spec/entities.md#4)
pub(crate) fn not_in_basic(what: &str) -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        format!("{what} are not supported in the Basic tier."),
    )
}

/// A message to a coordinator that is neither a declare nor a discharge. [AMQP 4.2]
pub(crate) fn no_control() -> Error {
    Error::new(
        condition::DECODE_ERROR,
        "The coordinator takes a declare or a discharge as an amqp-value.",
    )
}

/// A declare or discharge whose client does not wait for the answer. (docs/spec/amqp.md#8.1)
pub(crate) fn settled_control() -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        "A declare or discharge must be sent unsettled.",
    )
}

/// A discharge that comes before the end of a delivery. (docs/spec/amqp.md#8.1)
pub(crate) fn unfinished_delivery() -> Error {
    Error::new(
        condition::TRANSACTION_ROLLBACK,
        "The transaction is rolled back: a delivery of it is unfinished.",
    )
}

/// A transaction that is to be part of another. [AMQP 4.5.3]
pub(crate) fn no_global_transactions() -> Error {
    Error::new(
        condition::NOT_IMPLEMENTED,
        "Global transactions are not supported by this broker.",
    )
}

/// A transfer or disposition within a transaction that was not declared.
pub(crate) fn unknown_transaction() -> Error {
    Error::new(
        condition::UNKNOWN_TRANSACTION,
        "The transaction is not known on this connection.",
    )
}

/// Why a transaction, or something within one, was refused. [AMQP 4.5.9; docs/spec/amqp.md#8]
pub(crate) fn transaction(error: &TransactionError) -> Error {
    let condition = match error {
        TransactionError::Unknown => return unknown_transaction(),
        TransactionError::TimedOut => condition::TRANSACTION_TIMEOUT,
        TransactionError::RolledBack(_) => condition::TRANSACTION_ROLLBACK,
        TransactionError::OtherEntity => return other_entity(),
        TransactionError::OtherPartitionKey => condition::NOT_ALLOWED,
        TransactionError::Injected(error) => return injected(*error, ""),
        TransactionError::TooManyOpen { .. }
        | TransactionError::TooManyOperations { .. }
        | TransactionError::TooLarge { .. }
        | TransactionError::TooLargeTogether { .. } => condition::RESOURCE_LIMIT_EXCEEDED,
    };
    Error::new(condition, sentence(&error.to_string()))
}

/// A transaction may touch one top-level entity. (docs/spec/amqp.md#8.3)
pub(crate) fn other_entity() -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        "Local transactions cannot span multiple top-level entities such as queue or topic.",
    )
}

/// An error of the broker's as a sentence.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).chain(['.']).collect()
}

/// A terminus without an address to go by.
pub(crate) fn no_address() -> Error {
    Error::new(
        condition::INVALID_FIELD,
        "The link names no node: its address must be a string.",
    )
}

/// A sender on a dead-letter subqueue. (docs/spec/amqp.md#3.1)
pub(crate) fn no_sends_to_subqueue(resource: &str) -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        format!("Messages cannot be sent to the dead-letter queue '{resource}'."),
    )
}

/// A plain receiver on a session entity. (docs/spec/amqp.md#3.4)
pub(crate) fn sessionless_receiver() -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.",
    )
}

/// A text that is no selector. (docs/spec/amqp.md#3.5)
pub(crate) fn no_selector(reason: &str) -> Error {
    Error::new(
        condition::INVALID_FIELD,
        format!("The message selector is not valid: {reason}."),
    )
}

/// More selectors than one.
pub(crate) fn several_selectors() -> Error {
    Error::new(
        condition::INVALID_FIELD,
        "A receiver can have one message selector.",
    )
}

/// A distribution mode that the standard does not know. [AMQP 3.5.7]
pub(crate) fn unknown_distribution_mode() -> Error {
    Error::new(
        condition::INVALID_FIELD,
        "The distribution mode of a source must be 'move' or 'copy'.",
    )
}

/// Messages of a session come all of them and in order, to their holder alone.
pub(crate) fn session_receiver_with_filter() -> Error {
    Error::new(
        condition::NOT_IMPLEMENTED,
        "A receiver of a session can neither have a message selector nor browse.",
    )
}

/// A receiver where messages go on by themselves. (docs/spec/entities.md#14.1)
pub(crate) fn forwarding_source() -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        "Cannot create a message receiver on an entity with auto-forwarding enabled.",
    )
}

/// A session that several receivers could hold. (docs/spec/amqp.md#3.5)
pub(crate) fn non_exclusive_session() -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        "The filter 'com.microsoft:non-exclusive-session-filter' is refused: invalid filter type.",
    )
}

/// A session receiver on an entity without sessions. (docs/spec/amqp.md#3.4)
pub(crate) fn sessionful_receiver() -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        "A sessionful message receiver cannot be created on an entity that does not require sessions. \
         Ensure RequiresSession is set to true when creating a Queue or Subscription to enable \
         sessionful behavior.",
    )
}

/// Why a receiver gets no session. (docs/spec/amqp.md#3.4)
pub(crate) fn session(error: SessionError, request: &Value) -> Error {
    match error {
        SessionError::CannotBeLocked => {
            let request = match request {
                Value::Described(pair) => &pair.1,
                value => value,
            };
            let id = request.as_text().unwrap_or_default();
            Error::new(
                condition::SESSION_CANNOT_BE_LOCKED,
                format!(
                    "The requested session '{id}' cannot be accepted. It may be locked by another \
                     receiver."
                ),
            )
        }
        SessionError::Timeout => Error::new(
            condition::TIMEOUT,
            "The operation did not complete within the allotted time: no session was available.",
        ),
        SessionError::NotAllowed => sessionful_receiver(),
        SessionError::Injected(error) => injected(error, ""),
        SessionError::Unreadable => Error::new(condition::INTERNAL_ERROR, format!("{error}.")),
    }
}

/// A session that the connection does not hold. (docs/spec/amqp.md#10)
pub(crate) fn session_lock_lost() -> Error {
    Error::new(
        condition::SESSION_LOCK_LOST,
        "The session lock has expired on the MessageSession. Accept a new MessageSession.",
    )
}

/// What a message is refused with that has no session where there must be one.
/// (docs/spec/entities.md#18)
const SESSION_REQUIRED: &str = "The SessionId was not set on a message, and it cannot be sent to the \
     entity. Entities that have session support enabled can only receive messages that have the \
     SessionId set to a valid value.";

/// A message without a session, where there must be one.
fn session_required() -> Error {
    Error::new(condition::NOT_ALLOWED, SESSION_REQUIRED)
}

/// Whether it is that error.
pub(crate) fn is_session_required(error: &Error) -> bool {
    error.description.as_deref() == Some(SESSION_REQUIRED)
}

/// A client that sends without credit, far beyond the tolerance of rule 19.
pub(crate) fn credit_overrun() -> Error {
    Error::new(
        condition::TRANSFER_LIMIT_EXCEEDED,
        "The client sent far more deliveries than the credit of the link allows.",
    )
}

/// Bytes that are no message.
pub(crate) fn undecodable(error: &DecodeError) -> Error {
    Error::new(
        condition::DECODE_ERROR,
        format!("The message cannot be read: {error}."),
    )
}

/// A message format that means nothing here.
pub(crate) fn unknown_format(format: u32) -> Error {
    Error::new(
        condition::NOT_IMPLEMENTED,
        format!("The message format {format:#x} is not supported."),
    )
}

/// A message beyond the entity's limit. (docs/spec/amqp.md#5.5)
pub(crate) fn too_large(size: u64, limit: u64) -> Error {
    Error::new(
        condition::MESSAGE_SIZE_EXCEEDED,
        format!(
            "The message of {size} bytes is larger than the {limit} bytes that the entity takes."
        ),
    )
}

/// A message that is larger than its link allows; its full size is not known.
/// (docs/spec/amqp.md#5.5)
pub(crate) fn larger_than_link(limit: u64) -> Error {
    Error::new(
        condition::MESSAGE_SIZE_EXCEEDED,
        format!("The message is larger than the {limit} bytes that the link takes."),
    )
}

/// A time to live of nothing. (docs/spec/entities.md#7.1)
pub(crate) fn no_time_to_live() -> Error {
    Error::new(
        condition::INVALID_FIELD,
        "The time to live of a message must be greater than 0.",
    )
}

/// A name or quota that is exceeded. (docs/spec/entities.md#4)
pub(crate) fn out_of_range(what: &str, limit: usize, unit: &str) -> Error {
    Error::new(
        condition::ARGUMENT_OUT_OF_RANGE,
        format!("{what} is longer than the maximum of {limit} {unit}."),
    )
}

/// A number that is too small or too large.
pub(crate) fn number_out_of_range(key: &str, most: usize) -> Error {
    Error::new(
        condition::ARGUMENT_OUT_OF_RANGE,
        format!("The argument '{key}' must be between 0 and {most}."),
    )
}

/// Two properties that must agree. (docs/spec/amqp.md#4.2)
pub(crate) fn partition_key_differs() -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        "The partition key of a message must equal its session id when both are set.",
    )
}

/// A time to be scheduled for that is no time.
pub(crate) fn no_scheduled_time() -> Error {
    bad_argument("The scheduled enqueue time of a message must be a timestamp.")
}

/// An argument that makes no sense.
pub(crate) fn bad_argument(text: impl Into<String>) -> Error {
    Error::new(condition::ARGUMENT_ERROR, text.into())
}

/// A request whose answer would have nowhere to go. (docs/spec/amqp.md#2.1)
pub(crate) fn no_response_link(reply_to: &str) -> Error {
    Error::new(
        condition::NOT_FOUND,
        format!(
            "The response link '{reply_to}' was not found in the entity management node $management."
        ),
    )
}

/// A connection without links. (docs/spec/amqp.md#1.5)
pub(crate) fn idle_connection(allowed_ms: u32) -> Error {
    Error::new(
        condition::CONNECTION_FORCED,
        format!(
            "The connection was inactive for more than the allowed {allowed_ms} milliseconds and is \
             closed by container 'LinkTracker'."
        ),
    )
}

/// A connection on which one token after the other was refused.
pub(crate) fn too_many_failures(count: u32) -> Error {
    Error::new(
        condition::UNAUTHORIZED_ACCESS,
        format!("{count} tokens in a row were refused on this connection."),
    )
}

/// A lock that is not there any more. (docs/spec/amqp.md#5.2)
pub(crate) fn lock_lost() -> Error {
    Error::new(
        condition::MESSAGE_LOCK_LOST,
        "The lock supplied is invalid. Either the lock expired, or the message has already been \
         removed from the queue.",
    )
}

/// More messages in one answer than fit into one.
pub(crate) fn answer_too_large() -> Error {
    Error::new(
        condition::MESSAGE_SIZE_EXCEEDED,
        "The messages do not fit into one answer: ask for fewer at a time.",
    )
}

/// An operation that this node does not know. (docs/spec/amqp.md#7.3)
pub(crate) fn unknown_operation(operation: &str) -> Error {
    let shown: String = operation.chars().take(128).collect();
    Error::new(
        condition::NOT_IMPLEMENTED,
        format!("The operation '{shown}' is not supported."),
    )
}
