//! Rules as our own files and our own interface write them, and the tester of rules.
//!
//! One shape serves `railbus.toml`, entities files, `POST /$railbus/rules/test` and
//! `railbus rule test`. A value is plain or has its type beside it.

mod filter;
mod message;
mod tester;
mod typed_value;

pub use self::filter::{CorrelationFields, Filter};
pub use message::MessageDescription;
pub use tester::{Change, Report, Test, TestError, Verdict};
pub use typed_value::TypedValue;
