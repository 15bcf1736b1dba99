//! Arguments of what works on namespaces.

use bytesize::ByteSize;
use clap::{Args, Subcommand};

use super::BrokerArguments;
use super::entity::{ListArguments, OutputArguments};

/// What can be done with namespaces.
#[derive(Clone, Debug, Subcommand)]
pub enum NamespaceCommand {
    /// Lists all namespaces.
    List(ListArguments),
    /// Shows one with its hosts and the names of its keys.
    Show(NamespaceName),
    /// Makes one, and prints a connection string with a key of its own.
    Create(NamespaceCreateArguments),
    /// Deletes one with all that is in it.
    Delete(NamespaceName),
    /// Deletes all messages of one, and makes its entities those that it was made with.
    Reset(NamespaceName),
    /// Keeps what the entities of one have at this moment.
    Snapshot(SnapshotName),
    /// Lists the snapshots of one.
    Snapshots(NamespaceName),
    /// Removes a snapshot of one.
    RemoveSnapshot(SnapshotName),
    /// Gives one the entities and messages of a snapshot instead of those it has.
    Restore(SnapshotName),
    /// Makes one with the entities and messages of another, and prints a connection string.
    Fork(NamespaceForkArguments),
}

/// A snapshot of a namespace.
#[derive(Args, Clone, Debug)]
pub struct SnapshotName {
    #[command(flatten)]
    pub at: NamespaceName,
    /// The snapshot's name: lower-case letters, digits and -
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
}

/// A namespace that is to be made of another.
#[derive(Args, Clone, Debug)]
pub struct NamespaceForkArguments {
    #[command(flatten)]
    pub at: NamespaceName,
    /// The name of the new one
    #[arg(value_name = "NEW")]
    pub new: String,
    /// As the other one was in this snapshot of it, instead of as it is
    #[arg(long, value_name = "SNAPSHOT")]
    pub snapshot: Option<String>,
    /// A host name that chooses the new one, besides NEW.localhost; may be repeated
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
}

/// One namespace.
#[derive(Args, Clone, Debug)]
pub struct NamespaceName {
    /// Its name: lower-case letters, digits and -
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub broker: BrokerArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// A namespace that is to be made.
#[derive(Args, Clone, Debug)]
pub struct NamespaceCreateArguments {
    #[command(flatten)]
    pub at: NamespaceName,
    /// The namespace whose queues, topics, subscriptions and policies it gets
    #[arg(long, value_name = "NAME")]
    pub like: Option<String>,
    /// A host name that chooses it, besides NAME.localhost; may be repeated
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Record what happens to its messages, for `railbus trace`, or do not [default: as the broker
    /// is set]
    #[arg(long, value_name = "BOOL")]
    pub lineage: Option<bool>,
    /// Queues and topics that it may have [default: as many as any]
    #[arg(long, value_name = "N")]
    pub max_entities: Option<u32>,
    /// AMQP connections that it may have [default: as many as the broker]
    #[arg(long, value_name = "N")]
    pub max_connections: Option<u32>,
    /// Bytes of messages that it may have, such as 64MiB [default: as many as its entities]
    #[arg(long, value_name = "SIZE")]
    pub max_bytes: Option<ByteSize>,
}
