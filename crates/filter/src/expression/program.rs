//! Program: an expression as flat instructions for a stack machine, which `machine.rs` runs.
//!
//! AND, OR and IN jump out once their result is certain. Names, constants and constant patterns are
//! in tables beside the code, each once. The parts of a message that the program reads are known
//! from its code.
//!
//! Invariant: jumps go forward only, so a program runs each instruction at most once.

use crate::expression::dialect::Dialect;
use crate::expression::needs::Needs;
use crate::expression::tree::{Arithmetic, Comparison, Node, NodeId, Path, Tree};
use crate::message::property::Property;
use crate::values::like::Pattern;
use crate::values::value::Value;

/// An instruction of the stack machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Op {
    Constant(u16),
    User(u16),
    System(Property),
    /// Replaces a name by the property of that name.
    Named,
    NewId,
    Plus,
    Minus,
    Calculate(Arithmetic),
    Compare(Comparison),
    /// Replaces a value by whether it is true, which it must be able to be.
    Truth,
    Not,
    /// Jumps if false is on top.
    AndElse(u16),
    And,
    /// Jumps if true is on top.
    OrElse(u16),
    Or,
    /// With a constant pattern.
    Like(u16),
    /// With a pattern from the stack, and whether there is an escape above it.
    LikeAny {
        escaped: bool,
    },
    /// Goes to the place if the value on top is unknown; else puts a false on it: nothing in the
    /// list was unknown so far.
    InBegin(u16),
    /// Pops an element; if it equals the value, pushes true and jumps.
    InElement(u16),
    InEnd,
    UserIsNull(u16),
    SystemIsNull(Property),
    UserExists(u16),
    SystemExists(Property),
}

/// A compiled expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub ops: Vec<Op>,
    pub constants: Vec<Value<'static>>,
    pub names: Vec<Box<str>>,
    pub patterns: Vec<Pattern>,
    pub dialect: Dialect,
    /// The most values that are ever on the stack.
    pub height: usize,
    pub needs: Needs,
}

impl Program {
    /// The program of a tree whose root is a condition.
    pub(crate) fn condition(tree: &Tree) -> Self {
        let mut compiler = Compiler::new(tree);
        compiler.condition(tree.root());
        compiler.finish()
    }

    /// The program of a tree whose root is a value.
    pub(crate) fn value(tree: &Tree) -> Self {
        let mut compiler = Compiler::new(tree);
        compiler.node(tree.root());
        compiler.finish()
    }
}

struct Compiler<'t> {
    tree: &'t Tree,
    program: Program,
    /// Values on the stack after the instructions so far.
    height: usize,
}

impl<'t> Compiler<'t> {
    fn new(tree: &'t Tree) -> Self {
        let program = Program {
            ops: Vec::new(),
            constants: Vec::new(),
            names: Vec::new(),
            patterns: Vec::new(),
            dialect: tree.dialect,
            height: 0,
            needs: Needs::default(),
        };
        Self {
            tree,
            program,
            height: 0,
        }
    }

    fn finish(self) -> Program {
        self.program
    }

    /// A node that is asked whether it is true.
    fn condition(&mut self, id: NodeId) {
        self.node(id);
        if !self.tree.node(id).is_condition() {
            self.push(Op::Truth, 0);
        }
    }

    fn node(&mut self, id: NodeId) {
        match self.tree.node(id) {
            Node::Literal(value) | Node::Parameter(_, value) => self.constant(value),
            Node::Path(path) => self.path(path, Op::User, Op::System),
            Node::Named(name) => {
                self.node(*name);
                self.program.needs.application_properties = true;
                self.push(Op::Named, 0);
            }
            Node::NewId => {
                self.program.needs.arrival = true;
                self.push(Op::NewId, 1);
            }
            Node::Plus(value) => self.unary(*value, Op::Plus),
            Node::Minus(value) => self.unary(*value, Op::Minus),
            Node::Arithmetic(operator, left, right) => {
                self.binary(*left, *right, Op::Calculate(*operator));
            }
            Node::Compare(comparison, left, right) => {
                self.binary(*left, *right, Op::Compare(*comparison));
            }
            condition => self.condition_node(condition),
        }
    }

    fn condition_node(&mut self, node: &'t Node) {
        match node {
            Node::And(left, right) => self.logical(*left, *right, Op::AndElse, Op::And),
            Node::Or(left, right) => self.logical(*left, *right, Op::OrElse, Op::Or),
            Node::Not(operand) => {
                self.condition(*operand);
                self.push(Op::Not, 0);
            }
            Node::IsNull { negated, path } => {
                self.question(*path, Op::UserIsNull, Op::SystemIsNull);
                self.negate(*negated);
            }
            Node::Exists(path) => self.question(*path, Op::UserExists, Op::SystemExists),
            Node::Like {
                negated,
                value,
                pattern,
                escape,
            } => {
                self.like(*value, *pattern, *escape);
                self.negate(*negated);
            }
            Node::In {
                negated,
                value,
                list,
            } => {
                self.list(*value, list);
                self.negate(*negated);
            }
            Node::Between {
                negated,
                value,
                low,
                high,
            } => {
                self.between(*value, *low, *high);
                self.negate(*negated);
            }
            _ => {}
        }
    }

