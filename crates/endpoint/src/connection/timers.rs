//! Timers: handshake and idle time-outs, heartbeats, and how long a close waits. [AMQP 2.4.5]
//!
//! This is the state; `time_outs.rs` acts on it.

use crate::id::Mono;

/// How long we wait for the peer's close after ours.
const CLOSE_TIME_OUT: u64 = 10_000;
/// How long answers may take after an error of the peer or before its detach, end or close; and how
/// long we go on reading behind our close, so that it is not lost with a reset.
pub(crate) const LINGER: u64 = 2_000;
/// However short the peer's idle-time-out, heartbeats come no faster.
const MIN_HEARTBEAT: u64 = 10;

pub(crate) struct Timers {
    pub(crate) now: Mono,
    pub(crate) handshake_ends: Mono,
    pub(crate) last_received: Mono,
    pub(crate) last_sent: Mono,
    /// Bytes of an unfinished frame that the owner keeps.
    left_over: usize,
    /// Half of the peer's idle-time-out.
    pub(crate) heartbeat: Option<u64>,
    pub(crate) finish_at: Option<Mono>,
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

    pub(crate) fn advance(&mut self, now: Mono) {
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

/// The time `milliseconds` after `start`.
pub(crate) fn later(start: Mono, milliseconds: u64) -> Mono {
    Mono(start.0.saturating_add(milliseconds))
}
