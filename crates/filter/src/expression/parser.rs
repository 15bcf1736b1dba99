//! Parser: builds a tree from tokens, by precedence climbing. (docs/spec/entities.md#17.5)
//!
//! Operators from loose to tight: OR, AND, NOT, tests, `+ -`, `* / %`, signs. Tests do not chain,
//! since a condition is not a value. The form of each operand shows which of the two it is.
//!
//! Invariant: the parser recurses no deeper than [`MAX_DEPTH`], whatever the text.

use crate::expression::dialect::Dialect;
use crate::expression::error::{Fault, ParseError};
use crate::expression::lexer;
use crate::expression::lexer::SpannedToken;
use crate::expression::parameters::Parameters;
use crate::expression::token::Token;
use crate::expression::tree::{Arithmetic, Comparison, Node, NodeId, Tree};

mod comparison;
mod operand;
mod selector;

/// The deepest nesting of parentheses, signs, NOTs and function calls.
pub(crate) const MAX_DEPTH: usize = 64;

/// Words that are no names. (docs/spec/entities.md#17.5)
const SQL_KEYWORDS: &[&str] = &[
    "AND", "OR", "NOT", "IS", "NULL", "IN", "LIKE", "ESCAPE", "EXISTS", "TRUE", "FALSE", "SET",
    "REMOVE",
];
const JMS_KEYWORDS: &[&str] = &[
    "AND", "OR", "NOT", "IS", "NULL", "IN", "LIKE", "ESCAPE", "BETWEEN", "TRUE", "FALSE",
];

/// The precedence of an operator, from loose to tight.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Precedence {
    Or,
    And,
    Not,
    Test,
    Sum,
    Product,
    Sign,
}

/// Reads the tokens of one text.
pub(crate) struct Parser<'t> {
    text: &'t str,
    tokens: Vec<SpannedToken<'t>>,
    next: usize,
    depth: usize,
    dialect: Dialect,
    parameters: &'t Parameters<'t>,
    pub tree: Tree,
    /// Where each node starts, for errors that are found later.
    starts: Vec<usize>,
}

type Parsed<T> = Result<T, ParseError>;

/// The tree of a text that is one condition.
pub(crate) fn condition(text: &str, dialect: Dialect, parameters: &Parameters<'_>) -> Parsed<Tree> {
    let mut parser = Parser::new(text, dialect, parameters)?;
    if parser.peek() == &Token::End {
        return Err(parser.fault(Fault::Empty));
    }
    let root = parser.expression(Precedence::Or)?;
    parser.expect_condition(root)?;
    parser.end()?;
    Ok(parser.tree)
}

impl<'t> Parser<'t> {
    pub(crate) fn new(
        text: &'t str,
        dialect: Dialect,
        parameters: &'t Parameters<'t>,
    ) -> Parsed<Self> {
        Ok(Self {
            text,
            tokens: lexer::tokens(text, dialect)?,
            next: 0,
            depth: 0,
            dialect,
            parameters,
            tree: Tree::new(dialect),
            starts: Vec::new(),
        })
    }

    /// A value, without what may follow it.
    pub(crate) fn value(&mut self) -> Parsed<NodeId> {
        let value = self.expression(Precedence::Or)?;
        self.expect_value(value)?;
        Ok(value)
    }

    /// Takes the tree of what was read so far; the next expression starts a new one.
    pub(crate) fn take_tree(&mut self) -> Tree {
        self.starts.clear();
        std::mem::replace(&mut self.tree, Tree::new(self.dialect))
    }

