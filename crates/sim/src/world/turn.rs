//! Turn: one turn of the shard, with the ledger looking at all that goes in and comes out.

use std::collections::BTreeSet;

use broker::{Command, ConnectionId, Output};
use store::{CommitId, Image, NamespaceId};

use super::{Namespace, World, fault_rules, governed, namespace, snapshots};
use crate::inbox::NamespaceIndex;
use crate::ledger::{TurnEnd, entity_of};
use crate::server;
use crate::violation::Violation;

impl World {
    /// Lets the shard decide what has arrived, and checks what it does.
    pub(super) fn turn(&mut self) -> Result<(), Violation> {
        self.tick_if_due();
        let commands = self.server.inbox.as_slice().iter();
        let commands = commands.filter(|command| !matches!(command, Command::Tick));
        self.report.operations += commands.count() as u64;
        self.script_outputs.clear();
        for (n, namespace) in self.namespaces.iter_mut().enumerate() {
            let commands = self.server.inbox.of(n);
            namespace.ledger.begin_turn(commands, self.now);
        }
        self.hear_others();
        let copies = self.server.inbox.as_slice().iter().any(Command::copies);
        let before = self.disk.submitted();
        let said = self.server.turn(self.now);
        // An order that copies has a commit of its own, and what is before it another.
        let rests_on = match copies {
            true => before,
            false => self.disk.submitted(),
        };
        let mut busy = self.check_writes(rests_on)?;
        let reads = self.server.reads.iter().map(entity_of);
        busy.extend(reads.filter_map(|entity| self.owners.namespace_of(entity)));
        let durable = self.disk.durable();
        for output in said {
            let n = namespace_of(&output);
            if n == fault_rules::INDEX && matches!(output, Output::Administered { .. }) {
                self.fault_rules_changed(&output)?;
                continue;
            }
            if n == governed::INDEX {
                self.governed.handle_output(output)?;
                continue;
            }
            if n >= snapshots::INDEX {
                self.snapshots.handle_output(output)?;
                continue;
            }
            let Namespace { nodes, ledger, .. } = &mut self.namespaces[n];
            if nodes.is_user(output.connection()) {
                let is_delivery = matches!(output, Output::Deliver { .. });
                self.report.node_deliveries += u64::from(is_delivery);
                nodes.handle_output(output, self.now.mono, ledger.last_quiet)?;
                continue;
            }
            ledger.verify_output(&output, durable)?;
            if let Output::Dropped { connection } = output {
                self.drop_client(n, connection);
            } else if output.connection() == ConnectionId::SERVER {
                self.administered(n, output);
            } else if let Some(served) = self.server.served.get_mut(&output.connection()) {
                served.outputs.push_back(output);
            } else if let Some(output) = self.called(n, output)? {
                self.script_outputs.push(output);
            }
        }
        for namespace in &mut self.namespaces {
            let id = namespace.id();
            namespace.ledger.end_turn(TurnEnd {
                is_busy_elsewhere: busy.iter().any(|other| *other != id),
                durable,
                submitted: self.disk.submitted(),
                has_failed: self.server.shard.store().failure().is_some(),
                nearly_full: self.server.shard.store().is_nearly_full(),
                reads: &self.server.reads,
            })?;
        }
        Ok(())
    }

    /// What the ledgers do not see. What users of nodes say comes before what all others say, or
    /// after it.
    fn hear_others(&mut self) {
        let mut commands = std::mem::take(&mut self.snapshots.commands);
        self.report.operations += commands.len() as u64;
        self.server.inbox.append(snapshots::INDEX, &mut commands);
        let mut commands = std::mem::take(&mut self.fault_rules.commands);
        self.report.operations += commands.len() as u64;
        self.server.inbox.append(fault_rules::INDEX, &mut commands);
        self.governed.observe_clocks(self.now.wall, self.now.mono);
        let mut commands = std::mem::take(&mut self.governed.commands);
        self.report.operations += commands.len() as u64;
        self.server.inbox.append(governed::INDEX, &mut commands);
        for (n, namespace) in self.namespaces.iter_mut().enumerate() {
            let mut commands = std::mem::take(&mut namespace.nodes.commands);
            self.report.operations += commands.len() as u64;
            if self.rng.chance(500) {
                self.server.inbox.append(n, &mut commands);
            } else {
                self.server.inbox.insert(commands);
            }
        }
    }

    fn tick_if_due(&mut self) {
        let deadline = self.server.shard.deadline().unwrap_or_default();
        if deadline.mono.is_some_and(|at| at <= self.now.mono)
            || deadline.wall.is_some_and(|at| at <= self.now.wall)
        {
            self.server.inbox.push_own(Command::Tick);
        }
    }

    /// What a broker wrote while it started.
    pub(super) fn check_start(&mut self) -> Result<(), Violation> {
        for namespace in &mut self.namespaces {
            namespace.ledger.begin_turn(&[], self.now);
        }
        self.check_writes(self.disk.submitted()).map(drop)
    }

    /// Every write is explained, and the broker's counters are those of its writes. What was asked
    /// rests on that commit. Returns which namespaces were written to.
    fn check_writes(&mut self, rests_on: CommitId) -> Result<BTreeSet<NamespaceId>, Violation> {
        let sets = self.server.recording.take();
        let mut sets = self.owners.divide(sets)?;
        let written = sets.keys().copied().collect();
        for namespace in &mut self.namespaces {
            let sets = sets.remove(&namespace.id()).unwrap_or_default();
            let touched = namespace.ledger.verify_writes(&sets, rests_on)?;
            for entity in touched {
                if let Some(info) = self.server.shard.broker.queue(entity) {
                    namespace.ledger.check_counters(&info)?;
                }
            }
        }
        Ok(written)
    }

    /// A full look at the store, which checks the ledger's books too.
    pub(super) fn recount(&mut self) -> Result<(), Violation> {
        self.report.recounts += 1;
        if let Some(breach) = self.disk.violations().first() {
            return Err(Violation::new("I9", breach.to_string()));
        }
        for n in 0..self.namespaces.len() {
            let image = self.part_of(n);
            let Namespace { ledger, .. } = &self.namespaces[n];
            for info in self
                .server
                .shard
                .broker
                .queues_of(server::namespace_id(n), self.now)
            {
                ledger.check_counters(&info)?;
            }
            ledger.recount(&image)?;
        }
        Ok(())
    }

    /// What the store has of one namespace.
    pub(super) fn part_of(&self, n: NamespaceIndex) -> Image {
        let namespace = server::namespace_id(n);
        self.disk
            .with_current(|image| self.owners.part_of(namespace, image))
    }
}

/// Whose ledger is to explain an output.
fn namespace_of(output: &Output) -> NamespaceIndex {
    let of = |namespace: NamespaceId| usize::try_from(namespace.0).expect("there are few");
    match output {
        Output::EntityChanged(change) => of(change.namespace),
        Output::RulesChanged(namespace, _) => of(*namespace),
        Output::NamespaceChanged(change) => of(change.id),
        Output::Administered { request, .. }
        | Output::RuleChanged { request, .. }
        | Output::Published { request, .. }
            if request.connection == ConnectionId::SERVER =>
        {
            namespace::index_of(request.token)
        }
        _ => namespace::index_of(output.connection().0),
    }
}
