//! Broker: all entities of a shard, one step for each command.
//!
//! A turn is any number of [`Broker::step`]s and one [`Broker::finish_turn`], which writes the
//! heads of the entities that were touched.

pub(crate) mod step;

use store::{CommitId, EntityId, NamespaceId, Part, Recovery, StoreError, WriteSet};

use crate::api::command::Command;
use crate::api::forward_error::DescribeForwardError;
use crate::api::id::Subqueue;
use crate::api::output::{EntityChange, Output};
use crate::api::rule::RuleSnapshot;
use crate::api::settings::{BrokerSettings, QueueSettings};
use crate::api::time::{Now, Wall};
use crate::api::traffic::Traffic;
use crate::context::{Context, Shared};
use crate::entities::directory::{Directory, change_of};
use crate::forward;
use crate::queue::Queue;
use crate::queue::kind::{EntityKind, Kind};
use crate::shard::ReadRequest;

/// What one or several steps caused.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Effects {
    /// The newest commit when the turn began: its own writes will be the next one.
    pub submitted: CommitId,
    pub writes: WriteSet,
    pub outputs: Vec<Output>,
    /// After this turn's commit at most.
    pub reads: Vec<ReadRequest>,
    /// Whether there is a piece of a batch deletion: no other is begun before [`Command::Durable`].
    pub deletes: bool,
}

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
        for queue in directory.iter() {
            if let Some(topic) = queue.kind.topic() {
                let bytes = i64::try_from(queue.message_bytes()).unwrap_or(i64::MAX);
                shared.topics.weigh(topic, bytes);
            }
        }
        let mut effects = Effects::default();
        let cx = &mut Context {
            now,
            shared: &mut shared,
            effects: &mut effects,
        };
        directory.wake_tombstones(cx);
        // The server asks for them when it needs them.
        directory.publish_rules();
        // Sets the alarms. No client is connected yet, so nothing else can be due.
        directory.iter_mut().for_each(|queue| {
            queue.start_idle(now);
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
        let shared = &mut self.shared;
        let cx = &mut Context {
            now,
            shared,
            effects,
        };
        if went_back {
            directory
                .iter_mut()
                .for_each(|queue| queue.clock_went_back(cx));
        }
        step::apply(directory, command, cx);
        forward::pump(directory, cx);
        cx.shared.bodies.trim();
    }

    /// Ends a turn: writes what belongs to a turn as a whole, and allows the next one its work.
    pub fn finish_turn(&mut self, effects: &mut Effects) {
        self.shared.allow_work();
        effects.deletes |= self.shared.deletion_scheduler.end_piece();
        let touched = std::mem::take(&mut self.shared.touched);
        let cx = &mut Context {
            now: self.now,
            shared: &mut self.shared,
            effects,
        };
        for entity in touched {
            // An entity may have gone in the same turn.
            if let Some(queue) = self.directory.get_mut(entity) {
                queue.write_head(cx);
            }
        }
        for rules in self.directory.publish_rules() {
            cx.emit(Output::RulesChanged(Box::new(rules)));
        }
    }

    /// When `step` wants a `Tick`, if nothing else comes first. Clocks differ: whichever is reached
    /// first.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        let first = self.shared.alarms.first();
        let transaction = self.shared.transactions.deadline();
        let at_once = self
            .shared
            .deletion_scheduler
            .is_due()
            .then_some(self.now.mono);
        let mono = [first.mono, transaction, at_once];
        let deadline = Deadline {
            mono: mono.into_iter().flatten().min(),
            wall: first.wall,
        };
        (deadline != Deadline::default()).then_some(deadline)
    }

    /// Whether the deadline has been reached, or has to be set anew since the wall clock went back.
    #[must_use]
    pub fn is_due(&self, now: Now) -> bool {
        let transaction = self.shared.transactions.deadline();
        now.wall < self.now.wall
            || self.shared.alarms.is_due(now)
            || self.shared.deletion_scheduler.is_due()
            || transaction.is_some_and(|at| at <= now.mono)
    }

    /// Whether a client has lately asked for something other than a deletion.
    pub(crate) fn has_other_requests(&self) -> bool {
        self.shared.deletion_scheduler.has_other_requests()
    }

    /// When the last step was.
    pub(crate) fn now(&self) -> Now {
        self.now
    }

    /// Every queue as it was in the last step, for the directory and for counters.
    pub fn queues(&self) -> impl Iterator<Item = QueueInfo> + '_ {
        self.queues_at(self.now)
    }

    /// Every queue, with its ages and lags as they are now.
    pub fn queues_at(&self, now: Now) -> impl Iterator<Item = QueueInfo> + '_ {
        self.directory.iter().map(move |queue| info(queue, now))
    }

    /// Every entity, for a caller that follows changes from here on.
    pub fn entities(&self) -> impl Iterator<Item = EntityChange> + '_ {
        self.directory.iter().map(change_of)
    }

    /// The rules of every topic.
    pub fn rules(&self) -> impl Iterator<Item = RuleSnapshot> + '_ {
        self.directory.iter().filter_map(|queue| match &queue.kind {
            Kind::Topic(topic) => Some(topic.rules.snapshot(queue.id)),
            Kind::Queue | Kind::Subscription(_) => None,
        })
    }

    /// One queue.
    #[must_use]
    pub fn queue(&self, id: EntityId) -> Option<QueueInfo> {
        self.directory.get(id).map(|queue| info(queue, self.now))
    }
}

