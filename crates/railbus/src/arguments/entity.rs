//! Arguments of what works on entities and rules. Options are called as the properties are in
//! files.

use clap::{ArgGroup, Args, Subcommand};
use entity::duration;
use serde::Serialize;

use super::{BrokerArguments, RuleTestArguments};

/// What can be done with queues and topics.
#[derive(Clone, Debug, Subcommand)]
pub enum EntityCommand<Options: Args> {
    /// Lists all.
    List(ListArguments),
    /// Shows one with its properties and what is in it.
    Show(PathArguments),
    /// Makes one.
    Create(ChangeArguments<Options>),
    /// Changes the given properties.
    Update(ChangeArguments<Options>),
    /// Deletes one with all that is in it.
    Delete(PathArguments),
}

/// The options of a list.
#[derive(Args, Clone, Debug)]
pub struct ListArguments {
    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// One queue or topic.
#[derive(Args, Clone, Debug)]
pub struct PathArguments {
    /// Its path
    #[arg(value_name = "PATH")]
    pub path: String,
    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// One queue or topic and its properties.
#[derive(Args, Clone, Debug)]
pub struct ChangeArguments<Options: Args> {
    #[command(flatten)]
    pub at: PathArguments,
    #[command(flatten)]
    pub options: Options,
}

/// How answers look.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputArguments {
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

/// What can be done with subscriptions.
#[derive(Clone, Debug, Subcommand)]
pub enum SubscriptionCommand {
    /// Lists those of a topic.
    List {
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: String,
        #[command(flatten)]
        list: ListArguments,
    },
    /// Shows one with its properties and what is in it.
    Show(SubscriptionArguments),
    /// Makes one, which selects everything until it has other rules.
    Create(SubscriptionChange),
    /// Changes the given properties.
    Update(SubscriptionChange),
    /// Deletes one with all that is in it.
    Delete(SubscriptionArguments),
}

/// One subscription.
#[derive(Args, Clone, Debug)]
pub struct SubscriptionArguments {
    /// Its topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// One subscription and its properties.
#[derive(Args, Clone, Debug)]
pub struct SubscriptionChange {
    #[command(flatten)]
    pub at: SubscriptionArguments,
    #[command(flatten)]
    pub options: SubscriptionOptions,
}

/// What can be done with rules.
#[derive(Clone, Debug, Subcommand)]
pub enum RuleCommand {
    /// Lists those of a subscription.
    List {
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: String,
        /// Its subscription
        #[arg(value_name = "SUBSCRIPTION")]
        subscription: String,
        #[command(flatten)]
        list: ListArguments,
    },
    /// Shows one.
    Show(RuleName),
    /// Adds one; without a filter it selects everything.
    Create(RuleChange),
    /// Changes the filter or the action of one.
    Update(RuleChange),
    /// Deletes one.
    Delete(RuleName),
    /// Says what a rule would make of a message; needs no broker.
    Test(RuleTestArguments),
}

/// One rule.
#[derive(Args, Clone, Debug)]
pub struct RuleName {
    /// Its topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Its subscription
    #[arg(value_name = "SUBSCRIPTION")]
    pub subscription: String,
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// One rule and what it says.
#[derive(Args, Clone, Debug)]
pub struct RuleChange {
    #[command(flatten)]
    pub at: RuleName,
    #[command(flatten)]
    pub options: RuleOptions,
}

/// What a rule says.
#[derive(Args, Clone, Debug, Default)]
#[command(group(ArgGroup::new("rule-filter").args(["expression", "correlation", "everything", "nothing"])))]
pub struct RuleOptions {
    /// The filter, in SQL
    #[arg(long, value_name = "SQL")]
    pub expression: Option<String>,

    /// The filter, as fields to be equal in JSON: {"subject": "red", "properties": {"n": 5}}
    #[arg(long, value_name = "JSON")]
    pub correlation: Option<String>,

    /// Select everything
    #[arg(long)]
    pub everything: bool,

    /// Select nothing
    #[arg(long)]
    pub nothing: bool,

    /// What is done to the copy that the rule makes, in SQL; an empty text takes it away
    #[arg(long, value_name = "SQL")]
    pub action: Option<String>,
}

/// A duration as people type it, as files have it.
fn typed(text: &str) -> Result<String, String> {
    match text {
        "never" => Ok(duration::text(u64::MAX)),
        text => duration::parse_typed(text).map(duration::text),
    }
}

/// What a queue can be told.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct QueueOptions {
    #[command(flatten)]
    #[serde(flatten)]
    pub received: ReceivedOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub sent_to: SentToOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub common: CommonOptions,
}

/// What a topic can be told.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TopicOptions {
    #[command(flatten)]
    #[serde(flatten)]
    pub sent_to: SentToOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub common: CommonOptions,
}

/// What a subscription can be told.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SubscriptionOptions {
    #[command(flatten)]
    #[serde(flatten)]
    pub received: ReceivedOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub common: CommonOptions,

    /// Dead-letter messages on which a rule cannot be evaluated
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_lettering_on_filter_evaluation_exceptions: Option<bool>,
}

/// What every entity can be told.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CommonOptions {
    /// Default and ceiling of messages' own time to live: 1h, PT1H or never
    #[arg(long, value_name = "DURATION", value_parser = typed)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_message_time_to_live: Option<String>,

    /// Time without use after which it is deleted: 5m, PT5M or never
    #[arg(long, value_name = "DURATION", value_parser = typed)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_delete_on_idle: Option<String>,

    /// What clients may do: active, disabled, send-disabled or receive-disabled
    #[arg(long, value_name = "STATUS", value_parser = ["active", "disabled", "send-disabled", "receive-disabled"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// What entities can be told that are received from.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReceivedOptions {
    /// How long a receiver may hold a message before it is available again: 30s or PT30S
    #[arg(long, value_name = "DURATION", value_parser = typed)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_duration: Option<String>,

    /// Deliveries before a message is dead-lettered
    #[arg(long, value_name = "COUNT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delivery_count: Option<u32>,

    /// Dead-letter messages that expire
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_lettering_on_message_expiration: Option<bool>,

    /// When expired messages leave: eager or cloud; an empty text takes the broker's
    #[arg(long, value_name = "EXPIRY", value_parser = ["eager", "cloud", ""])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<String>,

    /// Messages belong to sessions; cannot be changed later
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_session: Option<bool>,

    /// Where messages go on to; an empty text keeps them
    #[arg(long, value_name = "PATH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_to: Option<String>,

    /// Where dead letters go on to; an empty text keeps them
    #[arg(long, value_name = "PATH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_dead_lettered_messages_to: Option<String>,
}

/// What entities can be told that are sent to.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SentToOptions {
    /// Of the entity with its dead letters
    #[arg(long, value_name = "MEGABYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size_in_megabytes: Option<u32>,

    /// Of one message: 64KiB or bytes; an empty text takes the broker's
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_message_size: Option<String>,

    /// Drop messages with an id that was there before; cannot be changed later
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_duplicate_detection: Option<bool>,

    /// For how long ids are remembered: 10m or PT10M
    #[arg(long, value_name = "DURATION", value_parser = typed)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_detection_history_time_window: Option<String>,
}
