//! Closing: the ways a connection ends. [AMQP 2.4.3-4]
//!
//! An error of the peer is reported to both the peer and the owner once the peer's deliveries are
//! answered: one without an answer is sent again. Then input is read on for a short while, since
//! closing a socket with unread input may discard our close frame.

use amqp::frame::ProtocolHeader;
use amqp::{Close, Error, Performative};

use crate::config::Side;
use crate::connection::Connection;
use crate::connection::phase::Phase;
use crate::detected_error::ErrorScope;
use crate::event::Event;

impl Connection {
    /// Ends the connection for an error that we detected.
    pub(crate) fn fail(&mut self, error: Error) {
        if self.over {
            return;
        }
        if !self.can_close() {
            self.fail_without_close(error);
            return;
        }
        if self.phase != Phase::Closing {
            self.record_error(ErrorScope::Connection, &error);
            self.forget_partials();
            if self.owes_answers() {
                self.failure = Some(error);
                self.phase = Phase::Failing;
                return self.timers.linger();
            }
            self.flush_dispositions();
            self.send_close(Some(error.clone()));
        }
        self.report_closed(Some(error), false);
        self.phase = Phase::Closing;
        self.timers.linger();
    }

    /// Whether the peer waits for answers to its deliveries.
    pub(crate) fn owes_answers(&self) -> bool {
        let mut sessions = self
            .sessions
            .keys()
            .filter_map(|key| self.sessions.get(key));
        sessions.any(|session| session.incoming_len() > 0)
    }

    /// Closes a failing connection, behind what was answered in time.
    pub(crate) fn end_failing(&mut self) {
        self.flush_dispositions();
        let error = self.failure.take();
        self.send_close(error.clone());
        self.report_closed(error, false);
        self.discard_input();
    }

    /// Closes the connection.
    pub fn close(&mut self, error: Option<Error>) {
        if self.over || self.phase == Phase::Closing {
            return;
        }
        if self.side == Side::Server && self.phase == Phase::AmqpHeader {
            // SASL is over, so the peer reads AMQP next, whether its header has come or not.
            self.outbox.header(ProtocolHeader::Amqp);
            self.send_close(error);
            self.report_closed(None, false);
            self.discard_input();
            return;
        }
        if !self.can_close() {
            self.handle_eof();
            return;
        }
        self.flush_dispositions();
        self.send_close(error);
        self.clear_state();
        self.phase = Phase::Closing;
        self.timers.wait_for_close();
    }

    /// The peer closes, or answers our close.
    pub(crate) fn handle_close(&mut self, close: Close) {
        if self.phase != Phase::Closing {
            self.flush_dispositions();
            self.send_close(None);
        }
        self.report_closed(close.error, true);
        self.phase = Phase::Finished;
    }

    fn send_close(&mut self, error: Option<Error>) {
        self.send_open(None);
        self.outbox.write(0, &Performative::Close(Close { error }));
    }

    /// Reads and discards input, until the stream or the time for it ends.
    pub(crate) fn discard_input(&mut self) {
        self.phase = Phase::Draining;
        self.timers.linger();
    }

    /// Tells the owner that the connection is over, once.
    pub(crate) fn report_closed(&mut self, error: Option<Error>, in_order: bool) {
        if !self.over {
            self.over = true;
            self.events.push_back(Event::Closed { error, in_order });
        }
        self.clear_state();
    }

    fn clear_state(&mut self) {
        self.sessions.clear();
        self.links.clear();
        self.names.clear();
        self.unflushed.clear();
        self.partial_bytes = 0;
        self.waiting_bytes = 0;
    }
}
