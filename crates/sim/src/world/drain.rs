//! Drain: the end of every run. Faults are over, locks run out, everything is taken and counted.

use broker::Subqueue;
use store::Part;

use super::{Namespace, SimClient, World, queues};
use crate::actor::Actor;
use crate::holder::Holder;
use crate::receiver::Receiver;
use crate::violation::Violation;

/// Steps without progress after which a broker counts as stuck. A message so large that its client
/// is too late for each of its five locks takes 250,000.
const PATIENCE: u64 = 600_000;

impl World {
    /// Takes everything out and checks that nothing is missing and nothing is stuck.
    pub(super) fn drain(&mut self) -> Result<(), Violation> {
        self.faults_stopped = true;
        self.disk.set_nearly_full(false);
        self.disk.heal();
        self.end_fault_rules()?;
        for n in 0..self.namespaces.len() {
            self.restore(n)?;
            self.drain_nodes(n)?;
        }
        self.drain_governed()?;
        self.drain_snapshots()?;
        self.let_locks_end()?;
        self.end_governed()?;
        self.recount()?;
        self.take_everything()?;
        self.run_until_idle()?;
        self.recount()?;
        for n in 0..self.namespaces.len() {
            let image = self.part_of(n);
            let Namespace { ledger, .. } = &self.namespaces[n];
            ledger.all_taken()?;
            ledger.check_no_tombstones()?;
            ledger.nothing_waits(&image)?;
        }
        Ok(())
    }

    /// All clients leave, and time passes until no lock is left and the sweep has had its second.
    fn let_locks_end(&mut self) -> Result<(), Violation> {
        for n in 0..self.namespaces.len() {
            for client in 0..self.namespaces[n].clients.len() {
                self.close_connection(n, client);
            }
            self.drain_callers(n);
        }
        // Locks first and little by little: a jump would end them all at once, with all that is
        // scheduled behind them.
        self.let_time_pass()?;
        self.let_schedules_end()?;
        self.let_time_pass()?;
        let wall = self.now.wall.0 - 1_000;
        for n in 0..self.namespaces.len() {
            let image = self.part_of(n);
            let Namespace { ledger, .. } = &self.namespaces[n];
            ledger.nothing_remembered(wall)?;
            ledger.nothing_expired(&image, wall)?;
        }
        Ok(())
    }

    /// Longer than any lock of a queue.
    pub(super) fn let_time_pass(&mut self) -> Result<(), Violation> {
        for _ in 0..40 {
            self.advance(500);
            self.run_until_idle()?;
        }
        Ok(())
    }

    /// Time passes until everything that is scheduled has become due.
    fn let_schedules_end(&mut self) -> Result<(), Violation> {
        // What was on its way when the clients left may be for later too.
        self.run_until_idle()?;
        let ledgers = self.namespaces.iter().map(|namespace| &namespace.ledger);
        let last = ledgers.flat_map(|ledger| {
            let queues = ledger.queues.iter();
            queues.filter_map(|queue| ledger.books.last_due_ms(queue.id))
        });
        let last = last.max().unwrap_or(0);
        while self.now.wall.0 < last {
            self.advance((last - self.now.wall.0).min(60_000));
            self.run_until_idle()?;
        }
        Ok(())
    }

    /// Lets the broker finish what it has begun. A little time passes, since the order of what is
    /// due depends on the time.
    pub(super) fn run_until_idle(&mut self) -> Result<(), Violation> {
        for _ in 0..PATIENCE {
            self.advance(1);
            self.turn()?;
            self.disk.sync_all();
            self.server.answer_read(&mut self.rng);
            let deadline = self.server.shard.deadline().unwrap_or_default();
            let due = deadline.mono.is_some_and(|at| at <= self.now.mono)
                || deadline.wall.is_some_and(|at| at <= self.now.wall);
            let mut namespaces = self.namespaces.iter();
            let heard = self.server.inbox.is_empty()
                && self.snapshots.commands.is_empty()
                && self.governed.commands.is_empty()
                && namespaces.all(|namespace| namespace.nodes.commands.is_empty());
            if !due && heard && self.server.reads.is_empty() {
                self.turn()?;
                return Ok(());
            }
        }
        Err(Violation::new(
            "I14",
            "the broker never comes to rest".to_owned(),
        ))
    }

    fn take_everything(&mut self) -> Result<(), Violation> {
        for namespace in &mut self.namespaces {
            namespace.clients = takers();
        }
        let mut patience = PATIENCE;
        let mut left = self.waiting();
        while left > 0 {
            self.step()?;
            patience -= 1;
            let now_left = self.waiting();
            if now_left < left {
                (left, patience) = (now_left, PATIENCE);
            }
            if patience == 0 {
                let queues: Vec<_> = self.server.shard.broker.queues().collect();
                let what = format!("{left} messages wait for receivers with credit: {queues:?}");
                return Err(Violation::new("I14", what));
            }
        }
        Ok(())
    }

    /// How many messages a plain receiver could still get.
    fn waiting(&self) -> u64 {
        let ledgers = self.namespaces.iter().map(|namespace| &namespace.ledger);
        let parts = ledgers.flat_map(|ledger| {
            let queues = ledger.queues.iter();
            queues.flat_map(|queue| {
                [Part::Active, Part::DeadLetter].map(|part| ledger.books.tally(queue.id, part).0)
            })
        });
        parts.sum()
    }
}

/// Clients that take everything out of the entities of a namespace.
fn takers() -> Vec<SimClient> {
    let definitions = queues::definitions().into_iter().enumerate();
    let takers = definitions.flat_map(|(index, definition)| {
        let path = definition.path;
        let by_session = definition.settings.requires_session;
        let fast = path == queues::FAST;
        let both = [Subqueue::Main, Subqueue::DeadLetter].into_iter();
        let open = both.filter(move |subqueue| definition.is_open(*subqueue));
        open.map(move |subqueue| {
            let main = subqueue == Subqueue::Main;
            let actor = if by_session && main {
                let mut holder = Holder::new(index, path);
                holder.diligent = true;
                Actor::Holder(holder)
            } else {
                let mut receiver = Receiver::new(path, subqueue, fast && main);
                receiver.diligent = true;
                Actor::Receiver(receiver)
            };
            let remote = None;
            SimClient { actor, remote }
        })
    });
    takers.collect()
}
