//! Replay: reads the groups from the journal that the index did not get before the process ended.
//!
//! Positions of records follow each other without a gap, across segments too. A segment ends at
//! the first bytes that are no record. Whether those are a record that a power cut interrupted, or
//! damage to one that was synced, is told by the [position](ReplayedJournal::synced) up to which
//! everything was synced: records that were written later note it. The opening compares it, and
//! the witness, with the end that was found.

use std::collections::{BTreeMap, BTreeSet};

use store::{BodyPointer, StoreError, WriteSet};

use crate::codec::RecordedBody;
use crate::directory::io_error;
use crate::files::Files;
use crate::journal_location::Moves;
use crate::segment::SealedSegment;
use crate::segment_reader::{ReadRecord, SegmentReader};
use crate::witness::WitnessState;

/// What was found.
#[derive(Debug, Default)]
pub struct ReplayedJournal {
    /// Of the last record.
    pub position: u64,
    /// Everything up to this position was on stable storage, as records tell that were written
    /// after it.
    pub synced: u64,
    /// The segment and the offset from which on nothing counts.
    pub end: Option<(u64, u64)>,
    /// The writes of records that can be read and do not count, since one before them is missing.
    pub beyond: Vec<(u64, WriteSet)>,
    /// The segments that had to be read and have something in them.
    pub sealed: Vec<SealedSegment>,
    /// Those without a record that counts.
    pub useless: Vec<u64>,
    /// The files of staged bodies that the records name which were read.
    pub staged: BTreeMap<u64, SealedSegment>,
    /// The files of staged bodies that no record names and the index does not know.
    pub unnamed: Vec<u64>,
    /// Segments that could have had more in them than was found, by where that would begin: they
    /// end before what the index has for good, and no other goes on there; or a record that the
    /// index has cannot be read.
    pub doubtful: BTreeMap<u64, u64>,
    /// The least id for a new segment.
    pub next_id: u64,
}

impl ReplayedJournal {
    /// The newest position that is known to have been acknowledged. A journal that ends before it
    /// has lost commits.
    #[must_use]
    pub fn acknowledged(&self, witness: WitnessState) -> u64 {
        witness.position().max(self.synced)
    }

    /// Keeps a segment that could not be read to its end for a body that should be in it.
    pub fn keep_for(&mut self, segment: u64, pointer: BodyPointer) {
        self.useless.retain(|id| *id != segment);
        self.unnamed.retain(|id| *id != segment);
        let known = self.sealed.iter().position(|sealed| sealed.id == segment);
        let known = known.unwrap_or_else(|| {
            self.sealed.push(SealedSegment::empty(segment));
            self.sealed.len() - 1
        });
        self.sealed[known].body_ranges.add(pointer);
    }

    /// Notes that a segment could have more in it from `offset` on than was found.
    fn doubt(&mut self, id: u64, offset: u64) {
        let doubtful = self.doubtful.entry(id).or_insert(offset);
        *doubtful = offset.min(*doubtful);
    }

    /// Whether `record` is the next one, or an earlier one.
    fn goes_on_with(&self, record: &ReadRecord) -> bool {
        record.position <= self.position + 1
    }

    /// Notes what a record says of those before it.
    fn note_synced(&mut self, record: &ReadRecord) {
        if record.follows_synced {
            self.synced = self.synced.max(record.position.saturating_sub(1));
        }
    }

    /// A staged body is durable before the record that names it, so nothing is verified here.
    fn name_staged(&mut self, position: u64, recorded: &RecordedBody) {
        let RecordedBody { pointer, location } = recorded;
        let file = self.staged.entry(location.segment);
        let file = file.or_insert_with(|| SealedSegment::empty(location.segment));
        file.position = position;
        file.bytes = location.end();
        file.body_ranges.add(*pointer);
    }
}

/// Where to begin.
pub struct ReplayStart<'a> {
    /// The index has everything up to this position for good.
    pub position: u64,
    /// Segments of which the index knows what is in them: nothing that it does not have.
    pub known: &'a BTreeSet<u64>,
    /// Up to here records were acknowledged, so they were whole. If a body in one is damaged now,
    /// that is found when it is read; it does not end the journal.
    pub witnessed: u64,
}

