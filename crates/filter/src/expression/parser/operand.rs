//! Operand: literals, properties, parameters, functions and parentheses.

use super::{Parsed, Parser, Precedence};
use crate::expression::dialect::Dialect;
use crate::expression::error::Fault;
use crate::expression::token::Token;
use crate::expression::tree::{Node, NodeId, Path};
use crate::message::property::Property;
use crate::values::value::Value;

/// One more than the largest integer: a minus turns it into the smallest one.
const MIN_MAGNITUDE: u64 = 1 << 63;

impl Parser<'_> {
    pub(super) fn operand(&mut self) -> Parsed<NodeId> {
        let start = self.at();
        let node = match self.peek().clone() {
            Token::Sign("(") => return self.parenthesised(),
            Token::Word(word) => return self.word(word),
            Token::Name(_) => Node::Path(self.path()?),
            Token::Text(text) => self.literal(Value::text(text)),
            Token::Integer(integer) => match i64::try_from(integer) {
                Ok(integer) => self.literal(Value::Int(integer)),
                Err(_) => return Err(self.fault(Fault::NumberOutOfRange)),
            },
            Token::Double(double) => self.literal(Value::Double(double)),
            Token::Parameter(name) => self.parameter(name)?,
            Token::Sign(_) | Token::End => return Err(self.expected("a value")),
        };
        Ok(self.add(start, node))
    }

    fn literal(&mut self, value: Value<'static>) -> Node {
        self.skip();
        Node::Literal(value)
    }

    /// The number that comes next, if one does, as it is behind a minus.
    pub(super) fn negative(&mut self) -> Parsed<Option<Value<'static>>> {
        let value = match *self.peek() {
            Token::Integer(MIN_MAGNITUDE) => Value::Int(i64::MIN),
            Token::Integer(integer) => match i64::try_from(integer) {
                Ok(integer) => Value::Int(-integer),
                Err(_) => return Err(self.fault(Fault::NumberOutOfRange)),
            },
            Token::Double(double) => Value::Double(-double),
            _ => return Ok(None),
        };
        self.skip();
        Ok(Some(value))
    }

    fn parenthesised(&mut self) -> Parsed<NodeId> {
        self.skip();
        let inner = self.expression(Precedence::Or)?;
        self.expect_sign(")")?;
        Ok(inner)
    }

    fn word(&mut self, word: &str) -> Parsed<NodeId> {
        let start = self.at();
        let node = match word.to_ascii_uppercase().as_str() {
            "TRUE" => self.literal(Value::Bool(true)),
            "FALSE" => self.literal(Value::Bool(false)),
            "NULL" if self.dialect == Dialect::Sql => self.literal(Value::Unknown),
            "EXISTS" if self.dialect == Dialect::Sql => self.exists()?,
            _ if self.is_reserved(word) => return Err(self.expected("a value")),
            _ if self.calls() => self.function(word)?,
            _ => Node::Path(self.path()?),
        };
        Ok(self.add(start, node))
    }

    /// Whether the word that comes next is followed by an opening parenthesis.
    fn calls(&self) -> bool {
        let behind = self.tokens.get(self.next + 1).map(|placed| &placed.token);
        self.dialect == Dialect::Sql && behind == Some(&Token::Sign("("))
    }

    fn exists(&mut self) -> Parsed<Node> {
        self.skip();
        self.expect_sign("(")?;
        let start = self.at();
        let path = Node::Path(self.path()?);
        let path = self.add(start, path);
        self.expect_sign(")")?;
        Ok(Node::Exists(path))
    }

    fn function(&mut self, name: &str) -> Parsed<Node> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("newid") {
            self.skip();
            self.expect_sign("(")?;
            self.expect_sign(")")?;
            return Ok(Node::NewId);
        }
        if is("property") || is("p") {
            self.skip();
            self.expect_sign("(")?;
            let argument = self.value()?;
            self.expect_sign(")")?;
            return Ok(Node::Named(argument));
        }
        Err(self.fault(Fault::UnknownFunction(name.to_owned())))
    }

    /// A property of the message, with or without its scope.
    pub(crate) fn path(&mut self) -> Parsed<Path> {
        match self.peek().clone() {
            Token::Name(name) => {
                self.skip();
                Ok(Path::User(name.into()))
            }
            Token::Word(word) if !self.is_reserved(word) => match self.dialect {
                Dialect::Sql => self.scoped(word),
                Dialect::Jms => self.identifier(word),
            },
            _ => Err(self.expected("a property")),
        }
    }

    /// A bare name, or a scope and the name behind its dot.
    fn scoped(&mut self, word: &str) -> Parsed<Path> {
        let behind = self.tokens.get(self.next + 1).map(|placed| &placed.token);
        if behind != Some(&Token::Sign(".")) {
            self.skip();
            return Ok(Path::User(word.into()));
        }
        let is_system = word.eq_ignore_ascii_case("sys");
        if !is_system && !word.eq_ignore_ascii_case("user") {
            return Err(self.fault(Fault::UnknownScope(word.to_owned())));
        }
        self.skip();
        self.skip();
        let name = match self.peek().clone() {
            Token::Name(name) => name,
            // Behind a dot there is no doubt that a keyword is a name.
            Token::Word(word) => word.to_owned(),
            _ => return Err(self.expected("a property's name")),
        };
        let path = if is_system {
            let known = Property::by_sql_name(&name);
            Path::System(known.ok_or_else(|| self.fault(Fault::UnknownSystemProperty(name)))?)
        } else {
            Path::User(name.into())
        };
        self.skip();
        Ok(path)
    }

    fn parameter(&mut self, name: &str) -> Parsed<Node> {
        let Some(value) = self.parameters.find(name) else {
            return Err(self.fault(Fault::UnknownParameter(name.to_owned())));
        };
        let converted = Value::of_amqp(value);
        if converted.is_unknown() && *value != amqp::Value::Null {
            return Err(self.fault(Fault::UnusableParameter(name.to_owned())));
        }
        self.skip();
        Ok(Node::Parameter(name.into(), converted))
    }
}
