//! Writer: appends records to the newest segment.
//!
//! Bodies of some size go to the file from where they are; everything else is put together in one
//! buffer first. A group is written with one call if it can be.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

use bytes::Bytes;
use rustix::io::Errno;
use store::{BodyPointer, Write, WriteSet};

use super::Moves;
use super::codec::Encoder;
use super::files::Files;
use super::place::Place;
use super::record::{FIRST, HEADER, Header};
use super::segment::{Homes, Sealed};
use crate::chunk;

/// Bodies from this size on are not copied into the buffer.
const BORROW_FROM: usize = 8 << 10;
/// The most pieces that one call writes.
const PIECES: usize = 512;
/// A record is followed by zeros up to a multiple of this, which the next one is written over: what
/// a file had there before need not be read for the rest of a page.
const PAGE: u64 = 4_096;
static ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];
/// By how much a new file grows at least.
const GROW_BY: u64 = 1 << 20;
/// What the buffer keeps between records.
const KEEP: usize = 4 << 20;

/// Writes one store's journal.
pub(crate) struct Writer {
    files: Arc<Files>,
    /// A segment ends when its next record would go beyond this.
    segment_bytes: u64,
    next_id: u64,
    active: Option<Active>,
    /// Segments that were sealed and not synced since they were written to.
    unsynced: Vec<Arc<File>>,
    buffer: Vec<u8>,
}

/// The segment that is written to.
struct Active {
    id: u64,
    file: Arc<File>,
    end: u64,
    /// Where the part of the file ends that has its place on the disk.
    room: u64,
    position: u64,
    homes: Homes,
    synced: bool,
}

/// What became of a record.
pub(crate) struct Appended {
    pub bytes: u64,
    /// The segment that ended before it.
    pub sealed: Option<Sealed>,
    /// Where it is.
    pub file: Arc<File>,
}

