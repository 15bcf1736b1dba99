//! Naive: expressions as trees of boxes, printed and evaluated the obvious way.
//!
//! Written from the contract, and sharing nothing with the crate but AMQP's value type, so that
//! the two only agree where both follow it. (docs/spec/entities.md#17.5 to #17.8; JMS 2.0, 3.8.1)

use amqp::Value as Amqp;

use crate::messages::Parts;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Language {
    Sql { lenient: bool },
    Jms,
}

#[derive(Clone, Debug)]
pub enum Expression {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    User(String),
    Label,
    To,
    PropertyOf(Box<Expression>),
    Sign(char, Box<Expression>),
    Arithmetic(Box<Expression>, char, Box<Expression>),
    Compare(Box<Expression>, &'static str, Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Like(
        Box<Expression>,
        bool,
        Box<Expression>,
        Option<Box<Expression>>,
    ),
    In(Box<Expression>, bool, Vec<Expression>),
    Between(Box<Expression>, bool, Box<Expression>, Box<Expression>),
    IsNull(Box<Expression>, bool),
    Exists(Box<Expression>),
}

/// What a failure is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    Mismatch,
    DivisionByZero,
    Range,
    Escape,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Unknown,
    Bool(bool),
    /// Signed or unsigned, 64 bits.
    Integer(i128),
    Double(f64),
    Text(String),
    Time(i64),
    Span(i64),
}

use Expression as E;

impl Expression {
    /// How tightly it holds together: what is looser than its place goes in parentheses.
    fn level(&self) -> u8 {
        match self {
            E::Or(..) => 1,
            E::And(..) => 2,
            E::Not(_) => 3,
            E::Compare(..) | E::Like(..) | E::In(..) | E::Between(..) | E::IsNull(..) => 4,
            E::Arithmetic(_, '+' | '-', _) => 5,
            E::Arithmetic(..) => 6,
            E::Sign(..) => 7,
            E::Int(number) if *number < 0 => 7,
            E::Double(number) if *number < 0.0 => 7,
            _ => 8,
        }
    }

    /// As a text, with no more parentheses than needed.
    pub fn print(&self, language: Language) -> String {
        self.at(0, language)
    }

    fn at(&self, least: u8, language: Language) -> String {
        let text = self.bare(language);
        if self.level() < least {
            format!("({text})")
        } else {
            text
        }
    }

    fn bare(&self, language: Language) -> String {
        let at = |expression: &E, least| expression.at(least, language);
        let not = |negated: bool| if negated { "not " } else { "" };
        match self {
            E::Null => "NULL".into(),
            E::Bool(truth) => truth.to_string(),
            E::Int(number) => number.to_string(),
            E::Double(number) => format!("{number:?}"),
            E::Text(text) => format!("'{}'", text.replace('\'', "''")),
            E::User(name) if language == Language::Jms => name.clone(),
            E::User(name) => format!("[{name}]"),
            E::Label if language == Language::Jms => "JMSType".into(),
            E::Label => "sys.label".into(),
            E::To => "sys.To".into(),
            E::PropertyOf(name) => format!("property({})", at(name, 0)),
            E::Sign(sign, value) => format!("{sign} {}", at(value, 7)),
            E::Arithmetic(left, operator @ ('+' | '-'), right) => {
                format!("{} {operator} {}", at(left, 5), at(right, 6))
            }
            E::Arithmetic(left, operator, right) => {
                format!("{}{operator}{}", at(left, 6), at(right, 7))
            }
            E::Compare(left, operator, right) => {
                format!("{}{operator}{}", at(left, 5), at(right, 5))
            }
            E::And(left, right) => format!("{} and {}", at(left, 2), at(right, 3)),
            E::Or(left, right) => format!("{} Or {}", at(left, 1), at(right, 2)),
            E::Not(inner) => format!("NOT {}", at(inner, 3)),
            E::Like(value, negated, pattern, escape) => {
                let escape = escape
                    .as_ref()
                    .map(|escape| format!(" escape {}", at(escape, 5)));
                let (value, pattern) = (at(value, 5), at(pattern, 5));
                format!(
                    "{value} {}like {pattern}{}",
                    not(*negated),
                    escape.unwrap_or_default()
                )
            }
            E::In(value, negated, list) => {
                let list: Vec<String> = list.iter().map(|item| at(item, 0)).collect();
                format!("{} {}in({})", at(value, 5), not(*negated), list.join(","))
            }
            E::Between(value, negated, low, high) => {
                let (value, low, high) = (at(value, 5), at(low, 5), at(high, 5));
                format!("{value} {}between {low} and {high}", not(*negated))
            }
            E::IsNull(path, negated) => format!("{} is {}null", at(path, 8), not(*negated)),
            E::Exists(path) => format!("exists({})", at(path, 8)),
        }
    }
}

