//! Input: a connection's read buffer, which exists only while it holds bytes.
//!
//! The 64 KiB buffer belongs to the worker thread and is lent to a connection for the time of a
//! read. The remainder of an unfinished frame stays with the connection, in an allocation of its
//! own size if it is small. So an idle connection holds no read buffer.

use std::cell::RefCell;
use std::io;

use bytes::BytesMut;

use crate::transport::stream::Stream;

/// What one read may bring.
const READ_BYTES: usize = 64 * 1024;
/// A buffer with less room than this is replaced before a read.
const LEAST_ROOM: usize = 8 * 1024;
/// A remainder up to this size is copied out, so that the buffer can go back.
const SMALL_REMAINDER: usize = 4 * 1024;

thread_local! {
    static SPARE: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// What came of a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Read {
    /// The number of new bytes.
    Some(usize),
    /// Nothing is there now.
    Nothing,
    /// The peer has closed its side, or the socket has failed.
    End,
}

/// The bytes of a connection that are not understood yet.
#[derive(Debug, Default)]
pub struct Input {
    buffer: BytesMut,
    /// Bytes that were read before there was a connection.
    early: BytesMut,
}

impl Input {
    /// An input that begins with what was read already.
    pub fn new(early: BytesMut) -> Self {
        Self {
            buffer: BytesMut::new(),
            early,
        }
    }

    /// The bytes, for a consumer that takes whole frames off the front.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Reads once, about `most` bytes at most, without waiting.
    pub fn read(&mut self, stream: &mut impl Stream, most: usize) -> Read {
        self.make_room();
        if !self.early.is_empty() {
            let early = std::mem::take(&mut self.early);
            self.buffer.extend_from_slice(&early);
            return Read::Some(early.len());
        }
        match stream.try_read(&mut self.buffer, most) {
            Ok(0) => Read::End,
            Ok(count) => Read::Some(count),
            Err(error) if is_temporary(&error) => Read::Nothing,
            Err(_) => Read::End,
        }
    }

    /// Gives the buffer back to the thread if it holds little or nothing.
    pub fn release_buffer(&mut self) {
        if self.buffer.capacity() <= SMALL_REMAINDER || self.buffer.len() > SMALL_REMAINDER {
            return;
        }
        let remainder = BytesMut::from(&self.buffer[..]);
        let mut buffer = std::mem::replace(&mut self.buffer, remainder);
        buffer.clear();
        SPARE.set(buffer);
    }

    fn make_room(&mut self) {
        if self.buffer.capacity() - self.buffer.len() >= LEAST_ROOM {
            return;
        }
        if self.buffer.len() <= SMALL_REMAINDER {
            let mut buffer = SPARE.take();
            if buffer.capacity() < LEAST_ROOM + self.buffer.len() {
                buffer.reserve(READ_BYTES);
            }
            buffer.extend_from_slice(&self.buffer);
            self.buffer = buffer;
        } else {
            self.buffer.reserve(READ_BYTES);
        }
    }
}

/// Whether an error only means that the operation is not possible now.
pub fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: usize) -> Input {
        let mut input = Input::default();
        input.make_room();
        input.buffer.extend_from_slice(&vec![7; bytes]);
        input
    }

    #[test]
    fn an_input_without_bytes_holds_no_buffer() {
        let mut input = input(0);
        assert!(input.buffer.capacity() >= LEAST_ROOM);
        input.release_buffer();
        assert_eq!(input.buffer.capacity(), 0);
    }

    #[test]
    fn a_small_remainder_is_kept_in_a_small_buffer() {
        let mut input = input(100);
        input.release_buffer();
        assert_eq!(&input.buffer[..], &[7; 100]);
        assert!(input.buffer.capacity() <= SMALL_REMAINDER);
        input.make_room();
        assert_eq!(&input.buffer[..], &[7; 100]);
        assert!(input.buffer.capacity() >= LEAST_ROOM);
    }

    #[test]
    fn a_large_remainder_stays_where_it_is() {
        let mut input = input(SMALL_REMAINDER + 1);
        let before = input.buffer.as_ptr();
        input.release_buffer();
        assert_eq!(input.buffer.as_ptr(), before);
        assert_eq!(input.buffer.len(), SMALL_REMAINDER + 1);
    }
}
