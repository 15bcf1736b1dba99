//! Token: one piece of a text, as the lexer finds it and the parser takes it.

use std::fmt;

/// One piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'t> {
    /// A keyword, a bare name or a function's name.
    Word(&'t str),
    /// A delimited name, without its delimiters.
    Name(String),
    /// A text in quotes, without them.
    Text(String),
    /// Without a sign, so it may be one more than the largest integer.
    Integer(u64),
    Double(f64),
    /// The name behind an `@`.
    Parameter(&'t str),
    Sign(&'t str),
    End,
}

/// As an error names what was found.
impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Name(name) => write!(f, "[{name}]"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Double(double) => write!(f, "{double}"),
            Self::Parameter(name) => write!(f, "@{name}"),
            Self::Sign(sign) => write!(f, "{sign:?}"),
            Self::End => f.write_str("the end"),
        }
    }
}