/// An expression's circumstances.
pub struct Naive<'a> {
    pub parts: &'a Parts,
    pub language: Language,
}

type Evaluated = Result<Value, Failure>;

impl Naive<'_> {
    /// The truth of a whole expression.
    pub fn truth(&self, expression: &E) -> Result<Option<bool>, Failure> {
        match self.condition(expression)? {
            Value::Bool(truth) => Ok(Some(truth)),
            _ => Ok(None),
        }
    }

    fn is_jms(&self) -> bool {
        self.language == Language::Jms
    }

    fn mismatch(&self) -> Evaluated {
        match self.language {
            Language::Sql { lenient: false } => Err(Failure::Mismatch),
            _ => Ok(Value::Unknown),
        }
    }

    fn condition(&self, expression: &E) -> Evaluated {
        match self.value(expression)? {
            truth @ (Value::Bool(_) | Value::Unknown) => Ok(truth),
            _ => self.mismatch(),
        }
    }

    fn value(&self, expression: &E) -> Evaluated {
        Ok(match expression {
            E::Null => Value::Unknown,
            E::Bool(truth) => Value::Bool(*truth),
            E::Int(number) => Value::Integer((*number).into()),
            E::Double(number) => Value::Double(*number),
            E::Text(text) => Value::Text(text.clone()),
            E::User(name) => self.user(name).map_or(Value::Unknown, of_amqp),
            E::Label => text(self.parts.properties.subject.as_ref()),
            E::To => match &self.parts.properties.to {
                Some(to) => of_amqp(to),
                None => Value::Unknown,
            },
            E::PropertyOf(name) => match self.value(name)? {
                Value::Unknown => Value::Unknown,
                Value::Text(name) => self.user(&name).map_or(Value::Unknown, of_amqp),
                _ => return self.mismatch(),
            },
            E::Sign(sign, value) => return self.sign(*sign, self.value(value)?),
            E::Arithmetic(left, operator, right) => {
                return self.arithmetic(self.value(left)?, *operator, self.value(right)?);
            }
            E::Compare(left, operator, right) => {
                return self.compare(self.value(left)?, operator, self.value(right)?);
            }
            E::And(left, right) => match self.condition(left)? {
                Value::Bool(false) => Value::Bool(false),
                left => match (left, self.condition(right)?) {
                    (_, Value::Bool(false)) => Value::Bool(false),
                    (Value::Bool(true), Value::Bool(true)) => Value::Bool(true),
                    _ => Value::Unknown,
                },
            },
            E::Or(left, right) => match self.condition(left)? {
                Value::Bool(true) => Value::Bool(true),
                left => match (left, self.condition(right)?) {
                    (_, Value::Bool(true)) => Value::Bool(true),
                    (Value::Bool(false), Value::Bool(false)) => Value::Bool(false),
                    _ => Value::Unknown,
                },
            },
            E::Not(inner) => negate(self.condition(inner)?, true),
            E::Like(value, negated, pattern, escape) => {
                negate(self.like(value, pattern, escape.as_deref())?, *negated)
            }
            E::In(value, negated, list) => negate(self.list(value, list)?, *negated),
            E::Between(value, negated, low, high) => {
                let least = E::Compare(value.clone(), ">=", low.clone());
                let most = E::Compare(value.clone(), "<=", high.clone());
                negate(self.value(&E::And(least.into(), most.into()))?, *negated)
            }
            E::IsNull(path, negated) => Value::Bool(self.is_null(path) != *negated),
            E::Exists(path) => Value::Bool(match &**path {
                E::User(name) => self.user(name).is_some(),
                other => !self.is_null(other),
            }),
        })
    }

    fn is_null(&self, path: &E) -> bool {
        match path {
            E::User(name) => self.user(name).is_none_or(|value| *value == Amqp::Null),
            E::Label => self.parts.properties.subject.is_none(),
            _ => self.parts.properties.to.is_none(),
        }
    }

    fn user(&self, name: &str) -> Option<&Amqp> {
        let user = &self.parts.user;
        let exact = user.iter().find(|(known, _)| known == name);
        if exact.is_some() || self.is_jms() {
            return exact.map(|(_, value)| value);
        }
        let name = name.to_lowercase();
        let mut same: Vec<_> = user
            .iter()
            .filter(|(known, _)| known.to_lowercase() == name)
            .collect();
        same.sort_by(|left, right| left.0.cmp(&right.0));
        same.first().map(|(_, value)| value)
    }

    fn sign(&self, sign: char, value: Value) -> Evaluated {
        match (sign, value) {
            (_, Value::Unknown) => Ok(Value::Unknown),
            ('+', value @ (Value::Integer(_) | Value::Double(_) | Value::Span(_))) => Ok(value),
            ('-', Value::Double(number)) => Ok(Value::Double(-number)),
            ('-', Value::Integer(number)) => {
                // Java has no unsigned numbers, and wraps around.
                match i64::try_from(-number) {
                    Ok(number) => Ok(Value::Integer(number.into())),
                    Err(_) if !self.is_jms() => Err(Failure::Range),
                    Err(_) if number == i64::MIN.into() => Ok(Value::Integer(number)),
                    Err(_) => Ok(Value::Unknown),
                }
            }
            ('-', Value::Span(ticks)) if !self.is_jms() => {
                ticks.checked_neg().map(Value::Span).ok_or(Failure::Range)
            }
            _ => self.mismatch(),
        }
    }

    fn arithmetic(&self, left: Value, operator: char, right: Value) -> Evaluated {
        match (left, right) {
            (Value::Unknown, _) | (_, Value::Unknown) => Ok(Value::Unknown),
            (Value::Integer(left), Value::Integer(right)) => self.integers(left, operator, right),
            (Value::Integer(left), Value::Double(right)) => {
                Ok(doubles(left as f64, operator, right))
            }
            (Value::Double(left), Value::Integer(right)) => {
                Ok(doubles(left, operator, right as f64))
            }
            (Value::Double(left), Value::Double(right)) => Ok(doubles(left, operator, right)),
            _ if self.is_jms() => Ok(Value::Unknown),
            (Value::Text(left), Value::Text(right)) if operator == '+' => {
                Ok(Value::Text(left + &right))
            }
            (Value::Time(left), Value::Time(right)) if operator == '-' => {
                ticks(left.checked_sub(right), Value::Span)
            }
            (Value::Time(left), Value::Span(right)) if operator == '-' => {
                ticks(left.checked_sub(right), Value::Time)
            }
            (Value::Time(left), Value::Span(right)) if operator == '+' => {
                ticks(left.checked_add(right), Value::Time)
            }
            (Value::Span(left), Value::Time(right)) if operator == '+' => {
                ticks(left.checked_add(right), Value::Time)
            }
            (Value::Span(left), Value::Span(right)) if operator == '+' => {
                ticks(left.checked_add(right), Value::Span)
            }
            (Value::Span(left), Value::Span(right)) if operator == '-' => {
                ticks(left.checked_sub(right), Value::Span)
            }
            _ => self.mismatch(),
        }
    }

    fn integers(&self, left: i128, operator: char, right: i128) -> Evaluated {
        let has_unsigned = left > i64::MAX.into() || right > i64::MAX.into();
        if self.is_jms() && has_unsigned {
            return Ok(doubles(left as f64, operator, right as f64));
        }
        if right == 0 && "/%".contains(operator) {
            return if self.is_jms() {
                Ok(Value::Unknown)
            } else {
                Err(Failure::DivisionByZero)
            };
        }
        let exact = match operator {
            '+' => left.checked_add(right),
            '-' => left.checked_sub(right),
            '*' => left.checked_mul(right),
            '/' => left.checked_div(right),
            _ => left.checked_rem(right),
        };
        let overflows_as_in_c = operator == '%' && left == i64::MIN.into() && right == -1;
        let most: i128 = if has_unsigned {
            u64::MAX.into()
        } else {
            i64::MAX.into()
        };
        match exact {
            Some(exact) if self.is_jms() => Ok(Value::Integer((exact as i64).into())),
            Some(exact) if exact <= most && exact >= i64::MIN.into() && !overflows_as_in_c => {
                Ok(Value::Integer(exact))
            }
            _ => Err(Failure::Range),
        }
    }

    fn compare(&self, left: Value, operator: &str, right: Value) -> Evaluated {
        let is_equality = operator == "=" || operator == "<>";
        let jms = self.is_jms();
        let ordering = match (&left, &right) {
            (Value::Unknown, _) | (_, Value::Unknown) => return Ok(Value::Unknown),
            (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
            (Value::Integer(left), Value::Double(right)) => (*left as f64).partial_cmp(right),
            (Value::Double(left), Value::Integer(right)) => left.partial_cmp(&(*right as f64)),
            (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
            (Value::Text(left), Value::Text(right)) if is_equality || !jms => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) if is_equality => Some(left.cmp(right)),
            (Value::Time(left), Value::Time(right)) | (Value::Span(left), Value::Span(right)) => {
                Some(left.cmp(right))
            }
            _ if jms => return Ok(Value::Bool(false)),
            _ if is_equality => return Ok(Value::Bool(operator == "<>")),
            _ => return self.mismatch(),
        };
        use std::cmp::Ordering::{Equal, Greater, Less};
        Ok(Value::Bool(match operator {
            "=" => ordering == Some(Equal),
            "<>" => ordering != Some(Equal),
            "<" => ordering == Some(Less),
            "<=" => matches!(ordering, Some(Less | Equal)),
            ">" => ordering == Some(Greater),
            _ => matches!(ordering, Some(Greater | Equal)),
        }))
    }

    fn list(&self, value: &E, list: &[E]) -> Evaluated {
        let value = self.value(value)?;
        if value == Value::Unknown {
            return Ok(Value::Unknown);
        }
        let mut had_unknown = false;
        for item in list {
            let item = self.value(item)?;
            let is_number = |value: &Value| matches!(value, Value::Integer(_) | Value::Double(_));
            let alike = std::mem::discriminant(&item) == std::mem::discriminant(&value)
                || is_number(&item) && is_number(&value);
            if item == Value::Unknown {
                had_unknown = true;
            } else if alike && self.compare(value.clone(), "=", item)? == Value::Bool(true) {
                return Ok(Value::Bool(true));
            }
        }
        Ok(if had_unknown {
            Value::Unknown
        } else {
            Value::Bool(false)
        })
    }

    fn like(&self, value: &E, pattern: &E, escape: Option<&E>) -> Evaluated {
        let value = self.value(value)?;
        let pattern = self.value(pattern)?;
        let escape = escape.map(|escape| self.value(escape)).transpose()?;
        let any_unknown =
            [Some(&value), Some(&pattern), escape.as_ref()].contains(&Some(&Value::Unknown));
        if any_unknown {
            return Ok(Value::Unknown);
        }
        let (Value::Text(value), Value::Text(pattern)) = (value, pattern) else {
            return if self.is_jms() {
                Ok(Value::Bool(false))
            } else {
                self.mismatch()
            };
        };
        let escape = match escape {
            None => None,
            Some(Value::Text(escape)) if escape.chars().count() == 1 => escape.chars().next(),
            Some(Value::Text(_)) => return Err(Failure::Escape),
            Some(_) => return self.mismatch(),
        };
        let mut wanted = Vec::new();
        let mut characters = pattern.chars();
        while let Some(next) = characters.next() {
            if Some(next) == escape {
                wanted.push((characters.next().ok_or(Failure::Escape)?, true));
            } else {
                wanted.push((next, false));
            }
        }
        let value: Vec<char> = value.chars().collect();
        Ok(Value::Bool(like(&value, &wanted)))
    }
}

