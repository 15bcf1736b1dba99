//! Payload: a message in pieces that follow each other, handed out frame by frame.

use bytes::{Bytes, BytesMut};

use crate::output::Output;

/// Shorter pieces are copied: at 1 KiB what sharing costs (a count that another processor has
/// touched, a part of its own in the write) is more than what it saves. And a shared piece keeps
/// all that its owner lies in until it is written, which may be a whole buffer that a socket was
/// read into.
const LEAST_SHARED: usize = 8 << 10;

pub(crate) struct Payload<'a> {
    pieces: &'a [&'a [u8]],
    /// What some of the pieces may lie in.
    owner: Option<&'a Bytes>,
    /// How much of the first piece is gone.
    offset: usize,
    remaining: usize,
}

impl<'a> Payload<'a> {
    /// Long pieces that lie in `owner` will be shared with it.
    pub(crate) fn new(pieces: &'a [&'a [u8]], owner: Option<&'a Bytes>) -> Self {
        Self {
            pieces,
            owner,
            offset: 0,
            remaining: pieces.iter().map(|piece| piece.len()).sum(),
        }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.remaining
    }

    /// Moves up to `room` bytes to `out`.
    pub(crate) fn move_into(&mut self, out: &mut Output, room: usize) {
        let owner = self.owner;
        self.take(room, |part| match owner {
            Some(owner) if part.len() >= LEAST_SHARED && holds(owner, part) => {
                out.share(owner.slice_ref(part));
            }
            _ => out.copied.extend_from_slice(part),
        });
    }

    /// What is left, to be sent later.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        if let Some(owner) = self.owner
            && let Some(last) = self.last_piece()
            && last.len() >= LEAST_SHARED
            && holds(owner, last)
        {
            return owner.slice_ref(last);
        }
        let mut copy = BytesMut::with_capacity(self.remaining);
        self.take(self.remaining, |part| copy.extend_from_slice(part));
        copy.freeze()
    }

    /// What is left, if it is in one piece.
    fn last_piece(&self) -> Option<&'a [u8]> {
        let (piece, rest) = self.pieces.split_first()?;
        let is_last = rest.iter().all(|piece| piece.is_empty());
        is_last.then(|| &piece[self.offset..])
    }

    fn take(&mut self, room: usize, mut put: impl FnMut(&'a [u8])) {
        let mut room = room.min(self.remaining);
        self.remaining -= room;
        while room > 0 {
            let Some((piece, rest)) = self.pieces.split_first() else {
                return;
            };
            let left = &piece[self.offset..];
            let taken = left.len().min(room);
            put(&left[..taken]);
            room -= taken;
            if taken == left.len() {
                self.pieces = rest;
                self.offset = 0;
            } else {
                self.offset += taken;
            }
        }
    }
}

/// Whether `part` lies in `owner`.
fn holds(owner: &Bytes, part: &[u8]) -> bool {
    let (owner, part) = (owner.as_ptr_range(), part.as_ptr_range());
    owner.start <= part.start && part.end <= owner.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order_whatever_the_room() {
        for room in 1..9 {
            let mut out = Output::default();
            let mut payload = Payload::new(&[b"ab", b"", b"cdef", b"g"], None);
            while payload.remaining() > 0 {
                let before = out.len();
                payload.move_into(&mut out, room);
                assert!(out.len() - before <= room);
            }
            assert_eq!(&out.split()[..], b"abcdefg");
        }
    }

    #[test]
    fn the_rest_can_be_kept() {
        let mut payload = Payload::new(&[b"abc", b"def"], None);
        payload.move_into(&mut Output::default(), 2);
        assert_eq!(payload.into_bytes(), "cdef");
    }

    #[test]
    fn long_pieces_of_the_owner_stay_where_they_are() {
        let owner = Bytes::from(vec![7; 3 * LEAST_SHARED]);
        let other = vec![8; LEAST_SHARED];
        let pieces: [&[u8]; 4] = [b"head", &owner[1..], &other, &owner[..3]];
        let whole = pieces.concat();
        let mut out = Output::default();
        let mut payload = Payload::new(&pieces, Some(&owner));
        while payload.remaining() > 0 {
            payload.move_into(&mut out, 2 * LEAST_SHARED);
        }
        assert_eq!(out.shared_bytes(), 3 * LEAST_SHARED - 1);
        assert_eq!(out.split(), whole);
    }

    #[test]
    fn a_rest_in_one_piece_of_the_owner_is_not_copied() {
        let owner = Bytes::from(vec![7; LEAST_SHARED + 4]);
        let pieces: [&[u8]; 4] = [b"head", &owner[1..], b"", b""];
        for (gone, shared) in [(7, true), (8, false)] {
            let mut payload = Payload::new(&pieces, Some(&owner));
            payload.move_into(&mut Output::default(), gone);
            let rest = payload.into_bytes();
            assert_eq!(rest, owner[gone - 3..]);
            assert_eq!(rest.as_ptr() == owner[gone - 3..].as_ptr(), shared);
        }
    }
}
