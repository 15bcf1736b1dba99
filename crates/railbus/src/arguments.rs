//! Arguments: the command line. Most options can also be set by `RAILBUS_<OPTION>` in the
//! environment. Settings of the broker that neither gives come from `railbus.toml`.

mod authority;
mod bench;
mod entity;
mod fault;
mod message;
mod namespace;
mod policy;
mod properties;
mod store;
mod trace;

use std::net::SocketAddr;
use std::path::PathBuf;

use ::entity::duration::parse_typed;
use bytesize::ByteSize;
use clap::builder::BoolishValueParser;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

pub use crate::arguments::store::{BackupArguments, RestoreArguments, VerifyArguments};
pub use authority::{CaArguments, CaCommand, IdentityArguments, IdentityCommand};
pub use bench::{BenchArguments, BenchMode};
pub use entity::{EntityCommand, RuleCommand, RuleOptions, SubscriptionCommand};
pub use fault::{FaultCommand, FaultsOf};
pub use message::{
    BulkArguments, ExplainArguments, MessagePart, PeekArguments, PurgeArguments, ReceiveArguments,
    RedriveArguments, SendArguments, SourceArguments,
};
pub use namespace::{NamespaceCommand, SnapshotName};
pub use policy::{PolicyCommand, PolicyName};
pub use properties::{Kind, PropertyOptions, Queue, Topic};
pub use trace::TraceArguments;

use crate::config::{LogFormat, choice, parse_address};
use crate::serve::host_name::HostName;

/// The Railbus message broker: AMQP 1.0 as Azure Service Bus speaks it.
#[derive(Debug, Parser)]
#[command(name = "railbus", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 success, also after a signal to stop; 1 the command failed or the broker refused it; 2 the command \
line, a file or the environment is invalid, and nothing was done. A code other than 0 comes with a sentence on stderr.";

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the broker.
    Serve(Box<ServeArguments>),
    /// Back up the store of a running broker.
    Backup(BackupArguments),
    /// Create a data directory from a backup, or restore one namespace of a running broker.
    Restore(RestoreArguments),
    /// Read a whole data directory, closed or in use, and list all damage.
    Verify(VerifyArguments),
    /// Show or move the clock of a broker that was started with --virtual-clock.
    Clock(ClockArguments),
    /// Check whether a broker would accept a message; for health checks of containers.
    Health(HealthArguments),
    /// Show or export the local certificate authority, which signs the broker's certificate unless
    /// --tls-certificate is given.
    #[command(subcommand)]
    Ca(CaCommand),
    /// Use the development issuer, which issues tokens to programs without a connection string.
    #[command(subcommand)]
    Identity(IdentityCommand),
    /// Check, compare, apply and export configuration files.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Administer queues.
    #[command(subcommand)]
    Queue(EntityCommand<PropertyOptions<Queue>>),
    /// Administer topics.
    #[command(subcommand)]
    Topic(EntityCommand<PropertyOptions<Topic>>),
    /// Administer subscriptions of topics.
    #[command(subcommand)]
    Subscription(SubscriptionCommand),
    /// Administer and test rules of subscriptions.
    #[command(subcommand)]
    Rule(RuleCommand),
    /// Administer policies: settings for all entities whose path matches a pattern.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Administer namespaces: separate sets of entities, messages and keys in one broker.
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// Administer fault rules, which make operations fail on purpose to test clients.
    #[command(subcommand)]
    Fault(FaultCommand),
    /// Send messages to a queue or topic.
    Send(SendArguments),
    /// Receive messages from a queue or subscription, print each and remove it.
    Receive(ReceiveArguments),
    /// Print messages of a queue or subscription without removing them.
    Peek(PeekArguments),
    /// Explain why messages of a queue or subscription are not delivered.
    Explain(ExplainArguments),
    /// Show the history of messages, in a namespace that records it.
    Trace(TraceArguments),
    /// Delete messages of a queue or subscription.
    Purge(PurgeArguments),
    /// Return dead letters to the queue or subscription that they came from.
    Redrive(RedriveArguments),
    /// Generate load on an entity and report its throughput and latency.
    Bench(BenchArguments),
    /// Print a script that completes these commands in a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command.
    Man {
        /// The folder to write to; it must exist.
        folder: PathBuf,
    },
}

