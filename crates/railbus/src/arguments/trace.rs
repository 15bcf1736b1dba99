//! Arguments of `railbus trace`.

use clap::Args;

use super::BrokerArguments;
use super::entity::OutputArguments;

/// The options of `railbus trace`.
#[derive(Args, Clone, Debug)]
pub struct TraceArguments {
    /// Message id; its messages are followed to other entities
    #[arg(value_name = "MESSAGE-ID", required_unless_present_any = ["entity", "session"])]
    pub message_id: Option<String>,

    /// Only events in this queue, topic, or topic/Subscriptions/name
    #[arg(long, value_name = "ENTITY")]
    pub entity: Option<String>,

    /// Sequence number of a message in the entity; the message is followed to other entities
    #[arg(long, value_name = "N", requires = "entity")]
    pub sequence: Option<u64>,

    /// Only messages that were sent with this session id
    #[arg(long, value_name = "SESSION-ID")]
    pub session: Option<String>,

    /// The namespace
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub namespace: String,

    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}
