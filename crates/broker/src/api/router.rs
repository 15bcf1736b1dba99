//! Router: what is asked and said of routers and bindings. (docs/spec/rabbitmq.md#8)
//!
//! A router takes messages and keeps none: its bindings tell which queues, topics and other routers
//! a message goes to. RabbitMQ calls it an exchange. Names of routers are a name space of their
//! own, and are compared as they are written.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use std::fmt;

use amqp::Value;

use crate::api::page::Page;

/// The name of the router that each queue is bound to by its own name.
pub const DEFAULT_ROUTER: &str = "";
/// How the names of routers begin that clients cannot make or remove.
pub const RESERVED_ROUTERS: &str = "amq.";
/// The longest name of a router and the longest binding key, in bytes.
pub const MAX_ROUTER_NAME: usize = 255;
/// The most that the arguments of a router or a binding take, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 16 << 10;
/// The most routers of all namespaces together, those that are always there aside.
pub const MAX_ROUTERS: usize = 10_000;
/// The most bindings of all routers together.
pub const MAX_BINDINGS: usize = 100_000;
/// The most that the arguments of all bindings take together, in bytes.
pub const MAX_BINDING_ARGUMENT_BYTES: usize = 32 << 20;
/// The most binding keys, arguments and words that are compared to route one message.
pub const MAX_ROUTING_STEPS: usize = 1_000_000;
/// The most bytes of one message that several destinations store, each for itself.
pub const MAX_COPIED_BYTES: usize = 256 << 20;

/// How a router compares a message with its bindings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RouterKind {
    /// A routing key is the binding key.
    Direct,
    /// Every binding matches.
    Fanout,
    /// Words of a routing key match the words of a pattern: `*` is one, `#` is any number.
    Topic,
    /// Application properties and message annotations match the binding's arguments.
    Headers,
}

impl RouterKind {
    pub const ALL: [Self; 4] = [Self::Direct, Self::Fanout, Self::Topic, Self::Headers];

    /// Its word, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
        }
    }
}

impl fmt::Display for RouterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a router is declared as.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterSettings {
    pub kind: RouterKind,
    /// Kept and shown. Every router outlives a restart.
    pub durable: bool,
    /// Whether it goes with its last binding.
    pub auto_delete: bool,
    /// Whether only other routers send to it.
    pub internal: bool,
    /// The router for messages that match none of its bindings. It may be missing.
    pub alternate: Option<String>,
    /// Other arguments, kept and shown. They do not tell two declarations apart.
    pub arguments: Vec<(String, Value)>,
}

impl RouterSettings {
    /// As a router of this kind is if nothing else is said.
    #[must_use]
    pub fn new(kind: RouterKind) -> Self {
        Self {
            kind,
            durable: true,
            auto_delete: false,
            internal: false,
            alternate: None,
            arguments: Vec::new(),
        }
    }

    /// The first difference that counts from how a router is.
    #[must_use]
    pub fn difference(&self, current: &Self) -> Option<RouterDifference> {
        if self.kind != current.kind {
            Some(RouterDifference::Kind {
                given: self.kind,
                current: current.kind,
            })
        } else if self.durable != current.durable {
            Some(RouterDifference::Durable {
                given: self.durable,
                current: current.durable,
            })
        } else if self.auto_delete != current.auto_delete {
            Some(RouterDifference::AutoDelete {
                given: self.auto_delete,
                current: current.auto_delete,
            })
        } else if self.internal != current.internal {
            Some(RouterDifference::Internal {
                given: self.internal,
                current: current.internal,
            })
        } else if self.alternate != current.alternate {
            Some(RouterDifference::Alternate {
                given: self.alternate.clone(),
                current: current.alternate.clone(),
            })
        } else {
            None
        }
    }
}

/// Whether a client can make a router of this name.
///
/// # Errors
/// When it cannot.
pub fn check_router_name(name: &str) -> Result<(), RouterError> {
    if name.len() > MAX_ROUTER_NAME || name.contains(['\r', '\n']) {
        return Err(RouterError::Name);
    }
    if name.starts_with(RESERVED_ROUTERS) {
        return Err(RouterError::Reserved(name.to_owned()));
    }
    Ok(())
}

