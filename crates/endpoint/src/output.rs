//! Output: bytes on their way to the peer, of which long pieces are shared instead of copied.
//!
//! Frames are written into one buffer. A long piece of a message only leaves its position there,
//! and is written from its own memory. The whole is read as a [`Buf`], whose chunks can be written
//! to a socket in one call.

pub mod outbox;
pub mod payload;

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// Bytes to write, in order.
#[derive(Debug, Default)]
pub struct Output {
    /// All but what is shared.
    pub(crate) copied: BytesMut,
    /// Copied bytes that were taken out so far; the count may wrap.
    consumed: usize,
    shared: VecDeque<Piece>,
    shared_bytes: usize,
}

/// Bytes that lie elsewhere.
#[derive(Debug)]
struct Piece {
    /// Copied bytes before it, counted as [`Output::consumed`].
    offset: usize,
    bytes: Bytes,
}

impl Output {
    /// How many bytes wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.copied.len() + self.shared_bytes
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.copied.is_empty() && self.shared.is_empty()
    }

    /// Takes everything out, as one.
    pub fn split(&mut self) -> BytesMut {
        if self.shared.is_empty() {
            self.count_consumed(self.copied.len());
            return self.copied.split();
        }
        let mut whole = BytesMut::with_capacity(self.len());
        while self.has_remaining() {
            let chunk = self.chunk();
            let count = chunk.len();
            whole.extend_from_slice(chunk);
            self.advance(count);
        }
        whole
    }

    /// Takes `memory` over for what is to come, if nothing waits and it has less of its own.
    pub fn lend_buffer(&mut self, memory: &mut BytesMut) {
        if self.is_empty() && self.copied.capacity() < memory.capacity() {
            self.copied = std::mem::take(memory);
        }
    }

    /// Gives the memory away that it has for what is to come, emptied, if nothing waits.
    pub fn take_buffer(&mut self) -> Option<BytesMut> {
        if !self.is_empty() || self.copied.capacity() == 0 {
            return None;
        }
        let mut memory = std::mem::take(&mut self.copied);
        // What was taken off its front too; there need not be anything.
        let _ = memory.try_reclaim(memory.capacity() + 1);
        Some(memory)
    }

    /// Gives memory back if nothing waits and more than `most` bytes are held for what will; all of
    /// it with 0.
    pub fn shrink(&mut self, most: usize) {
        let pieces = self.shared.capacity() * size_of::<Piece>();
        if self.is_empty() && (most == 0 || self.copied.capacity().max(pieces) > most) {
            *self = Self::default();
        }
    }

    /// Bytes of it that lie elsewhere.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    /// Adds bytes that stay where they are.
    pub(crate) fn share(&mut self, bytes: Bytes) {
        self.shared_bytes += bytes.len();
        let offset = self.consumed.wrapping_add(self.copied.len());
        self.shared.push_back(Piece { offset, bytes });
    }

    /// Copied bytes up to the next shared piece, or all that are left.
    fn gap(&self) -> usize {
        let next = self.shared.front();
        next.map_or(self.copied.len(), |piece| {
            piece.offset.wrapping_sub(self.consumed)
        })
    }

    fn count_consumed(&mut self, count: usize) {
        self.consumed = self.consumed.wrapping_add(count);
    }

    /// Takes out of the front piece.
    fn advance_shared(&mut self, count: usize) -> usize {
        let Some(piece) = self.shared.front_mut() else {
            return 0;
        };
        let count = count.min(piece.bytes.len());
        piece.bytes.advance(count);
        if piece.bytes.is_empty() {
            self.shared.pop_front();
        }
        self.shared_bytes -= count;
        count
    }
}

impl Buf for Output {
    fn remaining(&self) -> usize {
        self.len()
    }

