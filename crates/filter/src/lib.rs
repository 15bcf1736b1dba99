//! Rules of subscriptions, without IO: SQL filters and actions, correlation filters, JMS selectors.
//!
//! A text becomes a flat program once, when its rule is created, and everything that can be known
//! without a message is refused then. Evaluation reads an encoded message's sections lazily, takes
//! a bounded time for every message and never panics. An evaluation that fails on a message
//! returns an [`EvaluationError`]. (docs/spec/entities.md#17)
//!
//! ```
//! use filter::{Environment, Facts, Message, Parameters, SqlFilter};
//!
//! let filter = SqlFilter::parse("sys.Label IS NULL AND NOT EXISTS(region)", &Parameters::NONE)?;
//! let body = [0x00, 0x53, 0x75, 0xa0, 0x00];
//! let message = Message::read(&body, Facts::default())?;
//! assert_eq!(filter.evaluate(&message, Environment::default())?, Some(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod action;
mod correlation;
mod expression;
mod message;
mod rules;
mod selector;
mod sql;
mod values;

pub use action::action_error::ActionError;
pub use action::{Action, MAX_STATEMENTS};
pub use correlation::{Correlation, CorrelationError, CorrelationField, CorrelationFilter};
pub use expression::error::{Fault, ParseError};
pub use expression::evaluation::{Environment, EvaluationError, TypeMismatch};
pub use expression::lexer::MAX_TEXT;
pub use expression::needs::Needs;
pub use expression::parameters::Parameters;
pub use message::changes::{Changes, HeaderSizeExceeded, SystemChange};
pub use message::property::Property;
pub use message::session_id::fold_session_id;
pub use message::{Facts, GIVEN_ID, Message};
pub use rules::outcome::{ChangedCopy, Outcome, RuleFailure};
pub use rules::rule::{Filter, Rule, RuleError};
pub use rules::tester::{Candidate, Verdict, test};
pub use rules::{Evaluation, RuleExists, RuleSet, RuleSubset, TopicRules};
pub use selector::Selector;
pub use sql::SqlFilter;
pub use values::value::ValueKind;
