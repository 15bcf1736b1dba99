//! Machine: runs a program on a message. (docs/spec/entities.md#17.7, #17.8)
//!
//! Conditions are values too: true, false or unknown. An unknown operand makes every result
//! unknown, except those of AND, OR, IS NULL and EXISTS. The stack is an array unless a program
//! needs an unusually high one, so a run allocates only the texts that `+` concatenates.

use crate::expression::dialect::Dialect;
use crate::expression::evaluation::{EvaluationError, Run, TypeMismatch};
use crate::expression::fields::{Fields, PropertyLookup};
use crate::expression::fuel::Fuel;
use crate::expression::program::{Op, Program};
use crate::expression::tree::{Arithmetic, Comparison};
use crate::values::arithmetic;
use crate::values::compare;
use crate::values::like::Pattern;
use crate::values::value::{Value, ValueKind};

/// Programs that need no more than this run without an allocation.
const INLINE: usize = 6;

type Step<T> = Result<T, EvaluationError>;

/// Runs `program` on a message and returns its result.
pub(crate) fn run<'v>(
    program: &'v Program,
    message: &'v impl Fields,
    run: &mut Run,
) -> Step<Value<'v>> {
    let mut inline = [const { Value::Unknown }; INLINE];
    let mut heap = Vec::new();
    let values = if program.height <= INLINE {
        &mut inline[..]
    } else {
        heap.resize(program.height, Value::Unknown);
        &mut heap[..]
    };
    let mut machine = Machine {
        program,
        message,
        run,
        stack: Stack { values, height: 0 },
    };
    machine.run()?;
    Ok(machine.stack.pop())
}

/// Whether a condition is true, false or, as `None`, unknown.
pub(crate) fn is_true(
    program: &Program,
    message: &impl Fields,
    environment: &mut Run,
) -> Step<Option<bool>> {
    match run(program, message, environment)? {
        Value::Bool(truth) => Ok(Some(truth)),
        _ => Ok(None),
    }
}

struct Stack<'s, 'v> {
    values: &'s mut [Value<'v>],
    height: usize,
}

impl<'v> Stack<'_, 'v> {
    fn push(&mut self, value: Value<'v>) {
        self.values[self.height] = value;
        self.height += 1;
    }

    /// The compiler sees to it that there is a value.
    fn pop(&mut self) -> Value<'v> {
        self.height -= 1;
        std::mem::replace(&mut self.values[self.height], Value::Unknown)
    }

    fn top(&self) -> &Value<'v> {
        &self.values[self.height - 1]
    }

    /// The value under the top.
    fn second(&self) -> &Value<'v> {
        &self.values[self.height - 2]
    }
}

struct Machine<'s, 'v, 'r, F> {
    program: &'v Program,
    message: &'v F,
    run: &'r mut Run,
    stack: Stack<'s, 'v>,
}

impl<'v, F: Fields> Machine<'_, 'v, '_, F> {
    fn run(&mut self) -> Step<()> {
        self.run.fuel.spend(self.program.ops.len())?;
        let mut next = 0;
        while let Some(op) = self.program.ops.get(next) {
            next = match self.step(*op)? {
                Some(place) => usize::from(place),
                None => next + 1,
            };
        }
        Ok(())
    }

    /// Runs one instruction, and returns the next one if it is not the following.
    fn step(&mut self, op: Op) -> Step<Option<u16>> {
        match op {
            Op::AndElse(place) => return Ok(self.jump_if(false, place)),
            Op::OrElse(place) => return Ok(self.jump_if(true, place)),
            Op::InBegin(place) => return Ok(self.begin_list(place)),
            Op::InElement(place) => return self.element(place),
            Op::Constant(place) => self.push_constant(place),
            Op::User(name) => {
                let value = self.user(name)?.into_value();
                self.stack.push(value);
            }
            Op::System(property) => self.stack.push(self.message.system(property)),
            Op::Compare(comparison) => self.compare(comparison)?,
            Op::Calculate(operator) => self.calculate(operator)?,
            Op::And => self.join(false),
            Op::Or => self.join(true),
            Op::Not => self.not(),
            Op::Truth => self.truth()?,
            other => self.rare_step(other)?,
        }
        Ok(None)
    }

