//! Route: the router and the keys by which a message has come to its queue.
//!
//! Dialects write them among the message annotations of what is published to a router. A message
//! that does not tell was sent to its queue by name, which is the default router's key.
//! (docs/spec/rabbitmq.md#10.2)

use amqp::items::{self, Items};
use amqp::message::Sections;
use amqp::{Value, decode, encode};
use bytes::{Bytes, BytesMut};

use crate::api::router::DEFAULT_ROUTER;
use crate::message::patch::{Changes, Patch};

/// The annotation with the router.
pub const ROUTER: &str = "x-exchange";
/// The annotation with the routing key.
pub const ROUTING_KEY: &str = "x-routing-key";
/// The annotation with a list of further routing keys.
pub const FURTHER_KEYS: &str = "x-cc";

/// See the head of this file.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Route {
    pub router: String,
    pub keys: Vec<String>,
}

impl Route {
    /// Of a message in the queue of this path.
    pub(crate) fn of(payload: &Bytes, patch: &Patch, path: &str) -> Self {
        let mut found = [None, None, None];
        let mut note = |key: &str, value: &[u8]| {
            let place = [ROUTER, ROUTING_KEY, FURTHER_KEYS]
                .iter()
                .position(|it| *it == key);
            if let Some(place) = place {
                found[place] = decode::value(&Bytes::copy_from_slice(value)).ok();
            }
        };
        if let Ok(sections) = Sections::scan(payload) {
            let section = &payload[sections.message_annotations];
            let mut entries = Items::of(section).unwrap_or(Items::NONE);
            while let Ok(Some((key, value))) = entries.next_entry() {
                note(items::text(key).unwrap_or_default(), value);
            }
        }
        for (key, value) in patch.annotations() {
            note(key, value);
        }
        let [router, key, further] = found;
        let text = |value: &Option<Value>| value.as_ref()?.as_text().map(str::to_owned);
        let further = match further {
            Some(Value::List(keys) | Value::Array(keys)) => keys,
            _ => Vec::new(),
        };
        let further = further.iter().filter_map(Value::as_text).map(str::to_owned);
        let key = text(&key).unwrap_or_else(|| path.to_owned());
        Self {
            router: text(&router).unwrap_or_else(|| DEFAULT_ROUTER.to_owned()),
            keys: std::iter::once(key).chain(further).collect(),
        }
    }

    /// The annotations of a message that goes this way from now on, by the first of its keys.
    pub(crate) fn annotations(&self) -> Changes {
        let text = |text: &str| {
            let mut out = BytesMut::new();
            encode::string(&mut out, text);
            out.freeze()
        };
        let key = self.keys.first().map_or("", String::as_str);
        vec![
            (ROUTER.to_owned(), text(&self.router)),
            (ROUTING_KEY.to_owned(), text(key)),
        ]
    }

    /// What hides further keys that the message came with: they are not its own any more.
    pub(crate) fn no_further_keys() -> (String, Bytes) {
        (FURTHER_KEYS.to_owned(), Bytes::from_static(&[items::NULL]))
    }
}