/// A router as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterInfo {
    pub name: String,
    pub settings: RouterSettings,
    /// How many bindings it has.
    pub bindings: usize,
}

/// Where a binding leads.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum BindingDestination {
    /// A queue or topic, by its path.
    Entity(String),
    /// By its name.
    Router(String),
}

/// A binding. Two that are equal are the same one; the order of arguments does not count.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The name of a router.
    pub source: String,
    pub destination: BindingDestination,
    pub key: String,
    pub arguments: Vec<(String, Value)>,
}

/// What an administrator asks about routers.
#[derive(Clone, Debug, PartialEq)]
pub enum RouterOrder {
    /// Makes a router that is not there; declares an equal one again without effect. Answered by
    /// [`RouterAnswer::Done`].
    Declare {
        name: String,
        settings: Box<RouterSettings>,
    },
    /// Removes a router with all bindings from it and to it. Answered by [`RouterAnswer::Done`].
    Remove { name: String },
    /// Answered by [`RouterAnswer::Router`].
    Describe { name: String },
    /// Answered by [`RouterAnswer::Routers`], in the order of their names.
    List { skip: usize, top: usize },
    /// Makes a binding that is not there. Answered by [`RouterAnswer::Done`].
    Bind(Box<Binding>),
    /// Removes a binding, and its router if that is to go with the last one. Answered by
    /// [`RouterAnswer::Done`], also if there is no such binding.
    Unbind(Box<Binding>),
    /// Bindings that have all that is named. Answered by [`RouterAnswer::Bindings`], in the order
    /// in which they were made at each router; by no binding if what is named is not there.
    ListBindings {
        source: Option<String>,
        destination: Option<BindingDestination>,
        key: Option<String>,
        skip: usize,
        top: usize,
    },
}

/// What an order about routers has done or found.
#[derive(Clone, Debug, PartialEq)]
pub enum RouterAnswer {
    Router(Box<RouterInfo>),
    Routers(Page<RouterInfo>),
    Bindings(Page<Binding>),
    Done,
}

/// What a router that is declared again has otherwise.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RouterDifference {
    Kind {
        given: RouterKind,
        current: RouterKind,
    },
    Durable {
        given: bool,
        current: bool,
    },
    AutoDelete {
        given: bool,
        current: bool,
    },
    Internal {
        given: bool,
        current: bool,
    },
    Alternate {
        given: Option<String>,
        current: Option<String>,
    },
}

/// Why an order about routers was refused. Nothing has changed then.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RouterError {
    #[error("the router '{0}' does not exist")]
    NotFound(String),
    #[error("the queue or topic '{0}' does not exist")]
    NoDestination(String),
    #[error("'{0}' is a subscription, which only its topic writes to")]
    Subscription(String),
    #[error("there is a topic '{0}', whose name a router cannot have")]
    TopicExists(String),
    #[error("the default router has no bindings that a client makes, and cannot be changed")]
    Default,
    #[error("the router '{0}' has a name that begins with 'amq.', which is reserved")]
    Reserved(String),
    #[error("a router's name has 1 to {limit} bytes and no line breaks", limit = MAX_ROUTER_NAME)]
    Name,
    #[error("the router '{name}' is there already and differs: {difference:?}")]
    Different {
        name: String,
        difference: RouterDifference,
    },
    /// Routers distribute messages as topics do.
    #[error("a namespace of the Basic tier does not have {0}")]
    NotInTier(&'static str),
    #[error("there can be {limit} {what}")]
    TooMany { limit: usize, what: &'static str },
    #[error("{what} can have {limit} bytes")]
    TooLong { limit: usize, what: &'static str },
    #[error("a binding key of a topic router has at most two '#'")]
    TooManyHashes,
    #[error("x-match is all, any, all-with-x or any-with-x, and not {0}")]
    Match(String),
}
