//! Transfer destination: the entity that messages of a sender link go on to from the one that they
//! are sent via. (docs/spec/amqp.md#8.2)
//!
//! The client names it by a property of its attach. It need not exist: what cannot go on becomes a
//! dead letter of the via entity.

use amqp::{Attach, Error, Value};
use broker::Subqueue;

use crate::address::{EntityAddress, Node};
use crate::errors;

/// Most bytes of a path: longer ones name nothing, and would be kept. (docs/spec/entities.md#1.1)
const MAX_PATH: usize = 260;
const PROPERTY: &str = "com.microsoft:transfer-destination-address";

/// Refuses an attach that names one where messages are stored in no entity that they could be sent
/// via: they would stay where they are not meant to be.
pub(crate) fn check_none(attach: &Attach) -> Result<(), Error> {
    let properties = attach.properties.as_deref().unwrap_or_default();
    match amqp::value::lookup(properties, PROPERTY) {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(errors::bad_argument(format!(
            "The property '{PROPERTY}' is for links to queues and topics, not for dynamic nodes or \
             links without an address."
        ))),
    }
}

/// The address that an attach names, if it does.
pub(super) fn of(attach: &Attach) -> Result<Option<EntityAddress>, Error> {
    let properties = attach.properties.as_deref().unwrap_or_default();
    match amqp::value::lookup(properties, PROPERTY) {
        None | Some(Value::Null) => Ok(None),
        Some(address) => {
            let invalid = || {
                errors::bad_argument(format!(
                    "The property '{PROPERTY}' must be the address of a queue or a topic."
                ))
            };
            let address = address.as_text().ok_or_else(invalid)?;
            match Node::parse(address) {
                Node::Entity(entity)
                    if entity.subqueue == Subqueue::Main && entity.entity.len() <= MAX_PATH =>
                {
                    Ok(Some(entity))
                }
                _ => Err(invalid()),
            }
        }
    }
}
