//! Arguments: the command line. Each option can also come from `RAILBUS_<OPTION>` in the
//! environment; what neither says may be said by `railbus.toml`.

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

pub use self::store::{BackupArguments, RestoreArguments, VerifyArguments};
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
use crate::host_name::HostName;

/// The Railbus message broker: AMQP 1.0 as Azure Service Bus speaks it.
#[derive(Debug, Parser)]
#[command(name = "railbus", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done or asked to stop; 1 failed, or the broker refused; 2 not begun, since the command line, a \
file or the environment is wrong. One that is not 0 comes with a sentence on stderr.";

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the broker.
    Serve(Box<ServeArguments>),
    /// Has a running broker make a copy of its store.
    Backup(BackupArguments),
    /// Makes a data directory of a backup; the broker it is for does not run.
    Restore(RestoreArguments),
    /// Reads all of a data directory, closed or in use, and lists what is damaged.
    Verify(VerifyArguments),
    /// Shows or moves the clock of a broker that was started with --virtual-clock.
    Clock(ClockArguments),
    /// Says whether a broker would take a send; for health checks of containers.
    Health(HealthArguments),
    /// The local certificate authority, which signs the broker's certificate unless it is given
    /// one.
    #[command(subcommand)]
    Ca(CaCommand),
    /// The development issuer, which gives tokens to programs that have no connection string.
    #[command(subcommand)]
    Identity(IdentityCommand),
    /// Works on configuration files.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Works on queues.
    #[command(subcommand)]
    Queue(EntityCommand<PropertyOptions<Queue>>),
    /// Works on topics.
    #[command(subcommand)]
    Topic(EntityCommand<PropertyOptions<Topic>>),
    /// Works on subscriptions of topics.
    #[command(subcommand)]
    Subscription(SubscriptionCommand),
    /// Works on rules of subscriptions.
    #[command(subcommand)]
    Rule(RuleCommand),
    /// Works on policies: settings for all entities whose path matches a pattern.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Works on namespaces: worlds of one broker that have nothing in common.
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// Works on fault rules: operations that fail on purpose, to see what a client does then.
    #[command(subcommand)]
    Fault(FaultCommand),
    /// Sends messages to a queue or topic.
    Send(SendArguments),
    /// Receives messages of a queue or subscription, prints each, and takes it away.
    Receive(ReceiveArguments),
    /// Shows messages of a queue or subscription and leaves them where they are.
    Peek(PeekArguments),
    /// Tells why messages of a queue or subscription are not delivered.
    Explain(ExplainArguments),
    /// Tells what has happened to messages, where that is recorded.
    Trace(TraceArguments),
    /// Deletes messages of a queue or subscription.
    Purge(PurgeArguments),
    /// Puts dead letters back into the queue or subscription that they came from.
    Redrive(RedriveArguments),
    /// Loads an entity from this machine and says how fast it is, with a histogram of latency.
    Bench(BenchArguments),
    /// Prints what makes a shell complete these commands.
    Completions {
        /// Which shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Writes a manual page for each of these commands.
    Man {
        /// The folder for them.
        folder: PathBuf,
    },
}

/// The options of `railbus rule test`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = RULE_TEST_HELP)]
#[command(group(ArgGroup::new("rule").required(true).multiple(true).args(["expression", "correlation", "action"])))]
pub struct RuleTestArguments {
    /// The filter, in SQL
    #[arg(long, value_name = "SQL", conflicts_with = "correlation")]
    pub expression: Option<String>,

    /// The filter, as fields to be equal in JSON: {"subject": "red", "properties": {"n": 5}}
    #[arg(long, value_name = "JSON")]
    pub correlation: Option<String>,

    /// What is done to the copy that the rule makes, in SQL; without a filter it is done to every
    /// message
    #[arg(long, value_name = "SQL")]
    pub action: Option<String>,

    /// The message in JSON, described below; - reads it from stdin
    #[arg(long, value_name = "FILE")]
    pub message: PathBuf,

    /// Answers in JSON, as POST /$railbus/rules/test does
    #[arg(long)]
    pub json: bool,
}

const RULE_TEST_HELP: &str = "\
The message, with everything optional:
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
Filters do not see the body; it counts in sys.Size. What the broker would know is as if the message was
published now, unless it is told.

A property is a string, a long, a double, a boolean or null, or has its type beside it: null, boolean, ubyte,
ushort, uint, ulong, byte, short, int, long, float, double, char, timestamp (RFC 3339), uuid, binary (base64),
string, symbol, duration (ISO 8601), datetime-offset (RFC 3339), uri.

Exit codes: 0 match, 1 no match, 2 the rule or the message is wrong, or the rule cannot be evaluated on it.";

