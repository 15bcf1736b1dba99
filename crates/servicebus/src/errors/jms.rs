//! Errors of subscriptions and entities that JMS clients make. (docs/spec/amqp.md#13.2, #13.3)

use amqp::Error;
use amqp::error::condition;
use broker::{EntityError, NameError, RuleError, SubscribeError};

use super::{bad_argument, entity_missing, eviction, injected, sentence};

/// A topic that is to be a queue.
pub(crate) fn not_a_queue(resource: &str) -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        format!("'{resource}' is a topic, and the link asks for a queue."),
    )
}

/// A queue or a subscription that is to be a topic.
pub(crate) fn not_a_topic(resource: &str) -> Error {
    Error::new(
        condition::NOT_ALLOWED,
        format!("'{resource}' is not a topic, and the link asks for one."),
    )
}

/// Why a consumer of a topic has no subscription.
pub(crate) fn subscribe(error: SubscribeError, topic: &str) -> Error {
    match error {
        SubscribeError::NotFound => entity_missing(topic),
        SubscribeError::InUse(_) => Error::new(condition::NOT_ALLOWED, error.to_string()),
        SubscribeError::Name(error) => name(&error),
        SubscribeError::Entity(error) => entity(&error, topic),
        SubscribeError::Evicted(reason) => eviction(reason, topic),
    }
}

/// Why an entity was not made.
pub(crate) fn entity(error: &EntityError, resource: &str) -> Error {
    let condition = match error {
        EntityError::NotFound | EntityError::NoTopic => return entity_missing(resource),
        EntityError::Injected(error) => return injected(*error, resource),
        EntityError::TooMany { .. }
        | EntityError::Rule(RuleError::TooMany { .. } | RuleError::TooLarge { .. }) => {
            condition::RESOURCE_LIMIT_EXCEEDED
        }
        EntityError::Invalid(_) | EntityError::Rule(_) => condition::INVALID_FIELD,
        _ => condition::NOT_ALLOWED,
    };
    Error::new(condition, sentence(&error.to_string()))
}

/// Why a subscription was not deleted.
pub(crate) fn unsubscribe(error: &EntityError) -> Error {
    Error::new(condition::NOT_ALLOWED, sentence(&error.to_string()))
}

fn name(error: &NameError) -> Error {
    match error {
        NameError::Length { .. } => Error::new(
            condition::ARGUMENT_OUT_OF_RANGE,
            sentence(&error.to_string()),
        ),
        _ => bad_argument(error.to_string()),
    }
}
