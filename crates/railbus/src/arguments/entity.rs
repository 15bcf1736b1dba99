//! Arguments of what works on entities and rules.

use clap::{ArgGroup, Args, Subcommand};

use super::properties::{PropertyOptions, Subscription};
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
    pub options: PropertyOptions<Subscription>,
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
