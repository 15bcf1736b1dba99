//! World: everything of a run, and what happens next.
//!
//! One thread, one generator, one pair of clocks: the seed decides every interleaving.

use broker::{
    BrokerSettings, LocksOnDisconnect, Mono, Now, Output, SessionCountOnDisconnect,
    TransactionSettings, Wall,
};
use dialect::Dialect;

use crate::actor::Actor;
use crate::context::Context;
use crate::faults::Faults;
use crate::inbox::NamespaceIndex;
use crate::ledger;
use crate::owners::Owners;
use crate::pipe::Pipe;
use crate::remote::Remote;
use crate::report::Report;
use crate::rng::Rng;
use crate::server::{NAMESPACES, Server};
use crate::storage::{Storage, StorageKind};
use crate::violation::Violation;

mod administration;
mod callers;
mod drain;
mod fault_injection;
mod fault_rules;
mod governed;
mod namespace;
mod nodes;
pub(crate) mod queues;
mod routing;
mod script;
mod setup;
mod snapshots;
mod sweep;
#[cfg(test)]
mod tests;
mod turn;

pub use script::Ending;
pub use sweep::Swept;

use fault_rules::FaultRules;
use governed::Governed;
use namespace::Namespace;
use queues::Definition;
use snapshots::Snapshots;

/// A run to make.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Plan {
    pub seed: u64,
    /// Commands that the broker handles before the final drain.
    pub operations: u64,
    pub faults: Faults,
    pub storage: StorageKind,
}

/// The pipes of one connection.
struct Pipes {
    to_server: Pipe,
    to_client: Pipe,
    /// The client reads nothing before this.
    stalled_until: u64,
}

/// A client with its connection, if it has one.
struct SimClient {
    actor: Actor,
    remote: Option<(Remote, Pipes)>,
}

/// A simulated machine, its clients, and the clock over all of them.
pub struct World {
    plan: Plan,
    rng: Rng,
    now: Now,
    disk: Storage,
    server: Server,
    namespaces: Vec<Namespace>,
    snapshots: Snapshots,
    governed: Governed,
    fault_rules: FaultRules,
    owners: Owners,
    /// Nothing becomes durable before this.
    slow_until: u64,
    nearly_full_until: u64,
    locks_on_disconnect: LocksOnDisconnect,
    session_counts: SessionCountOnDisconnect,
    definitions: Vec<Definition>,
    /// Those that come and go.
    temporary: Vec<Definition>,
    /// Outputs for connections that are neither a client's nor a caller's.
    script_outputs: Vec<Output>,
    /// No more faults are injected.
    faults_stopped: bool,
    /// What the ledgers do not count.
    report: Report,
}

