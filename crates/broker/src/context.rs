//! Context: what a step works with, besides the entity that it is about.
//!
//! `Shared` is what all entities of a broker have in common; `Context` adds when the step is, and
//! collects what it causes. Budgets of a turn are taken from here.

pub(crate) mod alarms;
pub(crate) mod clients;
pub(crate) mod clocks;
pub(crate) mod deletion_scheduler;
pub(crate) mod effects;
pub(crate) mod lent;
pub(crate) mod namespace_sizes;
pub(crate) mod read;
pub(crate) mod token;
pub(crate) mod volatile;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use store::{CommitId, EntityId, NamespaceId, Query, Write};

use crate::api::forward_error::DescribeForwardError;
use crate::api::id::{ReadId, SubqueueId};
use crate::api::output::Output;
use crate::api::settings::BrokerSettings;
use crate::api::time::{Mono, Now};
use crate::context::alarms::Alarms;
use crate::context::clients::Clients;
use crate::context::clocks::Clocks;
use crate::context::deletion_scheduler::DeletionScheduler;
use crate::context::effects::{Effects, ReadRequest};
use crate::context::lent::Lent;
use crate::context::namespace_sizes::NamespaceSizes;
use crate::context::read::Purpose;
use crate::context::token::Tokens;
use crate::context::volatile::Volatile;
use crate::lineage::LineageSwitch;
use crate::message::bodies::Bodies;
use crate::node::nodes::Nodes;
use crate::router::waiting::Publications;
use crate::topic::sizes::Sizes;
use crate::transaction::table::Transactions;

/// How long to leave a store alone that could not read.
pub(crate) const RETRY_MS: u64 = 1_000;

/// What all entities have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub settings: BrokerSettings,
    pub describe_forward_error: DescribeForwardError,
    pub tokens: Tokens,
    pub bodies: Bodies,
    pub clients: Clients,
    pub alarms: Alarms,
    pub clocks: Clocks,
    pub transactions: Transactions,
    pub topics: Sizes,
    pub namespaces: NamespaceSizes,
    pub publications: Publications,
    /// Namespaces whose messages are recorded.
    pub lineage: LineageSwitch,
    /// Dynamic nodes and the links that use them.
    pub nodes: Nodes,
    /// Bodies that belong to snapshots.
    pub lent: Lent,
    /// What entities have that no store keeps.
    pub volatile: Volatile,
    pub nearly_full: bool,
    /// Units of background work that this turn may still do.
    pub work_left: usize,
    /// Subqueues whose messages go on by themselves, and may be able to.
    pub pumps: BTreeSet<SubqueueId>,
    /// Where the last message went on from, so that each has its turn.
    last_pump: Option<SubqueueId>,
    /// Messages that may still go on in this turn. Apart from other work, so that neither stops
    /// the other.
    pub pump_left: usize,
    /// When messages are deleted in batches.
    pub deletion_scheduler: DeletionScheduler,
    /// Units of work that this turn may still do for selectors. Apart, for the same reason.
    pub evaluation_left: usize,
    /// Subscriptions that go with their last consumer, where one has left in this step.
    pub left_subscriptions: BTreeSet<EntityId>,
    /// Entities whose heads are to be written at the end of the turn.
    pub touched: Vec<EntityId>,
    /// Entities whose alarms are to be set before anyone looks at them.
    pub stale_alarms: Vec<EntityId>,
    reads: BTreeMap<ReadId, Purpose>,
    last_read: u64,
    /// Bodies that were asked for ahead of their turn and have not come back: in how many reads,
    /// and bytes.
    pub ahead_reads: usize,
    pub ahead_bytes: usize,
}

impl Shared {
    pub(crate) fn new(
        mut settings: BrokerSettings,
        describe_forward_error: DescribeForwardError,
    ) -> Self {
        // Looking at what is due costs one unit, so one alone would never get anything done.
        settings.turn_work = settings.turn_work.max(2);
        Self {
            tokens: Tokens::new(settings.seed),
            bodies: Bodies::new(settings.body_bytes),
            clients: Clients::default(),
            alarms: Alarms::default(),
            clocks: Clocks::default(),
            transactions: Transactions::default(),
            topics: Sizes::default(),
            namespaces: NamespaceSizes::default(),
            publications: Publications::default(),
            lineage: LineageSwitch::new(settings.lineage, settings.lineage_bytes > 0),
            nodes: Nodes::default(),
            lent: Lent::default(),
            volatile: Volatile::default(),
            nearly_full: false,
            work_left: settings.turn_work,
            pumps: BTreeSet::new(),
            last_pump: None,
            pump_left: settings.turn_work / 2,
            deletion_scheduler: DeletionScheduler::new(settings.turn_work),
            evaluation_left: settings.turn_work,
            left_subscriptions: BTreeSet::new(),
            touched: Vec::new(),
            stale_alarms: Vec::new(),
            reads: BTreeMap::new(),
            last_read: 0,
            ahead_reads: 0,
            ahead_bytes: 0,
            settings,
            describe_forward_error,
        }
    }

