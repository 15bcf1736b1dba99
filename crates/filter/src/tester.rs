//! Tester: what a rule that is still being written would make of a message.

use std::fmt;

use crate::action::Action;
use crate::changes::{Changes, SystemChange};
use crate::error::ParseError;
use crate::evaluation::Environment;
use crate::message::Message;
use crate::parameters::Parameters;
use crate::rule::RuleError;
use crate::sql::SqlFilter;

/// What a test says.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The filter's text is none.
    BadFilter(ParseError),
    /// The action's text is none.
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

/// Tests a message with an SQL filter and, if it matches, an action.
#[must_use]
pub fn test(
    filter: &str,
    action: Option<&str>,
    parameters: &Parameters<'_>,
    message: &Message<'_>,
    environment: Environment,
) -> Verdict {
    let filter = match SqlFilter::parse(filter, parameters) {
        Ok(filter) => filter,
        Err(error) => return Verdict::BadFilter(error),
    };
    let action = match action
        .map(|text| Action::parse(text, parameters))
        .transpose()
    {
        Ok(action) => action,
        Err(error) => return Verdict::BadAction(error),
    };
    match filter.evaluate(message, environment) {
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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadFilter(error) => write!(f, "error in the filter: {error}"),
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
