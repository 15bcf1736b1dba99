//! Turn: one turn of the shard, with the ledger looking at all that goes in and comes out.

use broker::{Command, ConnectionId, Output};

use super::World;
use crate::ledger::TurnEnd;
use crate::violation::Violation;

impl World {
    /// Lets the shard decide what has arrived, and checks what it does.
    pub(super) fn turn(&mut self) -> Result<(), Violation> {
        self.tick_if_due();
        let commands = self.server.inbox.iter();
        let commands = commands.filter(|command| !matches!(command, Command::Tick));
        self.ledger.report.operations += commands.count() as u64;
        self.script_outputs.clear();
        self.ledger.begin_turn(&self.server.inbox, self.now);
        self.hear_users_of_nodes();
        let said = self.server.turn(self.now);
        self.check_writes()?;
        let durable = self.disk.durable();
        for output in said {
            if self.nodes.is_user(output.connection()) {
                let is_delivery = matches!(output, Output::Deliver { .. });
                self.ledger.report.node_deliveries += u64::from(is_delivery);
                self.nodes
                    .handle_output(output, self.now.mono, self.ledger.last_quiet)?;
                continue;
            }
            self.ledger.verify_output(&output, durable)?;
            if output.connection() == ConnectionId::SERVER {
                self.administered(output);
            } else if let Some(served) = self.server.served.get_mut(&output.connection()) {
                served.outputs.push_back(output);
            } else if let Some(output) = self.called(output)? {
                self.script_outputs.push(output);
            }
        }
        self.ledger.end_turn(TurnEnd {
            durable,
            submitted: self.disk.submitted(),
            has_failed: self.server.shard.store().failure().is_some(),
            nearly_full: self.server.shard.store().is_nearly_full(),
            reads: &self.server.reads,
        })
    }

    /// What they say comes before what all others say, or after it.
    fn hear_users_of_nodes(&mut self) {
        let mut commands = std::mem::take(&mut self.nodes.commands);
        self.ledger.report.operations += commands.len() as u64;
        if self.rng.chance(500) {
            std::mem::swap(&mut commands, &mut self.server.inbox);
        }
        self.server.inbox.append(&mut commands);
    }

    fn tick_if_due(&mut self) {
        let deadline = self.server.shard.deadline().unwrap_or_default();
        if deadline.mono.is_some_and(|at| at <= self.now.mono)
            || deadline.wall.is_some_and(|at| at <= self.now.wall)
        {
            self.server.inbox.push(Command::Tick);
        }
    }

    /// What a broker wrote while it started.
    pub(super) fn check_start(&mut self) -> Result<(), Violation> {
        self.ledger.begin_turn(&[], self.now);
        self.check_writes()
    }

    /// Every write is explained, and the broker's counters are those of its writes.
    fn check_writes(&mut self) -> Result<(), Violation> {
        let sets = self.server.recording.take();
        let touched = self.ledger.verify_writes(&sets, self.disk.submitted())?;
        for entity in touched {
            if let Some(info) = self.server.shard.broker.queue(entity) {
                self.ledger.check_counters(&info)?;
            }
        }
        Ok(())
    }

    /// A full look at the store, which checks the ledger's books too.
    pub(super) fn recount(&mut self) -> Result<(), Violation> {
        self.ledger.report.recounts += 1;
        if let Some(breach) = self.disk.violations().first() {
            return Err(Violation::new("I9", breach.to_string()));
        }
        for info in self.server.shard.broker.queues() {
            self.ledger.check_counters(&info)?;
        }
        self.disk.with_current(|image| self.ledger.recount(image))
    }
}
