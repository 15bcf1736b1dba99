//! Selector: a JMS message selector of a receiver. (JMS 2.0, 3.8.1; docs/spec/amqp.md#3.5)
//!
//! It never fails on a message: an absent value is unknown, and a comparison of values of different
//! kinds is false.

use crate::expression::dialect::Dialect;
use crate::expression::error::ParseError;
use crate::expression::evaluation::{Environment, Run};
use crate::expression::machine;
use crate::expression::needs::Needs;
use crate::expression::parameters::Parameters;
use crate::expression::parser;
use crate::expression::program::Program;
use crate::message::Message;

/// A parsed selector, and the text it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    text: Box<str>,
    /// None selects everything.
    program: Option<Program>,
}

impl Selector {
    /// Parses `text`; a blank one selects everything.
    ///
    /// # Errors
    /// When it is no selector; the error has the position and the reason.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let program = if text.trim().is_empty() {
            None
        } else {
            let tree = parser::condition(text, Dialect::Jms, &Parameters::NONE)?;
            Some(Program::condition(&tree))
        };
        Ok(Self {
            text: text.into(),
            program,
        })
    }

    /// A selector by a condition in the language of rules: a result that cannot be evaluated is
    /// unknown. (docs/spec/entities.md#17.5)
    ///
    /// # Errors
    /// When it is no condition; the error has the position and the reason.
    pub fn of_filter(text: &str) -> Result<Self, ParseError> {
        let tree = parser::condition(text, Dialect::Sql, &Parameters::NONE)?;
        Ok(Self {
            text: text.into(),
            program: Some(Program::condition(&tree)),
        })
    }

    /// How `text`, which is not blank, is understood: with all its parentheses.
    ///
    /// # Errors
    /// When it is no selector.
    pub fn explain(text: &str) -> Result<String, ParseError> {
        let tree = parser::condition(text, Dialect::Jms, &Parameters::NONE)?;
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
        self.program
            .as_ref()
            .map_or_else(Needs::default, |program| program.needs)
    }

    /// Whether it is true, false or, as `None`, unknown for `message`. Only what is true is
    /// selected. What takes too long is unknown.
    #[must_use]
    pub fn evaluate(&self, message: &Message<'_>) -> Option<bool> {
        self.evaluate_at_cost(message).0
    }

    /// As [`evaluate`](Self::evaluate), with what it took: steps and characters looked at, a few
    /// milliseconds for the million that are the most.
    #[must_use]
    pub fn evaluate_at_cost(&self, message: &Message<'_>) -> (Option<bool>, u32) {
        let mut run = Run::new(Environment::default());
        let truth = self.run(message, &mut run);
        (truth, run.fuel.spent())
    }

    pub(crate) fn run(&self, message: &Message<'_>, run: &mut Run) -> Option<bool> {
        match &self.program {
            None => Some(true),
            Some(program) => machine::is_true(program, message, run).unwrap_or(None),
        }
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.program.is_none()
    }

    /// Whether it selects `message`.
    #[must_use]
    pub fn selects(&self, message: &Message<'_>) -> bool {
        self.evaluate(message) == Some(true)
    }
}