    pub(crate) fn end(&self) -> Parsed<()> {
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.expected("an operator or the end")),
        }
    }

    /// Everything up to an operator that binds looser than `power`.
    fn expression(&mut self, precedence: Precedence) -> Parsed<NodeId> {
        let start = self.at();
        let mut left = self.nested(|parser| parser.prefix(precedence))?;
        loop {
            left = match self.infix() {
                Some(found) if found < precedence => return Ok(left),
                Some(Precedence::Or) => self.logical(left, start, Precedence::And, Node::Or)?,
                Some(Precedence::And) => self.logical(left, start, Precedence::Not, Node::And)?,
                Some(Precedence::Test) => self.test(left, start)?,
                Some(Precedence::Sum) => self.arithmetic(left, start, Precedence::Product)?,
                Some(Precedence::Product) => self.arithmetic(left, start, Precedence::Sign)?,
                Some(Precedence::Not | Precedence::Sign) | None => return Ok(left),
            };
        }
    }

    /// How tightly the operator that comes next binds.
    fn infix(&self) -> Option<Precedence> {
        match self.peek() {
            Token::Word(word) => match word.to_ascii_uppercase().as_str() {
                "OR" => Some(Precedence::Or),
                "AND" => Some(Precedence::And),
                "IS" | "IN" | "LIKE" | "NOT" => Some(Precedence::Test),
                "BETWEEN" if self.dialect == Dialect::Jms => Some(Precedence::Test),
                _ => None,
            },
            Token::Sign("+" | "-") => Some(Precedence::Sum),
            Token::Sign("*" | "/" | "%") => Some(Precedence::Product),
            Token::Sign(sign) => comparison(sign).map(|_| Precedence::Test),
            _ => None,
        }
    }

    fn prefix(&mut self, precedence: Precedence) -> Parsed<NodeId> {
        let start = self.at();
        if precedence <= Precedence::Not && self.take_keyword("NOT") {
            let operand = self.expression(Precedence::Not)?;
            self.expect_condition(operand)?;
            return Ok(self.add(start, Node::Not(operand)));
        }
        match *self.peek() {
            Token::Sign(sign @ ("+" | "-")) => {
                self.skip();
                self.signed(start, sign)
            }
            _ => self.operand(),
        }
    }

    /// The operand after a sign. A minus belongs to the number after it, so that the least one can
    /// be written.
    fn signed(&mut self, start: usize, sign: &str) -> Parsed<NodeId> {
        if sign == "-"
            && let Some(literal) = self.negative()?
        {
            return Ok(self.add(start, Node::Literal(literal)));
        }
        let operand = self.expression(Precedence::Sign)?;
        self.expect_value(operand)?;
        self.check_number(operand)?;
        let node = if sign == "-" { Node::Minus } else { Node::Plus };
        Ok(self.add(start, node(operand)))
    }

    fn logical(
        &mut self,
        left: NodeId,
        start: usize,
        tighter: Precedence,
        node: fn(NodeId, NodeId) -> Node,
    ) -> Parsed<NodeId> {
        self.expect_condition(left)?;
        self.skip();
        let right = self.expression(tighter)?;
        self.expect_condition(right)?;
        Ok(self.add(start, node(left, right)))
    }

    fn arithmetic(&mut self, left: NodeId, start: usize, tighter: Precedence) -> Parsed<NodeId> {
        let operator = match self.peek() {
            Token::Sign("+") => Arithmetic::Add,
            Token::Sign("-") => Arithmetic::Subtract,
            Token::Sign("*") => Arithmetic::Multiply,
            Token::Sign("/") => Arithmetic::Divide,
            _ => Arithmetic::Remainder,
        };
        self.expect_value(left)?;
        self.skip();
        let right = self.expression(tighter)?;
        self.expect_value(right)?;
        self.check_number(left)?;
        self.check_number(right)?;
        Ok(self.add(start, Node::Arithmetic(operator, left, right)))
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(Fault::TooDeep(MAX_DEPTH)));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn expect_condition(&self, node: NodeId) -> Parsed<()> {
        if self.tree.node(node).may_be_condition() {
            return Ok(());
        }
        Err(self.fault_of(node, Fault::ValueAsCondition))
    }

    fn expect_value(&self, node: NodeId) -> Parsed<()> {
        if self.tree.node(node).is_condition() {
            return Err(self.fault_of(node, Fault::ConditionAsValue));
        }
        Ok(())
    }

    fn add(&mut self, start: usize, node: Node) -> NodeId {
        self.starts.push(start);
        self.tree.add(node)
    }

    pub(crate) fn peek(&self) -> &Token<'t> {
        // `End` is never passed, so there always is a next token.
        &self.tokens[self.next].token
    }

    /// The position of the next token, for [`fault_at`](Self::fault_at).
    pub(crate) fn place(&self) -> usize {
        self.at()
    }

    /// The error for `fault` at an earlier position.
    pub(crate) fn fault_at(&self, place: usize, fault: Fault) -> ParseError {
        lexer::error(self.text, place, fault)
    }

    fn at(&self) -> usize {
        self.tokens[self.next].at
    }

    pub(crate) fn skip(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    pub(crate) fn take_sign(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Sign(next) if *next == sign);
        if is_next {
            self.skip();
        }
        is_next
    }

    pub(crate) fn take_keyword(&mut self, keyword: &str) -> bool {
        let is_next = self.is_keyword(keyword);
        if is_next {
            self.skip();
        }
        is_next
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    pub(crate) fn expect_sign(&mut self, sign: &'static str) -> Parsed<()> {
        if self.take_sign(sign) {
            return Ok(());
        }
        Err(self.expected(quoted(sign)))
    }

    /// The error that `fault` is at the next token.
    pub(crate) fn fault(&self, fault: Fault) -> ParseError {
        lexer::error(self.text, self.at(), fault)
    }

    fn fault_of(&self, node: NodeId, fault: Fault) -> ParseError {
        let start = self.starts.get(node.place()).copied();
        lexer::error(self.text, start.unwrap_or_default(), fault)
    }

    pub(crate) fn expected(&self, expected: &'static str) -> ParseError {
        let found = self.peek().to_string();
        self.fault(Fault::Expected { expected, found })
    }

    fn is_reserved(&self, word: &str) -> bool {
        let keywords = match self.dialect {
            Dialect::Sql => SQL_KEYWORDS,
            Dialect::Jms => JMS_KEYWORDS,
        };
        keywords
            .iter()
            .any(|keyword| keyword.eq_ignore_ascii_case(word))
    }
}

fn quoted(sign: &'static str) -> &'static str {
    match sign {
        "(" => "\"(\"",
        ")" => "\")\"",
        "=" => "\"=\"",
        other => other,
    }
}

fn comparison(sign: &str) -> Option<Comparison> {
    Some(match sign {
        "=" => Comparison::Equal,
        "<>" | "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
