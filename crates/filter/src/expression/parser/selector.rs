//! Selector: the rules of JMS for a selector beyond SQL's grammar. (JMS 2.0, 3.8.1)
//!
//! IN and LIKE test a property against literal texts, arithmetic is for numbers, and texts and
//! booleans have no order. Each check accepts everything in an SQL expression.

use super::{Parsed, Parser};
use crate::expression::dialect::Dialect;
use crate::expression::error::Fault;
use crate::expression::tree::{Comparison, Node, NodeId, Path};
use crate::message::property::Property;
use crate::values::value::{Value, ValueKind};

impl Parser<'_> {
    /// A property by the name that a selector has for it.
    pub(super) fn identifier(&mut self, name: &str) -> Parsed<Path> {
        if Property::is_kept_from_selectors(name) {
            return Err(self.fault(Fault::NotSelectable(name.to_owned())));
        }
        self.skip();
        Ok(match Property::by_jms_name(name) {
            Some(property) => Path::System(property),
            None => Path::User(name.into()),
        })
    }

    pub(super) fn check_identifier(&self, node: NodeId) -> Parsed<()> {
        let is_path = matches!(self.tree.node(node), Node::Path(_));
        self.check_selector(node, is_path, "a property", "a calculated value")
    }

    pub(super) fn check_text(&self, node: NodeId) -> Parsed<()> {
        let is_text = matches!(self.tree.node(node), Node::Literal(Value::Text(_)));
        self.check_selector(node, is_text, "a text in quotes", "another value")
    }

    fn check_selector(
        &self,
        node: NodeId,
        holds: bool,
        expected: &'static str,
        found: &str,
    ) -> Parsed<()> {
        if holds || self.dialect == Dialect::Sql {
            return Ok(());
        }
        let found = found.to_owned();
        Err(self.fault_of(node, Fault::Expected { expected, found }))
    }

    pub(super) fn check_number(&self, node: NodeId) -> Parsed<()> {
        match self.literal_kind(node) {
            Some(kind) if kind != ValueKind::Number => Err(self.fault_of(node, Fault::NotNumeric)),
            _ => Ok(()),
        }
    }

    pub(super) fn check_comparison(
        &self,
        comparison: Comparison,
        left: NodeId,
        right: NodeId,
    ) -> Parsed<()> {
        if matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
            return Ok(());
        }
        for node in [left, right] {
            if self
                .literal_kind(node)
                .is_some_and(|kind| kind != ValueKind::Number)
            {
                return Err(self.fault_of(node, Fault::NotOrdered));
            }
        }
        Ok(())
    }

    /// The kind of a literal in a selector.
    fn literal_kind(&self, node: NodeId) -> Option<ValueKind> {
        match (self.dialect, self.tree.node(node)) {
            (Dialect::Jms, Node::Literal(value)) => Some(value.kind()),
            _ => None,
        }
    }
}
