//! Fault injection: what breaks, how, and how the world goes on afterwards.

use broker::Command;
use store::CommitId;

use super::{Namespace, World, small_memory};
use crate::owners::Owners;
use crate::server::Server;
use crate::violation::Violation;

/// Steps per hundred thousand, as the rates are given.
const SCALE: usize = 100_000;

impl World {
    /// Lets something go wrong, or not.
    pub(super) fn inject_fault(&mut self) -> Result<(), Violation> {
        let faults = self.plan.faults;
        let point = self.rng.below(SCALE) as u64;
        let mut sum = 0;
        let mut hit = |rate: u64| {
            let here = (sum..sum + rate).contains(&point);
            sum += rate;
            here
        };
        if hit(faults.crash) {
            self.crash()
        } else if hit(faults.failed_commit) {
            self.fail_commit()
        } else if hit(faults.slow_disk) {
            self.slow_until = self.now.mono.0 + self.rng.between(100, 20_000);
            Ok(())
        } else if hit(faults.cut) {
            self.cut();
            Ok(())
        } else if hit(faults.stall) {
            self.stall();
            Ok(())
        } else if hit(faults.clock_jump) {
            self.jump();
            Ok(())
        } else if hit(faults.nearly_full) {
            self.fill_disk();
            Ok(())
        } else if hit(faults.disk) {
            self.disk.arm();
            Ok(())
        } else if hit(faults.fault_rules) {
            self.change_fault_rules();
            Ok(())
        } else {
            Ok(())
        }
    }

    /// The process dies. Part of what waited for the disk may have reached it unannounced.
    pub(super) fn crash(&mut self) -> Result<(), Violation> {
        let (durable, submitted) = (self.disk.durable().0, self.disk.submitted().0);
        let reached = self.rng.between(durable, submitted);
        self.disk.arm();
        self.disk.sync_to(CommitId(reached));
        self.restart()
    }

    /// A commit fails: the store is poisoned, nothing more is said, and the process ends.
    fn fail_commit(&mut self) -> Result<(), Violation> {
        self.disk.fail("simulated");
        self.disk_progress();
        let said = self.server.turn(self.now);
        if !said.is_empty() {
            return Err(Violation::new(
                "I1",
                "a poisoned broker went on talking".to_owned(),
            ));
        }
        self.restart()
    }

    pub(super) fn restart(&mut self) -> Result<(), Violation> {
        self.report.crashes += 1;
        let store = self.disk.crash()?;
        self.owners = self.disk.with_current(Owners::of);
        for n in 0..self.namespaces.len() {
            let Namespace {
                clients, ledger, ..
            } = &mut self.namespaces[n];
            for client in clients {
                if client.remote.take().is_some() {
                    client.actor.disconnected(ledger);
                }
            }
            self.forget_callers(n);
            let image = self.part_of(n);
            self.namespaces[n].ledger.crashed(&image)?;
        }
        let settings = small_memory(&mut self.rng, self.locks_on_disconnect, self.session_counts);
        self.server = Server::start(settings, store, &self.disk, &self.definitions, self.now);
        for (n, namespace) in self.namespaces.iter_mut().enumerate() {
            let (routers, bindings) = self.server.topology(&self.disk, n, self.now);
            namespace.ledger.learn_topology(&routers, &bindings)?;
            namespace.administration.crashed();
            namespace.nodes.crashed();
            namespace.ledger.expect_injected_faults(false);
        }
        self.snapshots.crashed();
        self.governed.crashed();
        self.fault_rules.crashed();
        self.slow_until = 0;
        self.nearly_full_until = 0;
        self.disk.set_nearly_full(false);
        self.check_start()
    }

    /// A connection is cut at any byte: what was on the wire is lost.
    fn cut(&mut self) {
        self.report.cuts += 1;
        let n = self.rng.below(self.namespaces.len());
        let client = self.rng.below(self.namespaces[n].clients.len());
        self.close_connection(n, client);
    }

    fn stall(&mut self) {
        let n = self.rng.below(self.namespaces.len());
        let client = self.rng.below(self.namespaces[n].clients.len());
        let until = self.now.mono.0 + self.rng.between(100, 30_000);
        if let Some((_, pipes)) = &mut self.namespaces[n].clients[client].remote {
            pipes.stalled_until = until;
        }
    }

    /// The wall clock jumps up to an hour either way; the other one does not.
    fn jump(&mut self) {
        let by = self.rng.between(1, 3_600_000);
        let back = self.rng.chance(500);
        self.now.wall.0 = if back {
            self.now.wall.0 - by
        } else {
            self.now.wall.0 + by
        };
        for namespace in &mut self.namespaces {
            namespace.ledger.clock(self.now.wall, back);
        }
        self.server.inbox.push_own(Command::Tick);
    }

    /// The disk is nearly full until the next crash or for a while.
    fn fill_disk(&mut self) {
        let full = self.nearly_full_until <= self.now.mono.0;
        self.nearly_full_until = self.now.mono.0
            + if full {
                self.rng.between(100, 5_000)
            } else {
                0
            };
        self.disk.set_nearly_full(full);
    }
}
