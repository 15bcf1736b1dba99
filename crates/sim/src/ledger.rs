//! Ledger: what clients asked for and were told, message by message, and what can therefore not be.
//!
//! It shares no code with the broker's decisions. Every turn of the shard is looked at from four
//! sides: what it was told (`turn.rs`), what it wrote (`moves.rs`), what it said (`answers.rs`,
//! `deliveries.rs`), and what it left undone (`watch.rs`). Each costs what changed, not what there
//! is; now and then a full look at the store (`recount.rs`) checks the ledger itself.
//! The invariants are numbered as in docs/spec/invariants.md.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Incoming, LockToken, Mono, Now, Overflow, Priorities, ReceiverId, RetryBackoff,
    SessionCountOnDisconnect, Status, Subqueue, Wall,
};
use bytes::Bytes;
use store::image::Image;
use store::{CommitId, EntityId, SequenceNumber};

use crate::books::{Books, Kind};
use crate::inbox::NamespaceIndex;
use crate::message::{self, MessageId, SendOptions};
use crate::report::Report;
use crate::rng::Rng;
use crate::session::Session;
use crate::violation::Violation;

mod administration;
mod answers;
mod asked;
mod browse;
mod clients;
mod deletions;
mod deliveries;
mod duplicates;
mod entities;
mod entry;
mod expired_sessions;
mod forward;
mod length;
mod locks;
mod moves;
mod order;
mod recount;
mod redrive;
mod retries;
mod returned;
pub mod routing;
mod schedule;
mod sessions;
mod settlements;
mod states;
#[cfg(test)]
mod tests;
mod topics;
mod transactions;
mod turn;
mod turn_end;
mod watch;

use administration::Versions;
use answers::Answers;
use clients::Clients;
use deletions::Deletions;
use duplicates::History;
use entry::{Entry, Sent};
use expired_sessions::ExpiredSessions;
use forward::Forwarding;
use schedule::Schedules;
use sessions::Sessions;
use states::States;
use transactions::Transactions;
use turn::Turn;
use watch::Watch;

pub use schedule::Scheduled;
pub use transactions::LIFE as TRANSACTION_LIFE;
pub use turn_end::{TurnEnd, entity_of};

/// What holds for the messages of one simulated queue.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Queue {
    pub path: &'static str,
    pub id: EntityId,
    /// Milliseconds.
    pub lock_duration: u64,
    pub max_delivery_count: u32,
    /// Milliseconds; `u64::MAX` without one.
    pub default_ttl: u64,
    pub dead_letters_expired: bool,
    /// What would be a dead letter goes.
    pub drops_dead_letters: bool,
    /// Its messages are received by session.
    pub sessions: bool,
    /// What is past its deadline leaves only while a client receives, and takes its session along.
    pub cloud: bool,
    /// Milliseconds for which an id is remembered, if it detects duplicates.
    pub duplicate_window: Option<u64>,
    /// Where its messages go by themselves, by index.
    pub forwards_to: Option<usize>,
    pub forwards_dead_letters_to: Option<usize>,
    /// Its receivers take messages without a lock, so a crash may lose what was on its way.
    pub receive_and_delete: bool,
    /// What is sent there goes on to its subscriptions.
    pub is_topic: bool,
    /// Whose subscription it is, by index.
    pub topic: Option<usize>,
    /// As a subscription it takes what its rules cannot be evaluated for, as a dead letter.
    pub dead_letters_failures: bool,
    /// Milliseconds; `u64::MAX` for never.
    pub auto_delete_on_idle: u64,
    /// The same without receivers.
    pub expires: u64,
    /// Beyond that its oldest available messages are dead-lettered.
    pub max_length: Option<u64>,
    /// Unless new messages are refused then.
    pub overflow: Overflow,
    pub retry_backoff: Option<RetryBackoff>,
    pub priorities: Option<Priorities>,
    pub status: Status,
    /// A request to remove it was made.
    pub going: bool,
    /// It was removed.
    pub gone: bool,
    /// Its status has changed or it was removed at some time, so it may have refused clients.
    pub unsteady: bool,
    /// When it was last used: it may be idle since then.
    pub used: Mono,
    /// When it was made, or this process began: it may have no receiver since then.
    pub began: Mono,
}

