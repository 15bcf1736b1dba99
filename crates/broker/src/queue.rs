//! Queue: one entity, and what joins its parts.
//!
//! Each part owns its state and its methods: rows, subqueues, sessions, schedule, duplicates,
//! deletions. Here is what concerns several of them: a message enters, returns to its place or
//! leaves, and rows, windows and sessions hear of it. What is done with messages is in the chapters
//! above (`send`, `receive`, `settle`, `expire`, `delete`).
//! Invariant: a live message is in exactly one part of the store, and in exactly one place in
//! memory if it is known there.

pub(crate) mod activity;
mod alarm;
mod enter;
mod fold_session_ids;
pub(crate) mod governed;
pub(crate) mod head;
pub(crate) mod idle;
pub(crate) mod info;
pub(crate) mod journal;
pub(crate) mod kind;
pub(crate) mod lease;
pub(crate) mod origins;
pub(crate) mod returns;
pub(crate) mod rows;
pub(crate) mod session_key;
pub(crate) mod subscription;

use std::sync::Arc;

use store::{EntityId, Head, MessageRow, NamespaceId, Part, SequenceNumber};

use crate::api::error::Eviction;
use crate::api::id::{ConnectionId, Subqueue, SubqueueId};
use crate::api::settings::{Expiry, QueueSettings};
use crate::api::store_only::StoreOnlyProperties;
use crate::api::time::{Now, Wall};
use crate::context::Context;
use crate::context::alarms::Alarm;
use crate::delete::deletions::Deletions;
use crate::expire::index::ExpiryIndex;
use crate::expire::sweep::Sweep;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::queue::governed::Governed;
use crate::queue::idle::Idle;
use crate::queue::kind::Kind;
use crate::queue::lease::Lease;
use crate::queue::origins::Origins;
use crate::queue::rows::Rows;
use crate::queue::session_key::SessionIds;
use crate::send::duplicates::Duplicates;
use crate::send::schedule::Schedule;
use crate::sessions::{Parts, Sessions};
use crate::subqueue::SubqueueState;
use crate::subqueue::ceilings::Ceilings;

/// One entity.
#[derive(Debug)]
pub(crate) struct Queue {
    pub id: EntityId,
    pub namespace: NamespaceId,
    pub path: String,
    /// The first of the entities of that path that restores have replaced, one by the next, up to
    /// this one.
    pub replaces: Option<EntityId>,
    pub kind: Kind,
    /// Those in force.
    pub settings: QueueSettings,
    /// What policies have to do with them, if any applies.
    pub governed: Option<Box<Governed>>,
    /// Large and rarely looked at.
    pub store_only: Arc<StoreOnlyProperties>,
    /// Whether it or its topic is. (docs/spec/entities.md#19)
    pub is_partitioned: bool,
    pub times: Times,
    pub idle: Idle,
    pub lease: Lease,
    /// The connection that an exclusive queue belongs to.
    pub owner: Option<ConnectionId>,
    pub rows: Rows,
    pub subs: [SubqueueState; 3],
    pub schedule: Schedule,
    pub expiry: ExpiryIndex,
    pub duplicates: Duplicates,
    /// Of a queue with sessions; its main window knows no messages.
    pub sessions: Option<Box<Sessions>>,
    pub sweep: Option<Sweep>,
    pub deletions: Deletions,
    /// Whether there may be messages whose bodies other queues have too.
    pub shares_bodies: bool,
    /// Whether messages that were released unread may have annotations put down with them.
    pub annotates: bool,
    pub alarm: Alarm,
    /// Whether the alarm is to be set again in this turn.
    has_stale_alarm: bool,
}

/// What an entity is made as.
#[derive(Debug)]
pub(crate) struct Description {
    pub kind: Kind,
    pub settings: QueueSettings,
    pub times: Times,
    pub store_only: Arc<StoreOnlyProperties>,
    pub session_ids: SessionIds,
    pub shares_bodies: bool,
    pub annotates: bool,
    pub ceilings: Ceilings,
    pub origins: Origins,
}

/// When an entity was made what it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub created: Wall,
    /// The last change of its settings.
    pub updated: Wall,
}