    /// The subqueue whose turn it is to let a message go on.
    pub(crate) fn next_pump(&mut self) -> Option<SubqueueId> {
        let after = self.last_pump.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.pumps.range((after, Bound::Unbounded)).next();
        let next = next.or_else(|| self.pumps.first()).copied()?;
        self.pumps.remove(&next);
        self.last_pump = Some(next);
        Some(next)
    }

    /// A new turn may do its work.
    pub(crate) fn allow_work(&mut self) {
        self.work_left = self.settings.turn_work;
        self.pump_left = self.settings.turn_work / 2;
        self.evaluation_left = self.settings.turn_work;
    }

    /// What all reads are for that have not come back.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &Purpose> {
        self.reads.values()
    }

    /// What a read that came back was for.
    pub(crate) fn take_read(&mut self, read: ReadId) -> Purpose {
        let purpose = self.reads.remove(&read);
        purpose.expect("each read is answered once, to the broker that asked for it")
    }
}

/// One step: when it is, what it works on, and what it causes.
pub(crate) struct Context<'a> {
    /// By the clock of the namespace that was entered last.
    pub now: Now,
    /// By the broker's own clock.
    pub broker_now: Now,
    pub shared: &'a mut Shared,
    pub effects: &'a mut Effects,
}

impl<'a> Context<'a> {
    /// A step at `now`.
    pub(crate) fn new(now: Now, shared: &'a mut Shared, effects: &'a mut Effects) -> Self {
        Self {
            now,
            broker_now: now,
            shared,
            effects,
        }
    }
}

impl Context<'_> {
    /// What follows is about this namespace, and goes by its clock.
    pub(crate) fn enter(&mut self, namespace: NamespaceId) {
        // All the same as long as no clock has been advanced.
        if !self.shared.clocks.is_empty() {
            self.now = self.shared.clocks.now(namespace, self.broker_now);
        }
    }

    /// A namespace is gone, and its clock with it.
    pub(crate) fn forget_clock(&mut self, namespace: NamespaceId) {
        self.shared.clocks.forget(namespace);
        self.now = self.broker_now;
    }

    pub(crate) fn write(&mut self, write: Write) {
        if write.entity().is_volatile() {
            self.shared.volatile.apply(write);
        } else {
            self.effects.writes.push(write);
        }
    }

    /// The commit that what is written in this turn will be.
    pub(crate) fn commit(&self) -> CommitId {
        self.effects.submitted.next()
    }

    pub(crate) fn emit(&mut self, output: Output) {
        self.effects.outputs.push(output);
    }

    /// Asks the store for what is there once this turn is; the answer comes back with what it was
    /// for.
    pub(crate) fn ask(&mut self, query: Query, purpose: Purpose) -> ReadId {
        self.ask_after(self.commit(), query, purpose)
    }

    /// The same where what is there `after` that commit is enough, so that the read does not wait
    /// for later ones.
    pub(crate) fn ask_after(&mut self, after: CommitId, query: Query, purpose: Purpose) -> ReadId {
        self.shared.last_read += 1;
        let read = ReadId(self.shared.last_read);
        self.shared.reads.insert(read, purpose);
        if query.entity().is_volatile() {
            self.shared.volatile.ask(read, query);
        } else {
            self.effects.reads.push(ReadRequest { read, after, query });
        }
        read
    }

    /// When to try again to read, after a read that failed.
    pub(crate) fn retry_at(&self) -> Mono {
        self.now.mono.after(RETRY_MS)
    }

    /// Takes one unit out of the pumps' budget for the turn, if there is one.
    pub(crate) fn take_pump_work(&mut self) -> bool {
        let left = self.shared.pump_left;
        self.shared.pump_left = left.saturating_sub(1);
        left > 0
    }

    /// Takes what a message has cost the pumps besides its own unit: what is beyond this turn's
    /// budget is not made up for.
    pub(crate) fn charge_pumps(&mut self, units: usize) {
        self.shared.pump_left = self.shared.pump_left.saturating_sub(units);
    }

    /// Takes one unit out of the turn's budget for evaluating, if there is one.
    pub(crate) fn take_evaluation(&mut self) -> bool {
        let left = self.shared.evaluation_left;
        self.shared.evaluation_left = left.saturating_sub(1);
        left > 0
    }

    /// Pays for what has been done already.
    pub(crate) fn pay_evaluation(&mut self, units: usize) {
        let left = self.shared.evaluation_left;
        self.shared.evaluation_left = left.saturating_sub(units);
    }

    /// Takes one unit of background work out of the turn's budget, if there is one.
    pub(crate) fn take_work(&mut self) -> bool {
        let left = self.shared.work_left;
        self.shared.work_left = left.saturating_sub(1);
        left > 0
    }
}