    fn rare_step(&mut self, op: Op) -> Step<()> {
        match op {
            Op::Like(pattern) => self.like_constant(pattern),
            Op::LikeAny { escaped } => self.like_any(escaped),
            Op::Named => self.named(),
            Op::Plus | Op::Minus => self.sign(op == Op::Minus),
            Op::NewId => {
                self.stack.push(Value::Guid(self.run.new_id()));
                Ok(())
            }
            Op::InEnd => {
                self.end_list();
                Ok(())
            }
            Op::UserIsNull(name) => {
                let is_null = matches!(
                    self.user(name)?,
                    PropertyLookup::Missing | PropertyLookup::Null
                );
                self.push_bool(is_null)
            }
            Op::UserExists(name) => {
                let exists = !matches!(self.user(name)?, PropertyLookup::Missing);
                self.push_bool(exists)
            }
            Op::SystemIsNull(property) => {
                self.push_bool(self.message.system(property).is_unknown())
            }
            Op::SystemExists(property) => {
                self.push_bool(!self.message.system(property).is_unknown())
            }
            _ => Ok(()),
        }
    }

    fn push_constant(&mut self, place: u16) {
        let constant = &self.program.constants[usize::from(place)];
        self.stack.push(constant.borrowed());
    }

    fn push_bool(&mut self, truth: bool) -> Step<()> {
        self.stack.push(Value::Bool(truth));
        Ok(())
    }

