//! Broker: all entities of a shard, one step for each command.
//!
//! A turn is any number of [`Broker::step`]s and one [`Broker::finish_turn`], which writes the
//! heads of the entities that were touched.

mod clock;
mod loaded;
pub(crate) mod step;
mod tick;

use std::collections::BTreeMap;

use store::{EntityId, MessageRow, NamespaceId, Recovery, StoreError};

use crate::api::activity::{Activity, ActivityWanted};
use crate::api::command::Command;
use crate::api::fault::{HttpFault, HttpRequest};
use crate::api::forward_error::DescribeForwardError;
use crate::api::info::{Deadline, QueueInfo};
use crate::api::namespace::NamespaceChange;
use crate::api::output::{EntityChange, Output};
use crate::api::rule::RuleSnapshot;
use crate::api::settings::BrokerSettings;
use crate::api::time::{Now, Wall};
use crate::client_affine;
use crate::context::effects::Effects;
use crate::context::{Context, Shared};
use crate::entities::directory::{Directory, change_of};
use crate::fault::{inject, outputs};
use crate::queue::activity::activity;
use crate::queue::info::info;
use crate::queue::kind::Kind;
use crate::snapshot::free;
use crate::{forward, node};

/// The deterministic core.
#[derive(Debug)]
pub struct Broker {
    directory: Directory,
    shared: Shared,
    now: Now,
}

impl Broker {
    /// A broker that starts from what its store recovered.
    ///
    /// # Errors
    /// When a definition cannot be understood.
    pub fn new(
        settings: BrokerSettings,
        describe_forward_error: DescribeForwardError,
        recovery: Recovery,
        now: Now,
    ) -> Result<Self, StoreError> {
        let mut directory = Directory::recover(&settings, recovery)?;
        let mut shared = Shared::new(settings, describe_forward_error);
        shared.lent.replace(directory.snapshots.lent());
        shared.lent.is_to_check = true;
        // Over a restart too the use of a subscription is use of its topic.
        let mut used_below = BTreeMap::new();
        for change in directory.namespaces.changes() {
            let limits = change.definition.map(|definition| definition.limits);
            let limit = limits.and_then(|limits| limits.max_bytes);
            // They are weighed next.
            shared.namespaces.set_limit(change.id, limit, || 0);
        }
        for queue in directory.iter() {
            let bytes = i64::try_from(queue.bytes()).unwrap_or(i64::MAX);
            shared.namespaces.weigh(queue.namespace, bytes);
            if let Some(topic) = queue.kind.topic() {
                shared.topics.weigh(topic, bytes);
                let used: &mut Wall = used_below.entry(topic).or_default();
                *used = queue.last_known_use().max(*used);
            }
        }
        let mut effects = Effects::default();
        let cx = &mut Context::new(now, &mut shared, &mut effects);
        for change in directory.namespaces.changes() {
            let own = change.definition.and_then(|definition| definition.lineage);
            cx.shared.lineage.set(change.id, own);
        }
        directory.wake_tombstones(cx);
        client_affine::note_restart(&directory, cx);
        // The server asks for them when it needs them.
        directory.publish_rules();
        // Sets the alarms. No client is connected yet, so nothing else can be due.
        directory.iter_mut().for_each(|queue| {
            queue.start_idle(used_below.get(&queue.id).copied(), now);
            queue.wake_pumps();
            queue.set_alarm(cx);
        });
        Ok(Self {
            directory,
            shared,
            now,
        })
    }

    /// Applies `command` at `now`, adding what must follow to `effects`.
    pub fn step(&mut self, now: Now, command: Command, effects: &mut Effects) {
        let went_back = now.wall < self.now.wall;
        self.now = now;
        if command.is_asked_for() {
            self.shared.deletion_scheduler.note_other_request();
        }
        let directory = &mut self.directory;
        let cx = &mut Context::new(now, &mut self.shared, effects);
        if went_back {
            directory
                .iter_mut()
                .for_each(|queue| tick::clock_went_back(queue, cx));
        }
        if command.copies() {
            // Nothing else: what it copies is what the steps before have written.
            return step::apply(directory, command, cx);
        }
        let first = cx.effects.outputs.len();
        let has_faults = !directory.faults.is_empty();
        if has_faults {
            inject::apply(directory, command, cx);
        } else {
            step::apply(directory, command, cx);
        }
        inject::carry_out_delayed(directory, cx);
        client_affine::end_unused(directory, cx);
        free::free_unused(directory, cx);
        forward::pump(directory, cx);
        answer_volatile_reads(directory, cx);
        if has_faults || directory.faults.delays.has_due() {
            outputs::look_at(directory, first, cx);
        }
        cx.shared.bodies.trim();
    }

