//! Timers: handshake and idle time-outs, heartbeats, and how long a close waits. [AMQP 2.4.5]
//!
//! The peer gets a frame at least every half of its idle-time-out. If no frame arrives for the
//! whole of ours, the connection is closed (docs/spec/amqp.md#1.4).

use amqp::Error;
use amqp::error::condition;

use crate::connection::Connection;
use crate::handshake::Phase;
use crate::id::Mono;

/// How long we wait for the peer's close after ours.
const CLOSE_TIME_OUT: u64 = 10_000;
/// How long we go on reading after an error, so that our close is not lost with a reset.
const LINGER: u64 = 2_000;
/// However short the peer's idle-time-out, heartbeats come no faster.
const MIN_HEARTBEAT: u64 = 10;

pub(crate) struct Timers {
    now: Mono,
    handshake_ends: Mono,
    last_received: Mono,
    last_sent: Mono,
    /// Bytes of an unfinished frame that the owner keeps.
    left_over: usize,
    /// Half of the peer's idle-time-out.
    heartbeat: Option<u64>,
    finish_at: Option<Mono>,
}

impl Timers {
    pub(crate) fn new(now: Mono, handshake_time_out: u32) -> Self {
        Self {
            now,
            handshake_ends: later(now, handshake_time_out.into()),
            last_received: now,
            last_sent: now,
            left_over: 0,
            heartbeat: None,
            finish_at: None,
        }
    }

    fn advance(&mut self, now: Mono) {
        self.now = self.now.max(now);
    }

    /// Notes that input of `len` bytes is there, what was left over before included.
    pub(crate) fn received(&mut self, now: Mono, len: usize) {
        self.advance(now);
        if len != self.left_over {
            self.last_received = self.now;
        }
    }

    pub(crate) fn left_over(&mut self, len: usize) {
        self.left_over = len;
    }

    /// Notes that `len` bytes are handed to the owner.
    pub(crate) fn sent(&mut self, now: Mono, len: usize) {
        self.advance(now);
        if len > 0 {
            self.last_sent = self.now;
        }
    }

    /// Takes the peer's idle-time-out; zero means none.
    pub(crate) fn set_peer_idle_time_out(&mut self, idle_time_out: Option<u32>) {
        self.heartbeat = idle_time_out
            .filter(|&time_out| time_out > 0)
            .map(|time_out| u64::from(time_out / 2).max(MIN_HEARTBEAT));
    }

    pub(crate) fn wait_for_close(&mut self) {
        self.finish_at = Some(later(self.now, CLOSE_TIME_OUT));
    }

    pub(crate) fn linger(&mut self) {
        self.finish_at = Some(later(self.now, LINGER));
    }
}

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
        if is_due(self.timers.finish_at) {
            self.handle_eof();
        } else if is_due(self.handshake_deadline()) {
            self.time_out("the handshake took longer than the time-out for it");
        } else if is_due(self.idle_deadline()) {
            self.time_out("no frame arrived within the idle time-out");
        } else if is_due(self.heartbeat_deadline()) {
            self.send_heartbeat();
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

    /// The peer is silent, so nothing is waited for after the close.
    fn time_out(&mut self, text: &'static str) {
        self.fail(Error::new(condition::CONNECTION_FORCED, text));
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

fn later(start: Mono, milliseconds: u64) -> Mono {
    Mono(start.0.saturating_add(milliseconds))
}
