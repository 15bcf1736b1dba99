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
mod action_error;
mod arithmetic;
mod changes;
mod compare;
mod correlation;
mod decimal;
mod dialect;
mod error;
mod evaluation;
mod fields;
mod fuel;
mod lexer;
mod like;
mod machine;
mod message;
mod modified_message;
mod needs;
mod outcome;
mod parameters;
mod parser;
mod program;
mod property;
mod rewrite;
mod rule;
mod rules;
mod scan;
mod selector;
mod session_id;
mod sharded;
mod sql;
mod tester;
mod ticks;
mod token;
mod tree;
mod user_properties;
mod value;

pub use action::{Action, MAX_STATEMENTS};
pub use action_error::ActionError;
pub use changes::{Changes, HeaderSizeExceeded, SystemChange};
pub use correlation::{Correlation, CorrelationError, CorrelationField, CorrelationFilter};
pub use error::{Fault, ParseError};
pub use evaluation::{Environment, EvaluationError, TypeMismatch};
pub use lexer::MAX_TEXT;
pub use message::{Facts, GIVEN_ID, Message};
pub use needs::Needs;
pub use outcome::{ChangedCopy, Outcome, RuleFailure};
pub use parameters::Parameters;
pub use property::Property;
pub use rule::{Filter, Rule, RuleError};
pub use rules::{Evaluation, RuleExists, RuleSet, RuleSubset, TopicRules};
pub use selector::Selector;
pub use session_id::fold_session_id;
pub use sql::SqlFilter;
pub use tester::{Candidate, Verdict, test};
pub use value::ValueKind;
