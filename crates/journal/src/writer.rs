//! Writer: appends records to the newest segment.
//!
//! A record without its bodies is built in one buffer first. The output writes both to the disk.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use store::{BodyPointer, Write, WriteSet};

use crate::chunk;
use crate::codec::Encoder;
use crate::file_system::Access;
use crate::files::Files;
use crate::handle::Handle;
use crate::journal_location::{JournalLocation, Moves};
use crate::output::Output;
use crate::pages::PAGE;
use crate::record::{FIRST, HEADER, Header, segment_header};
use crate::segment::{BodyRanges, SealedSegment};
use crate::staged::{STAGED_FROM, StagedFile, StagedFiles};

/// By how much a new file grows at least.
const GROW_BY: u64 = 1 << 20;
/// For records up to this size a file grows by zeros. Blocks that were written before take half the
/// time to sync, which is all that such a record takes; for larger ones writing twice would cost
/// more.
const SMALL: u64 = 16 << 10;
/// What the buffer keeps between records.
const KEEP: usize = 4 << 20;

/// Writes one store's journal.
pub struct Writer {
    files: Arc<Files>,
    /// A segment ends when its next record would go beyond this.
    segment_bytes: u64,
    next_id: u64,
    active: Option<ActiveSegment>,
    /// Segments that were sealed and not synced since they were written to.
    unsynced: Vec<Arc<Handle>>,
    buffer: Vec<u8>,
    output: Output,
}

/// The segment that is written to.
struct ActiveSegment {
    id: u64,
    file: Arc<Handle>,
    end: u64,
    /// Where the part of the file ends that has its place on the disk; whole pages.
    room: u64,
    position: u64,
    body_ranges: BodyRanges,
    synced: bool,
}

/// What became of a record.
pub struct AppendedRecord {
    pub bytes: u64,
    /// Of them, those of bodies.
    pub bodies: u64,
    /// The segment that ended before it, and the files of the staged bodies that it names.
    pub sealed: Vec<SealedSegment>,
    /// Where it is.
    pub file: Arc<Handle>,
    /// How long its sync took, if there was one.
    pub sync: Option<Duration>,
    /// The large bodies that were put, perhaps the last handles to them.
    pub large: Vec<Bytes>,
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
            output: Output::default(),
        }
    }

    /// Writes `sets` and `moves` as the record `position`, without waiting for the disk, and puts
    /// in the place of each of their bodies where that is now.
    pub fn append(
        &mut self,
        position: u64,
        sets: &mut [WriteSet],
        moves: &mut Moves,
    ) -> io::Result<AppendedRecord> {
        self.files.staged.count_record();
        self.buffer.clear();
        self.buffer.resize(HEADER, 0);
        let staged_files = StagedFiles::of(&self.files.staged, put_bodies(sets));
        let (bodies, checksums) = self.encode(sets, moves, &staged_files)?;
        let length = self.buffer.len() as u64 + bodies;
        let mut sealed: Vec<_> = self.seal_if_full(length).into_iter().collect();
        let follows_synced = self.is_synced();
        let active = match self.active.take() {
            Some(active) => active,
            None => self.begin()?,
        };
        let active = self.active.insert(active);
        let writes = &self.buffer[HEADER..];
        let header = Header::new(position, writes, bodies, follows_synced);
        let header = header
            .ok_or_else(too_long)?
            .with_checksum(active.id, writes);
        self.buffer[..HEADER].copy_from_slice(&header.encode());
        active.make_room(length)?;
        let first_body = active.end + self.buffer.len() as u64;
        let written = bodies_of(sets, moves, &staged_files);
        self.output
            .write(&active.file, active.end, &mut self.buffer, written)?;
        let mut locations = LocationAssigner::new(active, first_body, checksums);
        let large = locations.put(sets, moves, &staged_files);
        sealed.extend(locations.staged(position));
        active.end += length;
        active.position = position;
        active.synced = false;
        if self.buffer.capacity() > KEEP {
            self.buffer = Vec::new();
        }
        Ok(AppendedRecord {
            bytes: length,
            bodies,
            sealed,
            file: active.file.clone(),
            sync: None,
            large,
        })
    }

    /// Whether everything appended so far is durable. What an earlier process has appended is: it
    /// was synced at the start.
    fn is_synced(&self) -> bool {
        self.unsynced.is_empty() && self.active.as_ref().is_none_or(|active| active.synced)
    }

    /// Makes everything appended so far durable.
    pub fn sync(&mut self) -> io::Result<()> {
        for file in self.unsynced.drain(..) {
            file.sync()?;
        }
        if let Some(active) = self.active.as_mut().filter(|active| !active.synced) {
            active.file.sync()?;
            active.synced = true;
        }
        Ok(())
    }

    /// Ends the segment that is being written, if there is one.
    pub fn seal(&mut self) -> Option<SealedSegment> {
        let active = self.active.take()?;
        if active.end < self.segment_bytes / 2 {
            // Ended early, so it gives back what it took for more. That it keeps it does no harm.
            let end = active.end.next_multiple_of(PAGE as u64);
            drop(active.file.file().set_len(end));
        }
        if !active.synced {
            self.unsynced.push(active.file);
        }
        Some(SealedSegment {
            id: active.id,
            position: active.position,
            bytes: active.end,
            body_ranges: active.body_ranges,
        })
    }

    fn seal_if_full(&mut self, length: u64) -> Option<SealedSegment> {
        let end = self.active.as_ref().map_or(FIRST, |active| active.end);
        if end == FIRST || end.saturating_add(length) <= self.segment_bytes {
            return None;
        }
        self.seal()
    }

    fn begin(&mut self) -> io::Result<ActiveSegment> {
        let id = self.next_id;
        self.next_id += 1;
        let (file, room) = self.files.create(id)?;
        self.output.begin(&file, &segment_header(id));
        Ok(ActiveSegment {
            id,
            file,
            end: FIRST,
            room,
            position: 0,
            body_ranges: BodyRanges::default(),
            synced: true,
        })
    }

    /// Puts all writes into the buffer, and returns how long the bodies are together and their
    /// checksums.
    fn encode(
        &mut self,
        sets: &[WriteSet],
        moves: &Moves,
        staged_files: &StagedFiles,
    ) -> io::Result<(u64, Vec<u32>)> {
        let mut encoder = Encoder::new(&mut self.buffer, staged_files);
        for write in sets.iter().flat_map(WriteSet::as_slice) {
            encoder.add(write).ok_or_else(too_long)?;
        }
        for (pointer, body) in moves {
            encoder.add_move(*pointer, body).ok_or_else(too_long)?;
        }
        let bodies = bodies_of(sets, moves, staged_files);
        let bodies = bodies.map(|body| body.len() as u64).sum();
        Ok((bodies, encoder.checksums))
    }
}

