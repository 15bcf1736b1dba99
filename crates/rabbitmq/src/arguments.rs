//! Arguments: what a queue is declared with, as AMQP has it. (docs/spec/rabbitmq.md#6.2, #7)
//!
//! What they mean is the broker's: [`broker::QueueArguments`] checks, keeps and compares them.

use std::collections::BTreeMap;

use amqp::{Map, Value};
use broker::{IntegerType, QueueArguments, Resource};
use serde_json::{Map as JsonMap, Value as Json};

/// Reads and checks the arguments of a declaration.
///
/// # Errors
/// When one is invalid or would have no effect; the text is RabbitMQ's where it has one.
pub(crate) fn read(map: &Map, queue: Resource<'_>) -> Result<QueueArguments, String> {
    let mut arguments = JsonMap::new();
    let mut integers = BTreeMap::new();
    for (key, value) in map {
        let key = key.as_text().ok_or("a key of the arguments is no text")?;
        let json = json(value)
            .ok_or_else(|| format!("invalid arg '{key}' for {queue}: the type is not accepted"))?;
        arguments.insert(key.to_owned(), json);
        if let Some(integer) = integer_type(value) {
            integers.insert(key.to_owned(), integer);
        }
    }
    QueueArguments::read(arguments, queue)?.with_integers(integers, queue)
}

/// As clients are told. Lists and maps, which only the HTTP interface takes, are left out.
pub(crate) fn map(arguments: &QueueArguments) -> Map {
    let entries = arguments.entries().iter();
    entries
        .filter_map(|(key, it)| {
            let integer = arguments.integer_type(key);
            let integer = integer.and_then(|integer| integer_of(integer, it.as_i64()?));
            let value = integer.or_else(|| value(it))?;
            Some((Value::String(key.clone()), value))
        })
        .collect()
}

/// The type of an integer that is no long.
fn integer_type(value: &Value) -> Option<IntegerType> {
    Some(match value {
        Value::Ubyte(_) => IntegerType::Ubyte,
        Value::Ushort(_) => IntegerType::Ushort,
        Value::Uint(_) => IntegerType::Uint,
        Value::Ulong(_) => IntegerType::Ulong,
        Value::Byte(_) => IntegerType::Byte,
        Value::Short(_) => IntegerType::Short,
        Value::Int(_) => IntegerType::Int,
        _ => return None,
    })
}

/// A number in such a type, if it has room there.
fn integer_of(integer: IntegerType, number: i64) -> Option<Value> {
    Some(match integer {
        IntegerType::Ubyte => Value::Ubyte(number.try_into().ok()?),
        IntegerType::Ushort => Value::Ushort(number.try_into().ok()?),
        IntegerType::Uint => Value::Uint(number.try_into().ok()?),
        IntegerType::Ulong => Value::Ulong(number.try_into().ok()?),
        IntegerType::Byte => Value::Byte(number.try_into().ok()?),
        IntegerType::Short => Value::Short(number.try_into().ok()?),
        IntegerType::Int => Value::Int(number.try_into().ok()?),
    })
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

    const QUEUE: Resource<'_> = Resource::queue("q", "/");

    #[test]
    fn values_come_back_in_the_types_in_which_they_were_sent() {
        let integers = [
            Value::Ubyte(5),
            Value::Ushort(5),
            Value::Uint(5),
            Value::Ulong(5),
            Value::Byte(5),
            Value::Short(5),
            Value::Int(5),
            Value::Long(5),
        ];
        for value in integers {
            let given = vec![(Value::from("x-message-ttl"), value)];
            let arguments = read(&given, QUEUE).unwrap();
            assert_eq!(map(&arguments), given);
            assert_eq!(arguments.settings().default_message_time_to_live, 5);
        }
        let given = vec![
            (Value::from("x-bool"), Value::Bool(true)),
            (Value::from("x-double"), Value::Double(0.5)),
            (Value::from("x-text"), Value::from("a")),
            (Value::from("x-ulong"), Value::Ulong(u64::MAX)),
        ];
        assert_eq!(map(&read(&given, QUEUE).unwrap()), given);
    }

    #[test]
    fn what_is_no_argument_is_refused_by_name() {
        let argument = |value| read(&vec![(Value::from("x-own"), value)], QUEUE);
        let text = "invalid arg 'x-own' for queue 'q' in vhost '/': the type is not accepted";
        for value in [Value::Timestamp(1), Value::Null, Value::List(Vec::new())] {
            assert_eq!(argument(value), Err(text.to_owned()));
        }
        let double = vec![(Value::from("x-max-length"), Value::Double(1.0))];
        let text = read(&double, QUEUE).unwrap_err();
        assert!(text.ends_with("\"expected integer, got double\""), "{text}");
        assert!(read(&vec![(Value::Int(1), Value::Int(1))], QUEUE).is_err());
    }
}
