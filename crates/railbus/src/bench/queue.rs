//! Queue: one that is made for a run and goes with it.

use hyper::Method;
use hyper::header::{HeaderName, IF_NONE_MATCH};
use serde_json::{Value, json};

use crate::administration::request::{Request, path_of};
use crate::arguments::BrokerArguments;
use crate::refusal::Refusal;

/// Only makes what is not there.
const NEW: &[(HeaderName, &str)] = &[(IF_NONE_MATCH, "*")];

/// A queue that is there.
pub struct Created {
    name: String,
}

impl Created {
    /// Makes it: large, with long locks, and gone by itself if this process does not come to delete it.
    pub fn make(name: &str, broker: &BrokerArguments) -> Result<Self, Refusal> {
        let properties = json!({
            "kind": "queue",
            "max-size-in-megabytes": 81_920,
            "lock-duration": "PT5M",
            "auto-delete-on-idle": "PT5M",
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
    pub fn delete(self, broker: &BrokerArguments) -> Result<(), Refusal> {
        Request::delete(path_of(&self.name)).send(broker)?;
        Ok(())
    }
}
