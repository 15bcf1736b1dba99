//! SQL filter: a condition on a message's properties. (docs/spec/entities.md#17.5 to #17.8)

use crate::expression::dialect::Dialect;
use crate::expression::error::ParseError;
use crate::expression::evaluation::{Environment, EvaluationError, Run};
use crate::expression::machine;
use crate::expression::needs::Needs;
use crate::expression::parameters::Parameters;
use crate::expression::parser;
use crate::expression::program::Program;
use crate::message::Message;

/// A parsed SQL filter, and the text it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlFilter {
    text: Box<str>,
    program: Program,
}

impl SqlFilter {
    /// Parses `text`.
    ///
    /// # Errors
    /// When it is no condition; the error has the position and the reason.
    pub fn parse(text: &str, parameters: &Parameters<'_>) -> Result<Self, ParseError> {
        let tree = parser::condition(text, Dialect::Sql, parameters)?;
        Ok(Self {
            text: text.into(),
            program: Program::condition(&tree),
        })
    }

    /// How `text` is understood: with all its parentheses, and in the crate's own spelling.
    ///
    /// # Errors
    /// When it is no condition.
    pub fn explain(text: &str, parameters: &Parameters<'_>) -> Result<String, ParseError> {
        let tree = parser::condition(text, Dialect::Sql, parameters)?;
        Ok(tree.to_string())
    }

    /// The text that it was parsed from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parts of a message that it may ask for.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.program.needs
    }

    /// Whether it is true, false or, as `None`, unknown for `message`. Only what is true matches.
    ///
    /// # Errors
    /// When it cannot be evaluated on this message.
    pub fn evaluate(
        &self,
        message: &Message<'_>,
        environment: Environment,
    ) -> Result<Option<bool>, EvaluationError> {
        self.run(message, &mut Run::new(environment))
    }

    pub(crate) fn run(
        &self,
        message: &Message<'_>,
        run: &mut Run,
    ) -> Result<Option<bool>, EvaluationError> {
        machine::is_true(&self.program, message, run)
    }
}
