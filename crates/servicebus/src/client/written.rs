//! Written: the broker learns what the socket has taken.
//!
//! It gives a connection no more than it writes: what was given and is not written yet is counted,
//! and a connection whose peer does not take it is congested.

use broker::Command;

use crate::client::Client;

impl Client {
    /// All bytes that were taken out of the output are written.
    pub(crate) fn handle_written(&mut self) {
        // Bytes that still wait for a session window or in the output bound the rest.
        let waiting = self.unreported_bytes.min(self.connection.buffered());
        let written = self.unreported_bytes - waiting;
        self.unreported_bytes = waiting;
        // Those that wait for the window of one session hold up no other session.
        let is_congested = waiting > 0 && self.connection.unwritten() > 0;
        let was_congested = std::mem::replace(&mut self.is_congested, is_congested);
        if written > 0 || is_congested != was_congested {
            self.command_written(written);
        }
    }

    /// Tells the broker of deliveries that are written, and whether the peer takes the rest.
    pub(crate) fn report_written(&mut self, bytes: usize) {
        if bytes > 0 {
            self.command_written(bytes);
        }
    }

    fn command_written(&mut self, bytes: usize) {
        self.command(Command::Written {
            connection: self.id,
            bytes,
            is_congested: self.is_congested,
        });
    }
}
