//! Error: why a text is no filter, action or selector.
//!
//! Every error that can be found without a message is reported when a rule is created, with its
//! position in the text, counted in characters from 1. Errors that depend on a message are an
//! [`EvaluationError`](crate::EvaluationError).

/// Why a text was refused, and where.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("at character {position}: {fault}")]
pub struct ParseError {
    /// The position of the error in characters, counted from 1.
    pub position: usize,
    /// The error at that position.
    pub fault: Fault,
}

/// The kind of a parse error.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says in its text what happened")]
pub enum Fault {
    #[error("the text is longer than {0} characters")]
    TooLong(usize),
    #[error("the text is empty")]
    Empty,
    #[error("{0:?} is not expected")]
    UnexpectedCharacter(char),
    #[error("the text in quotes has no end")]
    UnterminatedText,
    #[error("the delimited name has no end")]
    UnterminatedName,
    #[error("a delimited name is empty")]
    EmptyName,
    #[error("the number is out of range")]
    NumberOutOfRange,
    #[error("{expected} is expected, not {found}")]
    Expected {
        expected: &'static str,
        found: String,
    },
    #[error("nested deeper than {0}")]
    TooDeep(usize),
    #[error("there is no system property {0:?}")]
    UnknownSystemProperty(String),
    #[error("there is no scope {0:?}; a name with a dot is written in brackets")]
    UnknownScope(String),
    #[error("no value is given for the parameter @{0}")]
    UnknownParameter(String),
    #[error("the value given for the parameter @{0} is of a type that filters do not know")]
    UnusableParameter(String),
    #[error("there is no function {0:?}")]
    UnknownFunction(String),
    #[error("the condition that starts here is used as a value")]
    ConditionAsValue,
    #[error("the value that starts here is used as a condition")]
    ValueAsCondition,
    #[error("an escape must be a single character")]
    BadEscape,
    #[error("the pattern ends with its escape character")]
    DanglingEscape,
    #[error("more than {0} statements")]
    TooManyStatements(usize),
    #[error("the system property {0} cannot be changed by an action")]
    ReadOnly(&'static str),
    #[error("selectors cannot refer to {0}")]
    NotSelectable(String),
    #[error("selectors compare texts and booleans by = and <> only")]
    NotOrdered,
    #[error("selectors calculate with numbers only")]
    NotNumeric,
}
