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
#[command(after_help = WHAT_IS_LEFT)]
pub struct BenchArguments {
    /// The queue; `send` takes a topic too, and `receive` topic/Subscriptions/name
    #[arg(value_name = "ENTITY", required_unless_present = "create")]
    pub entity: Option<String>,

    /// Make a queue for it, called ENTITY if that is given, and delete it at the end
    #[arg(long)]
    pub create: bool,

    /// What to do with it
    #[arg(long, value_enum, default_value_t)]
    pub mode: BenchMode,

    /// Bytes of each body: 1024 or 16KiB, up to 1MiB
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = size)]
    pub size: usize,

    /// Connections that send, and as many that receive
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1_000))]
    pub connections: u32,

    /// Messages that may wait to be accepted, over all connections [default: 500, or with --rate
    /// any number]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..))]
    pub in_flight: Option<u64>,

    /// Messages a second, over all connections; latency then counts from when a message was due
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,

    /// Messages after which it ends
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..))]
    pub messages: Option<u64>,

    /// End after so long: 30s or PT30S [default: 10s, or with --messages 1h; `receive` also ends
    /// when nothing comes]
    #[arg(long, value_name = "DURATION", value_parser = parse_typed)]
    pub duration: Option<u64>,

    /// Messages that may be on their way to each receiver
    #[arg(long, value_name = "COUNT", default_value_t = CREDIT, value_parser = value_parser!(u32).range(1..=100_000))]
    pub credit: u32,

    /// Answer in JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub broker: BrokerArguments,
}

const WHAT_IS_LEFT: &str = "\
Messages that are received are gone: `receive` takes whatever is there. `both` takes its own messages only and gives \
others back at the end. `send` leaves its messages in the queue; `railbus purge` deletes them. Ctrl-C ends it early \
and prints what was measured.

Latency is from sending (with --rate, from when it was due) to `accepted`, and with `both` also to arrival. The load \
comes from one thread: near 1 core of its own it is the limit, not the broker.";

/// What a bench does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum BenchMode {
    /// Sends, and leaves what was sent
    Send,
    /// Receives and completes whatever is there
    Receive,
    /// Sends, and receives and completes what it has sent
    #[default]
    Both,
}

fn size(text: &str) -> Result<usize, String> {
    let size: ByteSize = text.parse()?;
    let size = usize::try_from(size.as_u64()).ok();
    size.filter(|size| *size <= LARGEST)
        .ok_or_else(|| format!("bodies have at most {LARGEST} bytes"))
}
