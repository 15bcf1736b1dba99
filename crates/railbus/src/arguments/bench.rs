//! Arguments of `railbus bench`.

use bytesize::ByteSize;
use clap::{Args, ValueEnum, value_parser};
use entity::duration::parse_typed;
use load::bodies::LARGEST;
use load::receiver::CREDIT;
use serde::Serialize;

use super::BrokerArguments;

/// The options of `railbus bench`.
#[derive(Args, Clone, Debug)]
#[command(after_help = NOTES)]
pub struct BenchArguments {
    /// The queue; a topic with `--mode send`, or topic/Subscriptions/name with `--mode receive`
    #[arg(value_name = "ENTITY", required_unless_present = "create")]
    pub entity: Option<String>,

    /// Create a queue, named ENTITY if that is given, and delete it at the end
    #[arg(long)]
    pub create: bool,

    /// What to measure
    #[arg(long, value_enum, default_value_t)]
    pub mode: BenchMode,

    /// Size of each body: 1024 or 16KiB, up to 1MiB
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = size)]
    pub size: usize,

    /// Number of sending connections, and of receiving connections
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1_000))]
    pub connections: u32,

    /// Most messages that wait to be accepted, over all connections [default: 500, or no limit with
    /// --rate]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..))]
    pub in_flight: Option<u64>,

    /// Messages per second, over all connections; latency is then measured from when a message was
    /// due
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,

    /// Number of messages after which the run ends
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..))]
    pub messages: Option<u64>,

    /// Duration of the run: 30s or PT30S [default: 10s, or 1h with --messages; `--mode receive`
    /// without --duration also ends when no message arrives for a second]
    #[arg(long, value_name = "DURATION", value_parser = parse_typed)]
    pub duration: Option<u64>,

    /// Link credit of each receiver
    #[arg(long, value_name = "COUNT", default_value_t = CREDIT, value_parser = value_parser!(u32).range(1..=100_000))]
    pub credit: u32,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub broker: BrokerArguments,
}

const NOTES: &str = "\
Received messages are deleted. `receive` completes all messages of the entity. `both` completes only its own and \
abandons other messages at the end. `send` leaves its messages in the queue; `railbus purge` deletes them. Ctrl-C \
ends the run early and prints its results.

Latency is the time from sending a message (with --rate, from when it was due) until it is accepted, and with `both` \
also until it arrives. One thread generates the load: if it uses nearly 1 core, it limits the result, not the broker.";

/// What a bench does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum BenchMode {
    /// Send, and leave the messages in the entity
    Send,
    /// Receive and complete all messages of the entity
    Receive,
    /// Send, and receive and complete these messages
    #[default]
    Both,
}

fn size(text: &str) -> Result<usize, String> {
    let size: ByteSize = text.parse()?;
    let size = usize::try_from(size.as_u64()).ok();
    size.filter(|size| *size <= LARGEST)
        .ok_or_else(|| format!("bodies have at most {LARGEST} bytes"))
}