/// When a tick is wanted: at whichever of the two is reached first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Deadline {
    pub mono: Option<crate::api::time::Mono>,
    pub wall: Option<Wall>,
}

/// A queue's definition and counters at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct QueueInfo {
    pub id: EntityId,
    pub namespace: NamespaceId,
    pub path: String,
    pub kind: EntityKind,
    pub settings: QueueSettings,
    pub active: u64,
    pub dead_letter: u64,
    pub deferred: u64,
    pub scheduled: u64,
    /// How long ago the next scheduled message was due.
    pub schedule_lag_ms: u64,
    pub bytes: u64,
    /// How long ago the next available message was enqueued, if it is known without a look at the
    /// disk.
    pub oldest_age_ms: Option<u64>,
    pub traffic: Traffic,
    /// Attached to its messages, those that wait for a session among them; not to its subqueues.
    pub receivers: u64,
    /// Of the active ones, how many wait to be forwarded.
    pub transfer: u64,
    pub transfer_dead_letter: u64,
    pub created: Wall,
    /// The last change of its settings.
    pub updated: Wall,
    /// When it was used last, if it ever was.
    pub accessed: Option<Wall>,
}

pub(crate) fn info(queue: &Queue, now: Now) -> QueueInfo {
    let count = |part| queue.head.part(part).count;
    QueueInfo {
        id: queue.id,
        namespace: queue.namespace,
        path: queue.path.clone(),
        kind: queue.kind.seen(),
        settings: queue.settings.clone(),
        active: count(Subqueue::Main.part()),
        dead_letter: count(Subqueue::DeadLetter.part())
            + count(Subqueue::DeadLetter.deferred_part()),
        deferred: count(Subqueue::Main.deferred_part()),
        scheduled: count(Part::Scheduled),
        schedule_lag_ms: queue.schedule_lag(now.wall),
        bytes: queue.bytes(),
        oldest_age_ms: queue.oldest_age(now.wall),
        traffic: queue.traffic,
        receivers: queue.sub(Subqueue::Main).attached as u64,
        transfer: if queue.forwards(Subqueue::Main) {
            count(Subqueue::Main.part())
        } else {
            0
        },
        transfer_dead_letter: count(Subqueue::TransferDeadLetter.part())
            + count(Subqueue::TransferDeadLetter.deferred_part()),
        created: queue.times.created,
        updated: queue.times.updated,
        accessed: (queue.head.accessed_ms > 0).then_some(Wall(queue.head.accessed_ms)),
    }
}
