//! Orders: what administrators ask for, and what they are answered.
//!
//! An order travels in `Command::Administer`, which names its namespace. It is carried out as a
//! whole, or refused with an `EntityError` and nothing has changed. Its answer leaves when the
//! change is durable. The code that carries orders out is in `administration`.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use store::EntityId;

use crate::api::batch::{Batch, Ensured};
use crate::api::info::EntityInfo;
use crate::api::namespace::{NamespaceAnswer, NamespaceOrder};
use crate::api::page::Page;
use crate::api::policy::{Policy, PolicyLayer};
use crate::api::router::{RouterAnswer, RouterOrder};
use crate::api::rule::RuleDescription;
use crate::api::settings::QueueSettings;
use crate::api::store_only::StoreOnlyProperties;
use crate::api::time::Wall;

/// What an administrator asks for. Paths are found in any case.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Makes an entity that is not there. A subscription has these rules alone, or selects
    /// everything if none are given. Answered by [`Answer::Entity`].
    Create {
        path: EntityPath,
        description: Box<EntityDescription>,
        rules: Option<Vec<RuleDescription>>,
    },
    /// Gives an entity another description, as a whole. Answered by [`Answer::Entity`].
    Update {
        entity: EntityId,
        description: Box<EntityDescription>,
    },
    /// Deletes an entity with all that is in it. Answered by [`Answer::Done`].
    Remove { path: String },
    /// A durable subscription that a client made, by its name below its topic. Answered by
    /// [`Answer::Entity`].
    FindDurable { name: String },
    /// Whether a dynamic node is there. Answered by [`Answer::Done`].
    FindNode { node: EntityId },
    /// Deletes such a subscription, unless it has consumers. Answered by [`Answer::Done`].
    Unsubscribe { name: String },
    /// Makes, changes and deletes several entities and rules, all of it or nothing. Answered by
    /// [`Answer::Done`].
    Apply(Box<Batch>),
    /// Answered by [`Answer::Entity`].
    Describe { path: String },
    /// A queue has been declared again as it is: a classic one counts as used.
    /// (docs/spec/rabbitmq.md#12.3) Answered by [`Answer::Entity`].
    Redeclare { path: String },
    /// Answered by [`Answer::Entities`], in the order of their paths without regard to case.
    List {
        of: Listing,
        skip: usize,
        top: usize,
    },
    /// Puts a policy in the place of the one of its name. Answered by [`Answer::Put`].
    PutPolicy(Box<Policy>),
    /// Answered by [`Answer::Done`].
    RemovePolicy { layer: PolicyLayer, name: String },
    /// Answered by [`Answer::Policies`], by name.
    ListPolicies(PolicyLayer),
    /// Answered by [`Answer::Namespace`].
    DescribeNamespace,
    /// Adds a rule that is not there to the subscription of a path. Answered by [`Answer::Rule`].
    CreateRule {
        subscription: String,
        rule: Box<RuleDescription>,
    },
    /// Puts a rule in the place of the one of its name. Answered by [`Answer::Rule`].
    ReplaceRule {
        subscription: String,
        rule: Box<RuleDescription>,
    },
    /// Answered by [`Answer::Done`].
    RemoveRule { subscription: String, name: String },
    /// Answered by [`Answer::Rule`].
    DescribeRule { subscription: String, name: String },
    /// Answered by [`Answer::Rules`], in the order of their names without regard to case.
    ListRules {
        subscription: String,
        skip: usize,
        top: usize,
    },
    /// About routers and bindings. Answered by [`Answer::Router`].
    Router(RouterOrder),
    /// About namespaces, whichever the order comes from. Answered by [`Answer::Namespaces`].
    Namespaces(NamespaceOrder),
}

impl Order {
    /// Makes each entity that is not there, and gives the others these settings and rules besides
    /// their own: all of it or nothing.
    #[must_use]
    pub fn ensure(ensured: Vec<Ensured>) -> Self {
        Self::Apply(Box::new(Batch {
            ensured,
            ..Batch::default()
        }))
    }
}

/// Where an entity is to be, in the case in which it will be shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EntityPath {
    Queue(String),
    Topic(String),
    Subscription { topic: String, name: String },
}

/// Which entities are listed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Listing {
    Queues,
    Topics,
    /// Of the topic of a path.
    Subscriptions(String),
}

/// All that can be said of an entity. What a kind has not is without effect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EntityDescription {
    pub settings: QueueSettings,
    /// Of a subscription.
    pub dead_lettering_on_filter_evaluation_exceptions: bool,
    pub store_only: StoreOnlyProperties,
}

impl Default for EntityDescription {
    fn default() -> Self {
        Self {
            settings: QueueSettings::default(),
            dead_lettering_on_filter_evaluation_exceptions: true,
            store_only: StoreOnlyProperties::default(),
        }
    }
}

/// What an order has done or found.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Entity(Box<EntityInfo>),
    Entities(Page<EntityInfo>),
    Rule(Box<RuleDescription>),
    Rules(Page<RuleDescription>),
    Namespace(NamespaceInfo),
    Router(RouterAnswer),
    Namespaces(NamespaceAnswer),
    Policies(Vec<Policy>),
    /// Whether it is new.
    Put {
        is_new: bool,
    },
    Done,
}

/// The namespace as a whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NamespaceInfo {
    /// When it was made, the default one with the data directory; or its oldest entity, if that was
    /// before.
    pub created: Wall,
    /// The last time that an entity was made or changed that is there; without one, when the
    /// namespace was made.
    pub modified: Wall,
    /// Another one after each change of an entity or a rule, and after a restart.
    pub version: u64,
}
