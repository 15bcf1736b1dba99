//! Arguments of the commands for fault rules.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::BrokerArguments;
use super::entity::OutputArguments;
use super::policy::{Definition, object};

/// What can be done with fault rules.
#[derive(Clone, Debug, Subcommand)]
pub enum FaultCommand {
    /// List the rules of a namespace, with the operations that each has affected.
    List(FaultsOf),
    /// Add a rule; it applies at once, until it is cleared or the broker stops.
    #[command(after_long_help = HELP)]
    Add(FaultAddArguments),
    /// Remove all rules of a namespace.
    Clear(FaultsOf),
}

const HELP: &str = "\
Effects:
  {\"refuse\": ERROR}; {\"detach\": ERROR}, \"end\" or \"close\"; {\"disconnect\": \"before\"} or \"after\" the operation takes effect;
  {\"delay-ms\": N}; {\"delay-answer-ms\": N}; {\"throttle-per-second\": N}; {\"withhold-credit-ms\": N};
  expire-token; lose-lock; deliver-again. ERROR is server-busy, timeout, quota-exceeded, entity-disabled, not-found, unauthorized,
  internal-error, detach-forced or connection-forced
Members of --match, all optional:
  entity, operations (attach, attach-sender, attach-receiver, accept-session, receive, send, schedule, cancel-scheduled, complete, abandon,
  defer, dead-letter, renew, receive-deferred, peek, batch-delete, renew-session, get-session-state,
  set-session-state, list-sessions, publish, create-entity, update-entity, delete-entity, add-rule,
  remove-rule, list-rules, bind, unbind, declare, commit, rollback), client, key, session, message-id, filter,
  http (a method and a path of HTTP requests; with refuse and disconnect), from, until, skip, every,
  probability, seed, times
  railbus fault add busy '{\"refuse\": \"server-busy\"}' --match '{\"operations\": [\"send\"], \"times\": 2}'";

/// The rules of one namespace.
#[derive(Args, Clone, Debug)]
pub struct FaultsOf {
    /// The namespace
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub namespace: String,
    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// A rule that is to be added.
#[derive(Args, Clone, Debug)]
pub struct FaultAddArguments {
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The effect, in JSON
    #[arg(value_name = "EFFECT", value_parser = effect)]
    pub effect: Value,
    /// The operations to affect, as a JSON object [default: all operations]
    #[arg(long = "match", value_name = "OBJECT", value_parser = object)]
    pub matches: Option<Definition>,
    #[command(flatten)]
    pub at: FaultsOf,
}

/// An effect without value is a word.
#[allow(clippy::unnecessary_wraps, reason = "the type of a parser of values")]
fn effect(text: &str) -> Result<Value, String> {
    Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}
