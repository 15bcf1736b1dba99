//! Client-affine subscriptions: those that a JMS client makes by attaching to a topic.
//! (docs/spec/amqp.md#13.3, #13.4)
//!
//! A durable one belongs to its name and client id; any other has at least one consumer.
//! Invariant: the name of such a subscription has a `$`, and no other's has.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use serde::{Deserialize, Serialize};
use store::EntityId;

use crate::api::entity_error::EntityError;
use crate::api::error::Eviction;
use crate::api::name::{NameError, check_subscription_name};
use crate::api::receive_mode::ReceiveMode;

/// The longest name below a topic, in characters.
const LONGEST_NAME: usize = 260;

/// What only a subscription has that a client made.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClientAffineProperties {
    /// Empty if the client has none.
    pub client_id: String,
    pub is_durable: bool,
    pub is_shared: bool,
    /// The JMS selector that the client gave; `None` selects everything.
    pub selector: Option<String>,
}

/// A consumer of a topic asks for its subscription.
#[derive(Clone, Debug)]
pub struct SubscribeRequest {
    pub topic: EntityId,
    /// The name that the client gave; without one it gets a subscription of its own.
    pub name: Option<String>,
    pub properties: ClientAffineProperties,
    /// Of a subscription that is made now.
    pub auto_delete_on_idle: u64,
    pub mode: ReceiveMode,
}

/// The subscription that a consumer is attached to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Subscribed {
    pub entity: EntityId,
    pub path: String,
    /// Whether it was made for it.
    pub is_new: bool,
}

/// Why a consumer has no subscription.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SubscribeError {
    #[error("the topic does not exist")]
    NotFound,
    /// The cloud's sentence.
    #[error(
        "Cannot create a new consumer on subscriber {0} because there is already a subscriber using \
         the same name with an active consumer on the same or different topic."
    )]
    InUse(String),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Entity(#[from] EntityError),
    #[error("the subscription lets no receiver in")]
    Evicted(Eviction),
}

/// The name below its topic of a subscription that a client calls `name`.
///
/// # Errors
/// When no subscription can have it; says why.
pub fn client_affine_name(
    name: &str,
    client_id: &str,
    is_durable: bool,
) -> Result<String, NameError> {
    check_subscription_name(name)?;
    if client_id.contains(|c: char| matches!(c, '/' | '\\') || c.is_control()) {
        return Err(NameError::ClientId(client_id.to_owned()));
    }
    let suffix = if is_durable { "D" } else { "ND" };
    let whole = format!("{name}${client_id}${suffix}");
    let count = whole.chars().count();
    if count > LONGEST_NAME {
        return Err(NameError::Length {
            what: "the name of a subscription with its client id",
            limit: LONGEST_NAME,
            count,
        });
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, client_id: &str, is_durable: bool, expected: &str) {
        let found = client_affine_name(name, client_id, is_durable);
        assert_eq!(
            found.map_err(|error| error.to_string()),
            Ok(expected.to_owned())
        );
    }

    fn check_refused(name: &str, client_id: &str, expected: &str) {
        let refused = client_affine_name(name, client_id, true).unwrap_err();
        assert_eq!(refused.to_string(), expected);
    }

    #[test]
    fn the_name_tells_client_and_durability() {
        check("prices", "client1", true, "prices$client1$D");
        check("prices", "", true, "prices$$D");
        check("prices", "client1", false, "prices$client1$ND");
        check("prices", "", false, "prices$$ND");
        check(
            "prices",
            "Ann's desk: $1, 5%",
            true,
            "prices$Ann's desk: $1, 5%$D",
        );
    }

    #[test]
    fn names_that_no_path_can_carry_are_refused() {
        for client_id in ["a/b", "a\\b", "a\nb"] {
            let expected =
                format!("the client id '{client_id}' contains '/', '\\' or a control character");
            check_refused("prices", client_id, &expected);
        }
        check_refused(
            "prices",
            &"c".repeat(252),
            "the name of a subscription with its client id has 1 to 260 characters, and this one \
             has 261",
        );
        let long = "n".repeat(51);
        check_refused(
            &long,
            "",
            "the name of a subscription has 1 to 50 characters, and this one has 51",
        );
        assert!(client_affine_name("a$b", "", true).is_err());
    }
}
