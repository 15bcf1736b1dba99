//! Choices: settings with a few named values, the same on the command line and in files.

use clap::ValueEnum;
use serde::Deserialize;

/// When a message counts as safe.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// On stable storage: survives a power cut
    #[default]
    Synced,
    /// With the operating system: survives the broker's death, but not a power cut
    Buffered,
}

impl From<Durability> for rocks::Durability {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Synced => Self::Synced,
            Durability::Buffered => Self::Buffered,
        }
    }
}

/// Whose connections may go without TLS.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PlaintextPolicy {
    /// No connection
    Nobody,
    /// Connections from this machine
    #[default]
    Local,
    /// Every connection
    Everyone,
}

impl From<PlaintextPolicy> for server::PlaintextPolicy {
    fn from(plain: PlaintextPolicy) -> Self {
        match plain {
            PlaintextPolicy::Nobody => Self::Nobody,
            PlaintextPolicy::Local => Self::Local,
            PlaintextPolicy::Everyone => Self::Everyone,
        }
    }
}

/// The tier whose limits management over HTTP keeps.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Sku {
    #[default]
    Standard,
    /// Larger entities, and a limit for messages of their own
    Premium,
}

/// When expired messages leave.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Expiry {
    /// Within a second
    #[default]
    Eager,
    /// While a receiver is attached, as in the cloud
    Cloud,
}

impl From<Expiry> for broker::Expiry {
    fn from(expiry: Expiry) -> Self {
        match expiry {
            Expiry::Eager => Self::Eager,
            Expiry::Cloud => Self::Cloud,
        }
    }
}

/// What becomes of message locks when their connection is lost.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LocksOnDisconnect {
    /// They run on
    #[default]
    Keep,
    /// The messages are available at once
    Drop,
}

impl From<LocksOnDisconnect> for broker::LocksOnDisconnect {
    fn from(locks: LocksOnDisconnect) -> Self {
        match locks {
            LocksOnDisconnect::Keep => Self::Keep,
            LocksOnDisconnect::Drop => Self::Drop,
        }
    }
}

/// Where messages go that cannot be forwarded.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardFailures {
    /// To the transfer dead-letter queue of the source
    #[default]
    Transfer,
    /// To its ordinary dead-letter queue
    DeadLetter,
}

impl From<ForwardFailures> for broker::ForwardFailures {
    fn from(failures: ForwardFailures) -> Self {
        match failures {
            ForwardFailures::Transfer => Self::Transfer,
            ForwardFailures::DeadLetter => Self::DeadLetter,
        }
    }
}

/// How logs look.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One object per line
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
