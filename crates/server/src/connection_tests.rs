//! A connection in a dialect that is none of ours: the server knows the trait alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use access::Directory;
use amqp::Symbol;
use dialect::{ClockReading, ConnectionState, Refusals};
use endpoint::{Config, Mono, Scope, Side};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::clocks::clock::Clock;
use crate::connection::budget::Budget;
use crate::counters::counts::Counts;
use crate::credentials::guess_limiter::GuessLimiter;
use crate::log::refusals::RefusalLog;
use crate::namespaces::namespace_registry::{DirectoryChange, NamespaceRegistry};
use crate::options::PlaintextPolicy;
use crate::server::server_state::LiveSettings;
use crate::shard::placement::Placement;
use crate::transport::connection_limiter::ConnectionLimiter;

const ID: ConnectionId = ConnectionId(3);
const NO_ONE: broker::ReceiverId = broker::ReceiverId {
    connection: ID,
    link: 0,
};
/// What it commands once what it has read takes effect.
const TAKEN: Command = Command::Written {
    connection: ID,
    bytes: 1_000,
};

/// Takes no link, reports every byte that it reads to the broker, and refuses it as a credential.
struct Minimal {
    endpoint: endpoint::Connection,
    commands: Vec<Command>,
    /// Bytes that were read.
    read: u64,
    directory: Directory,
    /// Whether it is opened with a credential from the start, and never gets an answer.
    is_opened: bool,
    /// Whether what it reads takes effect with the first output only.
    is_untaken: bool,
}

impl Dialect for Minimal {
    fn handle_input(&mut self, now: ClockReading, input: &mut BytesMut) {
        self.commands.push(Command::Written {
            connection: ID,
            bytes: input.len(),
        });
        self.read += input.len() as u64;
        self.endpoint.handle_input(now.mono, input);
        while self.endpoint.poll_event().is_some() {}
    }

    fn handle_output(&mut self, _now: ClockReading, _output: Output) {
        self.is_untaken = false;
        self.commands.push(TAKEN);
    }

    fn handle_timeout(&mut self, now: ClockReading) {
        self.endpoint.handle_timeout(now.mono);
    }

    fn handle_eof(&mut self, _now: ClockReading) {
        self.endpoint.handle_eof();
        self.commands.push(Command::Disconnect { connection: ID });
    }

    fn set_directory(&mut self, _now: ClockReading, _directory: Arc<Directory>) {}

    fn ask_for_senders(&mut self, _asks: bool) {}

    fn directory(&self) -> &Directory {
        &self.directory
    }

    fn shed_partials(&mut self, _now: ClockReading, bytes: usize) {
        self.endpoint.shed_partials(bytes);
    }

    fn force_close(&mut self, _now: ClockReading, _why: ForcedClose) {
        self.endpoint.close(None);
    }

    fn deadline(&self) -> Option<Mono> {
        self.endpoint.deadline()
    }

    fn commands(&mut self) -> &mut Vec<Command> {
        &mut self.commands
    }

    fn output(&mut self, now: ClockReading) -> &mut endpoint::Output {
        self.endpoint.output(now.mono)
    }

    fn lend(&mut self, memory: &mut BytesMut) {
        self.endpoint.lend_buffer(memory);
    }

    fn written(&mut self) {}

    fn unwritten(&self) -> usize {
        self.endpoint.unwritten()
    }

    fn unanswered_bytes(&self) -> usize {
        usize::from(self.is_opened)
    }

    fn partial_bytes(&self) -> usize {
        self.endpoint.partial_bytes()
    }

    fn is_slow(&self) -> bool {
        false
    }