/// The options of `railbus rule test`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = RULE_TEST_HELP)]
#[command(group(ArgGroup::new("rule").required(true).multiple(true).args(["expression", "correlation", "action"])))]
pub struct RuleTestArguments {
    /// SQL filter
    #[arg(long, value_name = "SQL", conflicts_with = "correlation")]
    pub expression: Option<String>,

    /// Correlation filter in JSON; all its fields must be equal: {"subject": "red", "properties":
    /// {"n": 5}}
    #[arg(long, value_name = "JSON")]
    pub correlation: Option<String>,

    /// SQL action on the copy that the rule makes; without a filter it applies to every message
    #[arg(long, value_name = "SQL")]
    pub action: Option<String>,

    /// File with the message in JSON, described below; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub message: PathBuf,

    /// Print JSON, as POST /$railbus/rules/test returns it
    #[arg(long)]
    pub json: bool,
}

const RULE_TEST_HELP: &str = "\
The message; every member is optional:
  {
    \"message-id\": \"1\", \"correlation-id\": \"1\", \"subject\": \"red\", \"to\": \"a\", \"reply-to\": \"b\",
    \"content-type\": \"text/plain\", \"session-id\": \"s\", \"reply-to-session-id\": \"r\",
    \"partition-key\": \"s\", \"via-partition-key\": \"v\", \"time-to-live\": \"PT1H\",
    \"scheduled-enqueue-time\": \"2026-11-22T12:00:00Z\",
    \"properties\": {\"region\": \"eu\", \"amount\": 5, \"level\": {\"type\": \"int\", \"value\": 5}},
    \"body\": \"text\",
    \"enqueued-time\": \"2026-11-22T12:00:00Z\", \"sequence-number\": 1, \"enqueued-sequence-number\": 1,
    \"dead-letter-source\": \"orders\"
  }
Filters do not see the body; its size counts in sys.Size. Members that the broker would set have the values of a
message that is published now, unless they are given.

A property is a string, a long, a double, a boolean or null, or an object with type and value: null, boolean, ubyte,
ushort, uint, ulong, byte, short, int, long, float, double, char, timestamp (RFC 3339), uuid, binary (base64),
string, symbol, duration (ISO 8601), datetime-offset (RFC 3339), uri.

Exit codes: 0 match; 1 no match; 2 the rule or the message is invalid, or the rule cannot be evaluated on it.";

/// What can be done with configuration files.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Validate a railbus.toml, an entities file or an emulator's Config.json.
    Check {
        /// The file to check.
        file: PathBuf,
    },
    /// Show the changes that would make a running broker's entities match a file.
    ///
    /// Exit codes: 0 no change; 1 at least one change, or the broker cannot be reached; 2 the
    /// changes are not possible.
    Plan(PlanArguments),
    /// Make a running broker's entities match a file: all changes or none.
    Apply(PlanArguments),
    /// Print a running broker's entities as a configuration file, or write them to a file.
    Export(ExportArguments),
}

/// The options of `railbus config plan` and `apply`.
#[derive(Args, Clone, Debug)]
pub struct PlanArguments {
    /// A railbus.toml, an entities file or an emulator's Config.json; only its entities are used
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The broker to ask.
    #[command(flatten)]
    pub broker: BrokerArguments,