impl Writer {
    /// `next_id` is greater than any segment's.
    pub fn new(files: Arc<Files>, segment_bytes: u64, next_id: u64) -> Self {
        Self {
            files,
            segment_bytes,
            next_id,
            active: None,
            unsynced: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Writes `sets` and `moves` as the record `position`, without waiting for the disk, and puts in
    /// the place of each of their bodies where that is now.
    pub fn append(
        &mut self,
        position: u64,
        sets: &mut [WriteSet],
        moves: &mut Moves,
    ) -> io::Result<Appended> {
        self.buffer.clear();
        self.buffer.resize(HEADER, 0);
        let (bodies, checksums) = self.encode(sets, moves)?;
        let length = self.buffer.len() as u64 + bodies;
        let sealed = self.seal_if_full(length);
        let active = match self.active.take() {
            Some(active) => active,
            None => self.begin()?,
        };
        let active = self.active.insert(active);
        let header = Header::new(active.id, position, &self.buffer[HEADER..], bodies);
        let header = header.ok_or_else(too_long)?.encode();
        self.buffer[..HEADER].copy_from_slice(&header);
        active.make_room(length)?;
        let first_body = active.end + self.buffer.len() as u64;
        let bodies = bodies_of(sets, moves);
        write_record(&active.file, active.end, &mut self.buffer, bodies)?;
        place_bodies(active, first_body, &checksums, sets, moves);
        active.end += length;
        active.position = position;
        active.synced = false;
        if self.buffer.capacity() > KEEP {
            self.buffer = Vec::new();
        }
        Ok(Appended {
            bytes: length,
            sealed,
            file: active.file.clone(),
        })
    }

    /// Makes everything appended so far durable.
    pub fn sync(&mut self) -> io::Result<()> {
        for file in self.unsynced.drain(..) {
            file.sync_data()?;
        }
        if let Some(active) = self.active.as_mut().filter(|active| !active.synced) {
            active.file.sync_data()?;
            active.synced = true;
        }
        Ok(())
    }

    /// Ends the segment that is being written, if there is one.
    pub fn seal(&mut self) -> Option<Sealed> {
        let active = self.active.take()?;
        if active.end < self.segment_bytes / 2 {
            // Ended early, so it gives back what it took for more. That it keeps it does no harm.
            drop(active.file.set_len(active.end));
        }
        if !active.synced {
            self.unsynced.push(active.file);
        }
        Some(Sealed {
            id: active.id,
            position: active.position,
            bytes: active.end,
            homes: active.homes,
        })
    }

    fn seal_if_full(&mut self, length: u64) -> Option<Sealed> {
        let end = self.active.as_ref().map_or(FIRST, |active| active.end);
        if end == FIRST || end.saturating_add(length) <= self.segment_bytes {
            return None;
        }
        self.seal()
    }

    fn begin(&mut self) -> io::Result<Active> {
        let id = self.next_id;
        self.next_id += 1;
        let (file, room) = self.files.create(id)?;
        Ok(Active {
            id,
            file,
            end: FIRST,
            room,
            position: 0,
            homes: Homes::default(),
            synced: false,
        })
    }

    /// Puts all writes into the buffer, and returns how long the bodies are together and their
    /// checksums.
    fn encode(&mut self, sets: &[WriteSet], moves: &Moves) -> io::Result<(u64, Vec<u32>)> {
        let mut encoder = Encoder::new(&mut self.buffer);
        for write in sets.iter().flat_map(WriteSet::as_slice) {
            encoder.add(write).ok_or_else(too_long)?;
        }
        for (pointer, body) in moves {
            encoder.add_move(*pointer, body).ok_or_else(too_long)?;
        }
        let bodies = bodies_of(sets, moves).map(|body| body.len() as u64).sum();
        Ok((bodies, encoder.checksums))
    }
}

impl Active {
    /// Takes the place for `length` more bytes on the disk, so that a sync need not.
    fn make_room(&mut self, length: u64) -> io::Result<()> {
        let end = (self.end + length).next_multiple_of(PAGE);
        if end <= self.room {
            return Ok(());
        }
        let more = GROW_BY.max(self.room / 2).max(end - self.room);
        match self.take_room(more) {
            // What is needed may still be there.
            Err(Errno::NOSPC) => self.take_room(end - self.room)?,
            taken => taken?,
        }
        Ok(())
    }

    fn take_room(&mut self, more: u64) -> rustix::io::Result<()> {
        let flags = rustix::fs::FallocateFlags::empty();
        let allocate = || rustix::fs::fallocate(&*self.file, flags, self.room, more);
        match rustix::io::retry_on_intr(allocate) {
            // Not every file system can. Then it grows as it is written.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.room += more;
                Ok(())
            }
            refused => refused,
        }
    }
}

/// All bodies of a record, in their order.
fn bodies_of<'a>(sets: &'a [WriteSet], moves: &'a Moves) -> impl Iterator<Item = &'a Bytes> {
    let put = sets.iter().flat_map(WriteSet::as_slice);
    let put = put.filter_map(|write| match write {
        Write::PutBody { body, .. } => Some(body),
        _ => None,
    });
    put.chain(moves.iter().map(|(_, body)| body))
}

/// Writes what is in `buffer` and behind it all bodies, at `offset`, to the end of a page.
fn write_record<'a>(
    file: &File,
    offset: u64,
    buffer: &mut Vec<u8>,
    bodies: impl Iterator<Item = &'a Bytes>,
) -> io::Result<()> {
    let mut borrowed: Vec<(usize, &Bytes)> = Vec::new();
    for body in bodies {
        if body.len() < BORROW_FROM {
            buffer.extend_from_slice(body);
        } else {
            borrowed.push((buffer.len(), body));
        }
    }
    let mut pieces = Vec::with_capacity(2 * borrowed.len() + 1);
    let mut copied = 0;
    for (until, body) in borrowed {
        pieces.push(&buffer[copied..until]);
        pieces.push(body);
        copied = until;
    }
    pieces.push(&buffer[copied..]);
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let end = offset + length as u64;
    let rest = end.next_multiple_of(PAGE) - end;
    pieces.push(&ZEROS[..usize::try_from(rest).unwrap_or(0)]);
    pieces.retain(|piece| !piece.is_empty());
    write_pieces(file, offset, &pieces)
}

fn write_pieces(file: &File, mut offset: u64, pieces: &[&[u8]]) -> io::Result<()> {
    for pieces in pieces.chunks(PIECES) {
        let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut slices = slices.as_mut_slice();
        while !slices.is_empty() {
            match rustix::io::pwritev(file, slices, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut slices, written);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Puts places where the bodies were. All of them share one allocation.
fn place_bodies(
    active: &mut Active,
    first: u64,
    checksums: &[u32],
    sets: &mut [WriteSet],
    moves: &mut Moves,
) {
    let mut values = Vec::with_capacity(chunk::PLACE * checksums.len());
    let mut next = first;
    for ((pointer, body), checksum) in bodies_mut(sets, moves).zip(checksums) {
        let place = Place {
            segment: active.id,
            offset: next,
            len: u32::try_from(body.len()).unwrap_or(u32::MAX),
            checksum: *checksum,
        };
        next = place.end();
        active.homes.add(pointer);
        values.extend_from_slice(&chunk::encode_place(pointer, place));
    }
    let mut values = Bytes::from(values);
    for (_, body) in bodies_mut(sets, moves) {
        *body = values.split_to(chunk::PLACE.min(values.len()));
    }
}

fn bodies_mut<'a>(
    sets: &'a mut [WriteSet],
    moves: &'a mut Moves,
) -> impl Iterator<Item = (BodyPointer, &'a mut Bytes)> {
    let moved = moves.iter_mut().map(|(pointer, body)| (*pointer, body));
    sets.iter_mut().flat_map(WriteSet::bodies_mut).chain(moved)
}

fn too_long() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "a group is too long for a record",
    )
}