/// Reads the segments of `files` and hands on each record that the index does not have.
pub fn replay(
    files: &Files,
    from: &ReplayStart<'_>,
    mut apply: impl FnMut(u64, WriteSet, Moves) -> Result<(), StoreError>,
) -> Result<ReplayedJournal, StoreError> {
    let mut recovered = ReplayedJournal {
        position: from.position,
        next_id: files.next_id(from.known)?,
        ..ReplayedJournal::default()
    };
    // Where the segment before ends, if that is known.
    let mut before: Option<(u64, u64, u64)> = None;
    let listing = |error| io_error("listing", &files.path(0), &error);
    let mut ids = files.segments().map_err(listing)?;
    ids.retain(|id| !from.known.contains(id));
    for (at, &id) in ids.iter().enumerate() {
        let reading = |error| io_error("reading", &files.path(id), &error);
        let Some(file) = files.whole(id).map_err(reading)? else {
            continue;
        };
        // After the death of a process it may be read from memory. Neither the index, which may
        // make permanent at any moment what it gets, nor what comes behind must outlive it.
        file.sync().map_err(reading)?;
        let mut segment = SegmentReader::open(id, &*file).map_err(reading)?;
        if let Some(next) = ids.get(at + 1) {
            segment.synced_next = synced_first(files, *next)?;
        }
        let mut first = None;
        loop {
            while let Some(record) = segment.next(from.witnessed).map_err(reading)? {
                if !recovered.goes_on_with(&record) {
                    segment.put_back(&record);
                    break;
                }
                recovered.note_synced(&record);
                first.get_or_insert(record.position);
                take_bodies(&record, &mut segment, &mut recovered);
                recovered.end = Some((id, segment.offset));
                if record.position > recovered.position {
                    recovered.position = record.position;
                    apply(record.position, record.said.set, record.said.moves)?;
                }
            }
            // What the index has must not hide what it has not. Bodies may be missed.
            let damaged = segment.offset;
            if !segment.skip_applied(from.position).map_err(reading)? {
                break;
            }
            recovered.doubt(id, damaged);
        }
        look_beyond(&segment, &mut recovered).map_err(reading)?;
        let end = (id, segment.sealed.position, segment.offset);
        if let Some((id, position, offset)) = before.replace(end)
            && first != Some(position + 1)
        {
            recovered.doubt(id, offset);
        }
        if segment.sealed.position == 0 {
            recovered.useless.push(id);
        } else {
            recovered.sealed.push(segment.sealed);
        }
    }
    if let Some((id, position, offset)) = before
        && position < from.position
    {
        recovered.doubt(id, offset);
    }
    recovered.unnamed = files.staged().map_err(listing)?;
    let is_named = |id: &u64| from.known.contains(id) || recovered.staged.contains_key(id);
    recovered.unnamed.retain(|id| !is_named(id));
    Ok(recovered)
}

/// The position of the first record of a segment, if that says that everything before it was
/// synced.
fn synced_first(files: &Files, id: u64) -> Result<Option<u64>, StoreError> {
    let reading = |error| io_error("reading", &files.path(id), &error);
    let Some(file) = files.whole(id).map_err(reading)? else {
        return Ok(None);
    };
    let segment = SegmentReader::open(id, &*file).map_err(reading)?;
    segment.synced_first().map_err(reading)
}

/// Notes whose bodies a record has, in its segment and in files of their own.
fn take_bodies(
    record: &ReadRecord,
    segment: &mut SegmentReader<'_>,
    recovered: &mut ReplayedJournal,
) {
    for recorded in &record.said.staged {
        recovered.name_staged(record.position, recorded);
    }
    segment.sealed.position = record.position;
    segment.sealed.bytes = segment.offset;
    for recorded in &record.said.bodies {
        segment.sealed.body_ranges.add(recorded.pointer);
    }
}

/// Looks for records behind what ends a segment, and at what ends it.
fn look_beyond(
    segment: &SegmentReader<'_>,
    recovered: &mut ReplayedJournal,
) -> std::io::Result<()> {
    let position = recovered.position;
    let beyond = segment.look_ahead(position)?;
    let next = segment.expected().unwrap_or(position + 1);
    if beyond.is_empty() && segment.is_damaged_record(next)? {
        recovered.synced = recovered.synced.max(next);
    }
    // If there is a record, but a later one, the gap is in the segment before.
    let begins_later = beyond
        .first()
        .is_some_and(|record| record.offset == segment.offset);
    if recovered.end.is_none() || recovered.beyond.is_empty() && !begins_later {
        recovered.end = Some((segment.sealed.id, segment.offset));
    }
    for record in beyond {
        recovered.note_synced(&record);
        // The index has those before it.
        if record.position > position {
            recovered.beyond.push((record.position, record.said.set));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use bytes::Bytes;
    use store::{EntityId, SequenceNumber, Write};

    use super::*;
    use crate::file_system::{Access, os};
    use crate::files::Removal;
    use crate::record::FIRST;
    use crate::writer::Writer;

    /// Five synced records of which the index has three.
    fn replayed(flip: impl Fn(u64) -> usize) -> ReplayedJournal {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("journal");
        let files = Files::open(os(), folder, Access::Cached, Removal::AtOnce).expect("opened");
        let files = Arc::new(files);
        let mut writer = Writer::new(files.clone(), 1 << 20, 1);
        let mut length = 0;
        for position in 1..=5 {
            let mut set = WriteSet::default();
            set.push(Write::PutPatch {
                entity: EntityId(1),
                number: SequenceNumber(position),
                patch: Bytes::from(vec![7; 50]),
            });
            let appended = writer.append(position, &mut [set], &mut Moves::new());
            length = appended.expect("appended").bytes;
            writer.sync().expect("synced");
        }
        let path = files.path(1);
        let mut content = fs::read(&path).expect("read");
        content[flip(length)] ^= 1;
        fs::write(&path, content).expect("written");
        let start = ReplayStart {
            position: 3,
            known: &BTreeSet::new(),
            witnessed: 3,
        };
        replay(&files, &start, |_, _, _| Ok(())).expect("read")
    }

    #[test]
    fn damage_to_what_the_index_has_does_not_hide_what_it_has_not() {
        for damaged in 0..3 {
            for byte in 0..80 {
                let at = |length: u64| (FIRST + damaged * length + byte) as usize;
                let found = replayed(at);
                assert_eq!(found.position, 5, "record {damaged} byte {byte}");
                assert_eq!(found.synced, 4, "record {damaged} byte {byte}");
                let doubtful = FIRST + damaged * found.sealed[0].bytes.saturating_sub(FIRST) / 5;
                assert_eq!(found.doubtful, BTreeMap::from([(1, doubtful)]));
                assert_eq!(found.beyond, []);
            }
        }
    }
}
