//! Written: the broker learns what the socket has taken.
//!
//! It gives a connection no more than it writes: what was given and is not written yet is counted.

use broker::Command;

use crate::client::Client;

impl Client {
    /// All bytes that were taken out of the output are written.
    pub(crate) fn handle_written(&mut self) {
        // Bytes that still wait for a session window or in the output bound the rest.
        let waiting = self.unreported_bytes.min(self.connection.buffered());
        let written = self.unreported_bytes - waiting;
        self.unreported_bytes = waiting;
        self.report_written(written);
    }

    /// Tells the broker of deliveries that are written.
    pub(crate) fn report_written(&mut self, bytes: usize) {
        if bytes > 0 {
            self.command(Command::Written {
                connection: self.id,
                bytes,
            });
        }
    }
}