impl ActiveSegment {
    /// Takes the place for `length` more bytes on the disk, so that a sync need not.
    fn make_room(&mut self, length: u64) -> io::Result<()> {
        let end = (self.end + length).next_multiple_of(PAGE as u64);
        if end <= self.room {
            return Ok(());
        }
        let is_direct = self.file.access() == Access::Direct;
        if is_direct && length <= SMALL && self.fill_room()? {
            return Ok(());
        }
        let more = GROW_BY.max(self.room / 2).max(end - self.room);
        match self.take_room(more) {
            // What is needed may still be there.
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                self.take_room(end - self.room)?;
            }
            taken => taken?,
        }
        Ok(())
    }

    /// Takes place by zeros, if the disk has it.
    fn fill_room(&mut self) -> io::Result<bool> {
        match self.file.fill(self.room, GROW_BY) {
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(false),
            filled => filled?,
        }
        self.room += GROW_BY;
        Ok(true)
    }

    fn take_room(&mut self, more: u64) -> io::Result<()> {
        let more = more.next_multiple_of(PAGE as u64);
        self.file.file().allocate(self.room, more)?;
        self.room += more;
        Ok(())
    }
}

/// All bodies of a record, in their order.
fn bodies_of<'a>(
    sets: &'a [WriteSet],
    moves: &'a Moves,
    staged_files: &'a StagedFiles,
) -> impl Iterator<Item = &'a Bytes> {
    let put = put_bodies(sets).filter(|body| staged_files.get(body).is_none());
    put.chain(moves.iter().map(|(_, body)| body))
}

fn put_bodies(sets: &[WriteSet]) -> impl Iterator<Item = &Bytes> {
    let put = sets.iter().flat_map(WriteSet::as_slice);
    put.filter_map(|write| match write {
        Write::PutBody { body, .. } => Some(body),
        _ => None,
    })
}

/// Where the bodies of a record are.
struct LocationAssigner<'a> {
    active: &'a mut ActiveSegment,
    /// Where the next body of the record begins.
    next: u64,
    /// Of the bodies in the record that come.
    checksums: std::vec::IntoIter<u32>,
    /// Whose bodies are in files of their own.
    staged: BTreeMap<u64, SealedSegment>,
}

