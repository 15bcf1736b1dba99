//! Policies: settings for all entities whose path matches a pattern. (docs/spec/rabbitmq.md#13)
//!
//! Of the user policies at most one applies to an entity, and of the operator policies another: the
//! one with the highest priority whose pattern, kind and keys fit. A policy is checked when it is
//! made, so one that is there can be applied.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

pub(crate) mod arguments;
pub(crate) mod key;

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value as Json};

use crate::api::declared::QueueType;
use crate::api::entity_error::EntityError;
use crate::api::kind::EntityKind;
use crate::api::policy::key::KEYS;

/// Most policies of a layer.
pub const MAX_POLICIES: usize = 1_000;
/// Bytes of a name or of a pattern.
const MAX_TEXT: usize = 1_024;
/// Bytes of a definition in JSON.
const MAX_DEFINITION: usize = 16 << 10;
/// Bytes that a compiled pattern may take, and its cache as much again. Matching is linear.
const MAX_PATTERN: usize = 1 << 18;

/// Whose policy it is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyLayer {
    #[default]
    User,
    /// It limits what users and their policies may set.
    Operator,
}

/// What a policy is for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplyTo {
    #[default]
    All,
    Queues,
    #[serde(rename = "classic_queues")]
    ClassicQueues,
    #[serde(rename = "quorum_queues")]
    QuorumQueues,
    Streams,
    Exchanges,
    Topics,
    Subscriptions,
}

impl ApplyTo {
    /// Whether it is for entities of this kind, queues for those of this type.
    fn fits(self, kind: EntityKind, queue_type: QueueType) -> bool {
        let is_queue = kind == EntityKind::Queue;
        match self {
            Self::All => true,
            Self::Queues => is_queue,
            Self::ClassicQueues => is_queue && queue_type == QueueType::Classic,
            Self::QuorumQueues => is_queue && queue_type == QueueType::Quorum,
            Self::Topics => kind == EntityKind::Topic,
            Self::Subscriptions => kind == EntityKind::Subscription,
            Self::Streams | Self::Exchanges => false,
        }
    }

    /// Whether it is for routers.
    pub(crate) fn fits_routers(self) -> bool {
        matches!(self, Self::All | Self::Exchanges)
    }

    /// What such a name means.
    ///
    /// # Errors
    /// When there is none of that name; the text says which there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_value(text.into()).map_err(|_| {
            format!(
                "apply-to '{text}' unrecognised; should be one of: 'queues', 'classic_queues',  \
                 'quorum_queues', 'streams', 'exchanges', or 'all'"
            )
        })
    }
}

/// A policy as it was made.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policy {
    pub name: String,
    #[serde(default)]
    pub layer: PolicyLayer,
    /// A regular expression, found anywhere in a path.
    pub pattern: String,
    #[serde(default)]
    pub apply_to: ApplyTo,
    #[serde(default = "zero")]
    pub priority: Number,
    pub definition: Map<String, Json>,
}

fn zero() -> Number {
    0.into()
}

impl Policy {
    /// Whether it can be applied.
    ///
    /// # Errors
    /// When it cannot; the text says why.
    pub fn check(&self) -> Result<(), EntityError> {
        self.compile().map(drop)
    }

    pub(crate) fn compile(&self) -> Result<Regex, EntityError> {
        let invalid = |text: String| Err(EntityError::Invalid(text));
        if self.name.is_empty() || self.name.len() > MAX_TEXT {
            return invalid(format!("name: it has to have 1 to {MAX_TEXT} bytes"));
        }
        if self.pattern.len() > MAX_TEXT {
            return invalid(format!("pattern: it may have {MAX_TEXT} bytes"));
        }
        if self.definition.is_empty() {
            return invalid("no policy provided".to_owned());
        }
        let bytes = serde_json::to_vec(&self.definition).map_or(usize::MAX, |json| json.len());
        if bytes > MAX_DEFINITION {
            return invalid(format!("definition: it may have {MAX_DEFINITION} bytes"));
        }
        for (name, value) in &self.definition {
            let checked = key::check(name, value, self.layer);
            checked.map_err(EntityError::Invalid)?;
        }
        check_together("", &self.definition).map_err(EntityError::Invalid)?;
        let mut builder = RegexBuilder::new(&self.pattern);
        builder.size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
        builder.build().map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let why = last.strip_prefix("error: ").unwrap_or(last);
            EntityError::Invalid(format!(
                "pattern should be regular expression but is invalid: {why}"
            ))
        })
    }

    /// Whether its kind and each of its keys are for entities of this kind, of queues for those of
    /// this type. (docs/spec/rabbitmq.md#13)
    pub(crate) fn fits(&self, kind: EntityKind, queue_type: QueueType) -> bool {
        let known = |name: &String| KEYS.iter().find(|key| key.name == name);
        let mut keys = self.definition.keys().map(known);
        let fits = |key: &key::Key| key.fits(kind, queue_type);
        self.apply_to.fits(kind, queue_type) && keys.all(|key| key.is_some_and(fits))
    }
}

/// Whether the keys of a definition go together; `prefix` is what stands before their names.
pub(crate) fn check_together(prefix: &str, definition: &Map<String, Json>) -> Result<(), String> {
    let value = |key: &str| definition.get(&format!("{prefix}{key}"));
    let (min, max) = (value("delayed-retry-min"), value("delayed-retry-max"));
    let waits = value("delayed-retry-type").is_some_and(|it| it != "disabled");
    if waits && min.is_none() {
        return Err(format!(
            "{prefix}delayed-retry-type: {prefix}delayed-retry-min is missing"
        ));
    }
    let number = |value: Option<&Json>| value.and_then(Json::as_u64);
    if let (Some(min), Some(max)) = (number(min), number(max))
        && max < min
    {
        return Err(format!(
            "{prefix}delayed-retry-max: {max} is below {prefix}delayed-retry-min, {min}"
        ));
    }
    Ok(())
}

/// The policies that apply to an entity, and what they say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppliedPolicy {
    pub user: Option<String>,
    pub operator: Option<String>,
    /// Of both; an entity's own settings are not part of it.
    pub definition: Map<String, Json>,
}

impl fmt::Display for PolicyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "policy",
            Self::Operator => "operator policy",
        })
    }
}
