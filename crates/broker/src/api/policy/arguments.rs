//! Arguments: what RabbitMQ's clients say of a queue when they declare it, and what they read back.
//! (docs/spec/rabbitmq.md#7)
//!
//! An argument is a key of policies with `x-` before it, which says what a queue has of its own.
//! Those that this broker does not know are kept by the caller and mean nothing.

use serde_json::{Map, Value as Json};

use crate::api::policy::PolicyLayer;
use crate::api::policy::key::{KEYS, Key, NOT_YET};
use crate::api::settings::{Overflow, QueueSettings};

/// Failed deliveries of a quorum queue that says nothing of them.
const DELIVERY_LIMIT: u32 = 20;
/// Ten years, in milliseconds.
const LONGEST: u64 = 315_360_000_000;
/// What needs something that is not there yet, besides keys of policies.
const ARGUMENTS_NOT_YET: &[&str] = &["x-single-active-consumer", "x-max-priority"];

/// The settings of a queue that is declared with these arguments.
///
/// # Errors
/// When one of them cannot be; with its name and the reason.
pub fn settings_of_arguments(
    arguments: &Map<String, Json>,
) -> Result<QueueSettings, (String, String)> {
    let mut settings = QueueSettings {
        max_delivery_count: DELIVERY_LIMIT + 1,
        ..QueueSettings::default()
    };
    let is_unlimited = |limit: &Json| limit.as_i64().is_some_and(|limit| limit < 0);
    if arguments.contains_key("x-delivery-limit")
        || arguments.get("x-queue-type") == Some(&"classic".into())
    {
        settings.max_delivery_count = u32::MAX;
    }
    for (name, value) in arguments {
        let refused = |why: String| Err((name.clone(), why));
        let key = name.strip_prefix("x-").unwrap_or_default();
        if name == "x-queue-type" && !["quorum", "classic"].map(Json::from).contains(value) {
            return refused(format!("\"unsupported queue type '{}'\"", text(value)));
        }
        if NOT_YET.contains(&key) || ARGUMENTS_NOT_YET.contains(&name.as_str()) {
            return refused("this broker does not support it yet".to_owned());
        }
        let is_own = key.starts_with("railbus-");
        let Some(known) = Key::find(key, PolicyLayer::User) else {
            continue;
        };
        if is_own || key == "delivery-limit" && is_unlimited(value) {
            continue;
        }
        if known.check(value).is_err() {
            return refused(why_not(key, value));
        }
        let is_span = matches!(key, "message-ttl" | "expires");
        if is_span && value.as_u64().is_some_and(|span| span > LONGEST) {
            return refused(format!("{{value_too_large,{value}}}"));
        }
        known.apply(&mut settings, value);
    }
    Ok(settings)
}

/// The arguments that say what a queue has.
#[must_use]
pub fn arguments_of(settings: &QueueSettings) -> Map<String, Json> {
    let mut arguments = Map::new();
    arguments.insert("x-queue-type".to_owned(), "quorum".into());
    let never = |span: u64| (span != u64::MAX).then_some(span);
    let limit = settings.max_delivery_count;
    let limit = (limit != u32::MAX).then(|| u64::from(limit.saturating_sub(1)));
    for (name, value) in [
        (
            "x-message-ttl",
            never(settings.default_message_time_to_live),
        ),
        ("x-expires", never(settings.expires)),
        ("x-max-length", settings.max_length),
        ("x-max-length-bytes", settings.max_length_bytes),
        ("x-delivery-limit", limit),
    ] {
        if let Some(value) = value {
            arguments.insert(name.to_owned(), value.into());
        }
    }
    if settings.overflow == Overflow::RejectPublish {
        arguments.insert("x-overflow".to_owned(), "reject-publish".into());
    }
    arguments
}

/// Whether an argument is one whose value means something.
#[must_use]
pub fn is_known_argument(name: &str) -> bool {
    let key = name.strip_prefix("x-");
    key.is_some_and(|key| KEYS.iter().any(|known| known.name == key))
}

fn why_not(key: &str, value: &Json) -> String {
    match value {
        Json::Number(number) if number.is_f64() => "\"expected integer, got double\"".to_owned(),
        Json::Number(number) if number.as_i64() == Some(0) => "{value_zero,0}".to_owned(),
        Json::Number(number) => format!("{{value_negative,{number}}}"),
        Json::String(_) if key == "overflow" => "invalid_overflow".to_owned(),
        _ => "\"expected integer, got longstr\"".to_owned(),
    }
}

fn text(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(arguments: &Json, expected: Result<Json, &str>) {
        let settings = settings_of_arguments(arguments.as_object().unwrap());
        let shown = settings.map(|settings| Json::Object(arguments_of(&settings)));
        let expected = expected.map_err(str::to_owned);
        assert_eq!(
            shown.map_err(|(name, why)| format!("{name}: {why}")),
            expected
        );
    }

    #[test]
    fn what_was_declared_is_shown_again() {
        let all = json!({
            "x-queue-type": "quorum", "x-message-ttl": 0, "x-expires": 1, "x-max-length": 0,
            "x-max-length-bytes": 9, "x-delivery-limit": 3, "x-overflow": "reject-publish",
        });
        check(&all, Ok(all.clone()));
        let default = json!({"x-queue-type": "quorum", "x-delivery-limit": 20});
        check(&json!({}), Ok(default));
        let unlimited = json!({"x-queue-type": "quorum"});
        check(&json!({"x-delivery-limit": -1}), Ok(unlimited.clone()));
        check(
            &json!({"x-queue-type": "classic", "x-nosuch": 1}),
            Ok(unlimited),
        );
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let of = |name: &str, value: Json| json!({ name: value });
        let message_ttl = |value| of("x-message-ttl", value);
        check(
            &message_ttl(json!(-1)),
            Err("x-message-ttl: {value_negative,-1}"),
        );
        let longer = "x-message-ttl: {value_too_large,315360000001}";
        check(&message_ttl(json!(315_360_000_001_u64)), Err(longer));
        let text = "x-message-ttl: \"expected integer, got longstr\"";
        check(&message_ttl(json!("1")), Err(text));
        check(&of("x-expires", json!(0)), Err("x-expires: {value_zero,0}"));
        check(
            &of("x-overflow", json!("x")),
            Err("x-overflow: invalid_overflow"),
        );
        let stream = "x-queue-type: \"unsupported queue type 'stream'\"";
        check(&of("x-queue-type", json!("stream")), Err(stream));
        let not_yet = "x-dead-letter-exchange: this broker does not support it yet";
        check(&of("x-dead-letter-exchange", json!("x")), Err(not_yet));
    }
}
