//! Generate: random expressions and messages, from small pools so that they meet each other.

use amqp::{Symbol, Value};
use bytes::Bytes;

use crate::messages::{Parts, timespan};
use crate::naive::Expression as E;

/// A splitmix64: the same numbers for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

const NAMES: &[&str] = &["a", "b", "B", "c", "Cc", "cC", "d"];
const SQL_NAMES: &[&str] = &["a", "b", "c", "CC", "cC", "D", "e"];
const TEXTS: &[&str] = &[
    "", "a", "ab", "abc", "ABC", "a%", "a_c", "it's", "ä", "%", "!", "aab",
];
const PATTERNS: &[&str] = &[
    "", "%", "a%", "%c", "_b_", "a!%", "%!_%", "!%%", "a_%", "%a%b%", "ä", "!!",
];
const INTEGERS: &[i64] = &[
    0,
    1,
    2,
    3,
    -1,
    5,
    7,
    i64::MAX,
    i64::MIN,
    1 << 53,
    (1 << 53) + 1,
];
const DOUBLES: &[f64] = &[0.0, 1.0, 2.5, -1.5, 1e300, 9_007_199_254_740_992.0, 1e-5];
const COMPARISONS: &[&str] = &["=", "<>", "<", "<=", ">", ">="];

/// A message whose properties are of any type.
pub fn message(random: &mut Random) -> Parts {
    let mut parts = Parts::default();
    if random.chance(60) {
        parts = parts.labelled(random.pick(TEXTS));
    }
    if random.chance(60) {
        parts.properties.to = Some(Value::from(random.pick(TEXTS)));
    }
    // Now and then 20 more, so that properties are found in another way.
    let others = if random.chance(10) { 20 } else { 0 };
    for number in 0..others {
        parts = parts.with(&format!("other{number}"), Value::Int(number));
    }
    // In any order, since names that differ in case must not be found by it.
    let first = random.below(NAMES.len());
    for name in NAMES.iter().cycle().skip(first).take(NAMES.len()) {
        if random.chance(70) {
            let value = value(random);
            parts = parts.with(name, value);
        }
    }
    parts
}

fn value(random: &mut Random) -> Value {
    let integer = random.pick(INTEGERS);
    match random.below(18) {
        0..=3 => Value::Long(integer),
        4 => Value::Int(integer as i32),
        5 => Value::Ubyte(integer as u8),
        6 => Value::Ulong(random.pick(&[0, 5, 1 << 63, u64::MAX, (1 << 63) + 1])),
        7 | 8 => Value::Double(random.pick(DOUBLES)),
        9 => Value::Float(1.5),
        10 | 11 => Value::from(random.pick(TEXTS)),
        12 => Value::Symbol(Symbol::new("abc")),
        13 => Value::Bool(random.chance(50)),
        14 => random.pick(&[
            Value::Null,
            Value::Binary(Bytes::from_static(b"a")),
            Value::List(vec![]),
        ]),
        15 => Value::Uuid([random.pick(&[0, 0xab]); 16]),
        16 => Value::Timestamp(random.pick(&[0, 1_000, i64::MAX])),
        _ => random.pick(&[
            timespan(0),
            timespan(10_000_000),
            timespan(i64::MIN),
            Value::Char('a'),
        ]),
    }
}

fn boxed(expression: E) -> Box<E> {
    Box::new(expression)
}

/// A condition of SQL.
pub fn sql(random: &mut Random, depth: usize) -> E {
    let next = depth.saturating_sub(1);
    match random.below(if depth == 0 { 5 } else { 16 }) {
        0 => E::Bool(random.chance(50)),
        1 => sql_path(random),
        2 => E::IsNull(boxed(sql_path(random)), random.chance(50)),
        3 => E::Exists(boxed(sql_path(random))),
        4 => E::Null,
        5..=8 => {
            let operator = random.pick(COMPARISONS);
            E::Compare(
                boxed(sql_value(random, next)),
                operator,
                boxed(sql_value(random, next)),
            )
        }
        9 | 10 => E::And(boxed(sql(random, next)), boxed(sql(random, next))),
        11 | 12 => E::Or(boxed(sql(random, next)), boxed(sql(random, next))),
        13 => E::Not(boxed(sql(random, next))),
        14 => {
            let list = (0..=random.below(4))
                .map(|_| sql_value(random, next))
                .collect();
            E::In(boxed(sql_value(random, next)), random.chance(50), list)
        }
        _ => sql_like(random, next),
    }
}

