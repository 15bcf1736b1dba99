//! Descriptions of entities, in one shape for `railbus.toml`, entities files, `/$railbus/entities`
//! and the command line; rules and the values in them; the plan of what has to change for a
//! namespace to equal a file.
//!
//! Reading checks every value. [`fault::check`] then finds faults that no single value shows.
//! Nothing here asks the broker.

mod bounded;
mod definition;
mod described;
pub mod duration;
pub mod fault;
mod name;
pub mod plan;
mod properties;
mod property;
mod read;
mod retry_backoff;
mod rule_config;
pub mod rules;
mod schema;
mod table;
pub mod time;

pub use bounded::{Count, Millis, Size};
pub use definition::{
    Namespace, QueueDefinition, SubscriptionDefinition, TopicDefinition, ensured,
};
pub use described::Described;
pub use name::{EntityPath, NamespaceName, SubscriptionName};
pub use properties::{
    Properties, of_file, of_policy, of_queue, of_rule, of_subscription, of_topic,
};
pub use property::{
    Given, InEmulator, Property, Slot, ValueRefusal, shown_count, status_of, status_text,
};
pub use rule_config::RuleConfig;
pub use schema::schemas;
pub use table::{PROPERTIES, elements, keep_fixed, named};
