//! Shard: a broker, its store, and the outbox between them.
//!
//! Outputs wait for the log, state does not: an output is held under the newest commit submitted
//! when it was made and released when that commit is durable. A delivery waits only for the commit
//! that it rests on. A store that has failed releases nothing any more.

mod outbox;

use store::{CallerLoad, CommitId, NamespaceId, Store, StoreError, WriteSet};

use crate::api::command::Command;
use crate::api::forward_error::DescribeForwardError;
use crate::api::info::Deadline;
use crate::api::lineage::LineageEffects;
use crate::api::output::Output;
use crate::api::settings::BrokerSettings;
use crate::api::time::Now;
use crate::broker::Broker;
use crate::context::effects::Effects;
use crate::lineage::reader::LineageReader;
use crate::lineage::records::Records;
use crate::shard::outbox::Outbox;

pub use crate::context::effects::ReadRequest;

/// For more writes or outputs there is no room at the start of a turn, since write sets are kept
/// for a while.
const MOST_ROOM: usize = 4_096;

/// A broker joined to its store.
pub struct Shard {
    /// The decisions.
    pub broker: Broker,
    store: Box<dyn Store>,
    submitted: CommitId,
    released: CommitId,
    outbox: Outbox,
    nearly_full: bool,
    lineage: Records,
    /// Room for what the next turn says of lineage.
    lineage_room: LineageEffects,
    /// For how many writes and outputs there is room from the start of the next turn: as many as
    /// the last one had, or half of what it was made for.
    room: (usize, usize),
    /// Of the last turn that deleted a batch, unless the broker knows that it is durable.
    deletion: Option<CommitId>,
    /// Whether the broker is not told of it for now.
    holds_deletions: bool,
}

impl Shard {
    /// Recovers a broker from `store`.
    ///
    /// # Errors
    /// When the store cannot be read or understood.
    pub fn open(
        settings: BrokerSettings,
        describe_forward_error: DescribeForwardError,
        mut store: Box<dyn Store>,
        now: Now,
    ) -> Result<Self, StoreError> {
        let recovery = store.recover()?;
        let lineage = Records::new(settings.lineage_bytes, now.wall);
        Ok(Self {
            lineage,
            lineage_room: LineageEffects::default(),
            broker: Broker::new(settings, describe_forward_error, recovery, now)?,
            submitted: store.durable(),
            released: store.durable(),
            store,
            outbox: Outbox::default(),
            nearly_full: false,
            room: (0, 0),
            deletion: None,
            holds_deletions: false,
        })
    }

    /// Decides all that arrived (leaving `commands` empty), submits it as one, and hands out what
    /// has become safe to say. Called without commands when the store has made progress or a
    /// deadline is reached: a tick is added when one is due.
    pub fn turn(
        &mut self,
        now: Now,
        commands: &mut Vec<Command>,
        emitted: &mut Vec<Output>,
        reads: &mut Vec<ReadRequest>,
    ) {
        self.take_turns(now, commands, None, emitted, reads);
    }

    /// As [`turn`](Self::turn), but it may wait until what was decided is durable, if that does not
    /// take long for a `caller` like this.
    pub fn blocking_turn(
        &mut self,
        now: Now,
        commands: &mut Vec<Command>,
        caller: CallerLoad,
        emitted: &mut Vec<Output>,
        reads: &mut Vec<ReadRequest>,
    ) {
        self.take_turns(now, commands, Some(caller), emitted, reads);
    }

    /// One turn; or several, where a command copies entities: that is a write set of its own, of
    /// what the turn before has left.
    fn take_turns(
        &mut self,
        now: Now,
        commands: &mut Vec<Command>,
        caller: Option<CallerLoad>,
        emitted: &mut Vec<Output>,
        reads: &mut Vec<ReadRequest>,
    ) {
        while let Some(at) = commands.iter().position(Command::copies) {
            let mut rest = commands.split_off(at);
            let effects = self.decide(now, commands);
            self.conclude(effects, caller, emitted, reads);
            let mut effects = self.begin(0, 0);
            self.broker.step(now, rest.remove(0), &mut effects);
            self.broker.finish_turn(&mut effects);
            self.conclude(effects, caller, emitted, reads);
            *commands = rest;
        }
        let effects = self.decide(now, commands);
        self.conclude(effects, caller, emitted, reads);
    }

    fn begin(&mut self, writes: usize, outputs: usize) -> Effects {
        Effects {
            submitted: self.submitted,
            writes: WriteSet::with_capacity(writes),
            outputs: Vec::with_capacity(outputs),
            lineage: std::mem::take(&mut self.lineage_room),
            ..Effects::default()
        }
    }

