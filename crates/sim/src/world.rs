//! World: everything of a run, and what happens next.
//!
//! One thread, one generator, one pair of clocks: the seed decides every interleaving.

use broker::{
    BrokerSettings, ConnectionId, LocksOnDisconnect, Mono, Now, Output, SessionCountOnDisconnect,
    TransactionSettings, Wall,
};
use dialect::Dialect;

use crate::actor::Actor;
use crate::context::Context;
use crate::faults::Faults;
use crate::ledger::{self, Ledger};
use crate::pipe::Pipe;
use crate::remote::Remote;
use crate::report::Report;
use crate::rng::Rng;
use crate::server::Server;
use crate::storage::{Storage, StorageKind};
use crate::violation::Violation;

mod administration;
mod callers;
mod drain;
mod fault_injection;
mod nodes;
pub(crate) mod queues;
mod routing;
mod script;
mod setup;
mod sweep;
mod turn;

pub use script::Ending;
pub use sweep::Swept;

use administration::Administration;
use callers::Callers;
use nodes::Nodes;
use queues::Definition;
use routing::Routing;
use setup::{clients, ledger_queue, ledger_queues};

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
    clients: Vec<SimClient>,
    ledger: Ledger,
    next_connection: u64,
    /// Nothing becomes durable before this.
    slow_until: u64,
    nearly_full_until: u64,
    locks_on_disconnect: LocksOnDisconnect,
    session_counts: SessionCountOnDisconnect,
    definitions: Vec<Definition>,
    /// Those that come and go.
    temporary: Vec<Definition>,
    administration: Administration,
    callers: Callers,
    routing: Routing,
    nodes: Nodes,
    /// Outputs for connections that are neither a client's nor a caller's.
    script_outputs: Vec<Output>,
    /// No more faults are injected.
    faults_stopped: bool,
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
        let mut ledger = Ledger::new(ledger_queues(&server, &definitions), drops_locks, now);
        ledger.count_lost_sessions(session_counts);
        Self {
            plan,
            rng,
            now,
            disk,
            server,
            clients: clients(),
            ledger,
            next_connection: 1,
            slow_until: 0,
            nearly_full_until: 0,
            locks_on_disconnect,
            session_counts,
            definitions,
            temporary: administration::temporary(),
            administration: Administration::default(),
            callers: Callers::default(),
            routing: Routing::default(),
            nodes: Nodes::default(),
            script_outputs: Vec::new(),
            faults_stopped: false,
        }
    }

    /// Runs the plan to its end.
    ///
    /// # Errors
    /// The first violation.
    pub fn run(mut self) -> Result<Report, Violation> {
        let done = self.run_all();
        let step = self.ledger.report.steps;
        done.map_err(|violation| violation.with_step(step))?;
        self.ledger.report.add_disk(&self.disk.counts());
        Ok(self.ledger.report)
    }

    fn run_all(&mut self) -> Result<(), Violation> {
        let mut recounted = 0;
        self.check_start()?;
        while self.ledger.report.operations < self.plan.operations {
            self.step()?;
            if self.ledger.report.operations >= recounted + 1_000 {
                recounted = self.ledger.report.operations;
                self.recount()?;
            }
        }
        self.drain()
    }

    /// One thing happens.
    fn step(&mut self) -> Result<(), Violation> {
        self.ledger.report.steps += 1;
        let client = self.rng.below(self.clients.len());
        match self
            .rng
            .weighted(&[25, 20, 18, 18, 20, 10, 8, 6, 2, 1, 1, 1])
        {
            0 => self.act(client),
            1 => self.bytes_to_server(client),
            2 => self.serve(client),
            3 => self.bytes_to_client(client)?,
            4 => self.turn()?,
            5 => self.disk_progress(),
            6 => self.server.answer_read(&mut self.rng),
            7 => self.pass_time(),
            8 => self.call(),
            9 if self.rng.chance(100) => self.administer(),
            10 => self.route(),
            11 => self.use_nodes(),
            _ => {}
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

    fn act(&mut self, client: usize) {
        if self.clients[client].remote.is_none() {
            return self.connect(client);
        }
        let SimClient {
            actor,
            remote: Some((remote, _)),
        } = &mut self.clients[client]
        else {
            return;
        };
        let mut context = Context {
            rng: &mut self.rng,
            ledger: &mut self.ledger,
            now: self.now,
        };
        let stays = actor.act(&mut context, remote);
        if !stays && !self.faults_stopped {
            remote.endpoint.close(None);
        }
    }

    fn connect(&mut self, client: usize) {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let mut remote = Remote::open(&mut self.rng, id, self.now);
        let client = &mut self.clients[client];
        let mut context = Context {
            rng: &mut self.rng,
            ledger: &mut self.ledger,
            now: self.now,
        };
        client.actor.connected(&mut context, &mut remote);
        let pipes = Pipes {
            to_server: Pipe::default(),
            to_client: Pipe::default(),
            stalled_until: 0,
        };
        client.remote = Some((remote, pipes));
        self.server.accept(id, self.now);
    }

    fn bytes_to_server(&mut self, client: usize) {
        let Some((remote, pipes)) = &mut self.clients[client].remote else {
            return;
        };
        pipes
            .to_server
            .push(remote.endpoint.output(endpoint::Mono(self.now.mono.0)));
        if let Some(served) = self.server.served.get_mut(&remote.connection) {
            pipes.to_server.arrive(&mut self.rng, &mut served.input);
        }
        self.serve(client);
    }

    fn serve(&mut self, client: usize) {
        let Some((remote, _)) = &self.clients[client].remote else {
            return;
        };
        self.server
            .serve(&mut self.rng, remote.connection, self.now);
    }

    fn bytes_to_client(&mut self, client: usize) -> Result<(), Violation> {
        let SimClient {
            actor,
            remote: Some((remote, pipes)),
        } = &mut self.clients[client]
        else {
            return Ok(());
        };
        if let Some(served) = self.server.served.get_mut(&remote.connection) {
            pipes
                .to_client
                .push(served.client.output(crate::server::moment(self.now)));
            if pipes.to_client.is_empty() {
                served.client.written();
                self.server.inbox.append(served.client.commands());
            }
        }
        if pipes.stalled_until > self.now.mono.0 && !self.faults_stopped {
            return Ok(());
        }
        pipes.to_client.arrive(&mut self.rng, &mut remote.input);
        let mut context = Context {
            rng: &mut self.rng,
            ledger: &mut self.ledger,
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
            self.close_connection(client);
        }
        Ok(())
    }

    /// The connection is gone on both sides.
    fn close_connection(&mut self, client: usize) {
        let client = &mut self.clients[client];
        if let Some((remote, _)) = client.remote.take() {
            self.server.cut(remote.connection, self.now);
            client.actor.disconnected(&mut self.ledger);
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
        self.ledger.clock(self.now.wall, false);
        self.server.tick(self.now);
        for client in &mut self.clients {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts that are not what the ledger was told are found, whichever they are: by themselves,
    /// or by a message that has become a dead letter too early.
    #[test]
    fn a_broker_that_counts_lost_sessions_otherwise_is_found() {
        for (seed, other) in [
            (1, SessionCountOnDisconnect::Raise),
            (3, SessionCountOnDisconnect::Keep),
        ] {
            let mut world = World::new(Plan {
                seed,
                operations: 200_000,
                faults: Faults::ALL,
                storage: StorageKind::Memory,
            });
            assert_ne!(world.session_counts, other);
            world.ledger.count_lost_sessions(other);
            let violation = world.run().expect_err("it is found");
            assert!(matches!(violation.invariant, "I5" | "I6"), "{violation}");
        }
    }
}
