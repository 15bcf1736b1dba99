//! World: everything of a run, and what happens next.
//!
//! One thread, one generator, one pair of clocks: the seed decides every interleaving.

use broker::{
    BrokerSettings, ConnectionId, LocksOnDisconnect, Mono, Now, Output, TransactionSettings, Wall,
};
use dialect::Dialect;
use store::memory::MemoryDisk;

use crate::actor::{Actor, Stage};
use crate::faults::Faults;
use crate::ledger::{self, Ledger};
use crate::line::Line;
use crate::remote::Remote;
use crate::report::Report;
use crate::rng::Rng;
use crate::server::Server;
use crate::violation::Violation;

mod administration;
mod callers;
mod cast;
mod drain;
pub(crate) mod queues;
mod script;
mod sweep;
mod trouble;
mod turn;

pub use script::Ending;
pub use sweep::Swept;

use administration::Administration;
use callers::Callers;
use cast::{ledger_queue, ledger_queues, players};
use queues::Definition;

/// A run to make.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Plan {
    pub seed: u64,
    /// Commands that the broker handles before the final drain.
    pub operations: u64,
    pub faults: Faults,
}

/// The wires of one connection.
struct Wires {
    to_server: Line,
    to_client: Line,
    /// The client reads nothing before this.
    stalled_until: u64,
}

/// A client with its connection, if it has one.
struct Player {
    actor: Actor,
    remote: Option<(Remote, Wires)>,
}

/// A simulated machine, its clients, and the clock over all of them.
pub struct World {
    plan: Plan,
    rng: Rng,
    now: Now,
    disk: MemoryDisk,
    server: Server,
    players: Vec<Player>,
    ledger: Ledger,
    next_connection: u64,
    /// Nothing becomes durable before this.
    slow_until: u64,
    nearly_full_until: u64,
    locks_on_disconnect: LocksOnDisconnect,
    definitions: Vec<Definition>,
    /// Those that come and go.
    temporary: Vec<Definition>,
    administration: Administration,
    callers: Callers,
    /// Outputs for connections that are neither a player's nor a caller's.
    heard: Vec<Output>,
    /// Nothing breaks any more.
    calm: bool,
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
        let disk = MemoryDisk::new();
        let definitions = queues::definitions();
        let locks_on_disconnect = if rng.chance(300) {
            LocksOnDisconnect::Drop
        } else {
            LocksOnDisconnect::Keep
        };
        let settings = small_memory(&mut rng, locks_on_disconnect);
        let server = Server::start(settings, disk.open(), &disk, &definitions, now);
        let drops_locks = locks_on_disconnect == LocksOnDisconnect::Drop;
        let ledger = Ledger::new(ledger_queues(&server, &definitions), drops_locks, now);
        Self {
            plan,
            rng,
            now,
            disk,
            server,
            players: players(),
            ledger,
            next_connection: 1,
            slow_until: 0,
            nearly_full_until: 0,
            locks_on_disconnect,
            definitions,
            temporary: administration::temporary(),
            administration: Administration::default(),
            callers: Callers::default(),
            heard: Vec::new(),
            calm: false,
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
        let player = self.rng.below(self.players.len());
        match self.rng.weighted(&[25, 20, 18, 18, 20, 10, 8, 6, 2, 1]) {
            0 => self.act(player),
            1 => self.bytes_to_server(player),
            2 => self.serve(player),
            3 => self.bytes_to_client(player)?,
            4 => self.turn()?,
            5 => self.disk_progress(),
            6 => self.server.answer_read(&mut self.rng),
            7 => self.pass_time(),
            8 => self.call(),
            _ if self.rng.chance(100) => self.administer(),
            _ => {}
        }
        if !self.calm {
            self.break_something()?;
        }
        Ok(())
    }

    fn act(&mut self, player: usize) {
        if self.players[player].remote.is_none() {
            return self.connect(player);
        }
        let Player {
            actor,
            remote: Some((remote, _)),
        } = &mut self.players[player]
        else {
            return;
        };
        let mut stage = Stage {
            rng: &mut self.rng,
            ledger: &mut self.ledger,
            now: self.now,
        };
        let stays = actor.act(&mut stage, remote);
        if !stays && !self.calm {
            remote.endpoint.close(None);
        }
    }

    fn connect(&mut self, player: usize) {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let mut remote = Remote::open(&mut self.rng, id, self.now);
        let player = &mut self.players[player];
        let mut stage = Stage {
            rng: &mut self.rng,
            ledger: &mut self.ledger,
            now: self.now,
        };
        player.actor.connected(&mut stage, &mut remote);
        let wires = Wires {
            to_server: Line::default(),
            to_client: Line::default(),
            stalled_until: 0,
        };
        player.remote = Some((remote, wires));
        self.server.accept(id, self.now);
    }

    fn bytes_to_server(&mut self, player: usize) {
        let Some((remote, wires)) = &mut self.players[player].remote else {
            return;
        };
        wires
            .to_server
            .push(remote.endpoint.output(endpoint::Mono(self.now.mono.0)));
        if let Some(served) = self.server.served.get_mut(&remote.connection) {
            wires.to_server.arrive(&mut self.rng, &mut served.input);
        }
        self.serve(player);
    }

    fn serve(&mut self, player: usize) {
        let Some((remote, _)) = &self.players[player].remote else {
            return;
        };
        self.server
            .serve(&mut self.rng, remote.connection, self.now);
    }

    fn bytes_to_client(&mut self, player: usize) -> Result<(), Violation> {
        let Player {
            actor,
            remote: Some((remote, wires)),
        } = &mut self.players[player]
        else {
            return Ok(());
        };
        if let Some(served) = self.server.served.get_mut(&remote.connection) {
            wires
                .to_client
                .push(served.client.output(crate::server::moment(self.now)));
            if wires.to_client.is_empty() {
                served.client.written();
                self.server.inbox.append(served.client.commands());
            }
        }
        if wires.stalled_until > self.now.mono.0 && !self.calm {
            return Ok(());
        }
        wires.to_client.arrive(&mut self.rng, &mut remote.input);
        let mut stage = Stage {
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
            actor.handle(&mut stage, remote, event)?;
        }
        if over {
            self.hang_up(player);
        }
        Ok(())
    }

    /// The connection is gone on both sides.
    fn hang_up(&mut self, player: usize) {
        let player = &mut self.players[player];
        if let Some((remote, _)) = player.remote.take() {
            self.server.cut(remote.connection, self.now);
            player.actor.disconnected(&mut self.ledger);
        }
    }

    fn disk_progress(&mut self) {
        if self.slow_until > self.now.mono.0 && !self.calm {
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
            // Locks outlast a slow turn of all players, so that the drain gets somewhere.
            _ if self.calm => self.rng.between(0, 5),
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
        for player in &mut self.players {
            if let Some((remote, _)) = &mut player.remote {
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
fn small_memory(rng: &mut Rng, locks_on_disconnect: LocksOnDisconnect) -> BrokerSettings {
    BrokerSettings {
        seed: rng.seed(),
        locks_on_disconnect,
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
