//! The journal: what is written is read again, and nothing that befalls a segment makes other
//! records of it.
//!
//! The input is a program that appends records and then damages the disk, or the bytes of a
//! segment, whose checksums are put right so that the writes in them are decoded.

#![no_main]

mod program;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use journal::file_system::{FileSystem, Mode};
use journal::witness::WitnessState;
use journal::{Access, Files, Moves, Removal, ReplayStart, ReplayedJournal, Writer, replay};
use libfuzzer_sys::fuzz_target;
use program::Program;
use sim::model_disk::{ModelDisk, Swallowed};
use store::{
    BodyPointer, EntityId, EntityRow, EntryKey, Head, Index, MessageRow, NamespaceId, Part,
    SequenceNumber, Write, WriteSet,
};

/// Small, so that a run has several.
const SEGMENT: u64 = 2_048;
const FOLDER: &str = "/journal";
/// What stands before the first record of a segment, and before the writes of a record.
const SEGMENT_HEADER: usize = 32;
const RECORD_HEADER: usize = 24;
const MOST_RECORDS: u64 = 24;

/// The writes and moves of a record, with places for bodies.
type Record = (WriteSet, Moves);

fuzz_target!(|input: &[u8]| match input.split_first() {
    Some((kind, rest)) if kind & 1 == 0 => damaged(Program { bytes: rest }),
    Some((_, rest)) => foreign(rest),
    None => {}
});

/// The records of a program are read as far as its damage lets them, and no others.
fn damaged(mut program: Program<'_>) {
    let disk = ModelDisk::new(u64::from(program.byte()), false, Swallowed::default());
    let files = open(&disk);
    let mut writer = Writer::new(files.clone(), SEGMENT, 1);
    let (mut written, mut synced) = (Vec::<Record>::new(), 0);
    let mut is_each_synced = true;
    for position in 1..=1 + u64::from(program.byte()) % MOST_RECORDS {
        let (set, moves) = program.record();
        written.push(append(&mut writer, position, set, moves));
        if program.byte() % 4 != 0 {
            writer.sync().expect("the disk works");
            synced = position;
        } else {
            is_each_synced = false;
        }
    }
    let all = written.len() as u64;
    let (found, records) = match program.byte() % 4 {
        0 => {
            let (found, records) = read(&files);
            assert_eq!(found.position, all, "nothing has happened");
            (found, records)
        }
        1 => {
            disk.cut();
            disk.restart();
            let (found, records) = read(&open(&disk));
            assert!(found.position >= synced, "what was synced is there");
            (found, records)
        }
        2 => {
            writer.sync().expect("the disk works");
            change(&disk, &files, &mut program, |bytes, program| {
                bytes[0] ^= 1 << (program.byte() % 8);
            });
            let (found, records) = read(&files);
            // A start warns of later records that do not count, as a power cut may leave them too
            // if not each was synced by itself.
            let is_heard = found.acknowledged(WitnessState::Nothing) > found.position
                || !is_each_synced && !found.beyond.is_empty();
            assert!(found.position == all || is_heard, "a flipped bit is heard");
            (found, records)
        }
        _ => {
            change(&disk, &files, &mut program, |bytes, _| bytes.fill(0));
            read(&files)
        }
    };
    for (position, (set, moves)) in records {
        let (expected, moved) = &written[position as usize - 1];
        assert_eq!((&set, &moves), (expected, moved), "record {position}");
    }
    for (position, set) in found.beyond {
        assert_eq!(set, written[position as usize - 1].0, "record {position}");
    }
}