    /// Ends a turn: writes what belongs to a turn as a whole, and allows the next one its work.
    pub fn finish_turn(&mut self, effects: &mut Effects) {
        self.shared.allow_work();
        effects.deletes |= self.shared.deletion_scheduler.end_piece();
        let cx = &mut Context::new(self.now, &mut self.shared, effects);
        node::end_touched(&mut self.directory, cx);
        // A turn with one command that copies has not done it.
        free::free_unused(&mut self.directory, cx);
        let touched = std::mem::take(&mut cx.shared.touched);
        for entity in touched {
            // An entity may have gone in the same turn.
            if let Some(queue) = self.directory.get_mut(entity) {
                queue.write_head(cx);
            }
        }
        self.directory.routers.write_heads(cx);
        set_stale_alarms(&mut self.directory, cx);
        for (namespace, rules) in self.directory.publish_rules() {
            cx.emit(Output::RulesChanged(namespace, Box::new(rules)));
        }
    }

    /// When `step` wants a `Tick`, if nothing else comes first. Clocks differ: whichever is reached
    /// first.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        let first = self.shared.alarms.first();
        let transaction = self.shared.transactions.deadline();
        let at_once = self.goes_on().then_some(self.now.mono);
        let mono = [
            first.mono,
            transaction,
            self.directory.faults.delays.deadline(),
            at_once,
        ];
        let deadline = Deadline {
            mono: mono.into_iter().flatten().min(),
            wall: first.wall,
        };
        (deadline != Deadline::default()).then_some(deadline)
    }

    /// Whether the deadline has been reached, or has to be set anew since the wall clock went back.
    #[must_use]
    pub fn is_due(&mut self, now: Now) -> bool {
        let mut effects = Effects::default();
        let cx = &mut Context::new(self.now, &mut self.shared, &mut effects);
        set_stale_alarms(&mut self.directory, cx);
        let transaction = self.shared.transactions.deadline();
        now.wall < self.now.wall
            || self.shared.alarms.is_due(now)
            || self.goes_on()
            || [transaction, self.directory.faults.delays.deadline()]
                .into_iter()
                .flatten()
                .any(|at| at <= now.mono)
    }

    /// Whether something waits for the next step alone.
    fn goes_on(&self) -> bool {
        self.shared.deletion_scheduler.is_due()
            || self.shared.volatile.has_reads()
            || !self.shared.left_subscriptions.is_empty()
    }

    /// Whether a client has lately asked for something other than a deletion.
    pub(crate) fn has_other_requests(&self) -> bool {
        self.shared.deletion_scheduler.has_other_requests()
    }

    /// When the last step was.
    pub(crate) fn now(&self) -> Now {
        self.now
    }

    /// What a namespace's clock shows at a moment of the broker's.
    #[must_use]
    pub fn now_in(&self, namespace: NamespaceId, now: Now) -> Now {
        self.shared.clocks.now(namespace, now)
    }

    /// How far the clock of a namespace is ahead of the broker's, in milliseconds. `None` if there
    /// is no such namespace.
    #[must_use]
    pub fn ahead(&self, namespace: NamespaceId) -> Option<u64> {
        let is_there = self.directory.namespaces.contains(namespace);
        is_there.then(|| self.shared.clocks.ahead(namespace))
    }

    /// How far the clock that an entity goes by is ahead of the broker's, in milliseconds.
    #[must_use]
    pub fn ahead_of(&self, entity: EntityId) -> u64 {
        if self.shared.clocks.is_empty() {
            return 0;
        }
        let queue = self.directory.get(entity);
        queue.map_or(0, |queue| self.shared.clocks.ahead(queue.namespace))
    }

    /// When something in a namespace wants a `Tick`, in the broker's time.
    #[must_use]
    pub fn deadline_in(&self, namespace: NamespaceId) -> Deadline {
        clock::deadline(&self.directory, &self.shared, namespace)
    }

    /// Whether something in a namespace waits for the store, and goes on when that has answered.
    #[must_use]
    pub fn is_under_way_in(&self, namespace: NamespaceId) -> bool {
        clock::is_under_way(&self.directory, &self.shared, namespace)
    }

    /// Every stored queue as it was in the last step, for the directory and for counters.
    pub fn queues(&self) -> impl Iterator<Item = QueueInfo> + '_ {
        self.queues_at(self.now)
    }

    /// Every queue of a namespace that a path leads to, as it was in the last step.
    pub fn queues_of(
        &self,
        namespace: NamespaceId,
        now: Now,
    ) -> impl Iterator<Item = QueueInfo> + '_ {
        let found = self.directory.by_path(namespace, "");
        let now = self.now_in(namespace, now);
        found.map(move |(_, queue)| info(&self.directory, queue, now))
    }

    /// Every queue, with its ages and lags as they are now.
    pub fn queues_at(&self, now: Now) -> impl Iterator<Item = QueueInfo> + '_ {
        let seen = self.directory.iter_seen();
        seen.map(move |queue| {
            let now = self.now_in(queue.namespace, now);
            info(&self.directory, queue, now)
        })
    }

    /// Whether the body that an entity's row points to belongs to the row of a snapshot, for audits
    /// of the store.
    #[must_use]
    pub fn borrows(&self, entity: EntityId, row: &MessageRow) -> bool {
        self.directory.snapshots.lend_body(entity, row)
    }

    /// Whether a fault rule compares whose operation it is, so that connections have to be
    /// introduced.
    #[must_use]
    pub fn faults_name_clients(&self) -> bool {
        self.directory.faults.name_clients()
    }

    /// Whether a fault rule is for HTTP requests, so that they have to be shown.
    #[must_use]
    pub fn faults_match_http(&self) -> bool {
        self.directory.faults.match_http()
    }

    /// Whether a fault rule is for the attach of senders, so that connections have to ask for them.
    #[must_use]
    pub fn faults_match_senders(&self) -> bool {
        self.directory.faults.match_senders()
    }

    /// What a fault rule does to an HTTP request, before it is carried out.
    pub fn http_fault(&mut self, request: &HttpRequest, now: Now) -> Option<HttpFault> {
        let now = self.now_in(request.namespace, now);
        self.directory.faults.choose_http(request, now)
    }

    /// How many fault rules each namespace has, if it has some, and how many operations have failed
    /// by one since the start.
    #[must_use]
    pub fn faults(&self) -> (BTreeMap<NamespaceId, usize>, u64) {
        let faults = &self.directory.faults;
        (faults.counts(), faults.injected())
    }

    /// Every entity, for a caller that follows changes from here on.
    pub fn entities(&self) -> impl Iterator<Item = EntityChange> + '_ {
        self.directory.iter_seen().map(change_of)
    }

    /// The path of an entity.
    pub(crate) fn path_of(&self, entity: EntityId) -> Option<&str> {
        Some(&self.directory.get(entity)?.path)
    }

    /// Whether what happens to the messages of a namespace is recorded.
    #[must_use]
    pub fn records_lineage(&self, namespace: NamespaceId) -> bool {
        self.shared.lineage.is_on(namespace)
    }

    /// Every namespace but the default one, for the same caller.
    pub fn namespaces(&self) -> impl Iterator<Item = NamespaceChange> + '_ {
        self.directory.namespaces.changes()
    }

    /// The rules of every topic.
    pub fn rules(&self) -> impl Iterator<Item = (NamespaceId, RuleSnapshot)> + '_ {
        self.directory.iter().filter_map(|queue| match &queue.kind {
            Kind::Topic(topic) => Some((queue.namespace, topic.rules.snapshot(queue.id))),
            Kind::Queue | Kind::Subscription(_) | Kind::Transfer { .. } => None,
        })
    }

    /// The receivers, locks and sessions of an entity, or what is wanted of them.
    #[must_use]
    pub fn activity(&self, id: EntityId, now: Now, wanted: &ActivityWanted) -> Option<Activity> {
        let queue = self.directory.get(id)?;
        let now = self.now_in(queue.namespace, now);
        Some(activity(queue, &self.shared, now, wanted))
    }

    /// One queue.
    #[must_use]
    pub fn queue(&self, id: EntityId) -> Option<QueueInfo> {
        let queue = self.directory.get(id);
        queue.map(|queue| {
            let now = self.now_in(queue.namespace, self.now);
            info(&self.directory, queue, now)
        })
    }
}

/// Sets the alarms of entities where something has happened since they were set.
fn set_stale_alarms(directory: &mut Directory, cx: &mut Context<'_>) {
    for entity in std::mem::take(&mut cx.shared.stale_alarms) {
        // An entity may have gone in the same turn.
        if let Some(queue) = directory.get_mut(entity) {
            cx.enter(queue.namespace);
            queue.set_alarm(cx);
        }
    }
}

/// Answers the reads of volatile entities that have been asked for. What is asked for meanwhile
/// waits for the next step, so that a step ends.
fn answer_volatile_reads(directory: &mut Directory, cx: &mut Context<'_>) {
    for _ in 0..cx.shared.volatile.reads() {
        if let Some((read, found)) = cx.shared.volatile.answer() {
            loaded::loaded(directory, read, found, cx);
            // Whatever is left of the turn's budget: otherwise what was read might be dropped at
            // the end of the step, and be read again in each turn.
            cx.shared.pump_left = cx.shared.pump_left.max(1);
            forward::pump(directory, cx);
        }
    }
}
