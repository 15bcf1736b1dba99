//! Choices: settings with a few named values, the same on the command line and in files.

use broker::{Expiry, ForwardFailures, LocksOnDisconnect, SessionCountOnDisconnect, Tier};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use rocks::Durability;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use server::PlaintextPolicy;
use servicebus::{CrossEntity, DynamicNodeRight};

/// A type of another crate with a few named values.
pub trait Choice: Copy + Send + Sync + 'static {
    /// Each value with its name and its explanation.
    const VALUES: &'static [(&'static str, Self, &'static str)];
}

impl Choice for Durability {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        (
            "synced",
            Self::Synced,
            "On stable storage: survives a power cut",
        ),
        (
            "buffered",
            Self::Buffered,
            "With the operating system: survives a crash of the broker, but not a power cut",
        ),
    ];
}

impl Choice for PlaintextPolicy {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        ("nobody", Self::Nobody, "No connection"),
        ("local", Self::Local, "Connections from this machine"),
        ("everyone", Self::Everyone, "Every connection"),
    ];
}

impl Choice for Expiry {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        ("eager", Self::Eager, "Within a second of their expiry"),
        (
            "cloud",
            Self::Cloud,
            "While a receiver is attached, as in the cloud",
        ),
    ];
}

impl Choice for LocksOnDisconnect {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        ("keep", Self::Keep, "Locks stay until they expire"),
        (
            "drop",
            Self::Drop,
            "Locks end at once, and the messages are available",
        ),
    ];
}

impl Choice for SessionCountOnDisconnect {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        ("keep", Self::Keep, "Delivery counts stay, as in the cloud"),
        (
            "raise",
            Self::Raise,
            "Delivery counts rise, so that a message that crashes its receivers is dead-lettered",
        ),
    ];
}

impl Choice for CrossEntity {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        (
            "auto",
            Self::Auto,
            "As in the cloud on connections with tokens, any entity on others",
        ),
        ("as-cloud", Self::AsCloud, "As in the cloud"),
        ("any", Self::Any, "Every entity of the namespace"),
    ];
}

impl Choice for DynamicNodeRight {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        ("manage", Self::Manage, "Connections with the right Manage"),
        (
            "send-listen",
            Self::SendListen,
            "Connections with the rights Send and Listen",
        ),
        ("off", Self::Off, "No connection"),
    ];
}

impl Choice for ForwardFailures {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        (
            "transfer",
            Self::Transfer,
            "Transfer dead-letter queue of the source",
        ),
        (
            "dead-letter",
            Self::DeadLetter,
            "Ordinary dead-letter queue of the source",
        ),
    ];
}

impl Choice for Tier {
    const VALUES: &'static [(&'static str, Self, &'static str)] = &[
        (
            "basic",
            Self::Basic,
            "Queues without sessions, forwarding and the like",
        ),
        ("standard", Self::Standard, "Everything"),
        ("premium", Self::Premium, "Larger entities and messages"),
    ];
}

fn find<T: Choice>(name: &str) -> Option<T> {
    let found = T::VALUES.iter().find(|(known, ..)| *known == name);
    found.map(|(_, value, _)| *value)
}

/// Parses the value of an option.
pub fn parser<T: Choice>() -> impl TypedValueParser<Value = T> {
    let names = T::VALUES
        .iter()
        .map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).map(|name| find(&name).expect("it is one of the names"))
}

/// Reads the value of a key.
pub fn read<'de, T: Choice, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let value = find(&name).ok_or_else(|| {
        let names: Vec<_> = T::VALUES
            .iter()
            .map(|(name, ..)| format!("`{name}`"))
            .collect();
        let names = names.join(", ");
        D::Error::custom(format!("unknown variant `{name}`, expected one of {names}"))
    })?;
    Ok(Some(value))
}

/// Format of the log.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Text for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// One right of a rule.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    Send,
    Listen,
    Manage,
}

impl Right {
    /// The rights in `list` together. Manage brings the other two. (docs/spec/entities.md#2.6)
    pub fn all(list: &[Self]) -> access::Rights {
        let manage = list.contains(&Self::Manage);
        access::Rights {
            send: manage || list.contains(&Self::Send),
            listen: manage || list.contains(&Self::Listen),
            manage,
        }
    }
}
