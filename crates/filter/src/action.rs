//! Action: how a rule changes its copy of a message. (docs/spec/entities.md#17.10)
//!
//! SET and REMOVE statements run in order, each on the result of the ones before it. The result is
//! a list of [changes](crate::Changes); the message itself is not changed until they are applied.

pub mod action_error;

use crate::action::action_error::ActionError;
use crate::expression::dialect::Dialect;
use crate::expression::error::{Fault, ParseError};
use crate::expression::evaluation::{Environment, Run};
use crate::expression::machine;
use crate::expression::needs::Needs;
use crate::expression::parameters::Parameters;
use crate::expression::parser::Parser;
use crate::expression::program::Program;
use crate::expression::token::Token;
use crate::expression::tree::Path;
use crate::message::Message;
use crate::message::changes::Changes;
use crate::message::modified_message::ModifiedMessage;
use crate::message::property::Property;

/// Most statements of an action. (docs/spec/entities.md#4)
pub const MAX_STATEMENTS: usize = 32;

/// A parsed SQL action, and the text it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    text: Box<str>,
    statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
enum Statement {
    Set(Path, Program),
    Remove(Path),
}

impl Action {
    /// Parses `text`: statements, with or without `;` or `,` between them.
    ///
    /// # Errors
    /// When it is no action; says where and why.
    pub fn parse(text: &str, parameters: &Parameters<'_>) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text, Dialect::Sql, parameters)?;
        if parser.peek() == &Token::End {
            return Err(parser.fault(Fault::Empty));
        }
        let mut statements = Vec::new();
        while parser.peek() != &Token::End {
            if statements.len() == MAX_STATEMENTS {
                return Err(parser.fault(Fault::TooManyStatements(MAX_STATEMENTS)));
            }
            statements.push(statement(&mut parser)?);
            let _ = parser.take_sign(";") || parser.take_sign(",");
        }
        Ok(Self {
            text: text.into(),
            statements,
        })
    }

    /// The text that it was parsed from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parts of a message that it may ask for, besides those that it changes.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let needs = self.statements.iter().map(|statement| match statement {
            Statement::Set(_, program) => program.needs,
            Statement::Remove(_) => Needs::default(),
        });
        needs.fold(Needs::default(), Needs::or)
    }

    /// The changes that it makes to `message`.
    ///
    /// # Errors
    /// When it fails on this message; the message is not changed.
    pub fn evaluate(
        &self,
        message: &Message<'_>,
        environment: Environment,
    ) -> Result<Changes, ActionError> {
        self.run(message, &mut Run::new(environment))
    }

    pub(crate) fn run(&self, message: &Message<'_>, run: &mut Run) -> Result<Changes, ActionError> {
        let mut message = ModifiedMessage::new(message);
        for statement in &self.statements {
            match statement {
                Statement::Set(path, program) => {
                    let value = machine::run(program, &message, run)?.into_owned();
                    message.set(path, value)?;
                }
                Statement::Remove(path) => message.remove(path),
            }
        }
        message.finish()
    }
}

fn statement(parser: &mut Parser<'_>) -> Result<Statement, ParseError> {
    let is_set = parser.take_keyword("SET");
    if !is_set && !parser.take_keyword("REMOVE") {
        return Err(parser.expected("SET or REMOVE"));
    }
    let path = target(parser)?;
    if !is_set {
        return Ok(Statement::Remove(path));
    }
    parser.expect_sign("=")?;
    parser.value()?;
    Ok(Statement::Set(path, Program::value(&parser.take_tree())))
}

/// A property that actions may change.
fn target(parser: &mut Parser<'_>) -> Result<Path, ParseError> {
    let place = parser.place();
    let path = parser.path()?;
    match path {
        Path::System(property) if !property.is_settable() => {
            Err(parser.fault_at(place, Fault::ReadOnly(Property::name(property))))
        }
        path => Ok(path),
    }
}
