//! Rules: how clients describe them, and how the store keeps them. (docs/spec/entities.md#17.1)
//!
//! A rule is compiled when it is made, and refused then if it makes no sense. The rules of all
//! subscriptions of a topic are evaluated together, by the topic (`topic/rules.rs`). Names are
//! compared without regard to case, and checked when a rule is made: a rule that the store has
//! keeps its name. A subscription without rules selects nothing.

pub(crate) mod distribution;
pub(crate) mod snapshot;
pub(crate) mod stored;
mod usage;

use std::sync::Arc;

use filter::{
    Action, Correlation, CorrelationFilter, Filter, Parameters, Rule, Selector, SqlFilter,
};
use serde::{Deserialize, Serialize};

use crate::api::injected_error::InjectedError;
use crate::api::name::{self, DEFAULT_RULE, NameError};
use crate::api::time::Wall;

pub use distribution::Distribution;
pub(crate) use snapshot::CurrentRules;
pub use snapshot::RuleSnapshot;
pub(crate) use stored::{decode, encode, key_of};
pub use usage::RuleUsage;

/// A message has no more properties than this, so a rule that takes more could match none.
const MAX_BYTES: usize = 64 << 10;

/// A rule as clients describe it.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct RuleDescription {
    pub name: String,
    pub filter: FilterDescription,
    /// What the text of an SQL filter refers to as `@name`.
    pub filter_parameters: Vec<(String, amqp::Value)>,
    /// In SQL.
    pub action: Option<String>,
    /// What the text of the action refers to as `@name`.
    pub action_parameters: Vec<(String, amqp::Value)>,
    /// Values of the filter, of its parameters or its properties, as they were written.
    pub filter_texts: Vec<OriginalValue>,
    /// Those of the action's parameters.
    pub action_texts: Vec<OriginalValue>,
    /// Set by the broker.
    pub created: Wall,
    /// Its place among the rules of its topic, by creation. Set by the broker.
    pub place: u64,
}

/// A value as it was written, where that can differ from how it would be written here: a time
/// without its zone, for one. (docs/spec/admin.md#7)
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct OriginalValue {
    pub key: String,
    /// Its type, as the client called it.
    pub kind: String,
    pub text: String,
}

/// A rule that makes sense, ready for use.
#[derive(Debug)]
pub(crate) struct CheckedRule {
    pub rule: Rule,
    pub description: RuleDescription,
}

impl CheckedRule {
    pub(crate) fn new(description: RuleDescription) -> Result<Self, RuleError> {
        let rule = description.compile_new()?;
        Ok(Self { rule, description })
    }
}

/// What a rule selects. (docs/spec/entities.md#17.3)
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum FilterDescription {
    #[default]
    True,
    False,
    Sql(String),
    /// Of a subscription that a JMS client made. (docs/spec/amqp.md#13.5)
    Selector(String),
    Correlation(Box<Correlation>),
}

/// Why something about rules was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say it")]
pub enum RuleError {
    #[error("the entity is not a subscription")]
    NoSubscription,
    #[error("the rule '{0}' exists already")]
    Exists(String),
    #[error("the rule '{0}' does not exist")]
    NotFound(String),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("a topic can have {limit} {what}")]
    TooMany { limit: usize, what: &'static str },
    #[error("the rules of a topic can take {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the rule '{name}': {fault}")]
    Invalid { name: String, fault: String },
    #[error(transparent)]
    Injected(InjectedError),
}

impl RuleDescription {
    /// The rule of a new subscription that is given none: it selects everything.
    #[must_use]
    pub fn default_rule() -> Self {
        Self {
            name: DEFAULT_RULE.to_owned(),
            ..Self::default()
        }
    }

    /// The rule as it was described, but for what it was given besides texts.
    pub(crate) fn of(rule: &Rule) -> Self {
        let filter = match &rule.filter {
            Filter::True => FilterDescription::True,
            Filter::False => FilterDescription::False,
            Filter::Sql(filter) => FilterDescription::Sql(filter.text().to_owned()),
            Filter::Selector(selector) => FilterDescription::Selector(selector.text().to_owned()),
            Filter::Correlation(filter) => {
                FilterDescription::Correlation(Box::new(filter.fields().clone()))
            }
        };
        Self {
            name: rule.name.clone(),
            filter,
            action: rule.action.as_ref().map(|action| action.text().to_owned()),
            ..Self::default()
        }
    }

    /// Whether it says the same as another of its name, however it was written.
    pub(crate) fn says(&self, other: &Self) -> bool {
        self.filter == other.filter
            && self.filter_parameters == other.filter_parameters
            && self.action == other.action
            && self.action_parameters == other.action_parameters
    }

    /// What its texts and values take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let filter = match &self.filter {
            FilterDescription::True | FilterDescription::False => 0,
            FilterDescription::Sql(text) | FilterDescription::Selector(text) => text.len(),
            FilterDescription::Correlation(fields) => stored::bytes_of(fields),
        };
        let parameters = self.filter_parameters.iter().chain(&self.action_parameters);
        let action = self.action.as_ref().map_or(0, String::len);
        let texts = self.filter_texts.iter().chain(&self.action_texts);
        let texts = texts.map(|it| it.key.len() + it.kind.len() + it.text.len());
        let texts: usize = texts.sum();
        self.name.len() + filter + action + texts + stored::bytes_of_values(parameters)
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// When a name, an expression or an action is not possible; says where and why.
    pub fn check(&self) -> Result<(), RuleError> {
        self.compile_new().map(drop)
    }

    /// A rule that is to be made, ready for use, if it makes sense and may have its name.
    pub(crate) fn compile_new(&self) -> Result<Rule, RuleError> {
        name::check_rule_name(&self.name)?;
        self.compile()
    }

    /// The rule ready for use, if it makes sense.
    pub(crate) fn compile(&self) -> Result<Rule, RuleError> {
        let invalid = |fault: String| RuleError::Invalid {
            name: self.name.clone(),
            fault,
        };
        if self.bytes() > MAX_BYTES {
            return Err(invalid(format!("it takes more than {MAX_BYTES} bytes")));
        }
        let parameters = Parameters::new(&self.filter_parameters);
        let filter = match &self.filter {
            FilterDescription::True => Filter::True,
            FilterDescription::False => Filter::False,
            FilterDescription::Sql(text) => {
                let filter = SqlFilter::parse(text, &parameters);
                Filter::Sql(filter.map_err(|error| invalid(error.to_string()))?)
            }
            FilterDescription::Selector(text) => {
                let selector = Selector::parse(text);
                Filter::Selector(selector.map_err(|error| invalid(error.to_string()))?)
            }
            FilterDescription::Correlation(fields) => {
                let filter = CorrelationFilter::new((**fields).clone());
                let filter = filter.map_err(|error| invalid(error.to_string()))?;
                Filter::Correlation(Arc::new(filter))
            }
        };
        let action = self.action.as_deref();
        let parameters = Parameters::new(&self.action_parameters);
        let action = action.map(|text| Action::parse(text, &parameters));
        Ok(Rule {
            name: self.name.clone(),
            filter,
            action: action
                .transpose()
                .map_err(|error| invalid(error.to_string()))?,
        })
    }
}
