//! Entity error: why an order of an administrator was refused.
//!
//! The texts are for users. Dialects and HTTP interfaces choose the condition or the status from
//! the variant. For an order about several entities `At` says which one is at fault.

#![allow(missing_docs, reason = "the texts say it")]

use crate::api::error::RequestError;
use crate::api::injected_error::InjectedError;
use crate::api::kind::EntityKind;
use crate::api::router::RouterError;
use crate::api::rule::RuleError;

/// Why an order was refused. Nothing has changed then.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EntityError {
    #[error("the entity does not exist")]
    NotFound,
    #[error("the namespace '{0}' does not exist")]
    NoNamespace(String),
    #[error("a namespace '{0}' exists already")]
    NamespaceExists(String),
    #[error("the namespace has no snapshot '{0}'")]
    NoSnapshot(String),
    #[error("the namespace has a snapshot '{0}' already")]
    SnapshotExists(String),
    #[error("the disk is nearly full")]
    DiskNearlyFull,
    #[error("the topic does not exist")]
    NoTopic,
    #[error("a {0} of that path exists already")]
    Exists(EntityKind),
    #[error("an exchange '{0}' exists already, whose name a topic cannot have")]
    ExchangeExists(String),
    #[error("{property} cannot be changed after the {kind} was created")]
    Immutable {
        property: &'static str,
        kind: EntityKind,
    },
    #[error("the destination '{0}' does not exist")]
    Destination(String),
    #[error("there can be {limit} {what}")]
    TooMany { limit: usize, what: &'static str },
    #[error("a namespace of the Basic tier does not have {0}")]
    NotInTier(&'static str),
    #[error("the subscription has consumers")]
    HasConsumers,
    #[error("{0}")]
    Invalid(String),
    #[error("{path}: {error}")]
    At {
        path: String,
        error: Box<EntityError>,
    },
    #[error("another administrator has changed entities or rules meanwhile")]
    Changed,
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(transparent)]
    Router(#[from] RouterError),
    #[error(transparent)]
    Injected(InjectedError),
}

impl EntityError {
    /// What it is, without where.
    #[must_use]
    pub fn cause(&self) -> &Self {
        match self {
            Self::At { error, .. } => error.cause(),
            other => other,
        }
    }
}

impl From<RequestError> for EntityError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::NotFound => Self::NotFound,
            RequestError::Injected(error) => Self::Injected(error),
            other => Self::Invalid(other.to_string()),
        }
    }
}
