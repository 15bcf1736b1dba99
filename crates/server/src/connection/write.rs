//! Write: the client's output goes to the stream, as much of it as the stream takes.

use std::io;

use dialect::Dialect;

use super::Connection;
use crate::connection::input::is_temporary;
use crate::connection::output_buffer;
use crate::transport::stream::Stream;

impl<S: Stream, D: Dialect> Connection<S, D> {
    /// Writes what the stream takes, and frees the output's memory if that was all.
    pub(super) fn write(&mut self) {
        if self.delay.lasts() {
            return;
        }
        match self.write_out() {
            Ok(true) => {
                let output = self.client.output(self.server.clock.moment());
                output_buffer::reclaim(output);
                output.shrink(0);
            }
            Ok(false) => {}
            Err(_) => self.abort(),
        }
    }

    /// Writes what the stream takes. Returns whether it has taken all, though it may keep some of
    /// it.
    ///
    /// # Errors
    /// When the stream will not take any more.
    pub(super) fn write_out(&mut self) -> io::Result<bool> {
        let now = self.server.clock.moment();
        loop {
            let output = self.client.output(now);
            self.unwritten = output.len();
            if output.is_empty() {
                break;
            }
            match self.stream.try_write_output(output) {
                Ok(count) => {
                    self.server.counts.sent_bytes.add(count as u64);
                    self.client.written();
                }
                Err(error) if is_temporary(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        match self.stream.try_flush() {
            Err(error) if !is_temporary(&error) => Err(error),
            _ => Ok(true),
        }
    }
}