/// Constant patterns are sound, since those that are not are refused at once.
fn sql_like(random: &mut Random, depth: usize) -> E {
    let value = boxed(sql_value(random, depth));
    let (pattern, escape) = match random.below(4) {
        0 => (E::Text(random.pick(PATTERNS).into()), None),
        1 => (
            E::Text(random.pick(&["a!%", "%!_%", "!!%", "_"]).into()),
            Some(E::Text("!".into())),
        ),
        2 => (sql_dynamic(random, depth), None),
        _ => (sql_dynamic(random, depth), Some(sql_dynamic(random, depth))),
    };
    E::Like(value, random.chance(50), boxed(pattern), escape.map(boxed))
}

/// A value that is known only with a message.
fn sql_dynamic(random: &mut Random, depth: usize) -> E {
    let value = sql_value(random, depth);
    match value {
        E::Text(text) => E::Arithmetic(
            boxed(E::Text(text)),
            '+',
            boxed(E::Text(random.pick(PATTERNS).into())),
        ),
        other => other,
    }
}

fn sql_path(random: &mut Random) -> E {
    match random.below(9) {
        0 => E::Label,
        1 => E::To,
        _ => E::User(random.pick(SQL_NAMES).into()),
    }
}

fn sql_value(random: &mut Random, depth: usize) -> E {
    let next = depth.saturating_sub(1);
    match random.below(if depth == 0 { 10 } else { 14 }) {
        0 | 1 => E::Int(random.pick(INTEGERS)),
        2 => E::Double(random.pick(DOUBLES)),
        3 | 4 => E::Text(random.pick(TEXTS).into()),
        5 => random.pick(&[E::Null, E::Bool(true), E::Bool(false)]),
        6..=9 => sql_path(random),
        10 => E::PropertyOf(boxed(E::Text(random.pick(SQL_NAMES).into()))),
        11 => E::Sign(random.pick(&['-', '+']), boxed(sql_value(random, next))),
        _ => {
            let operator = random.pick(&['+', '-', '*', '/', '%']);
            E::Arithmetic(
                boxed(sql_value(random, next)),
                operator,
                boxed(sql_value(random, next)),
            )
        }
    }
}

/// A selector, in the narrower grammar of JMS.
pub fn selector(random: &mut Random, depth: usize) -> E {
    let next = depth.saturating_sub(1);
    match random.below(if depth == 0 { 3 } else { 13 }) {
        0 => E::Bool(random.chance(50)),
        1 => jms_path(random),
        2 => E::IsNull(boxed(jms_path(random)), random.chance(50)),
        3 | 4 => {
            let operator = random.pick(COMPARISONS);
            E::Compare(
                boxed(number(random, next)),
                operator,
                boxed(number(random, next)),
            )
        }
        5 => {
            let text = random.pick(&[E::Text("ab".into()), E::Text("abc".into()), E::Bool(true)]);
            E::Compare(
                boxed(jms_path(random)),
                random.pick(&["=", "<>"]),
                boxed(text),
            )
        }
        6 => E::And(boxed(selector(random, next)), boxed(selector(random, next))),
        7 => E::Or(boxed(selector(random, next)), boxed(selector(random, next))),
        8 => E::Not(boxed(selector(random, next))),
        9 => {
            let list = (0..=random.below(3))
                .map(|_| E::Text(random.pick(TEXTS).into()))
                .collect();
            E::In(boxed(jms_path(random)), random.chance(50), list)
        }
        10 => E::Like(
            boxed(jms_path(random)),
            random.chance(50),
            boxed(E::Text(random.pick(&["a!%", "%!_%", "a_c", "%"]).into())),
            random.chance(50).then(|| boxed(E::Text("!".into()))),
        ),
        _ => E::Between(
            boxed(number(random, next)),
            random.chance(50),
            boxed(number(random, next)),
            boxed(number(random, next)),
        ),
    }
}

fn jms_path(random: &mut Random) -> E {
    match random.below(8) {
        0 => E::Label,
        _ => E::User(random.pick(NAMES).into()),
    }
}

fn number(random: &mut Random, depth: usize) -> E {
    let next = depth.saturating_sub(1);
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 | 1 => E::Int(random.pick(INTEGERS)),
        2 => E::Double(random.pick(DOUBLES)),
        3..=5 => jms_path(random),
        6 => E::Sign(random.pick(&['-', '+']), boxed(number(random, next))),
        _ => {
            let operator = random.pick(&['+', '-', '*', '/']);
            E::Arithmetic(
                boxed(number(random, next)),
                operator,
                boxed(number(random, next)),
            )
        }
    }
}
