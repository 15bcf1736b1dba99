//! Compare: the order of values of one kind, and the result of comparing values of two kinds.
//!
//! Integers of every width are compared as integers; if one side is a double, both are, as in C#
//! and Java. Texts are compared by the codes of their characters. (docs/spec/entities.md#17.7)

use std::cmp::Ordering;

use amqp::hexadecimal::uuid_text;

use crate::expression::dialect::Dialect;
use crate::expression::evaluation::EvaluationError;
use crate::expression::tree::Comparison;
use crate::values::value::Value;

/// How two values relate.
enum Relation {
    Ordered(Ordering),
    /// Of one kind, which has no order, or not a number.
    Equal(bool),
    /// Not of one kind.
    Unlike,
}

/// Whether `left` and `right`, both known, compare as asked. `None` is unknown.
pub(crate) fn compare(
    comparison: Comparison,
    left: &Value<'_>,
    right: &Value<'_>,
    dialect: Dialect,
) -> Result<bool, EvaluationError> {
    let relation = relation(left, right);
    match (relation, dialect) {
        (Relation::Ordered(_), Dialect::Jms) if is_text(left) => {
            Ok(is_equality(comparison) && of_equal(comparison, equal(left, right)))
        }
        (Relation::Ordered(ordering), _) => Ok(of_order(comparison, ordering)),
        (Relation::Equal(equal), _) if is_equality(comparison) => Ok(of_equal(comparison, equal)),
        (Relation::Unlike, Dialect::Sql) if is_equality(comparison) => {
            Ok(of_equal(comparison, false))
        }
        // Not a number is neither less nor more than anything.
        (Relation::Equal(_), _)
            if matches!(left, Value::Int(_) | Value::Double(_) | Value::Unsigned(_)) =>
        {
            Ok(false)
        }
        // Unlike values compare as false, whatever is asked. (JMS 2.0, 3.8.1.2)
        (_, Dialect::Jms) => Ok(false),
        (_, Dialect::Sql) => Err(EvaluationError::Mismatch(left.kind(), right.kind())),
    }
}

/// Whether two known values are equal; those of different kinds are not.
pub(crate) fn equal(left: &Value<'_>, right: &Value<'_>) -> bool {
    match relation(left, right) {
        Relation::Ordered(ordering) => ordering == Ordering::Equal,
        Relation::Equal(equal) => equal,
        Relation::Unlike => false,
    }
}

fn is_text(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(_) | Value::Guid(_))
}

fn is_equality(comparison: Comparison) -> bool {
    matches!(comparison, Comparison::Equal | Comparison::NotEqual)
}

fn of_equal(comparison: Comparison, equal: bool) -> bool {
    equal == (comparison == Comparison::Equal)
}

fn of_order(comparison: Comparison, ordering: Ordering) -> bool {
    match comparison {
        Comparison::Equal => ordering.is_eq(),
        Comparison::NotEqual => ordering.is_ne(),
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
    }
}

fn relation(left: &Value<'_>, right: &Value<'_>) -> Relation {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Relation::Ordered(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Relation::Ordered(left.cmp(right)),
        (Value::Guid(left), Value::Guid(right)) => Relation::Ordered(left.cmp(right)),
        (Value::Guid(left), Value::Text(right)) => {
            Relation::Ordered(uuid_text(left).as_str().cmp(right))
        }
        (Value::Text(left), Value::Guid(right)) => {
            Relation::Ordered((**left).cmp(uuid_text(right).as_str()))
        }
        (Value::Bool(left), Value::Bool(right)) => Relation::Equal(left == right),
        (Value::DateTime(left), Value::DateTime(right))
        | (Value::Duration(left), Value::Duration(right)) => Relation::Ordered(left.cmp(right)),
        _ => numbers(left, right),
    }
}

fn numbers(left: &Value<'_>, right: &Value<'_>) -> Relation {
    if let (Some(left), Some(right)) = (wide(left), wide(right)) {
        return Relation::Ordered(left.cmp(&right));
    }
    match (double(left), double(right)) {
        (Some(left), Some(right)) => left
            .partial_cmp(&right)
            .map_or(Relation::Equal(false), Relation::Ordered),
        _ => Relation::Unlike,
    }
}

/// An integer, with room for all of them.
pub(crate) fn wide(value: &Value<'_>) -> Option<i128> {
    match *value {
        Value::Int(value) => Some(value.into()),
        Value::Unsigned(value) => Some(value.into()),
        _ => None,
    }
}

/// A number as a double, which may be no more than near it.
pub(crate) fn double(value: &Value<'_>) -> Option<f64> {
    match *value {
        Value::Int(value) => Some(value as f64),
        Value::Unsigned(value) => Some(value as f64),
        Value::Double(value) => Some(value),
        _ => None,
    }
}