    fn constant(&mut self, value: &Value<'static>) {
        let place = place(
            &mut self.program.constants,
            |known| known == value,
            || value.clone(),
        );
        self.push(Op::Constant(place), 1);
    }

    fn path(&mut self, path: &Path, user: fn(u16) -> Op, system: fn(Property) -> Op) {
        let op = match path {
            Path::User(name) => {
                self.program.needs.application_properties = true;
                user(place(
                    &mut self.program.names,
                    |known| known == name,
                    || name.clone(),
                ))
            }
            Path::System(property) => {
                self.program.needs.add(*property);
                system(*property)
            }
        };
        self.push(op, 1);
    }

    fn question(&mut self, path: NodeId, user: fn(u16) -> Op, system: fn(Property) -> Op) {
        if let Node::Path(path) = self.tree.node(path) {
            self.path(path, user, system);
        }
    }

    fn unary(&mut self, operand: NodeId, op: Op) {
        self.node(operand);
        self.push(op, 0);
    }

    fn binary(&mut self, left: NodeId, right: NodeId, op: Op) {
        self.node(left);
        self.node(right);
        self.push(op, -1);
    }

    fn negate(&mut self, negated: bool) {
        if negated {
            self.push(Op::Not, 0);
        }
    }

    fn logical(&mut self, left: NodeId, right: NodeId, leave: fn(u16) -> Op, join: Op) {
        self.condition(left);
        let jump = self.jump(leave, 0);
        self.condition(right);
        self.push(join, -1);
        self.land(jump, leave);
    }

    fn like(&mut self, value: NodeId, pattern: NodeId, escape: Option<NodeId>) {
        self.node(value);
        if let Some(pattern) = self.constant_pattern(pattern, escape) {
            let patterns = &mut self.program.patterns;
            let place = place(patterns, |known| *known == pattern, || pattern.clone());
            return self.push(Op::Like(place), 0);
        }
        self.node(pattern);
        match escape {
            Some(escape) => {
                self.node(escape);
                self.push(Op::LikeAny { escaped: true }, -2);
            }
            None => self.push(Op::LikeAny { escaped: false }, -1),
        }
    }

    fn constant_pattern(&self, pattern: NodeId, escape: Option<NodeId>) -> Option<Pattern> {
        let text = self.constant_text(pattern)?;
        match escape {
            Some(escape) => {
                let mut escape = self.constant_text(escape)?.chars();
                Pattern::new(text, Some(escape.next()?))
            }
            None => Pattern::new(text, None),
        }
    }

    fn constant_text(&self, id: NodeId) -> Option<&'t str> {
        match self.tree.node(id) {
            Node::Literal(Value::Text(text)) | Node::Parameter(_, Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn list(&mut self, value: NodeId, list: &[NodeId]) {
        self.node(value);
        let begin = self.jump(Op::InBegin, 1);
        let mut elements = Vec::with_capacity(list.len());
        for element in list {
            self.node(*element);
            elements.push(self.jump(Op::InElement, -1));
        }
        self.push(Op::InEnd, -1);
        self.land(begin, Op::InBegin);
        for element in elements {
            self.land(element, Op::InElement);
        }
    }

    /// As the definition has it: `value >= low AND value <= high`.
    fn between(&mut self, value: NodeId, low: NodeId, high: NodeId) {
        self.binary(value, low, Op::Compare(Comparison::GreaterOrEqual));
        let jump = self.jump(Op::AndElse, 0);
        self.binary(value, high, Op::Compare(Comparison::LessOrEqual));
        self.push(Op::And, -1);
        self.land(jump, Op::AndElse);
    }

    /// Adds a jump whose place is not known yet.
    fn jump(&mut self, op: fn(u16) -> Op, change: isize) -> usize {
        self.push(op(0), change);
        self.program.ops.len() - 1
    }

    /// Lets a jump lead to what comes next.
    fn land(&mut self, jump: usize, op: fn(u16) -> Op) {
        self.program.ops[jump] = op(index(self.program.ops.len()));
    }

    fn push(&mut self, op: Op, change: isize) {
        self.program.ops.push(op);
        self.height = self.height.saturating_add_signed(change);
        self.program.height = self.program.height.max(self.height);
    }
}

/// The index of an item in its table; a new item is added.
fn place<T>(table: &mut Vec<T>, is_it: impl Fn(&T) -> bool, thing: impl FnOnce() -> T) -> u16 {
    let known = table.iter().position(is_it);
    let place = known.unwrap_or_else(|| {
        table.push(thing());
        table.len() - 1
    });
    index(place)
}

fn index(place: usize) -> u16 {
    u16::try_from(place).expect("a text of 1,024 characters makes fewer instructions")
}
