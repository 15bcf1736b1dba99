//! Deaths: what RabbitMQ tells of a message that was dead-lettered, as message annotations.
//! (docs/spec/rabbitmq.md#12.5)

use amqp::{Symbol, Value, encode};
use broker::{Death, DeathReason};
use bytes::BytesMut;

/// Writes the deaths of a message, the latest first.
pub(super) fn write(put: &mut impl FnMut(&str, &dyn Fn(&mut BytesMut)), deaths: &[Death]) {
    let all = Value::Array(deaths.iter().map(|death| Value::Map(map(death))).collect());
    put("x-opt-deaths", &|out| encode::value(out, &all));
    let first = deaths.iter().find(|death| death.is_first);
    for (which, death) in [("first", first), ("last", deaths.first())] {
        let Some(death) = death else {
            continue;
        };
        let mut put = |what: &str, text: &str| {
            put(&format!("x-{which}-death-{what}"), &|out| {
                encode::string(out, text);
            });
        };
        put("queue", &death.queue);
        put("reason", name(death.reason));
        put("exchange", &death.router);
    }
}

/// Whether an annotation is one of those that tell deaths.
pub(super) fn is_of_deaths(key: &str) -> bool {
    let parts = ["x-opt-deaths", "x-first-death-", "x-last-death-"];
    parts.iter().any(|part| key.starts_with(part))
}

fn map(death: &Death) -> amqp::Map {
    let keys = death.keys.iter().map(|key| Value::from(key.as_str()));
    let mut entries = vec![
        ("queue", Value::from(death.queue.as_str())),
        ("reason", Value::Symbol(Symbol::new(name(death.reason)))),
        ("count", Value::Ulong(death.count)),
        ("first-time", time(death.first_ms)),
        ("last-time", time(death.last_ms)),
        ("exchange", Value::from(death.router.as_str())),
        ("routing-keys", Value::Array(keys.collect())),
    ];
    entries.extend(death.ttl_ms.map(|ttl| ("ttl", Value::Uint(ttl))));
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (Value::Symbol(Symbol::new(key)), value))
        .collect()
}

fn time(ms: u64) -> Value {
    Value::Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// RabbitMQ's word for a reason.
fn name(reason: DeathReason) -> &'static str {
    match reason {
        DeathReason::Rejected => "rejected",
        DeathReason::Expired => "expired",
        DeathReason::MaxLength => "maxlen",
        DeathReason::DeliveryLimit => "delivery_limit",
    }
}
