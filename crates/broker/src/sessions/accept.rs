//! Accept: a receiver comes for a session, by its id or for whichever is next.
//!
//! By id it gets the session at once, whether or not it has messages, unless another receiver holds
//! it. For the next one it waits until there is one, it gives up, or its time is up. Waiters are
//! served in order of arrival. (docs/spec/amqp.md#3.4)

use store::SequenceNumber;

use crate::api::error::SessionError;
use crate::api::id::{ReceiverId, Subqueue};
use crate::api::output::Output;
use crate::api::receive_mode::ReceiveMode;
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::clients::{HoldId, ReceiverSlot, SessionRole, WaiterId};
use crate::queue::session_key::SessionKey;
use crate::sessions::survey::CHECK;
use crate::sessions::{Hold, Parts, Record, Sessions, Waiter};
use crate::subqueue::fetch::Fetch;
use crate::subqueue::window::Window;

pub(super) fn refuse(receiver: ReceiverId, error: SessionError, cx: &mut Context<'_>) {
    cx.emit(Output::SessionRefused { receiver, error });
}

impl Sessions {
    pub(super) fn accept_next(
        &mut self,
        receiver: ReceiverId,
        mode: ReceiveMode,
        timeout_ms: u64,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let slot = cx.shared.clients.attach(receiver, parts.main.place, mode);
        let waiter = self.wait(slot, cx.now.mono.after(timeout_ms));
        cx.shared.clients.get_mut(slot).session_role = SessionRole::Waiting(waiter);
        parts.main.needs_dispatch = true;
    }

    /// Gives sessions to waiters, as long as there are both.
    pub(super) fn serve_waiters(&mut self, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        while self.survey.is_over()
            && !self.waiters.is_empty()
            && let Some((key, record)) = self.oldest()
        {
            if !record.certain {
                return self.check_session(key, CHECK, parts, cx);
            }
            let slot = self.next_waiter();
            self.hold_session(key, slot, parts, cx);
        }
        if self.survey.is_over() && std::mem::take(&mut self.damage_is_news) {
            while !self.waiters.is_empty() {
                let slot = self.next_waiter();
                self.refuse_waiter(slot, SessionError::Unreadable, cx);
            }
        }
    }

    /// Gives a session without a holder to a receiver.
    pub(super) fn hold_session(
        &mut self,
        key: SessionKey,
        slot: ReceiverSlot,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let resume = parts.rows.resume(Subqueue::Main.part());
        let next_number = parts.rows.end();
        let duration = parts.settings.lock_duration;
        let until = cx.now.mono.after(duration);
        let settings = &cx.shared.settings;
        let limit = settings.window.min(settings.session_window);
        let client = cx.shared.clients.get_mut(slot);
        assert!(
            self.holder(&key).is_none(),
            "a session has one holder at a time"
        );
        // It keeps the id under which it was seen first.
        let (key, known) = match self.take_idle(&key) {
            Some((key, record)) => (key, Some(record)),
            None => (key, None),
        };
        let Record { first, last, .. } = if self.survey.is_complete() {
            known.unwrap_or(Record {
                first: next_number,
                last: SequenceNumber(0),
                certain: true,
                enqueued: None,
            })
        } else {
            Record {
                first: resume,
                last: SequenceNumber(next_number.0.saturating_sub(1)),
                certain: false,
                enqueued: None,
            }
        };
        assert!(
            !matches!(client.session_role, SessionRole::Holding(_)),
            "a receiver holds one session at a time"
        );
        let (receiver, session_id) = (client.id, key.bytes());
        let id = self.add_hold(|| Hold {
            key,
            slot,
            receiver,
            mode: client.mode,
            until,
            due: until,
            window: Window::new(limit, first, Vec::new()),
            last,
            floor: first,
            locked: std::collections::BTreeSet::new(),
            was_full: false,
            enough_at: 0,
            extra: 0,
            fetch: Fetch::default(),
            cautious: false,
            damage: None,
            is_news: false,
            resting: false,
            states: std::collections::VecDeque::new(),
            state_cost: None,
            state_meanwhile: None,
        });
        client.session_role = SessionRole::Holding(id);
        parts.main.attached += 1;
        parts.main.needs_dispatch = true;
        cx.emit(Output::SessionAccepted {
            receiver,
            session_id,
            lock_ms: duration,
        });
    }