/// What can be done with configuration files.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Validates a railbus.toml, an entities file or an emulator's Config.json.
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Shows what would have to change for a running broker's entities to be as a file says.
    ///
    /// Exit codes: 0 nothing would change, 1 something would, or the broker cannot be asked, 2 it
    /// cannot be.
    Plan(PlanArguments),
    /// Makes a running broker's entities as a file says; all of it or nothing.
    Apply(PlanArguments),
    /// Writes a running broker's entities as a file.
    Export(ExportArguments),
}

/// The options of `railbus config plan` and `apply`.
#[derive(Args, Clone, Debug)]
pub struct PlanArguments {
    /// A railbus.toml, an entities file or an emulator's Config.json; of settings only entities
    /// count
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Which broker.
    #[command(flatten)]
    pub broker: BrokerArguments,

    /// Delete what the file does not know, with all that is in it
    #[arg(long)]
    pub authoritative: bool,

    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

/// The options of `railbus config export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArguments {
    /// Which broker.
    #[command(flatten)]
    pub broker: BrokerArguments,

    /// What it is written as
    #[arg(long, value_enum, default_value_t)]
    pub format: ExportFormat,

    /// Write it to a file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What a namespace is written as.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum ExportFormat {
    /// Our own shape, for railbus.toml or --entities
    #[default]
    Toml,
    /// Our own shape in JSON
    Json,
    /// The Config.json of the official emulator
    Emulator,
}

/// The options of `railbus health`.
#[derive(Args, Clone, Debug)]
pub struct HealthArguments {
    /// Where the broker listens; the first counts
    #[arg(
        long,
        value_name = "ADDR",
        env = "RAILBUS_LISTEN",
        value_delimiter = ',',
        value_parser = parse_address,
        default_value = "127.0.0.1:5672"
    )]
    pub listen: Vec<SocketAddr>,

    /// Ask within TLS, and trust these certificates, in PEM
    #[arg(long, value_name = "FILE", env = "RAILBUS_CA")]
    pub ca: Option<PathBuf>,
}

/// Which broker.
#[derive(Args, Clone, Debug, Default)]
pub struct BrokerArguments {
    /// Which broker, and a key that lets one in [default: the development key on 127.0.0.1:5672]
    ///
    /// It is spoken to within TLS unless the string has UseDevelopmentEmulator=true, as Azure's
    /// SDKs do.
    #[arg(
        long,
        global = true,
        value_name = "TEXT",
        env = "RAILBUS_CONNECTION_STRING",
        hide_env_values = true
    )]
    pub connection_string: Option<String>,

    /// Certificates of the authorities to trust within TLS, in PEM, such as `railbus ca export`
    /// prints [default: the system's]
    #[arg(long, global = true, value_name = "FILE", env = "RAILBUS_CA")]
    pub ca: Option<PathBuf>,
}

/// The options of `railbus clock`.
#[derive(Args, Clone, Debug)]
pub struct ClockArguments {
    /// Which broker.
    #[command(flatten)]
    pub broker: BrokerArguments,

    /// The clock of this namespace alone, which can be shown and advanced.
    #[arg(long, value_name = "NAME", global = true)]
    pub namespace: Option<String>,

    /// What to do with the clock.
    #[command(subcommand)]
    pub command: ClockCommand,
}

/// What can be done with a broker's clock.
#[derive(Clone, Debug, Subcommand)]
pub enum ClockCommand {
    /// Prints the broker's time, how far it is ahead, and whether it is frozen.
    Show,
    /// Lets time pass; returns when all that became due has happened.
    Advance {
        /// How much: 24h, 1m30s or PT24H.
        #[arg(value_name = "DURATION", value_parser = parse_typed)]
        millis: u64,
    },
    /// Stops the broker's time.
    Freeze {
        /// Lets it run on.
        #[arg(long)]
        off: bool,
    },
}

