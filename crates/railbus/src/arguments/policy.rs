//! Arguments of the commands for policies.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::BrokerArguments;
use super::entity::{ListArguments, OutputArguments};

/// What can be done with policies.
#[derive(Clone, Debug, Subcommand)]
pub enum PolicyCommand {
    /// List all policies of users and operators.
    List(ListArguments),
    /// Create or replace a policy; it applies at once.
    #[command(after_long_help = DEFINITION_HELP)]
    Set(PolicySetArguments),
    /// Delete a policy.
    Clear(PolicyName),
}

const DEFINITION_HELP: &str = "\
Keys of a definition, durations in milliseconds and sizes in bytes:
  message-ttl, expires, max-length, max-length-bytes, delivery-limit,
  overflow (drop-head, reject-publish, reject-publish-dlx),
  railbus-lock-duration, railbus-auto-delete-on-idle, railbus-max-size, railbus-dead-letter-on-expiry,
  railbus-retroactive, alternate-exchange (of exchanges), and others that RabbitMQ has.
  Operator policies have the keys of the first line and delivery-limit.
  railbus policy set ttl '^orders' '{\"message-ttl\": 60000}' --apply-to queues --priority 5";

/// One policy.
#[derive(Args, Clone, Debug)]
pub struct PolicyName {
    /// Its name
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub name: String,
    /// Operator policy, which limits the settings of users and of their policies
    #[arg(long)]
    pub operator: bool,
    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// One policy and what it says.
#[derive(Args, Clone, Debug)]
pub struct PolicySetArguments {
    #[command(flatten)]
    pub at: PolicyName,
    /// Regular expression; the policy applies to entities whose path contains a match
    #[arg(value_name = "PATTERN", allow_hyphen_values = true)]
    pub pattern: String,
    /// Settings of the policy, as a JSON object: {"message-ttl": 60000}
    #[arg(value_name = "DEFINITION", value_parser = object)]
    pub definition: Definition,
    /// What it is for: queues, classic_queues, quorum_queues, exchanges, topics, subscriptions,
    /// streams (of which there are none) or all
    #[arg(long, value_name = "KIND", default_value = "all")]
    pub apply_to: String,
    /// Priority; of several policies that match, the one with the highest number applies
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub priority: i64,
}

/// A definition, as it is given.
#[derive(Clone, Debug)]
pub struct Definition(pub Map<String, Value>);

pub(super) fn object(text: &str) -> Result<Definition, String> {
    let read = serde_json::from_str(text);
    read.map(Definition)
        .map_err(|error| format!("it is not an object in JSON: {error}"))
}