    fn is_opened(&self) -> bool {
        self.is_opened
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn is_unauthenticated(&self) -> bool {
        !self.is_opened
    }

    fn client_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn state(&self, _most_links: usize) -> ConnectionState {
        ConnectionState::default()
    }

    fn holds_input(&self) -> bool {
        false
    }

    fn has_untaken_input(&self) -> bool {
        self.is_untaken
    }

    fn is_finished(&self) -> bool {
        self.endpoint.is_finished()
    }

    fn refused_credentials(&self) -> RefusedCredentials {
        RefusedCredentials {
            all: self.read,
            guesses: self.read,
        }
    }

    fn take_error_counts(&mut self) -> BTreeMap<(Scope, Symbol), u64> {
        self.endpoint.take_error_counts()
    }

    fn take_refusals(&mut self) -> Option<Refusals> {
        None
    }

    fn take_key_demand(&mut self) -> bool {
        false
    }
}

/// A server without listeners, whose shard reads nothing.
fn server(inbox: mpsc::Sender<Message>, stopping: watch::Receiver<bool>) -> ServerState {
    let limits = Limits::default();
    let namespaces = Arc::new(NamespaceRegistry::default());
    ServerState {
        clock: Clock::start(),
        connection_limiter: Arc::new(ConnectionLimiter::new(&limits)),
        open_connections: Arc::default(),
        guess_limiter: GuessLimiter::new(limits.wrong_credentials_per_address),
        budget: Arc::new(Budget::new(limits.unanswered_bytes)),
        counts: Counts::default(),
        console_sessions: crate::credentials::console_sessions::ConsoleSessions::default(),
        viewers: crate::http::console::viewers::Viewers::default(),
        refusals: Arc::new(RefusalLog::default()),
        live_settings: watch::Sender::new(LiveSettings {
            limits: Arc::new(limits),
            settings: Arc::default(),
        }),
        admin: admin::Settings::default(),
        directory_receiver: namespaces.subscribe(NamespaceId::default()).unwrap(),
        namespaces,
        certificate: None,
        plain: PlaintextPolicy::Local,
        backups: None,
        key_demand: Arc::default(),
        development_issuer: None,
        placement: Placement::on_one(inbox),
        tracer: None,
        command_stager: None,
        next_connection: AtomicU64::new(1),
        stopping,
        shutdown_guard: mpsc::channel(1).0,
    }
}

/// A connection in the default namespace without a credential, and its peer.
async fn connect(server: &Arc<ServerState>) -> (JoinHandle<()>, TcpStream) {
    let (running, peer, _) = connect_to(server, Directory::default(), false, false).await;
    (running, peer)
}

/// The same, and where the shard's outputs go in.
async fn connect_to(
    server: &Arc<ServerState>,
    directory: Directory,
    is_opened: bool,
    is_untaken: bool,
) -> (
    JoinHandle<()>,
    TcpStream,
    mpsc::UnboundedSender<Vec<Output>>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (stream, address) = listener.accept().await.unwrap();
    let now = server.clock.moment();
    let endpoint = endpoint::Connection::new(Side::Server, Config::default(), now.mono);
    let (outputs_of_shard, outputs) = mpsc::unbounded_channel();
    let connection = Connection::new(
        stream,
        BytesMut::new(),
        Minimal {
            endpoint,
            commands: Vec::new(),
            read: 0,
            directory,
            is_opened,
            is_untaken,
        },
        outputs,
        server.directory_receiver.clone(),
        (address, ID),
        Arc::clone(server),
    );
    let shard = outputs_of_shard.clone();
    let running = tokio::spawn(async move {
        connection.run().await;
        drop(outputs_of_shard);
    });
    (running, peer, shard)
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}

#[test]
fn a_connection_needs_nothing_of_a_dialect_but_the_trait() {
    run(async {
        let (sender, mut inbox) = mpsc::channel(8);
        let (_stop, stopping) = watch::channel(false);
        let server = Arc::new(server(sender, stopping));
        let (running, mut peer) = connect(&server).await;
        peer.write_all(b"AMQP\x09\x01\x00\x00").await.unwrap();
        let mut answer = Vec::new();
        peer.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"AMQP\x00\x01\x00\x00");
        drop(peer);
        running.await.unwrap();
        let Some(Message::Commands(commands)) = inbox.recv().await else {
            panic!("the dialect's commands reach the shard");
        };
        assert!(matches!(commands[..], [Command::Written { bytes: 8, .. }]));
    });
}

