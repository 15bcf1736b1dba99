//! Tester: applies the filter and action of a rule that does not exist yet to a message.

use std::fmt;
use std::sync::Arc;

use crate::action::Action;
use crate::correlation::{Correlation, CorrelationError, CorrelationFilter};
use crate::expression::error::ParseError;
use crate::expression::evaluation::{Environment, EvaluationError};
use crate::expression::parameters::Parameters;
use crate::message::Message;
use crate::message::changes::{Changes, SystemChange};
use crate::rules::rule::{Filter, RuleError};
use crate::sql::SqlFilter;

/// The filter to test, as text.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are the contract's filters")]
pub enum Candidate<'a> {
    True,
    False,
    Sql(&'a str),
    Correlation(Correlation),
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The filter's text is invalid.
    BadFilter(ParseError),
    /// The fields make no correlation filter.
    BadCorrelation(CorrelationError),
    /// The action's text is invalid.
    BadAction(ParseError),
    /// The filter is true, and this is what the action changes, if there is one.
    Match(Option<Changes>),
    /// The filter is false.
    NoMatch,
    /// The filter is unknown, which does not match either.
    Unknown,
    /// The filter or the action fails on this message.
    Failed(RuleError),
}

/// Tests a message with a filter and, if it matches, an action.
#[must_use]
pub fn test(
    filter: Candidate<'_>,
    action: Option<&str>,
    parameters: &Parameters<'_>,
    message: &Message<'_>,
    environment: Environment,
) -> Verdict {
    let filter = match compile(filter, parameters) {
        Ok(filter) => filter,
        Err(verdict) => return verdict,
    };
    let action = action.map(|text| Action::parse(text, parameters));
    let action = match action.transpose() {
        Ok(action) => action,
        Err(error) => return Verdict::BadAction(error),
    };
    match truth(&filter, message, environment) {
        Ok(Some(true)) => {}
        Ok(Some(false)) => return Verdict::NoMatch,
        Ok(None) => return Verdict::Unknown,
        Err(error) => return Verdict::Failed(error.into()),
    }
    let changes = action.map(|action| action.evaluate(message, environment));
    match changes.transpose() {
        Ok(changes) => Verdict::Match(changes),
        Err(error) => Verdict::Failed(error.into()),
    }
}

fn compile(filter: Candidate<'_>, parameters: &Parameters<'_>) -> Result<Filter, Verdict> {
    Ok(match filter {
        Candidate::True => Filter::True,
        Candidate::False => Filter::False,
        Candidate::Sql(text) => {
            Filter::Sql(SqlFilter::parse(text, parameters).map_err(Verdict::BadFilter)?)
        }
        Candidate::Correlation(fields) => {
            let filter = CorrelationFilter::new(fields).map_err(Verdict::BadCorrelation)?;
            Filter::Correlation(Arc::new(filter))
        }
    })
}

/// Whether it is true, false or, which only SQL can be, unknown.
fn truth(
    filter: &Filter,
    message: &Message<'_>,
    environment: Environment,
) -> Result<Option<bool>, EvaluationError> {
    match filter {
        Filter::Sql(filter) => filter.evaluate(message, environment),
        Filter::Selector(selector) => Ok(selector.evaluate(message)),
        other => other.matches(message, environment).map(Some),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadFilter(error) => write!(f, "error in the filter: {error}"),
            Self::BadCorrelation(error) => write!(f, "error in the filter: {error}"),
            Self::BadAction(error) => write!(f, "error in the action: {error}"),
            Self::Match(None) => f.write_str("match"),
            Self::Match(Some(changes)) => write!(f, "match{changes}"),
            Self::NoMatch => f.write_str("no match"),
            Self::Unknown => f.write_str("no match: the filter is unknown"),
            Self::Failed(error) => write!(f, "{}: {error}", error.reason()),
        }
    }
}

/// A line for each change, each in front of its text.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in self.system() {
            match change {
                SystemChange::Text(property, Some(text)) => {
                    write!(f, "\nset sys.{} = {text:?}", property.name())?;
                }
                SystemChange::Text(property, None) => {
                    write!(f, "\nremove sys.{}", property.name())?;
                }
                SystemChange::TimeToLive(Some(ms)) => write!(f, "\nset sys.TimeToLive = {ms} ms")?,
                SystemChange::TimeToLive(None) => f.write_str("\nremove sys.TimeToLive")?,
            }
        }
        for (name, value) in self.user() {
            match value {
                Some(value) => write!(f, "\nset {name} = {value:?}")?,
                None => write!(f, "\nremove {name}")?,
            }
        }
        Ok(())
    }
}