impl Queue {
    /// A queue as its head says; without a head it is new.
    pub(crate) fn new(
        id: EntityId,
        namespace: NamespaceId,
        path: String,
        description: Description,
        head: Head,
        window: usize,
    ) -> Self {
        let Description {
            kind,
            settings,
            times,
            store_only,
            session_ids,
            shares_bodies,
            annotates,
            ceilings,
            origins,
        } = description;
        let session_ids = settings.requires_session.then_some(session_ids);
        let mut subs = Subqueue::ALL.map(|subqueue| {
            let place = SubqueueId {
                entity: id,
                subqueue,
            };
            let by_session = session_ids.is_some() && subqueue == Subqueue::Main;
            SubqueueState::new(window, place, by_session, head.part(subqueue.part()))
        });
        subs[Subqueue::Main as usize].ceilings = ceilings;
        let schedule = Schedule::new(window, head.schedule_from);
        let duplicates = Duplicates::new(&head);
        let sessions = session_ids.map(|ids| {
            let unknown = head.part(Part::Active).count > 0;
            Box::new(Sessions::new(ids, unknown, head.session_state_bytes))
        });
        let (topic, levels) = (kind.topic(), settings.priorities);
        let mut rows = Rows::new(id, namespace, topic, session_ids, levels, head);
        rows.origins = origins;
        let is_partitioned = store_only.enable_partitioning;
        Self {
            id,
            namespace,
            path,
            replaces: None,
            kind,
            settings,
            governed: None,
            store_only,
            is_partitioned,
            times,
            idle: Idle::default(),
            lease: Lease::default(),
            owner: None,
            rows,
            subs,
            schedule,
            expiry: ExpiryIndex::default(),
            duplicates,
            sessions,
            sweep: None,
            deletions: Deletions::default(),
            shares_bodies,
            annotates,
            alarm: Alarm::default(),
            has_stale_alarm: false,
        }
    }

    /// The settings that it was given, whatever policies make of them.
    pub(crate) fn own(&self) -> &QueueSettings {
        match &self.governed {
            Some(governed) => &governed.own,
            None => &self.settings,
        }
    }

    /// Messages that are there live no longer than that from now on.
    pub(crate) fn shorten_lives(&mut self, ttl_ms: u64) {
        let end = self.rows.next_arrival();
        let ceilings = &mut self.sub_mut(Subqueue::Main).ceilings;
        ceilings.lower(end, ttl_ms);
        self.recheck_lives();
    }

    /// The deadlines of messages are not all known: they are looked for.
    pub(crate) fn recheck_lives(&mut self) {
        // Some of the scheduled ones may wait for their next delivery.
        let parts = [Subqueue::Main.part(), Part::Scheduled];
        if parts.iter().all(|part| self.rows.count(*part) == 0) {
            self.sub_mut(Subqueue::Main).ceilings.clear();
        } else if !self.sub(Subqueue::Main).ceilings.is_empty() {
            let (first, stragglers) = self.place_of_first(Subqueue::Main);
            let first = stragglers.into_iter().fold(first, SequenceNumber::min);
            self.expiry.recheck(first, self.rows.end());
            if let Some(sweep) = &mut self.sweep {
                sweep.reach = None;
            }
        }
    }

    pub(crate) fn sub(&self, subqueue: Subqueue) -> &SubqueueState {
        &self.subs[subqueue as usize]
    }

    pub(crate) fn sub_mut(&mut self, subqueue: Subqueue) -> &mut SubqueueState {
        &mut self.subs[subqueue as usize]
    }

    /// Its sessions, if it has some, and the parts of it that they work with.
    pub(crate) fn by_session(&mut self) -> Option<(&mut Sessions, Parts<'_>)> {
        let parts = Parts {
            rows: &mut self.rows,
            main: &mut self.subs[Subqueue::Main as usize],
            settings: &self.settings,
        };
        Some((self.sessions.as_deref_mut()?, parts))
    }

    /// The same for what only queues with sessions have: holds, and reads and commands about them.
    pub(crate) fn sessions_mut(&mut self) -> (&mut Sessions, Parts<'_>) {
        let found = self.by_session();
        found.expect("holds, reads and commands of sessions are of queues that require them")
    }

    /// How long ago the next available message was enqueued, if that is in memory.
    pub(crate) fn oldest_age(&self, now: Wall) -> Option<u64> {
        let enqueued = match &self.sessions {
            Some(sessions) => sessions.oldest_enqueued()?,
            None => Wall(self.sub(Subqueue::Main).window.first()?.1.row.enqueued_ms),
        };
        Some(now.0.saturating_sub(enqueued.0))
    }

