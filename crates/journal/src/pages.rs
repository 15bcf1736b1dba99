//! Pages: memory aligned to the length of a page, as direct reads and writes need it.

use std::ops::{Deref, DerefMut, Range};

use bytes::Bytes;

/// What offsets, lengths and addresses of direct access are multiples of. Disks want 512 or 4,096.
pub(crate) const PAGE: usize = 4_096;

/// A number of pages.
pub(crate) struct Pages {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Pages {
    /// Pages for `len` bytes, all zero. Pages that are never written take no memory.
    pub fn new(len: usize) -> Self {
        let len = len.next_multiple_of(PAGE);
        let memory = vec![0; len + PAGE];
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Self { memory, start, len }
    }

    /// Makes room for `len` bytes at least, if they are fewer; what was in them is lost then.
    pub fn make_room(&mut self, len: usize) {
        if self.len < len {
            *self = Self::new(len);
        }
    }

    /// A part of them, without a copy.
    pub fn into_bytes(self, part: Range<usize>) -> Bytes {
        let (from, until) = (self.start + part.start, self.start + part.end);
        Bytes::from(self.memory).slice(from..until)
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}
