//! Arguments of the commands for namespaces.

use bytesize::ByteSize;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::BrokerArguments;
use super::entity::{ListArguments, OutputArguments};

/// What can be done with namespaces.
#[derive(Clone, Debug, Subcommand)]
pub enum NamespaceCommand {
    /// List all namespaces.
    List(ListArguments),
    /// Show one with its host names and the names of its keys.
    Show(NamespaceName),
    /// Create one, and print a connection string with its own key.
    Create(NamespaceCreateArguments),
    /// Delete one with all its contents.
    Delete(NamespaceName),
    /// Delete all messages of one, and return its entities to those that it was created with.
    Reset(NamespaceName),
    /// Take a snapshot of the entities and messages of one.
    Snapshot(SnapshotName),
    /// List the snapshots of one.
    Snapshots(NamespaceName),
    /// Delete a snapshot of one.
    RemoveSnapshot(SnapshotName),
    /// Replace the entities and messages of one with those of a snapshot.
    Restore(SnapshotName),
    /// Create one with the entities and messages of another, and print its connection string.
    Fork(NamespaceForkArguments),
}

/// A snapshot of a namespace.
#[derive(Args, Clone, Debug)]
pub struct SnapshotName {
    #[command(flatten)]
    pub at: NamespaceName,
    /// Name of the snapshot: lower-case letters, digits and -
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
}

/// A namespace that is to be made of another.
#[derive(Args, Clone, Debug)]
pub struct NamespaceForkArguments {
    #[command(flatten)]
    pub at: NamespaceName,
    /// Name of the new namespace
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Snapshot of the other namespace to copy [default: its present state]
    #[arg(long, value_name = "SNAPSHOT")]
    pub snapshot: Option<String>,
    /// Host name of the new namespace, besides NEW.localhost; repeatable
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
}

/// One namespace.
#[derive(Args, Clone, Debug)]
pub struct NamespaceName {
    /// Name of the namespace: lower-case letters, digits and -
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
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
    /// Namespace whose queues, topics, subscriptions and policies to copy
    #[arg(long, value_name = "NAME")]
    pub like: Option<String>,
    /// Host name of the namespace, besides NAME.localhost; repeatable
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Whether to record the history of its messages, for `railbus trace` [default: the broker's
    /// setting]
    #[arg(long, value_name = "BOOL")]
    pub lineage: Option<bool>,
    /// Most queues and topics [default: the broker's limit for a namespace]
    #[arg(long, value_name = "N")]
    pub max_entities: Option<u32>,
    /// Most AMQP connections [default: the broker's limit]
    #[arg(long, value_name = "N")]
    pub max_connections: Option<u32>,
    /// Most bytes of messages, such as 64MiB [default: only the limits of its entities]
    #[arg(long, value_name = "SIZE")]
    pub max_bytes: Option<ByteSize>,
}