    /// Delete entities that the file does not have, with their messages
    #[arg(long)]
    pub authoritative: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The options of `railbus config export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArguments {
    /// The broker to ask.
    #[command(flatten)]
    pub broker: BrokerArguments,

    /// Format of the file
    #[arg(long, value_enum, default_value_t)]
    pub format: ExportFormat,

    /// Write to this file [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What a namespace is written as.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum ExportFormat {
    /// TOML, for railbus.toml or --entities
    #[default]
    Toml,
    /// The same in JSON, for --entities
    Json,
    /// The Config.json of the official emulator
    Emulator,
}

/// The options of `railbus health`.
#[derive(Args, Clone, Debug)]
pub struct HealthArguments {
    /// Address of the broker, unless there is a connection string; of several, the first is used.
    /// With --ca the connection uses TLS
    #[arg(
        long,
        value_name = "ADDR",
        env = "RAILBUS_LISTEN",
        value_delimiter = ',',
        value_parser = parse_address,
        default_value = "127.0.0.1:5672"
    )]
    pub listen: Vec<SocketAddr>,

    /// The broker to ask.
    #[command(flatten)]
    pub broker: BrokerArguments,
}

/// The broker to ask.
#[derive(Args, Clone, Debug, Default)]
pub struct BrokerArguments {
    /// Connection string of the broker [default: the development key on 127.0.0.1:5672]
    ///
    /// The connection uses TLS unless the string has UseDevelopmentEmulator=true, as in Azure's
    /// SDKs.
    #[arg(
        long,
        global = true,
        value_name = "TEXT",
        env = "RAILBUS_CONNECTION_STRING",
        hide_env_values = true
    )]
    pub connection_string: Option<String>,

    /// PEM file of the certificate authorities to trust with TLS, such as `railbus ca export`
    /// writes [default: the system's]
    #[arg(long, global = true, value_name = "FILE", env = "RAILBUS_CA")]
    pub ca: Option<PathBuf>,
}

/// The options of `railbus clock`.
#[derive(Args, Clone, Debug)]
pub struct ClockArguments {
    /// The broker to ask.
    #[command(flatten)]
    pub broker: BrokerArguments,

    /// Namespace whose own clock to show or advance [default: the broker's clock].
    #[arg(long, value_name = "NAME", global = true)]
    pub namespace: Option<String>,

    /// What to do with the clock.
    #[command(subcommand)]
    pub command: ClockCommand,
}

/// What can be done with a broker's clock.
#[derive(Clone, Debug, Subcommand)]
pub enum ClockCommand {
    /// Print the broker's time, its offset from real time, and whether it is frozen.
    Show,
    /// Advance the time; return when everything that became due is done.
    Advance {
        /// Duration to advance by: 24h, 1m30s or PT24H.
        #[arg(value_name = "DURATION", value_parser = parse_typed)]
        millis: u64,
    },
    /// Freeze the broker's time.
    Freeze {
        /// Let the time run again.
        #[arg(long)]
        off: bool,
    },
}

/// The options of `railbus serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeArguments {
    /// Configuration file [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// File of entities to create: an official emulator's Config.json, or TOML or JSON with queues
    /// and topics
    #[arg(long, value_name = "FILE", env = "RAILBUS_ENTITIES")]
    pub entities: Option<PathBuf>,

    /// Data directory; created if missing [default: railbus-data]
    #[arg(long, value_name = "DIR", env = "RAILBUS_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// Directory of backups, on the file system of the data directory [default: backups in the data
    /// directory]
    #[arg(long, value_name = "DIR", env = "RAILBUS_BACKUP_DIR")]
    pub backup_dir: Option<PathBuf>,

    /// Use a temporary data directory, which is removed at exit, and buffered durability;
    /// --data-dir is ignored
    #[arg(long, env = "RAILBUS_EPHEMERAL", value_parser = BoolishValueParser::new())]
    pub ephemeral: bool,

    /// Address to listen on; repeatable; port 0 is any free port [default: 127.0.0.1:5672, :5671
    /// and :5300]
    #[arg(long, value_name = "ADDR", env = "RAILBUS_LISTEN", value_delimiter = ',', value_parser = parse_address)]
    pub listen: Vec<SocketAddr>,

    /// Host name of a cloud namespace to replace: listen on port 443 too, with a certificate for
    /// this name; `railbus ca env` prints the settings that clients need
    #[arg(long = "as", value_name = "HOST", env = "RAILBUS_AS")]
    pub host: Option<HostName>,

    /// PEM file of the TLS certificate with its chain; read again when it changes [default: a
    /// certificate of the local authority]
    #[arg(long, value_name = "FILE", env = "RAILBUS_TLS_CERTIFICATE")]
    pub tls_certificate: Option<PathBuf>,

    /// PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", env = "RAILBUS_TLS_KEY")]
    pub tls_key: Option<PathBuf>,

    /// Directory of the local certificate authority [default: tls in the data directory]
    #[arg(long, value_name = "DIR", env = "RAILBUS_TLS_DIR")]
    pub tls_dir: Option<PathBuf>,

    /// Further host name or address for the local certificate, besides this machine's; repeatable
    #[arg(
        long,
        value_name = "NAME",
        env = "RAILBUS_TLS_NAME",
        value_delimiter = ','
    )]
    pub tls_name: Vec<String>,

    /// When a message is accepted: once it is on the disk, or with the operating system [default:
    /// synced]
    #[arg(long, value_parser = choice::parser::<rocks::Durability>(), env = "RAILBUS_DURABILITY")]
    pub durability: Option<rocks::Durability>,

    /// Format of the log on stderr; RUST_LOG sets its level [default: text]
    #[arg(long, value_enum, env = "RAILBUS_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Largest message of entities without a max-message-size of their own [default: 256KiB, or
    /// 1MiB with sku = "premium"]
    #[arg(long, value_name = "SIZE", env = "RAILBUS_MAX_MESSAGE_SIZE")]
    pub max_message_size: Option<ByteSize>,

    /// Memory for the store and the message cache [default: 128MiB]
    #[arg(long, value_name = "SIZE", env = "RAILBUS_MEMORY")]
    pub memory: Option<ByteSize>,

    /// When expired messages are removed [default: eager]
    #[arg(long, value_parser = choice::parser::<broker::Expiry>(), env = "RAILBUS_EXPIRY")]
    pub expiry: Option<broker::Expiry>,

    /// Handling of message locks when their connection is lost [default: keep]
    #[arg(long, value_parser = choice::parser::<broker::LocksOnDisconnect>(), env = "RAILBUS_LOCKS_ON_DISCONNECT")]
    pub locks_on_disconnect: Option<broker::LocksOnDisconnect>,

    /// Handling of the delivery counts of messages in sessions when the connection that holds them
    /// is lost [default: keep]
    #[arg(long, value_parser = choice::parser::<broker::SessionCountOnDisconnect>(), env = "RAILBUS_SESSION_COUNT_ON_DISCONNECT")]
    pub session_count_on_disconnect: Option<broker::SessionCountOnDisconnect>,

    /// Dead-letter queue of messages that cannot be forwarded [default: transfer]
    #[arg(long, value_parser = choice::parser::<broker::ForwardFailures>(), env = "RAILBUS_FORWARD_FAILURES")]
    pub forward_failures: Option<broker::ForwardFailures>,

    /// Entities that one transaction may use [default: auto]
    #[arg(long, value_parser = choice::parser::<servicebus::CrossEntity>(), env = "RAILBUS_TRANSACTIONS_CROSS_ENTITY")]
    pub transactions_cross_entity: Option<servicebus::CrossEntity>,

    /// Connections that may create dynamic nodes, such as temporary queues [default: manage]
    #[arg(long, value_parser = choice::parser::<servicebus::DynamicNodeRight>(), env = "RAILBUS_DYNAMIC_NODES")]
    pub dynamic_nodes: Option<servicebus::DynamicNodeRight>,

    /// Accept the public development key on addresses that other machines can reach
    #[arg(long, env = "RAILBUS_ALLOW_DEVELOPMENT_KEY", value_parser = BoolishValueParser::new())]
    pub allow_development_key: bool,

    /// Connections that may be made without TLS [default: local]
    #[arg(long, value_parser = choice::parser::<server::PlaintextPolicy>(), value_name = "PEERS", env = "RAILBUS_PLAIN")]
    pub plain: Option<server::PlaintextPolicy>,

    /// Make the broker's time real time plus an offset, which `railbus clock` moves; for tests
    #[arg(long, env = "RAILBUS_VIRTUAL_CLOCK", value_parser = BoolishValueParser::new())]
    pub virtual_clock: bool,

    /// Stop when standard input ends, as it does when the program that started the broker ends; for
    /// tests
    #[arg(long)]
    pub exit_on_stdin_close: bool,

    /// Open a damaged store with its readable contents, and report the rest as lost
    #[arg(long, alias = "accept-data-loss")]
    pub repair: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_test_of_a_rule_needs_a_message_and_something_to_test() {
        let parse = |arguments: &str| {
            let arguments = format!("railbus rule test {arguments}");
            Arguments::try_parse_from(arguments.split(' ')).map(drop)
        };
        for arguments in [
            "--expression a",
            "--correlation a --action b",
            "--action b --json",
        ] {
            assert!(
                parse(&format!("{arguments} --message f")).is_ok(),
                "{arguments}"
            );
            assert!(parse(arguments).is_err(), "{arguments}");
        }
        assert!(parse("--message f").is_err());
        assert!(parse("--expression a --correlation b --message f").is_err());
    }

    #[test]
    fn listen_is_repeatable() {
        let arguments = Arguments::parse_from([
            "railbus",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--listen",
            "[::1]:7000",
        ]);
        let Command::Serve(serve) = arguments.command else {
            panic!("not serve")
        };
        assert_eq!(
            serve.listen,
            [
                "127.0.0.1:0".parse().unwrap(),
                "[::1]:7000".parse().unwrap()
            ]
        );
    }
}