impl<'a> LocationAssigner<'a> {
    fn new(active: &'a mut ActiveSegment, first: u64, checksums: Vec<u32>) -> Self {
        Self {
            active,
            next: first,
            checksums: checksums.into_iter(),
            staged: BTreeMap::new(),
        }
    }

    /// Puts places where the bodies were, and returns the large ones of these. All places share one
    /// allocation.
    fn put(
        &mut self,
        sets: &mut [WriteSet],
        moves: &mut Moves,
        staged_files: &StagedFiles,
    ) -> Vec<Bytes> {
        let mut values = Vec::with_capacity(chunk::LOCATION * self.checksums.len());
        for (pointer, body) in bodies_mut(sets, moves) {
            let location = match staged_files.get(body) {
                Some(claim) => self.of_staged(pointer, claim),
                None => self.of_next(pointer, body),
            };
            values.extend_from_slice(&chunk::encode_location(pointer, location));
        }
        let mut values = Bytes::from(values);
        let mut large = Vec::new();
        for (_, body) in bodies_mut(sets, moves) {
            let location = values.split_to(chunk::LOCATION.min(values.len()));
            let body = std::mem::replace(body, location);
            if body.len() >= STAGED_FROM {
                large.push(body);
            }
        }
        large
    }

    fn of_next(&mut self, pointer: BodyPointer, body: &Bytes) -> JournalLocation {
        let location = JournalLocation {
            segment: self.active.id,
            offset: self.next,
            len: u32::try_from(body.len()).unwrap_or(u32::MAX),
            checksum: self.checksums.next().unwrap_or_default(),
        };
        self.next = location.end();
        self.active.body_ranges.add(pointer);
        location
    }

    fn of_staged(&mut self, pointer: BodyPointer, claim: StagedFile) -> JournalLocation {
        let location = claim.location(pointer);
        let file = self.staged.entry(location.segment);
        let file = file.or_insert_with(|| SealedSegment::empty(location.segment));
        file.bytes = location.end();
        file.body_ranges.add(pointer);
        location
    }

    /// The files with staged bodies that the record `position` names.
    fn staged(self, position: u64) -> impl Iterator<Item = SealedSegment> {
        let files = self.staged.into_values();
        files.map(move |file| SealedSegment { position, ..file })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::os;
    use crate::files::Removal;

    fn set(number: u64, len: usize) -> WriteSet {
        let (home, number) = (store::EntityId(1), store::SequenceNumber(number));
        let pointer = BodyPointer { home, number };
        let body = Bytes::from(vec![7; len]);
        let mut set = WriteSet::default();
        set.push(Write::PutBody { pointer, body });
        set
    }

    #[test]
    fn a_stager_sees_new_records_once() {
        let here = tempfile::tempdir().expect("a directory");
        let files = Files::open(
            os(),
            here.path().join("journal"),
            Access::Cached,
            Removal::InBackground,
        )
        .expect("opened");
        let files = Arc::new(files);
        let mut writer = Writer::new(files.clone(), 32 << 20, 1);
        let mut seen = 0;
        assert!(!files.staged.has_records_since(&mut seen));
        for position in 1..=2 {
            let written = writer.append(position, &mut [set(position, 9)], &mut Moves::new());
            written.expect("written");
        }
        assert!(files.staged.has_records_since(&mut seen));
        assert!(!files.staged.has_records_since(&mut seen));
    }

    #[test]
    fn a_new_file_grows_by_whole_pages_whatever_is_written_to_it() {
        for large in [20_000, 300_001, 1_000_003, 3_200_000] {
            for access in [Access::Direct, Access::Cached] {
                let here = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
                let files = Files::open(
                    os(),
                    here.path().join("journal"),
                    access,
                    Removal::InBackground,
                )
                .expect("opened");
                let mut writer = Writer::new(Arc::new(files), 32 << 20, 1);
                let mut sizes = vec![large; (30 << 20) / large];
                // Each time a small one comes first where the room ends.
                for at in 0..sizes.len() * 2 {
                    sizes.insert(at, 100 + at * 8 % 16_000);
                }
                for (position, size) in (1..).zip(sizes) {
                    let written =
                        writer.append(position, &mut [set(position, size)], &mut Moves::new());
                    written.expect("written");
                    let active = writer.active.as_ref().expect("a segment");
                    assert_eq!(active.room % PAGE as u64, 0, "{large} {access:?}");
                }
            }
        }
    }
}