impl Queue {
    /// What is to be known of it to keep its books, among all of these.
    fn kind(&self, queues: &[Self]) -> Kind {
        Kind {
            sessions: self.sessions,
            cloud: self.cloud,
            is_topic: self.is_topic,
            topic: self.topic.map(|topic| queues[topic].id),
        }
    }
}

/// How a client asked to end a lock.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[allow(missing_docs, reason = "named for what they are")]
pub enum Ask {
    Complete,
    Abandon,
    Release,
    DeadLetter,
    Defer,
}

/// The book-keeping of a run.
#[derive(Debug)]
pub struct Ledger {
    /// The simulated queues.
    pub queues: Vec<Queue>,
    /// What the store must hold.
    pub books: Books,
    /// Whether a lost connection ends its locks.
    drops_locks: bool,
    /// Whether it raises the counts of what it held by session.
    session_counts: SessionCountOnDisconnect,
    entries: BTreeMap<MessageId, Entry>,
    next_id: MessageId,
    max_wall: Wall,
    epoch: u64,
    /// First deliveries, which must come in order, by session where there are such. (I4)
    first_delivered: BTreeMap<(usize, Option<Session>, Option<u8>), u64>,
    /// The greatest enqueued time given out.
    last_enqueued: Vec<u64>,
    deferred: BTreeSet<(usize, Subqueue, SequenceNumber)>,
    schedules: Schedules,
    history: History,
    forwarding: Forwarding,
    routing: routing::Routing,
    sessions: Sessions,
    states: States,
    expired_sessions: ExpiredSessions,
    versions: Versions,
    deletions: Deletions,
    /// Entities that there may be soon, by their paths in lower case.
    expected: BTreeMap<String, Queue>,
    transactions: Transactions,
    /// Messages that are to be enqueued, and where. One may wait for what its queue remembers.
    sends: BTreeMap<MessageId, EntityId>,
    /// Under which commit messages arrived, as long as that is not durable.
    undurable: BTreeMap<MessageId, CommitId>,
    /// Whose lock each token is, or was.
    tokens: BTreeMap<LockToken, MessageId>,
    /// What was received and deleted, by what was sent and the number it was given out under.
    given: BTreeMap<(MessageId, SequenceNumber), Vec<MessageId>>,
    /// The last moment at which nothing was held back: whatever is said now was decided later.
    pub(crate) last_quiet: Mono,
    turn: Turn,
    answers: Answers,
    clients: Clients,
    watch: Watch,
    /// Taken without a lock under a commit; the delivery comes once that is durable.
    undelivered: Vec<(CommitId, MessageId)>,
    /// What the run did so far.
    pub report: Report,
}

impl Ledger {
    /// An empty ledger for `queues`; `drops_locks` says whether a lost connection ends its locks.
    #[must_use]
    pub fn new(queues: Vec<Queue>, drops_locks: bool, now: Now) -> Self {
        let count = queues.len();
        let kinds = queues.iter().map(|queue| (queue.id, queue.kind(&queues)));
        let kinds = kinds.collect();
        Self {
            queues,
            books: Books::new(kinds),
            drops_locks,
            session_counts: SessionCountOnDisconnect::Keep,
            entries: BTreeMap::new(),
            next_id: 1,
            max_wall: Wall(0),
            epoch: 0,
            first_delivered: BTreeMap::new(),
            last_enqueued: vec![0; count],
            deferred: BTreeSet::new(),
            schedules: Schedules::default(),
            history: History::default(),
            forwarding: Forwarding::default(),
            routing: routing::Routing::default(),
            sessions: Sessions::default(),
            states: States::default(),
            expired_sessions: ExpiredSessions::default(),
            versions: Versions::default(),
            deletions: Deletions::default(),
            expected: BTreeMap::new(),
            transactions: Transactions::default(),
            sends: BTreeMap::new(),
            undurable: BTreeMap::new(),
            tokens: BTreeMap::new(),
            given: BTreeMap::new(),
            last_quiet: now.mono,
            turn: Turn::new(now, None),
            answers: Answers::default(),
            clients: Clients::default(),
            watch: Watch::default(),
            undelivered: Vec::new(),
            report: Report::default(),
        }
    }

