//! Queue: a queue that is created for a run and deleted after it.

use hyper::Method;
use hyper::header::{HeaderName, IF_NONE_MATCH};
use serde_json::{Value, json};

use crate::arguments::BrokerArguments;
use crate::command_error::CommandError;
use crate::commands::administration::request::{Request, path_of};

/// Only makes what is not there.
const NEW: &[(HeaderName, &str)] = &[(IF_NONE_MATCH, "*")];

/// Bytes for what a message has besides its body.
const ROOM: usize = 4 << 10;
/// The default maximum message size of a queue.
const DEFAULT_MESSAGE_SIZE: usize = 256 << 10;

/// A queue that is there.
pub struct Created {
    name: String,
}

impl Created {
    /// Creates it: large, for bodies of `size` bytes, with long locks, and deleted when idle if
    /// this process cannot delete it.
    pub fn make(name: &str, size: usize, broker: &BrokerArguments) -> Result<Self, CommandError> {
        let properties = json!({
            "kind": "queue",
            "max-size-in-megabytes": 81_920,
            "lock-duration": "PT5M",
            "auto-delete-on-idle": "PT5M",
            "max-message-size": (size + ROOM).max(DEFAULT_MESSAGE_SIZE).to_string(),
        });
        let body = match properties {
            Value::Object(body) => Some(body),
            _ => None,
        };
        Request::new(Method::PUT, path_of(name), NEW, body).send(broker)?;
        let name = name.to_owned();
        Ok(Self { name })
    }

    /// Deletes it.
    pub fn delete(self, broker: &BrokerArguments) -> Result<(), CommandError> {
        Request::delete(path_of(&self.name)).send(broker)?;
        Ok(())
    }
}