/// Lets `change` have what a segment has from some byte of its records on.
fn change(
    disk: &ModelDisk,
    files: &Files,
    program: &mut Program<'_>,
    change: impl FnOnce(&mut [u8], &mut Program<'_>),
) {
    let segments = files.segments().expect("listed");
    let id = segments[usize::from(program.byte()) % segments.len()];
    let path = files.path(id);
    let mut content = disk.read(&path).expect("read");
    let end = content.iter().rposition(|byte| *byte != 0);
    let records = SEGMENT_HEADER..end.map_or(SEGMENT_HEADER, |last| last + 1);
    if records.is_empty() {
        return;
    }
    let from = records.start + usize::from(program.short()) % records.len();
    change(&mut content[from..], program);
    write(disk, &path, &content);
}

/// Bytes as the records of a segment: what is decoded is encoded, and decoded to the same.
fn foreign(input: &[u8]) {
    let disk = ModelDisk::new(0, false, Swallowed::default());
    let files = open(&disk);
    let segment = with_checksums(1, input);
    write(&disk, &files.path(1), &segment);
    let (_, records) = read(&files);
    let copy = ModelDisk::new(0, false, Swallowed::default());
    let files = open(&copy);
    let mut writer = Writer::new(files.clone(), SEGMENT, 1);
    let mut written = Vec::new();
    for (position, (set, moves)) in (1..).zip(records.into_iter().map(|(_, record)| record)) {
        let mut bodied = WriteSet::default();
        set.into_vec()
            .into_iter()
            .map(body_of)
            .for_each(|write| bodied.push(write));
        written.push((position, append(&mut writer, position, bodied, moves)));
    }
    assert_eq!(read(&files).1, written);
}

/// A write with a body in the place of a body's place.
fn body_of(write: Write) -> Write {
    match write {
        Write::PutBody { pointer, .. } => Write::PutBody {
            pointer,
            body: Bytes::from_static(b"a body"),
        },
        other => other,
    }
}

/// A segment whose records are cut from `input`: for each the lengths of its writes and of its
/// bodies, then both.
fn with_checksums(id: u64, mut input: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; SEGMENT_HEADER];
    let mut position = 0_u64;
    while let [high, low, bodies, rest @ ..] = input {
        position += 1;
        let writes = usize::from(u16::from_be_bytes([*high, *low]) % 1_024).min(rest.len());
        let (writes, rest) = rest.split_at(writes);
        let (bodies, rest) = rest.split_at(usize::from(*bodies).min(rest.len()));
        let mut covered = Vec::with_capacity(RECORD_HEADER + writes.len());
        covered.extend_from_slice(&(writes.len() as u32).to_be_bytes());
        covered.extend_from_slice(&(bodies.len() as u64).to_be_bytes());
        covered.extend_from_slice(&position.to_be_bytes());
        covered.extend_from_slice(writes);
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&id.to_be_bytes()), &covered);
        segment.extend_from_slice(&checksum.to_be_bytes());
        segment.extend_from_slice(&covered);
        segment.extend_from_slice(bodies);
        input = rest;
    }
    segment
}

fn open(disk: &ModelDisk) -> Arc<Files> {
    let system = Arc::new(disk.clone());
    let files = Files::open(system, FOLDER.into(), Access::Cached, Removal::AtOnce);
    Arc::new(files.expect("the disk works"))
}

fn write(disk: &ModelDisk, path: &Path, content: &[u8]) {
    let file = disk.open(path, Mode::Create, Access::Cached);
    let written = file.and_then(|file| file.write_all_at(content, 0));
    written.expect("the disk works");
}

/// Appends a record, and returns what is to be read of it.
fn append(writer: &mut Writer, position: u64, set: WriteSet, mut moves: Moves) -> Record {
    let mut sets = [set];
    writer
        .append(position, &mut sets, &mut moves)
        .expect("the disk works");
    let [set] = sets;
    (set, moves)
}

/// Reads a journal of which the index has nothing, and whose records all count.
fn read(files: &Files) -> (ReplayedJournal, Vec<(u64, Record)>) {
    let start = ReplayStart {
        position: 0,
        known: &BTreeSet::new(),
        witnessed: 0,
    };
    let mut records = Vec::new();
    let found = replay(files, &start, |position, set, moves| {
        records.push((position, (set, moves)));
        Ok(())
    });
    let found = found.expect("the disk works");
    let positions = records.iter().map(|(position, _)| *position);
    assert!(positions.eq(1..=found.position), "records come in order");
    (found, records)
}