    fn decide(&mut self, now: Now, commands: &mut Vec<Command>) -> Effects {
        let (writes, outputs) = self.room;
        let mut effects = self.begin(writes, outputs);
        self.look_at_room(now, &mut effects);
        if self.has_deleted() {
            self.deletion = None;
            self.broker.step(now, Command::Durable, &mut effects);
        }
        for command in commands.drain(..) {
            self.broker.step(now, command, &mut effects);
        }
        if self.broker.is_due(now) {
            self.broker.step(now, Command::Tick, &mut effects);
        }
        self.broker.finish_turn(&mut effects);
        let room = |had: usize, before: usize| had.max(before / 2).min(MOST_ROOM);
        self.room = (
            room(effects.writes.as_slice().len(), writes),
            room(effects.outputs.len(), outputs),
        );
        effects
    }

    fn conclude(
        &mut self,
        mut effects: Effects,
        caller: Option<CallerLoad>,
        emitted: &mut Vec<Output>,
        reads: &mut Vec<ReadRequest>,
    ) {
        let now = self.broker.now().wall;
        let path = |entity| self.broker.path_of(entity);
        self.lineage.take(&mut effects.lineage, now, path);
        effects.lineage.events.shrink_to(MOST_ROOM);
        self.lineage_room = std::mem::take(&mut effects.lineage);
        let outputs = self.submit(effects, caller, reads);
        if self.store.failure().is_none() {
            let durable = self.store.durable();
            self.released = durable;
            self.outbox.release(durable, emitted);
            self.outbox.hold(self.submitted, durable, outputs, emitted);
        }
    }

    /// When a turn is wanted although nothing arrived.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        let deadline = self.broker.deadline();
        if !self.has_deleted() {
            return deadline;
        }
        Some(Deadline {
            mono: Some(self.broker.now().mono),
            ..deadline.unwrap_or_default()
        })
    }

    /// Whether a deletion waits for a commit, or is to hear of it: that it goes on is not a matter
    /// of time.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deletion.is_some()
    }

    /// Whether a deletion is about to go on, and a client has lately asked for something else.
    #[must_use]
    pub fn is_deleting_beside_others(&self) -> bool {
        self.has_deleted() && self.broker.has_other_requests()
    }

    /// Whether deletions go on no more until this is called again: they may rest, as if their last
    /// piece took so long to become durable.
    pub fn hold_deletions(&mut self, hold: bool) {
        self.holds_deletions = hold;
    }

    /// The store, for its reader and its state.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// What is recorded of the messages of a namespace, if anything is.
    #[must_use]
    pub fn lineage(&self, namespace: NamespaceId) -> Option<LineageReader> {
        let is_on = self.broker.records_lineage(namespace);
        is_on.then(|| self.lineage.reader(namespace))
    }

    /// The newest commit.
    #[must_use]
    pub fn submitted(&self) -> CommitId {
        self.submitted
    }

    /// The newest commit of which all was handed out that waited for it.
    #[must_use]
    pub fn released(&self) -> CommitId {
        self.released
    }

    /// Whether everything decided so far is durable.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.store.durable() >= self.submitted
    }

    /// Closes the store; everything decided is durable then. May block.
    ///
    /// # Errors
    /// When the store has failed, now or before.
    pub fn close(self) -> Result<(), StoreError> {
        self.store.close()
    }

    /// Whether the last piece of a deletion is durable and the broker does not know yet, but is to.
    fn has_deleted(&self) -> bool {
        let durable = self.store.durable();
        !self.holds_deletions && self.deletion.is_some_and(|deletion| deletion <= durable)
    }

    fn look_at_room(&mut self, now: Now, effects: &mut Effects) {
        let nearly_full = self.store.is_nearly_full();
        if nearly_full != self.nearly_full {
            self.nearly_full = nearly_full;
            self.broker
                .step(now, Command::StoreSpace { nearly_full }, effects);
        }
    }

    /// Returns what is to be said once it may be.
    fn submit(
        &mut self,
        effects: Effects,
        caller: Option<CallerLoad>,
        reads: &mut Vec<ReadRequest>,
    ) -> Vec<Output> {
        if !effects.writes.is_empty() {
            self.submitted = match caller {
                None => self.store.submit(effects.writes),
                Some(caller) => self.store.commit(effects.writes, caller),
            };
            let expected = effects.submitted.next();
            debug_assert!(
                self.submitted == expected || self.store.failure().is_some(),
                "what is written now rests on {expected:?}, not on {:?}",
                self.submitted
            );
        }
        if effects.deletes {
            self.deletion = Some(self.submitted);
        }
        // A turn that writes nothing is no commit.
        reads.extend(effects.reads.into_iter().map(|asked| ReadRequest {
            after: asked.after.min(self.submitted),
            ..asked
        }));
        effects.outputs
    }
}
