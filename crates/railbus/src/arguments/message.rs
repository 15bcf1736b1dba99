//! Arguments of the commands for messages.

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

    /// Body of the message [default: stdin]
    #[arg(value_name = "BODY", conflicts_with_all = ["file", "lines"])]
    pub body: Option<String>,

    /// Read the body from this file
    #[arg(long, value_name = "FILE", conflicts_with = "lines")]
    pub file: Option<PathBuf>,

    /// Send each line of stdin as a message
    #[arg(long)]
    pub lines: bool,

    /// Number of times to send the message
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1,
        conflicts_with = "lines"
    )]
    pub count: u32,

    /// Message id
    #[arg(long, value_name = "TEXT")]
    pub message_id: Option<String>,

    /// Session id
    #[arg(long, value_name = "TEXT")]
    pub session_id: Option<String>,

    /// Subject, called label in older SDKs
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,

    /// Correlation id
    #[arg(long, value_name = "TEXT")]
    pub correlation_id: Option<String>,

    /// Content type of the body, such as application/json
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,

    /// Time to live: 1h or PT1H [default: the entity's]
    #[arg(long, value_name = "DURATION", value_parser = parse_typed)]
    pub time_to_live: Option<u64>,

    /// Delay before the message is available: 1h or PT1H
    #[arg(long, value_name = "DURATION", value_parser = parse_typed)]
    pub delay: Option<u64>,

    /// Application property; a value that is a number, true or false has that type, any other is a
    /// string; repeatable
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

/// The entity that messages are read from.
#[derive(Args, Clone, Debug)]
pub struct SourceArguments {
    /// The queue, or topic/Subscriptions/name
    #[arg(value_name = "ENTITY")]
    pub entity: String,

    /// Use the entity's dead-letter queue
    #[arg(long)]
    pub dead_letter: bool,

    /// Print one JSON object per message
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

    /// Most messages to process
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub count: u32,

    /// Wait until COUNT messages have arrived [default: receive only messages that are available]
    #[arg(long)]
    pub wait: bool,

    /// Session to receive from; an empty text takes the next free session
    #[arg(long, value_name = "TEXT")]
    pub session_id: Option<String>,

    /// Abandon each message instead of completing it
    #[arg(long)]
    pub abandon: bool,
}

/// The options of `railbus peek`.
#[derive(Args, Clone, Debug)]
pub struct PeekArguments {
    #[command(flatten)]
    pub source: SourceArguments,

    /// Most messages to process
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub count: u32,

    /// First sequence number
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub from: u64,
}

/// The options of `railbus purge`.
#[derive(Args, Clone, Debug)]
pub struct PurgeArguments {
    /// State of the messages
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

    /// Sequence number of the message [default: the next one to deliver]
    #[arg(long, value_name = "N")]
    pub sequence: Option<u64>,

    /// State of the messages
    #[arg(long, value_enum, default_value_t = MessagePart::Active)]
    pub part: MessagePart,

    /// The namespace [default: that of the connection string]
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,

    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// The options of `railbus redrive`.
#[derive(Args, Clone, Debug)]
pub struct RedriveArguments {
    /// Messages that could not be forwarded
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

    /// SQL filter of the messages, such as "DeadLetterReason = 'bad'"
    #[arg(long, value_name = "SQL")]
    pub filter: Option<String>,

    /// Most messages to process
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u64>,

    /// Most messages per second [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,

    /// Only count the messages
    #[arg(long)]
    pub dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub broker: BrokerArguments,
}

/// The state of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum MessagePart {
    /// Messages that can be received
    Active,
    /// Scheduled messages
    Scheduled,
    /// Deferred messages
    Deferred,
    /// Dead letters
    DeadLetter,
    /// Messages that could not be forwarded
    TransferDeadLetter,
}
