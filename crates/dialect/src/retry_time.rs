//! Retry time: what a client that abandons a message says of its next delivery.
//! (docs/spec/entities.md#10.1)
//!
//! It is among the properties to modify, or the annotations of `modified`, and does not become a
//! property of the message.

use amqp::Value;
use broker::{RetryTime, Wall};

/// Milliseconds from now.
const DELAY: &str = "x-opt-delivery-delay";
/// The time, in milliseconds since the Unix epoch.
const TIME: &str = "x-opt-delivery-time";

/// The key whose value is no time.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("The value of {0} must be a whole number of milliseconds from 0 on.")]
pub struct InvalidRetryTime(&'static str);

/// Reads the retry time; of both keys the delay counts.
///
/// # Errors
/// When one of the values is no time.
pub fn retry_time(properties: &[(Value, Value)]) -> Result<RetryTime, InvalidRetryTime> {
    let time = milliseconds(properties, TIME)?.map(|at| RetryTime::At(Wall(at)));
    let delay = milliseconds(properties, DELAY)?.map(RetryTime::After);
    Ok(delay.or(time).unwrap_or_default())
}

/// Whether a key is not one of the message's properties.
#[must_use]
pub fn is_retry_time(key: &str) -> bool {
    matches!(key, DELAY | TIME)
}

fn milliseconds(
    properties: &[(Value, Value)],
    key: &'static str,
) -> Result<Option<u64>, InvalidRetryTime> {
    let Some(value) = amqp::value::lookup(properties, key) else {
        return Ok(None);
    };
    let number = value.as_integer().and_then(|it| u64::try_from(it).ok());
    number.map(Some).ok_or(InvalidRetryTime(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(properties: &[(&str, Value)], expected: Result<RetryTime, InvalidRetryTime>) {
        let properties = properties.iter().cloned();
        let properties: Vec<_> = properties.map(|(key, it)| (Value::from(key), it)).collect();
        assert_eq!(retry_time(&properties), expected);
    }

    #[test]
    fn a_delay_counts_before_a_time_and_both_before_nothing() {
        check(&[], Ok(RetryTime::Backoff));
        check(&[("x", Value::Int(1))], Ok(RetryTime::Backoff));
        let time = (TIME, Value::Timestamp(9));
        check(std::slice::from_ref(&time), Ok(RetryTime::At(Wall(9))));
        check(&[time, (DELAY, Value::Uint(0))], Ok(RetryTime::After(0)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for value in [Value::Int(-1), Value::from("5"), Value::Null] {
            check(&[(DELAY, value.clone())], Err(InvalidRetryTime(DELAY)));
            check(&[(TIME, value)], Err(InvalidRetryTime(TIME)));
        }
    }
}