    fn user(&mut self, name: u16) -> Step<PropertyLookup<'v>> {
        self.run.fuel.spend(self.message.cost())?;
        let name = &self.program.names[usize::from(name)];
        Ok(self.message.user(name, self.program.dialect))
    }

    fn named(&mut self) -> Step<()> {
        let name = self.stack.pop();
        let kind = name.kind();
        let found = match (name.is_unknown(), name.into_text()) {
            (true, _) => Value::Unknown,
            (false, Some(name)) => {
                self.run.fuel.spend(self.message.cost())?;
                let found = self.message.user(&name, self.program.dialect);
                found.into_value()
            }
            (false, None) => {
                self.unknown_if_lenient(Err(EvaluationError::WrongKind(kind, ValueKind::Text)))?
            }
        };
        self.stack.push(found);
        Ok(())
    }

    /// With `certain` on top the result of AND or OR is known.
    fn jump_if(&mut self, certain: bool, place: u16) -> Option<u16> {
        (*self.stack.top() == Value::Bool(certain)).then_some(place)
    }

    /// Joins two conditions of which neither is certain alone: `certain` wins, then unknown.
    fn join(&mut self, certain: bool) {
        let right = self.stack.pop();
        let left = self.stack.pop();
        let joined = match (left, right) {
            (_, Value::Bool(right)) if right == certain => Value::Bool(certain),
            (Value::Bool(_), Value::Bool(_)) => Value::Bool(!certain),
            _ => Value::Unknown,
        };
        self.stack.push(joined);
    }

    fn not(&mut self) {
        let negated = match self.stack.pop() {
            Value::Bool(truth) => Value::Bool(!truth),
            _ => Value::Unknown,
        };
        self.stack.push(negated);
    }

    fn truth(&mut self) -> Step<()> {
        let value = self.stack.pop();
        let truth = match value.kind() {
            ValueKind::Boolean | ValueKind::Unknown => value,
            other => {
                self.unknown_if_lenient(Err(EvaluationError::WrongKind(other, ValueKind::Boolean)))?
            }
        };
        self.stack.push(truth);
        Ok(())
    }

    fn compare(&mut self, comparison: Comparison) -> Step<()> {
        let right = self.stack.pop();
        let left = self.stack.pop();
        let result = if left.is_unknown() || right.is_unknown() {
            Value::Unknown
        } else {
            charge_for_texts(&mut self.run.fuel, &left, &right)?;
            let compared = compare::compare(comparison, &left, &right, self.program.dialect);
            self.unknown_if_lenient(compared.map(Value::Bool))?
        };
        self.stack.push(result);
        Ok(())
    }

    fn calculate(&mut self, operator: Arithmetic) -> Step<()> {
        let right = self.stack.pop();
        let left = self.stack.pop();
        let result = if left.is_unknown() || right.is_unknown() {
            Value::Unknown
        } else {
            let fuel = &mut self.run.fuel;
            let dialect = self.program.dialect;
            let calculated = arithmetic::calculate(operator, &left, &right, dialect, fuel);
            self.unknown_if_lenient(calculated)?
        };
        self.stack.push(result);
        Ok(())
    }

    fn sign(&mut self, is_minus: bool) -> Step<()> {
        let value = self.stack.pop();
        let result = if value.is_unknown() {
            Value::Unknown
        } else if is_minus {
            let negated = arithmetic::negated(&value, self.program.dialect);
            self.unknown_if_lenient(negated)?
        } else {
            self.unknown_if_lenient(arithmetic::signed(value))?
        };
        self.stack.push(result);
        Ok(())
    }

    fn like_constant(&mut self, pattern: u16) -> Step<()> {
        let value = self.stack.pop();
        let program = self.program;
        let pattern = &program.patterns[usize::from(pattern)];
        let result = self.like(value, pattern)?;
        self.stack.push(result);
        Ok(())
    }

    fn like(&mut self, value: Value<'v>, pattern: &Pattern) -> Step<Value<'v>> {
        let kind = value.kind();
        match value.into_text() {
            Some(text) => Ok(Value::Bool(pattern.matches(&text, &mut self.run.fuel)?)),
            None if kind == ValueKind::Unknown => Ok(Value::Unknown),
            // An unlike value compares as false. (JMS 2.0, 3.8.1.2)
            None if self.program.dialect == Dialect::Jms => Ok(Value::Bool(false)),
            None => self.unknown_if_lenient(Err(EvaluationError::WrongKind(kind, ValueKind::Text))),
        }
    }

    fn like_any(&mut self, escaped: bool) -> Step<()> {
        let escape = if escaped {
            Some(self.stack.pop())
        } else {
            None
        };
        let pattern = self.stack.pop();
        let value = self.stack.pop();
        let is_unknown = value.is_unknown()
            || pattern.is_unknown()
            || escape.as_ref().is_some_and(Value::is_unknown);
        let result = if is_unknown {
            Value::Unknown
        } else {
            self.like_parts(value, pattern, escape)?
        };
        self.stack.push(result);
        Ok(())
    }

    /// LIKE with three values that are known.
    fn like_parts(
        &mut self,
        value: Value<'v>,
        pattern: Value<'v>,
        escape: Option<Value<'v>>,
    ) -> Step<Value<'v>> {
        if let Some(kind) = not_text([Some(&value), Some(&pattern), escape.as_ref()]) {
            return self.unknown_if_lenient(Err(EvaluationError::WrongKind(kind, ValueKind::Text)));
        }
        let escape = match escape.and_then(Value::into_text) {
            Some(text) => Some(single(&text).ok_or(EvaluationError::BadEscape)?),
            None => None,
        };
        let pattern = pattern.into_text().unwrap_or_default();
        self.run.fuel.spend(pattern.len())?;
        let pattern = Pattern::new(&pattern, escape).ok_or(EvaluationError::DanglingEscape)?;
        self.like(value, &pattern)
    }

    fn begin_list(&mut self, place: u16) -> Option<u16> {
        if self.stack.top().is_unknown() {
            return Some(place);
        }
        self.stack.push(Value::Bool(false));
        None
    }

    fn element(&mut self, place: u16) -> Step<Option<u16>> {
        let element = self.stack.pop();
        if element.is_unknown() {
            self.stack.pop();
            self.stack.push(Value::Bool(true));
            return Ok(None);
        }
        charge_for_texts(&mut self.run.fuel, self.stack.second(), &element)?;
        if !compare::equal(self.stack.second(), &element) {
            return Ok(None);
        }
        self.stack.pop();
        self.stack.pop();
        self.stack.push(Value::Bool(true));
        Ok(Some(place))
    }

    /// Nothing in the list was equal: false, unless something was unknown.
    fn end_list(&mut self) {
        let had_unknown = self.stack.pop() == Value::Bool(true);
        self.stack.pop();
        self.stack
            .push(Value::truth((!had_unknown).then_some(false)));
    }

    /// Turns an error that is tolerated into unknown. In selectors only the end of the fuel is an
    /// error.
    fn unknown_if_lenient(&self, result: Step<Value<'v>>) -> Step<Value<'v>> {
        let is_lenient = self.run.environment.type_mismatch == TypeMismatch::Unknown;
        match result {
            Err(EvaluationError::OutOfFuel) => Err(EvaluationError::OutOfFuel),
            Err(_) if self.program.dialect == Dialect::Jms => Ok(Value::Unknown),
            Err(error) if is_lenient && error.is_mismatch() => Ok(Value::Unknown),
            result => result,
        }
    }
}

/// Two long texts take their time.
fn charge_for_texts(fuel: &mut Fuel, left: &Value<'_>, right: &Value<'_>) -> Step<()> {
    if let (Value::Text(left), Value::Text(right)) = (left, right) {
        fuel.read(left.len().min(right.len()))?;
    }
    Ok(())
}

/// The kind of the first that is no text.
fn not_text(values: [Option<&Value<'_>>; 3]) -> Option<ValueKind> {
    let mut kinds = values.into_iter().flatten().map(Value::kind);
    kinds.find(|kind| *kind != ValueKind::Text)
}

fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}
