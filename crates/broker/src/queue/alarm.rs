//! Alarm of a queue: when it wants a tick, by each clock.
//!
//! A step notes that it may have changed, and it is set once for all steps of a turn, before anyone
//! looks at it. One that is too early costs less than moving it with every lock, so it stays where
//! it is as long as it is not too late.

use crate::api::time::{Mono, Wall};
use crate::context::Context;
use crate::context::alarms::Alarm;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::subqueue::SubqueueState;

impl Queue {
    /// The end of a step: the alarm may have changed, and is set before anyone looks at it.
    pub(crate) fn note_alarm(&mut self, cx: &mut Context<'_>) {
        self.note_receivers(cx.now.mono);
        if !self.has_stale_alarm {
            self.has_stale_alarm = true;
            cx.shared.stale_alarms.push(self.id);
        }
    }

    /// Says when it wants a tick.
    pub(crate) fn set_alarm(&mut self, cx: &mut Context<'_>) {
        self.has_stale_alarm = false;
        let ahead = cx.shared.clocks.ahead(self.namespace);
        debug_assert_eq!(
            cx.now,
            cx.shared.clocks.now(self.namespace, cx.broker_now),
            "a step enters the namespace of a queue before it goes there"
        );
        self.note_receivers(cx.now.mono);
        let wanted = Alarm {
            mono: self.mono_alarm(ahead, cx),
            wall: self.wall_alarm(cx),
        };
        let alarm = wanted.earlier(ahead);
        cx.shared.alarms.set(self.id, self.alarm, alarm);
        self.alarm = alarm;
    }

    fn mono_alarm(&self, ahead: u64, cx: &Context<'_>) -> Option<Mono> {
        if self.subs.iter().any(|sub| sub.needs_dispatch) || self.may_fold_session_ids() {
            return Some(cx.now.mono);
        }
        let sessions = self.sessions.as_ref().and_then(|s| s.deadline());
        let subs = self.subs.iter().filter_map(SubqueueState::deadline);
        let others = [
            sessions,
            self.schedule.retry_at,
            self.idle_alarm(),
            self.lease_end(),
        ];
        let wanted = subs.chain(others.into_iter().flatten()).min();
        // An alarm that is too early costs less than moving it with every lock.
        match self.alarm.mono.map(|at| at.after(ahead)) {
            Some(set) if set > cx.now.mono && wanted.is_some_and(|wanted| set <= wanted) => {
                Some(set)
            }
            _ => wanted,
        }
    }

    fn wall_alarm(&self, cx: &Context<'_>) -> Option<Wall> {
        let alarms = [
            self.expiry_alarm(cx),
            self.duplicates.history_alarm(&self.rows, &self.settings),
            self.schedule.alarm(&self.rows),
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

    fn idle_alarm(&self) -> Option<Mono> {
        let has_parts = match &self.kind {
            Kind::Topic(topic) => !topic.subscriptions.is_empty(),
            Kind::Queue | Kind::Subscription(_) | Kind::Transfer { .. } => false,
        };
        let is_looked_at = has_parts || self.has_receivers();
        self.idle.alarm(self.idle_limit_ms(), is_looked_at)
    }
}
