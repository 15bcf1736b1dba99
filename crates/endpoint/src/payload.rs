//! Payload: a message in pieces that follow each other, handed out frame by frame.

use bytes::{Bytes, BytesMut};

pub(crate) struct Payload<'a> {
    pieces: &'a [&'a [u8]],
    /// How much of the first piece is gone.
    offset: usize,
    remaining: usize,
}

impl<'a> Payload<'a> {
    pub(crate) fn new(pieces: &'a [&'a [u8]]) -> Self {
        Self {
            pieces,
            offset: 0,
            remaining: pieces.iter().map(|piece| piece.len()).sum(),
        }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.remaining
    }

    /// Appends up to `room` bytes to `out`.
    pub(crate) fn move_into(&mut self, out: &mut BytesMut, room: usize) {
        let mut room = room.min(self.remaining);
        self.remaining -= room;
        while room > 0 {
            let Some((piece, rest)) = self.pieces.split_first() else {
                return;
            };
            let left = &piece[self.offset..];
            let taken = left.len().min(room);
            out.extend_from_slice(&left[..taken]);
            room -= taken;
            if taken == left.len() {
                self.pieces = rest;
                self.offset = 0;
            } else {
                self.offset += taken;
            }
        }
    }

    /// Copies what is left, to be sent later.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        let mut copy = BytesMut::with_capacity(self.remaining);
        let all = self.remaining;
        self.move_into(&mut copy, all);
        copy.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order_whatever_the_room() {
        for room in 1..9 {
            let mut out = BytesMut::new();
            let mut payload = Payload::new(&[b"ab", b"", b"cdef", b"g"]);
            while payload.remaining() > 0 {
                let before = out.len();
                payload.move_into(&mut out, room);
                assert!(out.len() - before <= room);
            }
            assert_eq!(&out[..], b"abcdefg");
        }
    }

    #[test]
    fn the_rest_can_be_kept() {
        let mut payload = Payload::new(&[b"abc", b"def"]);
        payload.move_into(&mut BytesMut::new(), 2);
        assert_eq!(payload.into_bytes(), "cdef");
    }
}
