//! Rule: a named filter, and the action on the messages that it matches.
//! (docs/spec/entities.md#17.2, #17.3)

use std::sync::Arc;

use crate::action::Action;
use crate::action::action_error::ActionError;
use crate::correlation::CorrelationFilter;
use crate::expression::evaluation::{Environment, EvaluationError, Run};
use crate::expression::needs::Needs;
use crate::message::Message;
use crate::message::changes::Changes;
use crate::selector::Selector;
use crate::sql::SqlFilter;

/// The application property with the name of the rule that made a copy.
const RULE_NAME: &str = "RuleName";

/// The filter of a rule.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are the contract's filters")]
pub enum Filter {
    True,
    False,
    Sql(SqlFilter),
    /// Of a subscription that a JMS client made. (docs/spec/amqp.md#13.5)
    Selector(Selector),
    Correlation(Arc<CorrelationFilter>),
}

/// A rule of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// In the case it was created with.
    pub name: String,
    /// The filter.
    pub filter: Filter,
    /// The action on its copy.
    pub action: Option<Action>,
}

/// Why a rule could not be followed for a message. (docs/spec/entities.md#8.2, #17.9)
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says in its text what happened")]
pub enum RuleError {
    #[error(transparent)]
    Filter(#[from] EvaluationError),
    #[error(transparent)]
    Action(#[from] ActionError),
}

impl RuleError {
    /// The name of the exception, as it becomes the reason of a dead letter.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Filter(_) => "FilterException",
            Self::Action(_) => "RuleActionException",
        }
    }
}

impl Filter {
    /// Whether it matches; false and unknown do not.
    ///
    /// # Errors
    /// When it cannot be evaluated on this message.
    pub fn matches(
        &self,
        message: &Message<'_>,
        environment: Environment,
    ) -> Result<bool, EvaluationError> {
        self.run(message, &mut Run::new(environment))
    }

    pub(crate) fn run(
        &self,
        message: &Message<'_>,
        run: &mut Run,
    ) -> Result<bool, EvaluationError> {
        match self {
            Self::True => Ok(true),
            Self::False => Ok(false),
            Self::Sql(filter) => Ok(filter.run(message, run)? == Some(true)),
            Self::Selector(selector) => Ok(selector.run(message, run) == Some(true)),
            Self::Correlation(filter) => Ok(filter.matches(message)),
        }
    }

    /// The parts of a message that it may ask for.
    #[must_use]
    pub fn needs(&self) -> Needs {
        match self {
            Self::True | Self::False => Needs::default(),
            Self::Sql(filter) => filter.needs(),
            Self::Selector(selector) => selector.needs(),
            Self::Correlation(filter) => filter.needs(),
        }
    }
}

impl Rule {
    /// Whether it can be followed only once the message has arrived.
    #[must_use]
    pub fn is_late(&self) -> bool {
        let action = self.action.as_ref().map(Action::needs);
        self.filter.needs().or(action.unwrap_or_default()).arrival
    }

    /// The changes of its action, including the property with the rule's name. `None` without an
    /// action.
    pub(crate) fn changes(
        &self,
        message: &Message<'_>,
        run: &mut Run,
    ) -> Result<Option<Changes>, ActionError> {
        let Some(action) = &self.action else {
            return Ok(None);
        };
        let mut changes = action.run(message, run)?;
        changes.set_user(RULE_NAME.to_owned(), amqp::Value::String(self.name.clone()));
        Ok(Some(changes))
    }
}
