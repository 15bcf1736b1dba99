//! Tree: an expression as it was written, in an arena. Children come before their parents.
//!
//! It lives only between text and program. Shown as text it parses to itself again: every part that
//! is not a single word is put in parentheses.

use std::fmt;

use crate::expression::dialect::Dialect;
use crate::message::property::Property;
use crate::values::value::Value;

/// A node's place in its tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NodeId(u16);

impl NodeId {
    pub(crate) fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// An arithmetic operator between two values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The property that a path names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Path {
    User(Box<str>),
    System(Property),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Literal(Value<'static>),
    Parameter(Box<str>, Value<'static>),
    Path(Path),
    /// `property(x)`
    Named(NodeId),
    NewId,
    Plus(NodeId),
    Minus(NodeId),
    Arithmetic(Arithmetic, NodeId, NodeId),
    Compare(Comparison, NodeId, NodeId),
    And(NodeId, NodeId),
    Or(NodeId, NodeId),
    Not(NodeId),
    Like {
        negated: bool,
        value: NodeId,
        pattern: NodeId,
        escape: Option<NodeId>,
    },
    In {
        negated: bool,
        value: NodeId,
        list: Vec<NodeId>,
    },
    Between {
        negated: bool,
        value: NodeId,
        low: NodeId,
        high: NodeId,
    },
    IsNull {
        negated: bool,
        path: NodeId,
    },
    Exists(NodeId),
}

impl Node {
    /// Whether it is true, false or unknown by its form, rather than any value.
    pub(crate) fn is_condition(&self) -> bool {
        matches!(
            self,
            Self::Compare(..)
                | Self::And(..)
                | Self::Or(..)
                | Self::Not(_)
                | Self::Like { .. }
                | Self::In { .. }
                | Self::Between { .. }
                | Self::IsNull { .. }
                | Self::Exists(_)
        )
    }

    /// Whether it may stand where a condition is wanted: it is one, or could be a boolean.
    pub(crate) fn may_be_condition(&self) -> bool {
        match self {
            Self::Literal(value) | Self::Parameter(_, value) => {
                matches!(value, Value::Bool(_) | Value::Unknown)
            }
            Self::Path(_) | Self::Named(_) => true,
            other => other.is_condition(),
        }
    }

    fn is_single(&self) -> bool {
        matches!(
            self,
            Self::Literal(_)
                | Self::Parameter(..)
                | Self::Path(_)
                | Self::Named(_)
                | Self::NewId
                | Self::Exists(_)
        )
    }
}

/// The nodes of one expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    pub dialect: Dialect,
}

impl Tree {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            nodes: Vec::new(),
            dialect,
        }
    }

    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        let place = u16::try_from(self.nodes.len()).expect("a text is short, and so is its tree");
        self.nodes.push(node);
        NodeId(place)
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.place()]
    }

    /// The node that was added last: everything else hangs under it.
    pub(crate) fn root(&self) -> NodeId {
        let last = self.nodes.len().saturating_sub(1);
        NodeId(u16::try_from(last).expect("a text is short, and so is its tree"))
    }

    fn display(&self, id: NodeId) -> NodeDisplay<'_> {
        NodeDisplay { tree: self, id }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(self.root()).write(f)
    }
}

/// A node with its tree, written in parentheses where it needs them.
#[derive(Clone, Copy)]
struct NodeDisplay<'a> {
    tree: &'a Tree,
    id: NodeId,
}

impl fmt::Display for NodeDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tree.node(self.id).is_single() {
            return self.write(f);
        }
        f.write_str("(")?;
        self.write(f)?;
        f.write_str(")")
    }
}

impl<'a> NodeDisplay<'a> {
    fn of(self, id: NodeId) -> NodeDisplay<'a> {
        self.tree.display(id)
    }

    fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tree.node(self.id) {
            Node::Literal(value) => write!(f, "{value}"),
            Node::Parameter(name, _) => write!(f, "@{name}"),
            Node::Path(path) => path.write(f, self.tree.dialect),
            Node::Named(name) => write!(f, "property({})", self.of(*name)),
            Node::NewId => f.write_str("newid()"),
            Node::Plus(value) => write!(f, "+ {}", self.in_parentheses(*value)),
            Node::Minus(value) => write!(f, "- {}", self.in_parentheses(*value)),
            Node::Arithmetic(operator, left, right) => {
                write!(f, "{} {operator} {}", self.of(*left), self.of(*right))
            }
            Node::Compare(comparison, left, right) => {
                write!(f, "{} {comparison} {}", self.of(*left), self.of(*right))
            }
            Node::And(left, right) => write!(f, "{} AND {}", self.of(*left), self.of(*right)),
            Node::Or(left, right) => write!(f, "{} OR {}", self.of(*left), self.of(*right)),
            Node::Not(condition) => write!(f, "NOT {}", self.of(*condition)),
            Node::Exists(path) => write!(f, "EXISTS({})", self.of(*path)),
            test => self.write_test(f, test),
        }
    }

    fn write_test(self, f: &mut fmt::Formatter<'_>, test: &Node) -> fmt::Result {
        match test {
            Node::Like {
                negated,
                value,
                pattern,
                escape,
            } => {
                write!(
                    f,
                    "{}{} LIKE {}",
                    self.of(*value),
                    not(*negated),
                    self.of(*pattern)
                )?;
                match escape {
                    Some(escape) => write!(f, " ESCAPE {}", self.of(*escape)),
                    None => Ok(()),
                }
            }
            Node::In {
                negated,
                value,
                list,
            } => {
                write!(f, "{}{} IN (", self.of(*value), not(*negated))?;
                for (place, item) in list.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", self.of(*item))?;
                }
                f.write_str(")")
            }
            Node::Between {
                negated,
                value,
                low,
                high,
            } => write!(
                f,
                "{}{} BETWEEN {} AND {}",
                self.of(*value),
                not(*negated),
                self.of(*low),
                self.of(*high)
            ),
            Node::IsNull { negated, path } => {
                write!(f, "{} IS{} NULL", self.of(*path), not(*negated))
            }
            _ => Ok(()),
        }
    }

    /// A sign directly before a number would become part of it.
    fn in_parentheses(self, id: NodeId) -> String {
        let part = self.of(id);
        if matches!(self.tree.node(id), Node::Literal(_)) {
            format!("({part})")
        } else {
            part.to_string()
        }
    }
}

fn not(negated: bool) -> &'static str {
    if negated { " NOT" } else { "" }
}

impl Path {
    fn write(&self, f: &mut fmt::Formatter<'_>, dialect: Dialect) -> fmt::Result {
        match (self, dialect) {
            (Self::User(name), Dialect::Sql) => write!(f, "[{}]", name.replace(']', "]]")),
            (Self::User(name), Dialect::Jms) => f.write_str(name),
            (Self::System(property), Dialect::Sql) => write!(f, "sys.{}", property.name()),
            (Self::System(property), Dialect::Jms) => f.write_str(property.jms_name()),
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}