    /// Gives messages other ids than the ledgers of other namespaces do.
    pub fn name_messages_as(&mut self, namespace: NamespaceIndex) {
        self.next_id = 1 + ((namespace as u64) << message::NAMESPACE_SHIFT);
    }

    /// A name for the next message to a queue, which says its session too.
    pub fn fresh_id(&mut self, rng: &mut Rng, queue: usize) -> MessageId {
        let queue = &self.queues[queue];
        // Of a topic's subscriptions some may need a session and others not.
        let needed = queue.sessions || queue.is_topic && rng.chance(500);
        let session = Session::for_message(rng, needed);
        self.next_id(session)
    }

    /// A name for the next message, of a session or none.
    pub fn next_id(&mut self, session: Option<Session>) -> MessageId {
        self.next_id += 1;
        Session::name_message(session, self.next_id - 1)
    }

    /// Where a receiver takes its messages from, or took them.
    #[must_use]
    pub fn source_of(&self, receiver: ReceiverId) -> Option<(EntityId, Subqueue)> {
        self.clients.source_ever(receiver)
    }

    /// Whose lock a token is, or was.
    #[must_use]
    pub fn locked_by(&self, token: LockToken) -> Option<MessageId> {
        self.tokens.get(&token).copied()
    }

    /// A client sends.
    pub fn send_asked(
        &mut self,
        id: MessageId,
        queue: usize,
        payload: Bytes,
        options: SendOptions,
        now: Now,
    ) {
        let ttl = options
            .ttl
            .map_or(u64::MAX, u64::from)
            .min(self.queues[queue].default_ttl);
        let mut entry = Entry::new(queue, payload, ttl, now.wall, self.epoch);
        entry.due = options.due.unwrap_or(0);
        entry.key = options.key.unwrap_or(id);
        entry.marked = message::number_of(id);
        self.entries.insert(id, entry);
    }

    /// Whether ids matter to a queue, or may to another where its messages go by themselves.
    #[must_use]
    pub fn may_detect_duplicates(&self, queue: usize) -> bool {
        let queue = &self.queues[queue];
        let goes_on = queue.forwards_to.or(queue.forwards_dead_letters_to);
        queue.duplicate_window.is_some() || queue.is_topic || goes_on.is_some()
    }

    /// Messages are submitted to the shard, and count as it has them from now on. Returns their
    /// ids.
    fn record_submitted(&mut self, messages: &[Incoming]) -> Vec<MessageId> {
        let mut ids = Vec::with_capacity(messages.len());
        for taken in messages.iter().map(|message| &message.payload) {
            let id = message::id_of(taken);
            ids.extend(id);
            let entry = id.and_then(|id| self.entries.get_mut(&id));
            if let Some(entry) = entry.filter(|entry| message::is_taken_as(&entry.payload, taken)) {
                entry.payload = taken.clone();
            }
        }
        ids
    }

    /// A client was told what became of its send.
    ///
    /// # Errors
    /// I1, when it was told that it was accepted and the shard never said so.
    pub fn send_answered(&mut self, id: MessageId, accepted: bool) -> Result<(), Violation> {
        self.report.accepted += u64::from(accepted);
        let Some(entry) = self.entries.get_mut(&id) else {
            return Ok(());
        };
        if accepted && !entry.confirmed {
            let what = format!("message {id} was accepted without the shard having said so");
            return Err(Violation::new("I1", what));
        }
        entry.sent = if accepted {
            Sent::Accepted
        } else {
            Sent::Refused
        };
        Ok(())
    }

