//! Arguments of the commands for queues, topics, subscriptions and rules.

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, Subcommand};

use super::properties::{PropertyOptions, Subscription};
use super::{BrokerArguments, RuleTestArguments};

/// What can be done with queues and topics.
#[derive(Clone, Debug, Subcommand)]
pub enum EntityCommand<Options: Args> {
    /// List all.
    List(ListArguments),
    /// Show one with its properties and message counts.
    Show(PathArguments),
    /// Create one.
    Create(ChangeArguments<Options>),
    /// Change the given properties.
    Update(ChangeArguments<Options>),
    /// Delete one with all its contents.
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
    /// Path of the entity
    #[arg(value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
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

/// The format of answers.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What can be done with subscriptions.
#[derive(Clone, Debug, Subcommand)]
pub enum SubscriptionCommand {
    /// List the subscriptions of a topic.
    List {
        /// The topic
        #[arg(value_name = "TOPIC", value_parser = NonEmptyStringValueParser::new())]
        topic: String,
        #[command(flatten)]
        list: ListArguments,
    },
    /// Show one with its properties and message counts.
    Show(SubscriptionArguments),
    /// Create one, which selects every message until it has other rules.
    Create(SubscriptionChange),
    /// Change the given properties.
    Update(SubscriptionChange),
    /// Delete one with all its contents.
    Delete(SubscriptionArguments),
}

/// One subscription.
#[derive(Args, Clone, Debug)]
pub struct SubscriptionArguments {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = NonEmptyStringValueParser::new())]
    pub topic: String,
    /// Its name
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
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
    pub options: PropertyOptions<Subscription>,
}

/// What can be done with rules.
#[derive(Clone, Debug, Subcommand)]
pub enum RuleCommand {
    /// List the rules of a subscription.
    List {
        /// The topic
        #[arg(value_name = "TOPIC", value_parser = NonEmptyStringValueParser::new())]
        topic: String,
        /// The subscription
        #[arg(value_name = "SUBSCRIPTION", value_parser = NonEmptyStringValueParser::new())]
        subscription: String,
        #[command(flatten)]
        list: ListArguments,
    },
    /// Show one.
    Show(RuleName),
    /// Add one; without a filter it selects every message.
    Create(RuleChange),
    /// Change the filter or the action of one.
    Update(RuleChange),
    /// Delete one.
    Delete(RuleName),
    /// Test whether a rule matches a message, and print its result; needs no broker.
    Test(RuleTestArguments),
}

/// One rule.
#[derive(Args, Clone, Debug)]
pub struct RuleName {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = NonEmptyStringValueParser::new())]
    pub topic: String,
    /// The subscription
    #[arg(value_name = "SUBSCRIPTION", value_parser = NonEmptyStringValueParser::new())]
    pub subscription: String,
    /// Its name
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub name: String,
    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// One rule with its filter and action.
#[derive(Args, Clone, Debug)]
pub struct RuleChange {
    #[command(flatten)]
    pub at: RuleName,
    #[command(flatten)]
    pub options: RuleOptions,
}

/// The filter and action of a rule.
#[derive(Args, Clone, Debug, Default)]
#[command(group(ArgGroup::new("rule-filter").args(["expression", "correlation", "everything", "nothing"])))]
pub struct RuleOptions {
    /// SQL filter
    #[arg(long, value_name = "SQL")]
    pub expression: Option<String>,

    /// Correlation filter in JSON; all its fields must be equal: {"subject": "red", "properties":
    /// {"n": 5}}
    #[arg(long, value_name = "JSON")]
    pub correlation: Option<String>,

    /// Filter that selects every message
    #[arg(long)]
    pub everything: bool,

    /// Filter that selects no message
    #[arg(long)]
    pub nothing: bool,

    /// SQL action on the copy that the rule makes; an empty text removes it
    #[arg(long, value_name = "SQL")]
    pub action: Option<String>,
}
