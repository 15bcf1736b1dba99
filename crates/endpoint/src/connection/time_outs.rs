//! Time-outs: what a connection does when time has passed. [AMQP 2.4.5]
//!
//! The peer gets a frame at least every half of its idle-time-out. If no frame arrives for the
//! whole of ours, the connection is closed (docs/spec/amqp.md#1.4).

use amqp::Error;
use amqp::error::condition;

use crate::connection::Connection;
use crate::connection::phase::Phase;
use crate::connection::timers::later;
use crate::id::Mono;

impl Connection {
    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        if self.phase == Phase::Finished {
            return None;
        }
        let deadlines = [
            self.timers.finish_at,
            self.handshake_deadline(),
            self.idle_deadline(),
            self.heartbeat_deadline(),
            self.waiting_frame.as_ref().and_then(|frame| frame.deadline),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due at `now`: heartbeats, idle time-out, handshake time-out.
    pub fn handle_timeout(&mut self, now: Mono) {
        self.timers.advance(now);
        let is_due = |deadline: Option<Mono>| deadline.is_some_and(|deadline| deadline <= now);
        if self.phase == Phase::Finished {
            return;
        }
        if is_due(self.timers.finish_at) && self.phase == Phase::Failing {
            self.end_failing();
        } else if is_due(self.timers.finish_at) {
            self.handle_eof();
        } else if is_due(self.handshake_deadline()) {
            self.time_out("the handshake took longer than the time-out for it");
        } else if is_due(self.idle_deadline()) {
            self.time_out("no frame arrived within the idle time-out");
        } else if is_due(self.heartbeat_deadline()) {
            self.send_heartbeat();
        }
        if self.waiting_frame.is_some() && self.events.is_empty() {
            self.resume();
        }
    }

    fn handshake_deadline(&self) -> Option<Mono> {
        self.phase
            .is_handshake()
            .then_some(self.timers.handshake_ends)
    }

    fn idle_deadline(&self) -> Option<Mono> {
        let time_out = self.config.idle_time_out.filter(|&time_out| time_out > 0)?;
        (self.phase == Phase::Opened).then(|| later(self.timers.last_received, time_out.into()))
    }

    fn heartbeat_deadline(&self) -> Option<Mono> {
        let interval = self.timers.heartbeat?;
        (self.phase == Phase::Opened).then(|| later(self.timers.last_sent, interval))
    }

    /// The peer is silent, so nothing is waited for before or after the close.
    fn time_out(&mut self, text: &'static str) {
        self.fail(Error::new(condition::CONNECTION_FORCED, text));
        if self.phase == Phase::Failing {
            self.end_failing();
        }
        self.phase = Phase::Finished;
    }

    fn send_heartbeat(&mut self) {
        self.flush_dispositions();
        // Output that the peer does not take needs no company.
        if self.outbox.output.is_empty() {
            self.outbox.heartbeat();
        }
        self.timers.last_sent = self.timers.now;
    }
}
