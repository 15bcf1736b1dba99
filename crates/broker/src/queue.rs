//! Queue: one entity, its parts and its counters.
//!
//! Every row that is put or removed goes through here, so that counters are exact and windows,
//! journals and heads hear of it. What can be done with messages has a file for each kind.
//! Invariant: a live message is in exactly one part; a part's count is what its window accounts
//! for, plus its locks, plus what is on disk only.

pub(crate) mod head;
pub(crate) mod idle;
pub(crate) mod info;
pub(crate) mod journal;
pub(crate) mod kind;
pub(crate) mod subscription;

use crate::message::Message;
use store::{
    BodyPointer, EntityId, Head, MessageRow, NamespaceId, Part, PartHead, SequenceNumber, Write,
};

use std::collections::VecDeque;
use std::sync::Arc;

use crate::api::id::{Subqueue, SubqueueId};
use crate::api::settings::{Expiry, QueueSettings};
use crate::api::store_only::StoreOnlyProperties;
use crate::api::time::{Mono, Wall};
use crate::api::traffic::Traffic;
use crate::context::Context;
use crate::context::alarms::Alarm;
use crate::delete::Deletion;
use crate::expire::index::ExpiryIndex;
use crate::expire::sweep::Sweep;
use crate::message::entry::Entry;
use crate::message::row;
use crate::queue::idle::Idle;
use crate::queue::journal::Journal;
use crate::queue::kind::Kind;
use crate::send::duplicates::Duplicates;
use crate::send::schedule::Schedule;
use crate::sessions::Sessions;
use crate::subqueue::Sub;