/// The options of `railbus serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeArguments {
    /// All settings [default: railbus.toml if present]
    #[arg(long, value_name = "FILE", env = "RAILBUS_CONFIG")]
    pub config: Option<PathBuf>,

    /// Entities to create: an official emulator's Config.json, or TOML or JSON with queues and
    /// topics
    #[arg(long, value_name = "FILE", env = "RAILBUS_ENTITIES")]
    pub entities: Option<PathBuf>,

    /// Where everything is kept; created if missing [default: railbus-data]
    #[arg(long, value_name = "DIR", env = "RAILBUS_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// Where `railbus backup` makes backups, on the file system of the data directory [default:
    /// backups in it]
    #[arg(long, value_name = "DIR", env = "RAILBUS_BACKUP_DIR")]
    pub backup_dir: Option<PathBuf>,

    /// Keep everything in a temporary directory, buffered, removed at exit, whatever --data-dir
    /// says
    #[arg(long, env = "RAILBUS_EPHEMERAL", value_parser = BoolishValueParser::new())]
    pub ephemeral: bool,

    /// Where to listen; repeatable; port 0 takes any [default: 127.0.0.1:5672, :5671 and :5300]
    #[arg(long, value_name = "ADDR", env = "RAILBUS_LISTEN", value_delimiter = ',', value_parser = parse_address)]
    pub listen: Vec<SocketAddr>,

    /// Stand in for a namespace of the cloud: listen on port 443 too, with a certificate for this
    /// name; `railbus ca env` prints what clients need
    #[arg(long = "as", value_name = "HOST", env = "RAILBUS_AS")]
    pub host: Option<HostName>,

    /// The certificate to show, with its chain, in PEM; read again when it changes [default: one by
    /// a local authority]
    #[arg(long, value_name = "FILE", env = "RAILBUS_TLS_CERTIFICATE")]
    pub tls_certificate: Option<PathBuf>,

    /// The key that belongs to the certificate, in PEM
    #[arg(long, value_name = "FILE", env = "RAILBUS_TLS_KEY")]
    pub tls_key: Option<PathBuf>,

    /// Where the local certificate authority is kept [default: tls in the data directory]
    #[arg(long, value_name = "DIR", env = "RAILBUS_TLS_DIR")]
    pub tls_dir: Option<PathBuf>,

    /// What the local certificate holds for besides this machine's names; repeatable
    #[arg(
        long,
        value_name = "NAME",
        env = "RAILBUS_TLS_NAME",
        value_delimiter = ','
    )]
    pub tls_name: Vec<String>,

    /// When a message counts as safe: on the disk, or with the operating system [default: synced]
    #[arg(long, value_parser = choice::parser::<rocks::Durability>(), env = "RAILBUS_DURABILITY")]
    pub durability: Option<rocks::Durability>,

    /// How logs look; they go to stderr, RUST_LOG says which [default: text]
    #[arg(long, value_enum, env = "RAILBUS_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Largest message of queues that do not say otherwise [default: 256KiB, or 1MiB of a premium
    /// namespace]
    #[arg(long, value_name = "SIZE", env = "RAILBUS_MAX_MESSAGE_SIZE")]
    pub max_message_size: Option<ByteSize>,

    /// What the store and the message cache may use [default: 128MiB]
    #[arg(long, value_name = "SIZE", env = "RAILBUS_MEMORY")]
    pub memory: Option<ByteSize>,

    /// When expired messages leave: at once, or as in the cloud while a receiver is there [default:
    /// eager]
    #[arg(long, value_parser = choice::parser::<broker::Expiry>(), env = "RAILBUS_EXPIRY")]
    pub expiry: Option<broker::Expiry>,

    /// What becomes of message locks when their connection is lost [default: keep]
    #[arg(long, value_parser = choice::parser::<broker::LocksOnDisconnect>(), env = "RAILBUS_LOCKS_ON_DISCONNECT")]
    pub locks_on_disconnect: Option<broker::LocksOnDisconnect>,

    /// What a lost connection does to the delivery counts of messages in sessions that it holds
    /// [default: keep]
    #[arg(long, value_parser = choice::parser::<broker::SessionCountOnDisconnect>(), env = "RAILBUS_SESSION_COUNT_ON_DISCONNECT")]
    pub session_count_on_disconnect: Option<broker::SessionCountOnDisconnect>,

    /// Where messages go that cannot be forwarded [default: transfer]
    #[arg(long, value_parser = choice::parser::<broker::ForwardFailures>(), env = "RAILBUS_FORWARD_FAILURES")]
    pub forward_failures: Option<broker::ForwardFailures>,

    /// Which entities one transaction may touch [default: auto]
    #[arg(long, value_parser = choice::parser::<servicebus::CrossEntity>(), env = "RAILBUS_TRANSACTIONS_CROSS_ENTITY")]
    pub transactions_cross_entity: Option<servicebus::CrossEntity>,

    /// Connections that may make dynamic nodes, such as temporary queues [default: manage]
    #[arg(long, value_parser = choice::parser::<servicebus::DynamicNodeRight>(), env = "RAILBUS_DYNAMIC_NODES")]
    pub dynamic_nodes: Option<servicebus::DynamicNodeRight>,

    /// Accept the well-known development key on addresses that others can reach
    #[arg(long, env = "RAILBUS_ALLOW_DEVELOPMENT_KEY", value_parser = BoolishValueParser::new())]
    pub allow_development_key: bool,

    /// Whose connections may go without TLS [default: local]
    #[arg(long, value_parser = choice::parser::<server::PlaintextPolicy>(), value_name = "WHO", env = "RAILBUS_PLAIN")]
    pub plain: Option<server::PlaintextPolicy>,

    /// Broker time is real time plus an offset, which `railbus clock` moves; for tests
    #[arg(long, env = "RAILBUS_VIRTUAL_CLOCK", value_parser = BoolishValueParser::new())]
    pub virtual_clock: bool,

    /// Stop when standard input ends, as it does when the program that started the broker dies; for
    /// tests
    #[arg(long)]
    pub exit_on_stdin_close: bool,

    /// Open a damaged store with what is left of it, and report what is gone
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