    /// A client will never know what became of its send.
    pub fn send_lost(&mut self, id: MessageId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.sent = Sent::Unknown;
        }
    }

    /// Checks that a client got each message that is taken without a lock, if no crash touched it.
    ///
    /// # Errors
    /// I1, when one is gone that no client got. For a time when nothing is on its way.
    pub fn all_taken(&self) -> Result<(), Violation> {
        let lost = self.entries.iter().find(|(_, entry)| {
            let queue = &self.queues[entry.queue];
            queue.receive_and_delete
                && entry.epoch == self.epoch
                && entry.sent == Sent::Accepted
                && !entry.gone
                && entry.duplicate_of.is_none()
                && !entry.may_have_expired(queue, self.max_wall)
        });
        match lost {
            Some((id, _)) => Err(Violation::new(
                "I1",
                format!("message {id} was accepted and nobody got it"),
            )),
            None => Ok(()),
        }
    }

    /// The wall clock says `wall` now, perhaps less than before.
    pub fn clock(&mut self, wall: Wall, jumped_back: bool) {
        self.max_wall = self.max_wall.max(wall);
        if jumped_back {
            self.answers.handle_earlier_clock(wall);
            self.transactions.handle_earlier_clock(wall);
            for entry in self.entries.values_mut() {
                entry.asked_wall = entry.asked_wall.min(wall);
            }
        }
    }

    /// The broker lost everything that was not durable; `image` is what is left.
    ///
    /// # Errors
    /// Whatever a [`recount`](Self::recount) finds.
    pub fn crashed(&mut self, image: &Image) -> Result<(), Violation> {
        self.epoch += 1;
        self.tokens.clear();
        self.given.clear();
        self.undelivered.clear();
        self.answers = Answers::default();
        self.clients = Clients::default();
        self.watch = Watch::default();
        self.schedules.crashed();
        self.sends.clear();
        self.undurable.clear();
        self.books = self.books.after_crash(image)?;
        self.forwarding = Forwarding::default();
        self.sessions = Sessions::default();
        // Sessions that began to expire go on to do so after a crash.
        self.expired_sessions.retain(|(entity, _), until| {
            let head = image.heads.get(entity);
            *until = head.map_or(SequenceNumber(0), |head| head.next_number.min(*until));
            head.is_some()
        });
        self.deletions = Deletions::default();
        self.versions.crashed();
        self.entities_crashed(image);
        self.transactions = Transactions::default();
        self.states_crashed()?;
        self.copies_crashed(image)?;
        self.put_back();
        for (id, entry) in &mut self.entries {
            entry.lock = None;
            entry.freed = 0;
            // It may have swallowed the sight of deliveries whose failures were already written.
            let count = self.books.place(*id).map(|place| self.books.count(place));
            entry.deliveries = entry.deliveries.max(count.unwrap_or(0));
        }
        let queues = self.queues.iter();
        let last = queues.map(|queue| self.books.last_enqueued_ms(queue.id));
        self.last_enqueued = last.collect();
        for queue in 0..self.queues.len() {
            let head = image.heads.get(&self.queues[queue].id);
            let next = head.map_or(SequenceNumber::FIRST, |head| head.next_number);
            self.forget_lost(queue, next);
        }
        self.recount(image)
    }

    /// Every message is where the crash has left it.
    fn put_back(&mut self) {
        for (id, entry) in &mut self.entries {
            let Some(place) = self.books.place(*id) else {
                continue;
            };
            let mut queues = self.queues.iter();
            if let Some(queue) = queues.position(|queue| queue.id == place.entity) {
                entry.undo_forwards(queue);
                entry.undo_redrives(place.number);
                entry.number = Some(place.number);
                entry.duplicate_of = None;
            }
        }
    }

    /// Which of the queues an entity is.
    fn queue_of(&self, entity: EntityId) -> Option<usize> {
        self.queues.iter().position(|queue| queue.id == entity)
    }
}