    fn chunk(&self) -> &[u8] {
        match (self.gap(), self.shared.front()) {
            (0, Some(piece)) => &piece.bytes,
            (gap, _) => &self.copied[..gap],
        }
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let mut copied = &self.copied[..];
        let mut consumed = self.consumed;
        let mut count = 0;
        let mut add = |bytes: &'a [u8]| {
            let Some(slot) = into.get_mut(count) else {
                return false;
            };
            if !bytes.is_empty() {
                *slot = IoSlice::new(bytes);
                count += 1;
            }
            true
        };
        for piece in &self.shared {
            let (before, rest) = copied.split_at(piece.offset.wrapping_sub(consumed));
            if !(add(before) && add(&piece.bytes)) {
                return count;
            }
            copied = rest;
            consumed = piece.offset;
        }
        add(copied);
        count
    }

    /// # Panics
    /// When less than `count` bytes wait.
    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len(), "no more goes out than waits");
        while count > 0 {
            let gap = self.gap().min(count);
            self.copied.advance(gap);
            self.count_consumed(gap);
            count -= gap;
            count -= self.advance_shared(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lent_memory_comes_back_as_a_whole_once_nothing_waits() {
        let mut output = Output::default();
        let mut memory = BytesMut::with_capacity(100);
        output.lend_buffer(&mut memory);
        assert_eq!(memory.capacity(), 0);
        output.copied.extend_from_slice(&[7; 60]);
        output.advance(59);
        assert_eq!(output.take_buffer(), None, "a byte waits");
        output.lend_buffer(&mut BytesMut::with_capacity(1_000));
        assert_eq!(output.chunk(), [7]);
        output.advance(1);
        let memory = output
            .take_buffer()
            .map(|memory| (memory.len(), memory.capacity()));
        assert_eq!(memory, Some((0, 100)));
        assert_eq!(output.take_buffer(), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Copy(Vec<u8>),
        Share(Vec<u8>),
        Advance(usize),
        /// Looks at this many chunks.
        Look(usize),
        Split,
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..9);
        prop_oneof![
            bytes().prop_map(Step::Copy),
            prop::collection::vec(any::<u8>(), 1..9).prop_map(Step::Share),
            (0_usize..12).prop_map(Step::Advance),
            (0_usize..6).prop_map(Step::Look),
            Just(Step::Split),
        ]
    }

    proptest! {
        #[test]
        fn bytes_go_out_in_the_order_in_which_they_came(
            steps in prop::collection::vec(step(), 0..40),
            consumed in prop_oneof![Just(0), Just(usize::MAX - 3)],
        ) {
            let mut output = Output { consumed, ..Output::default() };
            let mut expected: Vec<u8> = Vec::new();
            for step in steps {
                match step {
                    Step::Copy(bytes) => {
                        output.copied.extend_from_slice(&bytes);
                        expected.extend(bytes);
                    }
                    Step::Share(bytes) => {
                        output.share(bytes.clone().into());
                        expected.extend(bytes);
                    }
                    Step::Advance(count) => {
                        let count = count.min(expected.len());
                        output.advance(count);
                        expected.drain(..count);
                    }
                    Step::Look(most) => {
                        let mut chunks = vec![IoSlice::new(&[]); most];
                        let count = output.chunks_vectored(&mut chunks);
                        let seen: Vec<u8> = chunks[..count].iter().flat_map(|it| it.to_vec()).collect();
                        prop_assert!(expected.starts_with(&seen));
                        prop_assert!(count == most || seen.len() == expected.len());
                        prop_assert!(chunks[..count].iter().all(|it| !it.is_empty()));
                    }
                    Step::Split => {
                        prop_assert_eq!(&output.split()[..], &expected[..]);
                        expected.clear();
                    }
                }
                prop_assert_eq!(output.len(), expected.len());
                prop_assert_eq!(output.is_empty(), expected.is_empty());
                prop_assert!(expected.starts_with(output.chunk()));
                prop_assert_eq!(output.chunk().is_empty(), expected.is_empty());
            }
        }
    }
}
