//! Evaluation: the inputs of an expression besides the message, and the reasons for no result.

use crate::expression::fuel::{Fuel, OutOfFuel};
use crate::values::value::ValueKind;

/// The result of a test of values of different kinds. (docs/spec/entities.md#17.9)
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TypeMismatch {
    /// An evaluation error; but `=` is false and `<>` true.
    #[default]
    Error,
    /// Unknown where it would be an error.
    Unknown,
}

/// The circumstances of an evaluation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Environment {
    /// The result of a test of values of different kinds.
    pub type_mismatch: TypeMismatch,
    /// The seed of the ids of `newid()`. They are unique as long as no two evaluations share it.
    pub seed: u128,
}

/// Why an expression has no result for a message. (docs/spec/entities.md#17.7)
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says in its text what happened")]
pub enum EvaluationError {
    #[error("{0} cannot be used with {1} here")]
    Mismatch(ValueKind, ValueKind),
    #[error("{0} cannot be used here, where {1} is wanted")]
    WrongKind(ValueKind, ValueKind),
    #[error("a number is divided by zero")]
    DivisionByZero,
    #[error("the result is out of range")]
    OutOfRange,
    #[error("an escape must be a single character")]
    BadEscape,
    #[error("a pattern ends with its escape character")]
    DanglingEscape,
    #[error("a text grows beyond {0} bytes")]
    TooLong(usize),
    #[error("the expression takes too long for this message")]
    OutOfFuel,
}

impl EvaluationError {
    /// Whether it is about values of the wrong kind, which may count as unknown.
    pub(crate) const fn is_mismatch(self) -> bool {
        matches!(self, Self::Mismatch(..) | Self::WrongKind(..))
    }
}

impl From<OutOfFuel> for EvaluationError {
    fn from(_: OutOfFuel) -> Self {
        Self::OutOfFuel
    }
}

/// One evaluation, or several that share their fuel.
pub(crate) struct Run {
    pub environment: Environment,
    pub fuel: Fuel,
    ids: u64,
}

impl Run {
    pub(crate) fn new(environment: Environment) -> Self {
        Self {
            environment,
            fuel: Fuel::full(),
            ids: 0,
        }
    }

    /// The next new id: a version 4 guid.
    pub(crate) fn new_id(&mut self) -> [u8; 16] {
        self.ids += 1;
        let seed = self.environment.seed;
        let high = mixed((seed >> 64) as u64 ^ mixed(self.ids));
        let low = mixed(seed as u64 ^ high.rotate_left(32));
        let mut id = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        id[6] = id[6] & 0x0f | 0x40;
        id[8] = id[8] & 0x3f | 0x80;
        id
    }
}

/// Spreads every bit over all others: the last step of splitmix64, which is one to one.
const fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
