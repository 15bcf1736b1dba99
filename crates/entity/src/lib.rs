//! Descriptions of entities, in one shape for `railbus.toml`, entities files, `/$railbus/entities`
//! and the command line; rules and the values in them; the plan of what has to change for a
//! namespace to equal a file.
//!
//! Reading checks every value. [`fault::check`] then finds faults that no single value shows.
//! Nothing here asks the broker.

mod definition;
mod described;
pub mod duration;
pub mod fault;
mod millis;
mod name;
pub mod plan;
mod properties;
mod queue;
pub mod rules;
mod size;
pub mod time;
mod topic;

pub use definition::{
    Namespace, QueueDefinition, SubscriptionDefinition, TopicDefinition, ensured,
};
pub use described::Described;
pub use millis::Millis;
pub use name::{EntityPath, NamespaceName, SubscriptionName};
pub use properties::{Properties, of_file, of_queue, of_rule, of_subscription, of_topic};
pub use queue::{
    DeliveryCount, HistoryWindow, IdleTime, LockDuration, QueueConfig, TimeToLive, delivery_count,
};
pub use size::{Count, Size};
pub use topic::{RuleConfig, SubscriptionConfig, TopicConfig};