/// One entity.
#[derive(Debug)]
pub(crate) struct Queue {
    pub id: EntityId,
    pub namespace: NamespaceId,
    pub path: String,
    pub kind: Kind,
    pub settings: QueueSettings,
    /// Large and rarely looked at.
    pub kept: Arc<StoreOnlyProperties>,
    pub times: Times,
    pub idle: Idle,
    pub head: Head,
    pub subs: [Sub; 3],
    pub schedule: Schedule,
    pub expiry: ExpiryIndex,
    pub duplicates: Duplicates,
    /// Of a queue with sessions; its main window knows no messages.
    pub sessions: Option<Box<Sessions>>,
    pub sweep: Option<Sweep>,
    /// In the order in which they were asked for.
    pub deletions: VecDeque<Deletion>,
    /// Whether it waits for its turn to delete.
    pub is_in_line: bool,
    pub journal: Journal,
    pub traffic: Traffic,
    /// Whether the head has to be written at the end of the turn.
    pub touched: bool,
    pub alarm: Alarm,
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
        settings: QueueSettings,
        times: Times,
        head: Head,
        window: usize,
    ) -> Self {
        let mut subs = Subqueue::ALL.map(|subqueue| Sub::new(window, head.part(subqueue.part())));
        let schedule = Schedule::new(window, head.schedule_from);
        let duplicates = Duplicates::new(&head);
        let sessions = settings.requires_session.then(|| {
            subs[Subqueue::Main as usize] = Sub::new(window, &PartHead::default());
            let unknown = head.part(Part::Active).count > 0;
            Box::new(Sessions::new(unknown, head.session_state_bytes))
        });
        Self {
            id,
            namespace,
            path,
            kind: Kind::Queue,
            settings,
            kept: Arc::default(),
            times,
            idle: Idle::default(),
            head,
            subs,
            schedule,
            expiry: ExpiryIndex::default(),
            duplicates,
            sessions,
            sweep: None,
            deletions: VecDeque::new(),
            is_in_line: false,
            journal: Journal::default(),
            traffic: Traffic::default(),
            touched: false,
            alarm: Alarm::default(),
        }
    }

    pub(crate) fn sub(&self, subqueue: Subqueue) -> &Sub {
        &self.subs[subqueue as usize]
    }

    pub(crate) fn sub_mut(&mut self, subqueue: Subqueue) -> &mut Sub {
        &mut self.subs[subqueue as usize]
    }

    pub(crate) fn place(&self, subqueue: Subqueue) -> SubqueueId {
        SubqueueId {
            entity: self.id,
            subqueue,
        }
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
        self.message_bytes().saturating_add(states)
    }

    /// Bytes of all messages, subqueues included.
    pub(crate) fn message_bytes(&self) -> u64 {
        let parts = self.head.parts.iter();
        parts.fold(0, |sum, part| part.bytes.saturating_add(sum))
    }

    /// How many of a subqueue's messages its window does not account for.
    pub(crate) fn beyond(&self, subqueue: Subqueue) -> u64 {
        let sub = self.sub(subqueue);
        if subqueue == Subqueue::Main && self.sessions.is_some() {
            return self.head.part(subqueue.part()).count;
        }
        let known = sub.window.len() + sub.locks.on_available();
        let count = self.head.part(subqueue.part()).count;
        count.saturating_sub(known as u64)
    }

    /// Whether a message of the subqueue is past its deadline. In a dead-letter queue nothing
    /// expires. (docs/spec/entities.md#7.2)
    pub(crate) fn is_expired(subqueue: Subqueue, row: &MessageRow, now: Wall) -> bool {
        subqueue == Subqueue::Main && row.expires_ms <= now.0
    }

    /// Whether messages past their deadline leave now.
    pub(crate) fn may_expire(&self, cx: &Context<'_>) -> bool {
        match self.settings.expiry.unwrap_or(cx.shared.settings.expiry) {
            Expiry::Eager => true,
            Expiry::Cloud => self.sub(Subqueue::Main).attached > 0,
        }
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
        let beyond = self.beyond(subqueue);
        self.sub_mut(subqueue).browsers.entered(number);
        self.put_row(subqueue.part(), number, entry.row, cx);
        self.offer(subqueue, number, entry, beyond, cx);
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
        self.journal.note(number);
        self.sub_mut(subqueue).fetch.note(number);
        if subqueue == Subqueue::Main {
            self.note_deadline(number, entry.row.expires_ms, cx);
        }
        // The message itself is neither locked nor in the window at this moment.
        let others = self.beyond(subqueue).saturating_sub(1);
        self.offer(subqueue, number, entry, others, cx);
    }

    fn offer(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        entry: Entry,
        beyond: u64,
        cx: &mut Context<'_>,
    ) {
        let sub = self.sub_mut(subqueue);
        sub.needs_pump = true;
        sub.selections.available(number, entry);
        if let Some(spilled) = sub.window.insert(number, entry, beyond) {
            drop(cx.shared.bodies.take(spilled.body));
        }
    }

    /// The expiry index hears of a message with a deadline.
    pub(crate) fn note_deadline(
        &mut self,
        number: SequenceNumber,
        expires: u64,
        cx: &mut Context<'_>,
    ) {
        if let Some(write) = self.expiry.lower(self.id, number, expires) {
            cx.write(write);
        }
    }

    /// Whether a message is neither available nor locked, as far as memory knows.
    pub(crate) fn is_apart(&self, number: SequenceNumber) -> bool {
        let is_here = |sub: &Sub| sub.window.get(number).is_some() || sub.locks.contains(number);
        !self.subs.iter().any(is_here)
    }

    /// An available message leaves its place in the window, which knows it.
    pub(crate) fn take_available(&mut self, subqueue: Subqueue, number: SequenceNumber) {
        let taken = self.sub_mut(subqueue).window.take(number);
        assert!(taken.is_some(), "message {number} is not available");
    }

    /// Writes a row into a part.
    pub(crate) fn put_row(
        &mut self,
        part: Part,
        number: SequenceNumber,
        row: MessageRow,
        cx: &mut Context<'_>,
    ) {
        debug_assert!(
            number < self.head.next_number,
            "a number is taken before its row is written"
        );
        self.touch(cx);
        self.traffic.arrive(part);
        let head = self.head.part_mut(part);
        if head.count == 0 || number.0 < head.resume {
            head.resume = number.0;
        }
        head.count = head.count.saturating_add(1);
        head.bytes = head.bytes.saturating_add(u64::from(row.size));
        if let Some(topic) = self.kind.topic() {
            cx.shared.topics.weigh(topic, i64::from(row.size));
        }
        cx.write(Write::PutMessage {
            entity: self.id,
            part,
            number,
            row,
        });
        self.session_row_put(part, number, row.session_hash, cx);
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
        self.touch(cx);
        self.traffic.depart(part);
        let head = self.head.part_mut(part);
        // Saturating, since a head comes from the disk and this must not bring the broker down.
        head.count = head.count.saturating_sub(1);
        head.bytes = head.bytes.saturating_sub(u64::from(row.size));
        if let Some(topic) = self.kind.topic() {
            cx.shared.topics.weigh(topic, -i64::from(row.size));
        }
        cx.write(Write::RemoveMessage {
            entity: self.id,
            part,
            number,
        });
        self.journal.note(number);
        self.session_row_removed(part, number, row.session_hash, cx);
        if let Some(subqueue) = window_of(part) {
            let sub = self.sub_mut(subqueue);
            sub.window.forget(number);
            sub.selections.gone(number);
        }
    }

    /// Removes a message and all that belongs to it. `patched` tells whether it may have a patch.
    pub(crate) fn erase(&mut self, message: &Message, patched: bool, cx: &mut Context<'_>) {
        self.erase_row(message, patched, cx);
        let pointer = message.row.body;
        cx.write(if row::is_shared(&message.row) {
            Write::ReleaseBody { pointer }
        } else {
            Write::RemoveBody { pointer }
        });
    }

    /// Removes a message and all that belongs to it but its body.
    pub(crate) fn erase_row(&mut self, message: &Message, patched: bool, cx: &mut Context<'_>) {
        self.remove_row(message.part, message.number, &message.row, cx);
        let (entity, number) = (self.id, message.number);
        if message.delivery_count > 0 {
            cx.write(Write::RemoveDeliveryCount { entity, number });
        }
        if patched {
            cx.write(Write::RemovePatch { entity, number });
        }
    }

    /// The pointer of a body that arrives here under this number.
    pub(crate) fn pointer(&self, number: SequenceNumber) -> BodyPointer {
        BodyPointer {
            home: self.id,
            number,
        }
    }

    /// The head is to be written at the end of the turn.
    pub(crate) fn touch(&mut self, cx: &mut Context<'_>) {
        if !self.touched {
            self.touched = true;
            cx.shared.touched.push(self.id);
        }
    }

    /// The end of a step: delivers what can be delivered and sets the alarm.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>) {
        self.go_on_deleting(cx);
        self.run_on(cx);
    }

    /// The same, less what is deleted.
    pub(crate) fn run_on(&mut self, cx: &mut Context<'_>) {
        // Ascending: the main queue may add to the dead-letter queue, never the reverse.
        for subqueue in Subqueue::ALL {
            if std::mem::take(&mut self.sub_mut(subqueue).needs_pump) {
                self.dispatch(subqueue, cx);
                if self.forwards(subqueue) {
                    cx.shared.pumps.insert(self.place(subqueue));
                }
            }
        }
        self.set_alarm(cx);
    }

    /// Says when it wants a tick.
    pub(crate) fn set_alarm(&mut self, cx: &mut Context<'_>) {
        let alarm = Alarm {
            mono: self.mono_alarm(cx),
            wall: self.wall_alarm(cx),
        };
        cx.shared.alarms.set(self.id, self.alarm, alarm);
        self.alarm = alarm;
    }

    fn mono_alarm(&self, cx: &Context<'_>) -> Option<Mono> {
        if self.subs.iter().any(|sub| sub.needs_pump) {
            return Some(cx.now.mono);
        }
        let sessions = self.sessions.as_ref().and_then(|s| s.deadline());
        let subs = self.subs.iter().filter_map(Sub::deadline);
        let others = [sessions, self.schedule.retry_at, self.idle_alarm()];
        let wanted = subs.chain(others.into_iter().flatten()).min();
        // An alarm that is too early costs less than moving it with every lock.
        match self.alarm.mono {
            Some(set) if set > cx.now.mono && wanted.is_some_and(|wanted| set <= wanted) => {
                Some(set)
            }
            _ => wanted,
        }
    }

    fn wall_alarm(&self, cx: &Context<'_>) -> Option<Wall> {
        let alarms = [
            self.expiry_alarm(cx),
            self.history_alarm(),
            self.schedule_alarm(),
        ];
        alarms.into_iter().flatten().min()
    }

    fn expiry_alarm(&self, cx: &Context<'_>) -> Option<Wall> {
        if !self.may_expire(cx) {
            return None;
        }
        match &self.sweep {
            Some(sweep) if sweep.is_waiting() => None,
            Some(_) => Some(cx.now.wall),
            None => self.expiry.next_due().map(Wall),
        }
    }
}

/// The subqueue whose window is about this part.
fn window_of(part: Part) -> Option<Subqueue> {
    Subqueue::ALL
        .into_iter()
        .find(|subqueue| subqueue.part() == part)
}
