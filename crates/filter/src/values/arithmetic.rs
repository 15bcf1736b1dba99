//! Arithmetic: `+ - * / %` and signs, as C# calculates; in selectors as Java does.
//!
//! Integers stay integers, and division drops the remainder. Overflow is an error in C# and wraps
//! around in Java. Selectors never fail: a result that cannot be calculated is unknown.

use crate::expression::dialect::Dialect;
use crate::expression::evaluation::EvaluationError;
use crate::expression::fuel::Fuel;
use crate::expression::tree::Arithmetic;
use crate::values::compare::{double, wide};
use crate::values::value::{Value, ValueKind};

/// The longest text that `+` makes, which is also all that a message's properties may take.
/// (docs/spec/entities.md#4)
const MAX_TEXT: usize = 64 << 10;

type Calculated = Result<Value<'static>, EvaluationError>;

/// The result for two known values.
pub(crate) fn calculate(
    operator: Arithmetic,
    left: &Value<'_>,
    right: &Value<'_>,
    dialect: Dialect,
    fuel: &mut Fuel,
) -> Calculated {
    if dialect == Dialect::Jms {
        return Ok(java(operator, left, right));
    }
    if let (Some(wide_left), Some(wide_right)) = (wide(left), wide(right)) {
        let result = integers(operator, wide_left, wide_right)?;
        let is_signed = matches!((left, right), (Value::Int(_), Value::Int(_)));
        return fitting(result, is_signed);
    }
    if let (Some(left), Some(right)) = (double(left), double(right)) {
        return Ok(Value::Double(doubles(operator, left, right)));
    }
    match (left.kind(), right.kind()) {
        (ValueKind::Text, ValueKind::Text) if operator == Arithmetic::Add => {
            concatenated(left, right, fuel)
        }
        _ => times(operator, left, right),
    }
}

/// `-value`
pub(crate) fn negated(value: &Value<'_>, dialect: Dialect) -> Calculated {
    match (value, dialect) {
        (Value::Int(value), Dialect::Jms) => Ok(Value::Int(value.wrapping_neg())),
        (Value::Double(value), _) => Ok(Value::Double(-value)),
        (Value::Duration(value), Dialect::Sql) => value
            .checked_neg()
            .map(Value::Duration)
            .ok_or(EvaluationError::OutOfRange),
        _ => match wide(value) {
            Some(wide) => fitting(-wide, true),
            None => Err(EvaluationError::WrongKind(value.kind(), ValueKind::Number)),
        },
    }
}

/// `+value`
pub(crate) fn signed(value: Value<'_>) -> Result<Value<'_>, EvaluationError> {
    match value.kind() {
        ValueKind::Number | ValueKind::Duration => Ok(value),
        other => Err(EvaluationError::WrongKind(other, ValueKind::Number)),
    }
}

fn integers(operator: Arithmetic, left: i128, right: i128) -> Result<i128, EvaluationError> {
    // Both fit in 65 bits, so nothing but a division can go wrong in 128.
    match operator {
        Arithmetic::Add => Ok(left + right),
        Arithmetic::Subtract => Ok(left - right),
        Arithmetic::Multiply => left.checked_mul(right).ok_or(EvaluationError::OutOfRange),
        Arithmetic::Divide => left
            .checked_div(right)
            .ok_or(EvaluationError::DivisionByZero),
        // C# finds this one out of range, though its result would fit.
        Arithmetic::Remainder if left == i64::MIN.into() && right == -1 => {
            Err(EvaluationError::OutOfRange)
        }
        Arithmetic::Remainder => left
            .checked_rem(right)
            .ok_or(EvaluationError::DivisionByZero),
    }
}

fn fitting(result: i128, is_signed: bool) -> Calculated {
    if let Ok(result) = i64::try_from(result) {
        return Ok(Value::Int(result));
    }
    match u64::try_from(result) {
        Ok(result) if !is_signed => Ok(Value::Unsigned(result)),
        _ => Err(EvaluationError::OutOfRange),
    }
}

fn doubles(operator: Arithmetic, left: f64, right: f64) -> f64 {
    match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    }
}

fn concatenated(left: &Value<'_>, right: &Value<'_>, fuel: &mut Fuel) -> Calculated {
    let text = |value: &Value<'_>| {
        value
            .borrowed()
            .into_text()
            .unwrap_or_default()
            .into_owned()
    };
    let mut joined = text(left);
    let end = text(right);
    if joined.len() + end.len() > MAX_TEXT {
        return Err(EvaluationError::TooLong(MAX_TEXT));
    }
    fuel.read(joined.len() + end.len())?;
    joined.push_str(&end);
    Ok(Value::text(joined))
}

fn times(operator: Arithmetic, left: &Value<'_>, right: &Value<'_>) -> Calculated {
    let result = match (left, operator, right) {
        (Value::DateTime(left), Arithmetic::Subtract, Value::DateTime(right)) => {
            left.checked_sub(*right).map(Value::Duration)
        }
        (Value::DateTime(time), Arithmetic::Add, Value::Duration(duration))
        | (Value::Duration(duration), Arithmetic::Add, Value::DateTime(time)) => {
            time.checked_add(*duration).map(Value::DateTime)
        }
        (Value::DateTime(time), Arithmetic::Subtract, Value::Duration(duration)) => {
            time.checked_sub(*duration).map(Value::DateTime)
        }
        (Value::Duration(left), Arithmetic::Add, Value::Duration(right)) => {
            left.checked_add(*right).map(Value::Duration)
        }
        (Value::Duration(left), Arithmetic::Subtract, Value::Duration(right)) => {
            left.checked_sub(*right).map(Value::Duration)
        }
        _ => return Err(EvaluationError::Mismatch(left.kind(), right.kind())),
    };
    result.ok_or(EvaluationError::OutOfRange)
}

fn java(operator: Arithmetic, left: &Value<'_>, right: &Value<'_>) -> Value<'static> {
    if let (Value::Int(left), Value::Int(right)) = (left, right) {
        return java_integers(operator, *left, *right).map_or(Value::Unknown, Value::Int);
    }
    match (double(left), double(right)) {
        (Some(left), Some(right)) => Value::Double(doubles(operator, left, right)),
        _ => Value::Unknown,
    }
}

fn java_integers(operator: Arithmetic, left: i64, right: i64) -> Option<i64> {
    match operator {
        Arithmetic::Add => Some(left.wrapping_add(right)),
        Arithmetic::Subtract => Some(left.wrapping_sub(right)),
        Arithmetic::Multiply => Some(left.wrapping_mul(right)),
        Arithmetic::Divide if right != 0 => Some(left.wrapping_div(right)),
        Arithmetic::Remainder if right != 0 => Some(left.wrapping_rem(right)),
        Arithmetic::Divide | Arithmetic::Remainder => None,
    }
}
