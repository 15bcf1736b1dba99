//! Entities as files and our own interface write them: one shape for `railbus.toml`, for entities
//! files, for `/$railbus/entities` and for the output of the command line.
//!
//! Reading checks every value. [`fault::check`] then finds faults that no single value shows.
//! Nothing here asks the broker.

pub mod fault;
mod millis;
mod name;
mod properties;
mod queue;
mod size;
mod topic;

pub use millis::Millis;
pub use name::{EntityPath, NamespaceName, SubscriptionName};
pub use properties::{Properties, of_file, of_queue, of_rule, of_subscription, of_topic};
pub use queue::{
    DeliveryCount, HistoryWindow, IdleTime, LockDuration, QueueConfig, TimeToLive, delivery_count,
};
pub use size::{Count, Size};
pub use topic::{RuleConfig, SubscriptionConfig, TopicConfig};