    /// Refuses waiters that waited too long.
    pub(super) fn refuse_late_waiters(&mut self, cx: &mut Context<'_>) {
        while let Some(waiter) = self.late_waiter(cx.now.mono) {
            cx.take_work();
            let error = if self.has_damage() {
                SessionError::Unreadable
            } else {
                SessionError::Timeout
            };
            self.refuse_waiter(waiter.slot, error, cx);
        }
    }

    fn refuse_waiter(&self, slot: ReceiverSlot, error: SessionError, cx: &mut Context<'_>) {
        let receiver = cx.shared.clients.detach(slot);
        refuse(receiver.id, error, cx);
    }
}

impl Sessions {
    fn wait(&mut self, slot: ReceiverSlot, until: Mono) -> WaiterId {
        let id = WaiterId(self.next_id());
        self.waiters.insert(id, Waiter { slot, until });
        self.timeouts.insert((until, id));
        id
    }

    /// A waiter has given up, or got what it wanted.
    pub(super) fn remove_waiter(&mut self, id: WaiterId) -> Waiter {
        let waiter = self.waiters.remove(&id);
        let waiter = waiter
            .expect("a waiter is removed once: with its session role, or when it gets another");
        let had_timeout = self.timeouts.remove(&(waiter.until, id));
        assert!(had_timeout, "a waiter has its timeout until it is removed");
        waiter
    }

    /// The receiver that has waited longest, of which there is one.
    fn next_waiter(&mut self) -> ReceiverSlot {
        let first = self.waiters.first_key_value();
        let (id, _) = first.expect("the caller has seen that there are waiters");
        self.remove_waiter(*id).slot
    }

    fn late_waiter(&mut self, now: Mono) -> Option<Waiter> {
        let (until, id) = *self.timeouts.first()?;
        (until <= now).then(|| self.remove_waiter(id))
    }

    fn add_hold(&mut self, hold: impl FnOnce() -> Hold) -> HoldId {
        let (id, hold) = (HoldId(self.next_id()), hold());
        self.note_change(hold.key.hash);
        self.uncertain.remove(&hold.key);
        self.deadlines.insert((hold.due, id));
        self.floors.insert((hold.floor, id));
        assert!(
            !self.idle.contains_key(&hold.key),
            "a session is idle or held"
        );
        let before = self.by_key.insert(hold.key.clone(), id);
        assert_eq!(before, None, "a session has one holder at a time");
        self.held.insert(id, hold);
        self.mark_pending(id);
        id
    }

    /// The session has no holder any more.
    pub(super) fn remove_hold(&mut self, id: HoldId) -> Hold {
        let hold = self.held.remove(&id).expect("a hold ends once");
        assert!(hold.locked.is_empty(), "its locks end before it");
        self.extra -= hold.extra;
        self.note_change(hold.key.hash);
        let had_deadline = self.deadlines.remove(&(hold.due, id));
        let had_floor = self.floors.remove(&(hold.floor, id));
        assert!(had_deadline && had_floor, "a hold has both until it ends");
        let held = self.by_key.remove(&hold.key);
        assert_eq!(held, Some(id), "a hold has its key until it ends");
        self.pending.remove(&id);
        self.resting.remove(&id);
        hold
    }

    /// Sets a new end to a hold.
    pub(super) fn extend(&mut self, id: HoldId, until: Mono) {
        self.existing_hold_mut(id).until = until;
        self.look_at(id, until);
    }

    /// A hold's time is to be looked at then.
    pub(super) fn look_at(&mut self, id: HoldId, due: Mono) {
        let before = std::mem::replace(&mut self.existing_hold_mut(id).due, due);
        let had_deadline = self.deadlines.remove(&(before, id));
        assert!(had_deadline, "a hold has one deadline");
        self.deadlines.insert((due, id));
    }

    /// The session's messages begin later than they did.
    pub(super) fn raise_floor(&mut self, id: HoldId, next_number: SequenceNumber) {
        let hold = self.existing_hold_mut(id);
        let floor = hold.least().min(next_number);
        let before = std::mem::replace(&mut hold.floor, floor);
        let had_floor = self.floors.remove(&(before, id));
        assert!(had_floor, "a hold has one floor");
        self.floors.insert((floor, id));
    }

    /// A hold whose time is to be looked at.
    pub(super) fn due_hold(&self, now: Mono) -> Option<HoldId> {
        let (due, id) = *self.deadlines.first()?;
        (due <= now).then_some(id)
    }
}