impl Program<'_> {
    fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Small numbers mostly.
    fn number(&mut self) -> u64 {
        match self.byte() {
            u8::MAX => u64::MAX - u64::from(self.byte()),
            small => u64::from(small),
        }
    }

    fn sequence_number(&mut self) -> SequenceNumber {
        SequenceNumber(self.number())
    }

    fn pointer(&mut self) -> BodyPointer {
        BodyPointer {
            home: EntityId(self.number()),
            number: self.sequence_number(),
        }
    }

    /// Bytes that are no zeros, which are what a disk has where nothing was written.
    fn filled(&mut self, most: u16) -> Bytes {
        let len = usize::from(self.short() % most);
        Bytes::from(vec![self.byte() | 1; len])
    }

    fn key(&mut self) -> EntryKey {
        EntryKey::new(self.filled(16), self.sequence_number())
    }

    fn record(&mut self) -> Record {
        let mut set = WriteSet::default();
        for _ in 0..self.byte() % 8 {
            let write = self.write();
            set.push(write);
        }
        let moves = (0..self.byte() % 8 / 6).map(|_| (self.pointer(), self.filled(600)));
        (set, moves.collect())
    }

    fn head(&mut self) -> Head {
        let mut head = Head::empty();
        // There is room for more numbers, or the head is no sound one.
        head.next_number = SequenceNumber(self.byte().into());
        head.accessed_ms = self.number();
        head.schedule_from = (self.number(), self.sequence_number());
        head.periods = (0..u64::from(self.byte() % 4)).collect();
        let part = head.part_mut(Part::Scheduled);
        (part.count, part.bytes) = (self.number(), self.number());
        part.resume = self.byte().into();
        part.stragglers = (0..u64::from(self.byte() % 4))
            .map(SequenceNumber)
            .collect();
        head
    }

    fn row(&mut self) -> MessageRow {
        MessageRow {
            enqueued_ms: self.number(),
            ttl_ms: self.number(),
            expires_ms: self.number(),
            size: self.short().into(),
            flags: self.byte().into(),
            session_hash: self.number(),
            enqueued_number: self.number(),
            body: self.pointer(),
        }
    }

    fn write(&mut self) -> Write {
        let (entity, number) = (EntityId(self.number()), self.sequence_number());
        let pointer = BodyPointer {
            home: entity,
            number,
        };
        let part = Part::ALL[usize::from(self.byte()) % Part::ALL.len()];
        let index = Index::ALL[usize::from(self.byte()) % Index::ALL.len()];
        let (block, count) = (self.number(), self.byte().into());
        match self.byte() % 20 {
            0 => Write::PutEntity(EntityRow {
                id: entity,
                namespace: NamespaceId::default(),
                path: "orders".to_owned(),
                definition: self.filled(100),
            }),
            1 => Write::RemoveEntity(entity),
            2 => Write::PutHead {
                entity,
                head: self.head(),
            },
            3 => Write::PutMessage {
                entity,
                part,
                number,
                row: self.row(),
            },
            4 => Write::RemoveMessage {
                entity,
                part,
                number,
            },
            5 => Write::RemoveBody { pointer },
            6 => Write::ShareBody {
                pointer,
                copies: count,
            },
            7 => Write::ReleaseBody { pointer },
            8 => Write::PutDeliveryCount {
                entity,
                number,
                count,
            },
            9 => Write::RemoveDeliveryCount { entity, number },
            10 => Write::PutPatch {
                entity,
                number,
                patch: self.filled(100),
            },
            11 => Write::RemovePatch { entity, number },
            12 => Write::PutExpiry {
                entity,
                part,
                block,
                due_ms: self.number(),
            },
            13 => Write::RemoveExpiry {
                entity,
                part,
                block,
            },
            14 => Write::PutEntry {
                entity,
                index,
                key: self.key(),
                value: self.filled(100),
            },
            15 => Write::RemoveEntry {
                entity,
                index,
                key: self.key(),
            },
            16 => Write::RemoveEntries {
                entity,
                index,
                keys: Box::new(self.key()..self.key()),
            },
            17 => Write::Copy {
                from: EntityId(self.number()),
                to: entity,
            },
            _ => Write::PutBody {
                pointer,
                body: self.filled(1_500),
            },
        }
    }
}