#[test]
fn a_connection_with_a_delayed_refusal_stays_when_its_peer_leaves() {
    run(async {
        let (sender, _inbox) = mpsc::channel(8);
        let (_stop, stopping) = watch::channel(false);
        let server = Arc::new(server(sender, stopping));
        server.guess_limiter.set_allowed(5);
        let (running, mut peer) = connect(&server).await;
        let since = Instant::now();
        // Eight bytes, each of which this dialect takes for a wrong credential.
        peer.write_all(b"AMQP\x09\x01\x00\x00").await.unwrap();
        drop(peer);
        running.await.unwrap();
        assert!(since.elapsed() >= Duration::from_millis(300));
        assert_eq!(server.counts.delayed_refusals.get(), 1);
    });
}

#[test]
fn the_end_of_the_stream_is_told_once_what_came_before_it_has_taken_effect() {
    run(async {
        let (sender, mut inbox) = mpsc::channel(8);
        let (_stop, stopping) = watch::channel(false);
        let server = server(sender, stopping);
        let limits = Limits {
            shutdown_grace: Duration::ZERO,
            ..Limits::default()
        };
        server
            .live_settings
            .send_modify(|live| live.limits = Arc::new(limits));
        let server = Arc::new(server);
        let connected = connect_to(&server, Directory::default(), false, true).await;
        let (running, mut peer, shard) = connected;
        peer.write_all(b"AMQP\x00\x01\x00\x00").await.unwrap();
        drop(peer);
        let mut commands = Vec::new();
        while let Some(Message::Commands(some)) = inbox.recv().await {
            commands.extend(some);
            match &commands[..] {
                [_] => shard
                    .send(vec![Output::Drained { receiver: NO_ONE }])
                    .unwrap(),
                [.., Command::Disconnect { .. }] => break,
                _ => {}
            }
        }
        running.await.unwrap();
        let taken = commands.iter().map(|it| format!("{it:?}"));
        let taken = taken.skip(1).collect::<Vec<_>>();
        let disconnect = Command::Disconnect { connection: ID };
        assert_eq!(taken, [format!("{TAKEN:?}"), format!("{disconnect:?}")]);
    });
}

/// Waiting for the answers to what was never given to the shard would take days here.
#[test]
fn a_connection_beyond_the_limit_of_its_namespace_waits_for_no_answers() {
    run(async {
        let (sender, mut inbox) = mpsc::channel(8);
        let (_stop, stopping) = watch::channel(false);
        let server = server(sender, stopping);
        let limits = Limits {
            shutdown_grace: Duration::from_secs(1_000_000),
            ..Limits::default()
        };
        server
            .live_settings
            .send_modify(|live| live.limits = Arc::new(limits));
        let id = NamespaceId(1);
        let definition = broker::NamespaceDefinition {
            name: "small".to_owned(),
            limits: broker::NamespaceLimits {
                max_connections: Some(1),
                ..broker::NamespaceLimits::default()
            },
            ..broker::NamespaceDefinition::default()
        };
        let change = broker::NamespaceChange {
            id,
            definition: Some(Arc::new(definition)),
        };
        let change = DirectoryChange::Namespace(change);
        server.namespaces.apply([change]);
        let _taken = server.namespaces.admit(id).unwrap();
        let server = Arc::new(server);
        let directory = Directory::of(id, access::AccessRules::default());
        let (running, mut peer, _) = connect_to(&server, directory, true, false).await;
        peer.write_all(b"AMQP\x00\x01\x00\x00").await.unwrap();
        // Until the close performative is there.
        let mut answer = Vec::new();
        while !answer.windows(3).any(|bytes| bytes == b"\x00\x53\x18") {
            assert_ne!(peer.read_buf(&mut answer).await.unwrap(), 0);
        }
        drop(peer);
        running.await.unwrap();
        while let Ok(message) = inbox.try_recv() {
            if let Message::Commands(commands) = message {
                let is_asked = |it: &Command| matches!(it, Command::Written { .. });
                assert!(!commands.iter().any(is_asked), "{commands:?}");
            }
        }
    });
}
