//! Comparison: the tests that make a condition of values: comparisons, IS NULL, IN, LIKE and
//! BETWEEN.

use super::{Parsed, Parser, Precedence, comparison};
use crate::expression::dialect::Dialect;
use crate::expression::error::Fault;
use crate::expression::token::Token;
use crate::expression::tree::{Node, NodeId};
use crate::values::like::Pattern;
use crate::values::value::Value;

impl Parser<'_> {
    /// The test whose operator comes next, of the value `left`.
    pub(super) fn test(&mut self, left: NodeId, start: usize) -> Parsed<NodeId> {
        self.expect_value(left)?;
        if let Token::Sign(sign) = *self.peek()
            && let Some(comparison) = comparison(sign)
        {
            self.skip();
            let right = self.tested()?;
            self.check_comparison(comparison, left, right)?;
            return Ok(self.add(start, Node::Compare(comparison, left, right)));
        }
        if self.take_keyword("IS") {
            return self.is_null(left, start);
        }
        let negated = self.take_keyword("NOT");
        let node = if self.take_keyword("IN") {
            self.list(left, negated)?
        } else if self.take_keyword("LIKE") {
            self.like(left, negated)?
        } else if self.dialect == Dialect::Jms && self.take_keyword("BETWEEN") {
            self.between(left, negated)?
        } else {
            return Err(self.expected("IN or LIKE"));
        };
        Ok(self.add(start, node))
    }

    /// A value to the right of a test's operator.
    fn tested(&mut self) -> Parsed<NodeId> {
        let value = self.expression(Precedence::Sum)?;
        self.expect_value(value)?;
        Ok(value)
    }

    fn is_null(&mut self, path: NodeId, start: usize) -> Parsed<NodeId> {
        let negated = self.take_keyword("NOT");
        if !self.take_keyword("NULL") {
            return Err(self.expected("NULL"));
        }
        if !matches!(self.tree.node(path), Node::Path(_)) {
            let expected = "a property";
            let found = "a calculated value".to_owned();
            return Err(self.fault_of(path, Fault::Expected { expected, found }));
        }
        Ok(self.add(start, Node::IsNull { negated, path }))
    }

    fn list(&mut self, value: NodeId, negated: bool) -> Parsed<Node> {
        self.check_identifier(value)?;
        self.expect_sign("(")?;
        let mut list = Vec::new();
        loop {
            let item = self.value()?;
            self.check_text(item)?;
            list.push(item);
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        Ok(Node::In {
            negated,
            value,
            list,
        })
    }

    fn like(&mut self, value: NodeId, negated: bool) -> Parsed<Node> {
        self.check_identifier(value)?;
        let pattern = self.tested()?;
        self.check_text(pattern)?;
        let escape = if self.take_keyword("ESCAPE") {
            let escape = self.tested()?;
            self.check_text(escape)?;
            Some(escape)
        } else {
            None
        };
        self.check_pattern(pattern, escape)?;
        Ok(Node::Like {
            negated,
            value,
            pattern,
            escape,
        })
    }

    /// Reports an invalid constant pattern at once.
    fn check_pattern(&self, pattern: NodeId, escape: Option<NodeId>) -> Parsed<()> {
        let escape_text = escape.and_then(|escape| self.constant_text(escape));
        if let (Some(escape), Some(text)) = (escape, escape_text)
            && text.chars().count() != 1
        {
            return Err(self.fault_of(escape, Fault::BadEscape));
        }
        let is_open = escape.is_some() && escape_text.is_none();
        match self.constant_text(pattern) {
            Some(text) if !is_open => {
                let escape = escape_text.and_then(|text| text.chars().next());
                match Pattern::new(text, escape) {
                    Some(_) => Ok(()),
                    None => Err(self.fault_of(pattern, Fault::DanglingEscape)),
                }
            }
            _ => Ok(()),
        }
    }

    fn constant_text(&self, node: NodeId) -> Option<&str> {
        match self.tree.node(node) {
            Node::Literal(Value::Text(text)) | Node::Parameter(_, Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn between(&mut self, value: NodeId, negated: bool) -> Parsed<Node> {
        self.check_number(value)?;
        let low = self.tested()?;
        self.check_number(low)?;
        if !self.take_keyword("AND") {
            return Err(self.expected("AND"));
        }
        let high = self.tested()?;
        self.check_number(high)?;
        Ok(Node::Between {
            negated,
            value,
            low,
            high,
        })
    }
}
