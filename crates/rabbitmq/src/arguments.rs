//! Arguments: what a queue is declared with, as AMQP has it. (docs/spec/rabbitmq.md#6.2, #7)
//!
//! What they mean is the broker's: [`broker::QueueArguments`] checks, keeps and compares them.

use amqp::{Map, Value};
use broker::QueueArguments;
use serde_json::{Map as JsonMap, Value as Json};

/// Reads and checks the arguments of a declaration.
///
/// # Errors
/// When one is invalid or would have no effect; the text is RabbitMQ's where it has one.
pub(crate) fn read(map: &Map, queue: &str) -> Result<QueueArguments, String> {
    let mut arguments = JsonMap::new();
    for (key, value) in map {
        let key = key.as_text().ok_or("a key of the arguments is no text")?;
        let value = json(value).ok_or_else(|| {
            format!(
                "invalid arg '{key}' for queue '{queue}' in vhost '/': the type is not accepted"
            )
        })?;
        arguments.insert(key.to_owned(), value);
    }
    QueueArguments::read(arguments, queue)
}

/// As clients are told. Lists and maps, which only the HTTP interface takes, are left out.
pub(crate) fn map(arguments: &QueueArguments) -> Map {
    let entries = arguments.entries().iter();
    entries
        .filter_map(|(key, it)| Some((Value::String(key.clone()), value(it)?)))
        .collect()
}

fn json(value: &Value) -> Option<Json> {
    match value {
        Value::Bool(it) => Some(Json::from(*it)),
        Value::Timestamp(_) => None,
        Value::Ulong(it) => Some(Json::from(*it)),
        Value::Double(it) => Some(Json::from(*it)),
        Value::Float(it) => Some(Json::from(*it)),
        other => {
            let text = other.as_text().map(Json::from);
            text.or_else(|| other.as_integer().map(Json::from))
        }
    }
}

fn value(json: &Json) -> Option<Value> {
    match json {
        Json::Null => Some(Value::Null),
        Json::Bool(it) => Some(Value::Bool(*it)),
        Json::String(it) => Some(Value::String(it.clone())),
        Json::Number(it) => {
            let integer = it.as_i64().map(Value::Long);
            let integer = integer.or_else(|| it.as_u64().map(Value::Ulong));
            integer.or_else(|| it.as_f64().map(Value::Double))
        }
        Json::Array(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_width_are_the_same_and_other_types_keep_theirs() {
        let ttl = |value| read(&vec![(Value::from("x-message-ttl"), value)], "q");
        let long = ttl(Value::Long(5)).unwrap();
        for value in [Value::Ubyte(5), Value::Int(5), Value::Ulong(5)] {
            assert_eq!(ttl(value), Ok(long.clone()));
        }
        let given = vec![
            (Value::from("x-bool"), Value::Bool(true)),
            (Value::from("x-double"), Value::Double(0.5)),
            (Value::from("x-text"), Value::from("a")),
            (Value::from("x-ulong"), Value::Ulong(u64::MAX)),
        ];
        assert_eq!(map(&read(&given, "q").unwrap()), given);
    }

    #[test]
    fn what_is_no_argument_is_refused_by_name() {
        let argument = |value| read(&vec![(Value::from("x-own"), value)], "q");
        let text = "invalid arg 'x-own' for queue 'q' in vhost '/': the type is not accepted";
        for value in [Value::Timestamp(1), Value::Null, Value::List(Vec::new())] {
            assert_eq!(argument(value), Err(text.to_owned()));
        }
        let double = vec![(Value::from("x-max-length"), Value::Double(1.0))];
        let text = read(&double, "q").unwrap_err();
        assert!(text.ends_with("\"expected integer, got double\""), "{text}");
        assert!(read(&vec![(Value::Int(1), Value::Int(1))], "q").is_err());
    }
}