    /// Bytes of all messages, subqueues included, and of sessions' states.
    pub(crate) fn bytes(&self) -> u64 {
        let states = self.sessions.as_ref().map_or(0, |s| s.state_bytes);
        self.rows.message_bytes().saturating_add(states)
    }

    /// Whether there is nothing in it, no state of a session either.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0 && self.rows.head.parts.iter().all(|part| part.count == 0)
    }

    /// The time of an entity that is new or recovered begins to run. A part of it was used `below`.
    pub(crate) fn start_idle(&mut self, below: Option<Wall>, now: Now) {
        let changed = self.times.created.max(self.times.updated);
        let known = Some(changed).max(below).unwrap_or(changed);
        let (accessed, allowed) = (self.accessed(), self.idle_limit_ms());
        self.idle = Idle::start(known, accessed, allowed, now);
        self.lease.start(now.mono);
    }

    /// When it was created, changed or used last, as its head and its definition have it.
    pub(crate) fn last_known_use(&self) -> Wall {
        let Times { created, updated } = self.times;
        created.max(updated).max(self.accessed())
    }

    /// When a client last used it; 0 if none has.
    pub(crate) fn accessed(&self) -> Wall {
        Wall(self.rows.head.accessed_ms)
    }

    /// What was used at that time was a part of this. (docs/spec/entities.md#16)
    pub(crate) fn note_access_at(&mut self, accessed: Wall, cx: &mut Context<'_>) {
        if accessed > self.accessed() {
            self.rows.head.accessed_ms = accessed.0;
            self.rows.touch(cx);
        }
    }

    /// Whether an available message may have a patch: it was delivered, or came with one, or may
    /// have been annotated here.
    pub(crate) fn may_have_patch(&self, entry: &Entry) -> bool {
        self.annotates || entry.may_have_patch()
    }

    /// A client uses the entity.
    pub(crate) fn note_access(&mut self, cx: &mut Context<'_>) {
        self.idle.note_access(&mut self.rows, cx);
    }

    /// Whether it has been unused for too long.
    pub(crate) fn is_idle_for_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(until) = self.idle.until(self.idle_limit_ms()) else {
            return false;
        };
        self.idle.look(cx.now.mono);
        !self.note_lasting_use(cx) && until <= cx.now.mono
    }

    /// Notes a use that lasts, if there is one: a receiver that waits, or a scheduled message.
    pub(crate) fn note_lasting_use(&mut self, cx: &mut Context<'_>) -> bool {
        let is_in_use = self.is_in_use(cx);
        if is_in_use {
            self.note_access(cx);
        }
        is_in_use
    }

    /// How long it may be unused: what forwards is never idle. (docs/spec/entities.md#14.1)
    pub(crate) fn idle_limit_ms(&self) -> u64 {
        let settings = &self.settings;
        let forwards =
            settings.forward_to.is_some() || settings.forward_dead_lettered_messages_to.is_some();
        let is_transfer = matches!(self.kind, Kind::Transfer { .. });
        if is_transfer && self.rows.head.parts.iter().all(|part| part.count == 0) {
            idle::TRANSFER_MS
        } else if forwards {
            u64::MAX
        } else {
            settings.auto_delete_on_idle
        }
    }

    fn is_in_use(&self, cx: &Context<'_>) -> bool {
        let clients = &cx.shared.clients;
        let waits = |slot| clients.get(slot).waits();
        self.rows.count(Part::Scheduled) > 0 || clients.receivers_at(self.id).any(waits)
    }

    /// Whether messages past their deadline leave now.
    pub(crate) fn may_expire(&self, cx: &Context<'_>) -> bool {
        match self.settings.expiry.unwrap_or(cx.shared.settings.expiry) {
            Expiry::Eager => true,
            Expiry::Cloud => self.sub(Subqueue::Main).attached > 0,
        }
    }

    /// Whether messages of a subqueue go on by themselves.
    pub(crate) fn forwards(&self, subqueue: Subqueue) -> bool {
        match subqueue {
            Subqueue::Main => {
                matches!(self.kind, Kind::Topic(_)) || self.settings.forward_to.is_some()
            }
            Subqueue::DeadLetter => {
                self.settings.forward_dead_lettered_messages_to.is_some()
                    || self.settings.dead_letter_router.is_some()
            }
            Subqueue::TransferDeadLetter => false,
        }
    }

    /// After a restart or a change of settings: what can go on goes on with the next tick.
    pub(crate) fn wake_pumps(&mut self) {
        for subqueue in Subqueue::ALL {
            let waits = self.forwards(subqueue) && self.rows.count(subqueue.part()) > 0;
            let sub = self.sub_mut(subqueue);
            sub.needs_dispatch |= waits;
            sub.full_since = None;
        }
        self.sub_mut(Subqueue::Main).needs_dispatch |= self.is_limited();
    }

    /// Why no receiver is allowed on a subqueue, if so.
    pub(crate) fn objection(&self, subqueue: Subqueue) -> Option<Eviction> {
        if !self.settings.status.allows_receive() {
            return Some(Eviction::Disabled);
        }
        self.forwards(subqueue).then_some(Eviction::Forwarding)
    }

    /// A message enters a subqueue as its own: it arrives, or is dead-lettered.
    pub(crate) fn enter(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        entry: Entry,
        cx: &mut Context<'_>,
    ) {
        debug_assert!(self.is_apart(number), "message {number} is here already");
        let sub = &mut self.subs[subqueue as usize];
        let beyond = sub.beyond(&self.rows);
        sub.browsers.entered(number);
        self.rows.put(subqueue.part(), number, entry.row, cx);
        sub.offer(number, entry, beyond, cx);
    }

    /// A message whose lock has ended stands again in its place.
    pub(crate) fn re_enter(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        entry: Entry,
        cx: &mut Context<'_>,
    ) {
        debug_assert!(self.is_apart(number), "message {number} is here already");
        self.rows.journal.note(number);
        if subqueue == Subqueue::Main {
            self.note_deadline(number, &entry.row, cx);
        }
        let sub = &mut self.subs[subqueue as usize];
        sub.fetch.note(number);
        // The message itself is neither locked nor in the window at this moment.
        let others = sub.beyond(&self.rows).saturating_sub(1);
        sub.offer(number, entry, others, cx);
    }

    /// The expiry index hears of a message with a deadline.
    pub(crate) fn note_deadline(
        &mut self,
        number: SequenceNumber,
        row: &MessageRow,
        cx: &mut Context<'_>,
    ) {
        let expires = self.sub(Subqueue::Main).ceilings.expires_ms(number, row);
        if let Some(write) = self.expiry.lower(self.id, number, expires) {
            cx.write(write);
        }
    }

    /// Whether a message is neither available nor locked, as far as memory knows.
    pub(crate) fn is_apart(&self, number: SequenceNumber) -> bool {
        !self.subs.iter().any(|sub| sub.knows(number))
    }

    /// Removes a row from a part. The message is neither in the window nor locked any more.
    pub(crate) fn remove_row(
        &mut self,
        part: Part,
        number: SequenceNumber,
        row: &MessageRow,
        cx: &mut Context<'_>,
    ) {
        debug_assert!(
            self.is_apart(number),
            "message {number} leaves its place before its row goes"
        );
        self.rows.remove(part, number, row, cx);
        if part == Part::Active
            && let Some(sessions) = &mut self.sessions
        {
            if let Some(entry) = sessions.gone(row.session_hash, number) {
                drop(cx.shared.bodies.take(entry.body));
            }
            self.sub_mut(Subqueue::Main).needs_dispatch = true;
        }
        if let Some(subqueue) = window_of(part) {
            self.sub_mut(subqueue).forget(number);
        }
    }

    /// Removes a message and all that belongs to it. `patched` tells whether it may have a patch.
    pub(crate) fn erase(&mut self, message: &Message, patched: bool, cx: &mut Context<'_>) {
        self.erase_row(message, patched, cx);
        Rows::remove_body(&message.row, cx);
    }

    /// Removes a message and all that belongs to it but its body.
    pub(crate) fn erase_row(&mut self, message: &Message, patched: bool, cx: &mut Context<'_>) {
        self.remove_row(message.part, message.number, &message.row, cx);
        self.rows.remove_belongings(message, patched, cx);
    }
}

/// The subqueue whose window is about this part.
fn window_of(part: Part) -> Option<Subqueue> {
    Subqueue::ALL
        .into_iter()
        .find(|subqueue| subqueue.part() == part)
}
