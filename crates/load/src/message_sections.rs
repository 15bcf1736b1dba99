//! Message sections: the sections before the body, for messages that need more than a body.

use std::time::{SystemTime, UNIX_EPOCH};

use amqp::message::{Properties, descriptor, encode_map_section};
use amqp::{Symbol, Value};
use bytes::BytesMut;

use crate::bodies::{HEADER, HEADER_WITH_TTL};

/// The session of [`MessageSections::Session`].
pub const SESSION: &str = "session";
/// How far ahead messages are scheduled, in milliseconds.
const AHEAD_MS: i64 = 1_000;

/// The sections of a message besides its body.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MessageSections {
    /// Nothing but its body.
    #[default]
    Plain,
    /// An id of its own.
    Id,
    /// The session of the row.
    Session,
    /// One of this many sessions, in turn.
    Sessions(u32),
    /// A time to be enqueued, one second ahead.
    Schedule,
    /// A time to live.
    Ttl,
    /// The trace context of its sender, which has sampled this many of a hundred messages.
    Traced(u8),
    /// A label, and the application properties `region`, `key` and `n`: one of this many keys in
    /// turn, `k0`, `k1` and so on, and its number.
    Key(u32),
}

impl MessageSections {
    /// The header section, which comes first.
    pub fn header(self) -> &'static [u8] {
        match self {
            Self::Ttl => HEADER_WITH_TTL,
            _ => HEADER,
        }
    }

    /// Writes the other sections of the `number`th message into `out`, which is cleared first.
    pub fn write(self, number: u64, out: &mut BytesMut) {
        out.clear();
        match self {
            Self::Plain | Self::Ttl => {}
            Self::Id => Properties {
                message_id: Some(Value::String(format!("{number:032x}"))),
                ..Properties::default()
            }
            .encode(out),
            Self::Session => Properties {
                group_id: Some(SESSION.to_owned()),
                ..Properties::default()
            }
            .encode(out),
            Self::Sessions(sessions) => Properties {
                group_id: Some(format!("s{}", number % u64::from(sessions.max(1)))),
                ..Properties::default()
            }
            .encode(out),
            Self::Schedule => {
                let key = Symbol::new("x-opt-scheduled-enqueue-time");
                let due = Value::Timestamp(now_ms().saturating_add(AHEAD_MS));
                let entries = [(Value::Symbol(key), due)];
                encode_map_section(out, descriptor::MESSAGE_ANNOTATIONS, &entries);
            }
            Self::Traced(sampled) => {
                let flags = u8::from(number % 100 < u64::from(sampled));
                let context = format!("00-{number:032x}-{:016x}-{flags:02x}", !number);
                let entries = [(Value::from("Diagnostic-Id"), Value::from(context.as_str()))];
                encode_map_section(out, descriptor::APPLICATION_PROPERTIES, &entries);
            }
            Self::Key(keys) => {
                let key = number % u64::from(keys.max(1));
                Properties {
                    subject: Some("order-placed".to_owned()),
                    ..Properties::default()
                }
                .encode(out);
                let entries = [
                    (Value::from("region"), Value::from("eu")),
                    (Value::from("key"), Value::from(format!("k{key}").as_str())),
                    (Value::from("n"), Value::Ulong(key)),
                ];
                encode_map_section(out, descriptor::APPLICATION_PROPERTIES, &entries);
            }
        }
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