fn like(text: &[char], pattern: &[(char, bool)]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((('%', false), rest)) => (0..=text.len()).any(|at| like(&text[at..], rest)),
        Some((wanted, rest)) => text.split_first().is_some_and(|(next, behind)| {
            (*wanted == ('_', false) || wanted.0 == *next) && like(behind, rest)
        }),
    }
}

fn negate(value: Value, negated: bool) -> Value {
    match value {
        Value::Bool(truth) => Value::Bool(truth != negated),
        other => other,
    }
}

fn doubles(left: f64, operator: char, right: f64) -> Value {
    Value::Double(match operator {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        '/' => left / right,
        _ => left % right,
    })
}

fn ticks(result: Option<i64>, kind: fn(i64) -> Value) -> Evaluated {
    result.map(kind).ok_or(Failure::Range)
}

fn text(text: Option<&String>) -> Value {
    text.map_or(Value::Unknown, |text| Value::Text(text.clone()))
}

fn of_amqp(value: &Amqp) -> Value {
    match value {
        Amqp::Bool(value) => Value::Bool(*value),
        Amqp::Ubyte(value) => Value::Integer((*value).into()),
        Amqp::Int(value) => Value::Integer((*value).into()),
        Amqp::Long(value) => Value::Integer((*value).into()),
        Amqp::Ulong(value) => Value::Integer((*value).into()),
        Amqp::Float(value) => Value::Double((*value).into()),
        Amqp::Double(value) => Value::Double(*value),
        Amqp::Char(value) => Value::Text(value.to_string()),
        Amqp::String(value) => Value::Text(value.clone()),
        Amqp::Symbol(value) => Value::Text(value.to_string()),
        Amqp::Timestamp(ms) => Value::Time(ms.saturating_mul(10_000)),
        Amqp::Uuid(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let parts = [
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..],
            ];
            Value::Text(parts.join("-"))
        }
        Amqp::Described(pair) => match &**pair {
            (Amqp::Symbol(name), Amqp::Long(ticks)) if *name == "com.microsoft:timespan" => {
                Value::Span(*ticks)
            }
            _ => Value::Unknown,
        },
        _ => Value::Unknown,
    }
}