impl World {
    /// A world at its beginning.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let mut rng = Rng::new(plan.seed);
        let now = Now {
            wall: Wall(1_700_000_000_000),
            mono: Mono(1_000),
        };
        let disk = Storage::new(plan.storage, plan.seed);
        let definitions = queues::definitions();
        let locks_on_disconnect = if rng.chance(300) {
            LocksOnDisconnect::Drop
        } else {
            LocksOnDisconnect::Keep
        };
        let session_counts = if plan.seed.is_multiple_of(3) {
            SessionCountOnDisconnect::Raise
        } else {
            SessionCountOnDisconnect::Keep
        };
        let settings = small_memory(&mut rng, locks_on_disconnect, session_counts);
        let server = Server::start(settings, disk.open(), &disk, &definitions, now);
        let drops_locks = locks_on_disconnect == LocksOnDisconnect::Drop;
        let rules = (drops_locks, session_counts);
        let namespaces = (0..NAMESPACES.len())
            .map(|index| Namespace::new(index, &server, &definitions, rules, now))
            .collect();
        Self {
            plan,
            rng,
            now,
            server,
            namespaces,
            snapshots: Snapshots::default(),
            governed: Governed::new(),
            fault_rules: FaultRules::default(),
            owners: disk.with_current(Owners::of),
            slow_until: 0,
            nearly_full_until: 0,
            locks_on_disconnect,
            session_counts,
            definitions,
            temporary: administration::temporary(),
            disk,
            script_outputs: Vec::new(),
            faults_stopped: false,
            report: Report::default(),
        }
    }

    /// Runs the plan to its end.
    ///
    /// # Errors
    /// The first violation.
    pub fn run(mut self) -> Result<Report, Violation> {
        let done = self.run_all();
        let step = self.report.steps;
        done.map_err(|violation| violation.with_step(step))?;
        self.report.add_disk(&self.disk.counts());
        self.report.snapshot_changes = self.snapshots.done;
        self.report.add(&self.governed.done);
        for namespace in &self.namespaces {
            self.report.add(&namespace.ledger.report);
        }
        Ok(self.report)
    }

    fn run_all(&mut self) -> Result<(), Violation> {
        let mut recounted = 0;
        self.check_start()?;
        while self.report.operations < self.plan.operations {
            self.step()?;
            if self.report.operations >= recounted + 1_000 {
                recounted = self.report.operations;
                self.recount()?;
            }
        }
        self.drain()
    }

    /// One thing happens, with the broker or in each namespace.
    fn step(&mut self) -> Result<(), Violation> {
        self.report.steps += 1;
        match self.rng.weighted(&[86, 20, 10, 8, 6, 6, 6]) {
            0 => {
                for n in 0..self.namespaces.len() {
                    self.step_in(n)?;
                }
            }
            1 => self.turn()?,
            2 => self.disk_progress(),
            // All namespaces read.
            3 => (0..NAMESPACES.len()).for_each(|_| self.server.answer_read(&mut self.rng)),
            4 => self.pass_time(),
            5 => self.use_snapshots()?,
            _ => self.use_governed()?,
        }
        if !self.faults_stopped {
            self.inject_fault()?;
        }
        self.disk.check()?;
        if self.disk.has_failed() {
            return self.restart();
        }
        Ok(())
    }

    /// A client of a namespace does something, or bytes of its connection arrive.
    fn step_in(&mut self, n: NamespaceIndex) -> Result<(), Violation> {
        let client = self.rng.below(self.namespaces[n].clients.len());
        match self.rng.weighted(&[25, 20, 18, 18, 2, 1, 1, 1]) {
            0 => self.act(n, client),
            1 => self.bytes_to_server(n, client),
            2 => self.serve(n, client),
            3 => self.bytes_to_client(n, client)?,
            4 => self.call(n),
            5 if self.rng.chance(100) => self.administer(n),
            6 => self.route(n),
            7 => self.use_nodes(n),
            _ => {}
        }
        Ok(())
    }

    fn act(&mut self, n: NamespaceIndex, client: usize) {
        let Namespace {
            clients, ledger, ..
        } = &mut self.namespaces[n];
        let SimClient {
            actor,
            remote: Some((remote, _)),
        } = &mut clients[client]
        else {
            return self.connect(n, client);
        };
        let mut context = Context {
            rng: &mut self.rng,
            ledger,
            now: self.now,
        };
        let stays = actor.act(&mut context, remote);
        if !stays && !self.faults_stopped {
            remote.endpoint.close(None);
        }
    }

    fn connect(&mut self, n: NamespaceIndex, client: usize) {
        let namespace = &mut self.namespaces[n];
        let id = namespace.next_connection();
        let host = namespace.host();
        let mut remote = Remote::open(&mut self.rng, id, &host, self.now);
        let client = &mut namespace.clients[client];
        let mut context = Context {
            rng: &mut self.rng,
            ledger: &mut namespace.ledger,
            now: self.now,
        };
        client.actor.connected(&mut context, &mut remote);
        let pipes = Pipes {
            to_server: Pipe::default(),
            to_client: Pipe::default(),
            stalled_until: 0,
        };
        client.remote = Some((remote, pipes));
        self.server.accept(id, n, self.now);
    }

    fn bytes_to_server(&mut self, n: NamespaceIndex, client: usize) {
        let Some((remote, pipes)) = &mut self.namespaces[n].clients[client].remote else {
            return;
        };
        pipes
            .to_server
            .push(remote.endpoint.output(endpoint::Mono(self.now.mono.0)));
        if let Some(served) = self.server.served.get_mut(&remote.connection) {
            pipes.to_server.arrive(&mut self.rng, &mut served.input);
        }
        self.serve(n, client);
    }

    fn serve(&mut self, n: NamespaceIndex, client: usize) {
        let Some((remote, _)) = &self.namespaces[n].clients[client].remote else {
            return;
        };
        self.server
            .serve(&mut self.rng, remote.connection, self.now);
    }

    fn bytes_to_client(&mut self, n: NamespaceIndex, client: usize) -> Result<(), Violation> {
        let Namespace {
            clients, ledger, ..
        } = &mut self.namespaces[n];
        let SimClient {
            actor,
            remote: Some((remote, pipes)),
        } = &mut clients[client]
        else {
            return Ok(());
        };
        if let Some(served) = self.server.served.get_mut(&remote.connection) {
            pipes
                .to_client
                .push(served.client.output(crate::server::moment(self.now)));
            if pipes.to_client.is_empty() {
                served.client.written();
                self.server.inbox.append(n, served.client.commands());
            }
        }
        if pipes.stalled_until > self.now.mono.0 && !self.faults_stopped {
            return Ok(());
        }
        pipes.to_client.arrive(&mut self.rng, &mut remote.input);
        let mut context = Context {
            rng: &mut self.rng,
            ledger,
            now: self.now,
        };
        let mut over = false;
        for event in remote.events(self.now) {
            over |= matches!(event, endpoint::Event::Closed { .. });
            // A client whose link was detached starts afresh, unless that is its business.
            over |=
                matches!(event, endpoint::Event::Detached { link, .. } if !actor.parts_with(link));
            actor.handle(&mut context, event)?;
        }
        if over {
            self.close_connection(n, client);
        }
        Ok(())
    }

    /// The connection is gone on both sides.
    fn close_connection(&mut self, n: NamespaceIndex, client: usize) {
        let Namespace {
            clients, ledger, ..
        } = &mut self.namespaces[n];
        let client = &mut clients[client];
        if let Some((remote, _)) = client.remote.take() {
            self.server.cut(remote.connection, self.now);
            client.actor.disconnected(ledger);
        }
    }

    fn disk_progress(&mut self) {
        if self.slow_until > self.now.mono.0 && !self.faults_stopped {
            return;
        }
        let (durable, submitted) = (self.disk.durable().0, self.disk.submitted().0);
        if durable < submitted {
            let reached = self.rng.between(durable + 1, submitted);
            self.disk.sync_to(store::CommitId(reached));
        }
    }

    fn pass_time(&mut self) {
        let milliseconds = match self.rng.below(100) {
            // Locks outlast a slow turn of all clients, so that the drain gets somewhere.
            _ if self.faults_stopped => self.rng.between(0, 5),
            0..=79 => self.rng.between(0, 5),
            80..=97 => self.rng.between(5, 300),
            _ => self.rng.between(300, 4_000),
        };
        self.advance(milliseconds);
    }

    fn advance(&mut self, milliseconds: u64) {
        self.now.mono.0 += milliseconds;
        self.now.wall.0 += milliseconds;
        self.server.tick(self.now);
        for namespace in &mut self.namespaces {
            namespace.ledger.clock(self.now.wall, false);
        }
        let clients = self.namespaces.iter_mut().flat_map(|it| &mut it.clients);
        for client in clients {
            if let Some((remote, _)) = &mut client.remote {
                let mono = endpoint::Mono(self.now.mono.0);
                if remote
                    .endpoint
                    .deadline()
                    .is_some_and(|deadline| deadline <= mono)
                {
                    remote.endpoint.handle_timeout(mono);
                }
            }
        }
    }
}

/// Windows of 2 to 8, so that everything spills.
fn small_memory(
    rng: &mut Rng,
    locks_on_disconnect: LocksOnDisconnect,
    session_count_on_disconnect: SessionCountOnDisconnect,
) -> BrokerSettings {
    BrokerSettings {
        seed: rng.seed(),
        locks_on_disconnect,
        session_count_on_disconnect,
        window: 2 + rng.below(7),
        session_window: 1 + rng.below(4),
        body_bytes: [0, 500, 100_000][rng.below(3)],
        output_buffer_bytes: [2_000, 100_000][rng.below(2)],
        turn_work: 1 + rng.below(20),
        transactions: TransactionSettings {
            life: ledger::TRANSACTION_LIFE,
            ..TransactionSettings::default()
        },
        ..BrokerSettings::default()
    }
}
