//! Arguments of what works on messages.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use entity::duration::parse_typed;
use serde::Serialize;

use super::BrokerArguments;
use super::entity::OutputArguments;

/// The options of `railbus send`.
#[derive(Args, Clone, Debug)]
pub struct SendArguments {
    /// The queue or topic
    #[arg(value_name = "ENTITY")]
    pub entity: String,

    /// What the message says; without it, stdin is read
    #[arg(value_name = "BODY", conflicts_with_all = ["file", "lines"])]
    pub body: Option<String>,

    /// What the message says is in a file
    #[arg(long, value_name = "FILE", conflicts_with = "lines")]
    pub file: Option<PathBuf>,

    /// Every line of stdin is a message
    #[arg(long)]
    pub lines: bool,

    /// Send it so often
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1,
        conflicts_with = "lines"
    )]
    pub count: u32,

    /// Its message id
    #[arg(long, value_name = "TEXT")]
    pub message_id: Option<String>,

    /// Its session
    #[arg(long, value_name = "TEXT")]
    pub session_id: Option<String>,

    /// Its subject (which SDKs have called its label)
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,

    /// Its correlation id
    #[arg(long, value_name = "TEXT")]
    pub correlation_id: Option<String>,

    /// What its body is
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,

    /// How long it lives: 1h or PT1H
    #[arg(long, value_name = "DURATION", value_parser = parse_typed)]
    pub time_to_live: Option<u64>,

    /// When it becomes available, from now: 1h or PT1H
    #[arg(long, value_name = "DURATION", value_parser = parse_typed)]
    pub delay: Option<u64>,

    /// A property as name=value; the value is JSON if it is a number, true or false, and a text
    /// otherwise; repeatable
    #[arg(long = "property", value_name = "NAME=VALUE", value_parser = property)]
    pub properties: Vec<(String, String)>,

    #[command(flatten)]
    pub broker: BrokerArguments,
}

fn property(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| format!("`{text}` is not name=value"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Where messages are taken from.
#[derive(Args, Clone, Debug)]
pub struct SourceArguments {
    /// The queue, or topic/Subscriptions/name
    #[arg(value_name = "ENTITY")]
    pub entity: String,

    /// Its dead letters
    #[arg(long)]
    pub dead_letter: bool,

    /// Answer with an object of JSON for each message
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub broker: BrokerArguments,
}

/// The options of `railbus receive`.
#[derive(Args, Clone, Debug)]
pub struct ReceiveArguments {
    #[command(flatten)]
    pub source: SourceArguments,

    /// Most messages
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub count: u32,

    /// Wait for messages until there are as many; without it, only what is there is received
    #[arg(long)]
    pub wait: bool,

    /// Of one session; an empty text takes the next one that is free
    #[arg(long, value_name = "TEXT")]
    pub session_id: Option<String>,

    /// Give each message back rather than taking it away
    #[arg(long)]
    pub abandon: bool,
}

/// The options of `railbus peek`.
#[derive(Args, Clone, Debug)]
pub struct PeekArguments {
    #[command(flatten)]
    pub source: SourceArguments,

    /// Most messages
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub count: u32,

    /// From this sequence number on
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub from: u64,
}

/// The options of `railbus purge`.
#[derive(Args, Clone, Debug)]
pub struct PurgeArguments {
    /// Which of its messages
    #[arg(long, value_enum, default_value_t = MessagePart::Active)]
    pub part: MessagePart,

    #[command(flatten)]
    pub bulk: BulkArguments,
}

/// The options of `railbus explain`.
#[derive(Args, Clone, Debug)]
pub struct ExplainArguments {
    /// The queue, or topic/Subscriptions/name
    #[arg(value_name = "ENTITY")]
    pub entity: String,

    /// The sequence number of a message; without it the next one is meant
    #[arg(long, value_name = "N")]
    pub sequence: Option<u64>,

    /// Which of its messages
    #[arg(long, value_enum, default_value_t = MessagePart::Active)]
    pub part: MessagePart,

    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// The options of `railbus redrive`.
#[derive(Args, Clone, Debug)]
pub struct RedriveArguments {
    /// Those that could not be forwarded
    #[arg(long)]
    pub transfer: bool,

    #[command(flatten)]
    pub bulk: BulkArguments,
}

/// Which messages, and how fast.
#[derive(Args, Clone, Debug)]
pub struct BulkArguments {
    /// The queue, or topic/Subscriptions/name
    #[arg(value_name = "ENTITY")]
    pub entity: String,

    /// Only those that a condition in SQL selects, such as "DeadLetterReason = 'bad'"
    #[arg(long, value_name = "SQL")]
    pub filter: Option<String>,

    /// Most messages
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u64>,

    /// Most messages a second
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,

    /// Only say how many
    #[arg(long)]
    pub dry_run: bool,

    /// Answer in JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub broker: BrokerArguments,
}

/// Where messages are.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum MessagePart {
    /// Those that can be received
    Active,
    /// Those that wait for their time
    Scheduled,
    /// Those that were deferred
    Deferred,
    /// Dead letters
    DeadLetter,
    /// Those that could not be forwarded
    TransferDeadLetter,
}
