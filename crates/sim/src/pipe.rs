//! Pipe: the bytes on their way between a client and the broker, cut into pieces by chance.

use bytes::BytesMut;
use endpoint::Output;

use crate::rng::Rng;

/// One direction of a connection.
#[derive(Debug, Default)]
pub struct Pipe {
    bytes: BytesMut,
}

impl Pipe {
    /// Puts everything that `output` holds in the pipe.
    pub fn push(&mut self, output: &mut Output) {
        self.bytes.unsplit(output.split());
    }

    /// Whether nothing is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Moves some of the bytes to `input`: all, some, or a single one.
    pub fn arrive(&mut self, rng: &mut Rng, input: &mut BytesMut) {
        if self.bytes.is_empty() {
            return;
        }
        let length = match rng.below(10) {
            0 => 1,
            1..=3 => 1 + rng.below(self.bytes.len()),
            _ => self.bytes.len(),
        };
        input.extend_from_slice(&self.bytes.split_to(length));
    }
}
