//! JMS connection: what a client's open says about subscriptions and entities that it makes.
//! (docs/spec/amqp.md#13.1, #13.2)

use amqp::value::lookup;
use amqp::{Open, Value};

/// Container ids that a library made up begin so: the program has given no client id.
const GENERATED: &str = "ID:";
const IS_CLIENT_PROVIDER: &str = "com.microsoft:is-client-provider";
/// The shortest AutoDeleteOnIdle, in seconds. (docs/spec/entities.md#2.1)
const MIN_AUTO_DELETE: u64 = 300;

/// A client's own part in its subscriptions and entities. Durations are milliseconds.
#[derive(Debug)]
pub(crate) struct JmsConnection {
    /// Part of the names of its subscriptions; empty if the program has given none.
    pub(crate) client_id: String,
    /// Whether attaches make queues and topics that are not there.
    pub(crate) makes_entities: bool,
    pub(crate) queue_auto_delete: u64,
    pub(crate) topic_auto_delete: u64,
    pub(crate) subscription_auto_delete: u64,
}

impl JmsConnection {
    pub(crate) fn of(open: &Open) -> Self {
        let properties = open.properties.as_deref().unwrap_or_default();
        let is_generated = open.container_id.starts_with(GENERATED);
        Self {
            client_id: match is_generated {
                true => String::new(),
                false => open.container_id.clone(),
            },
            makes_entities: is_client_provider(open),
            queue_auto_delete: auto_delete(properties, "queue"),
            topic_auto_delete: auto_delete(properties, "topic"),
            subscription_auto_delete: auto_delete(properties, "subscriber"),
        }
    }
}

/// Whether a client says that it makes entities by attaching.
pub(crate) fn is_client_provider(open: &Open) -> bool {
    let properties = open.properties.as_deref().unwrap_or_default();
    lookup(properties, IS_CLIENT_PROVIDER) == Some(&Value::Bool(true))
}

impl Default for JmsConnection {
    fn default() -> Self {
        Self {
            client_id: String::new(),
            makes_entities: false,
            queue_auto_delete: u64::MAX,
            topic_auto_delete: u64::MAX,
            subscription_auto_delete: u64::MAX,
        }
    }
}

fn auto_delete(properties: &[(Value, Value)], of: &str) -> u64 {
    let key = format!("com.microsoft:{of}-auto-delete-on-idle-duration-in-seconds");
    let seconds = lookup(properties, &key).and_then(Value::as_integer);
    let seconds = seconds.and_then(|it| u64::try_from(it).ok());
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map_or(u64::MAX, |it| it.max(MIN_AUTO_DELETE).saturating_mul(1_000))
}
