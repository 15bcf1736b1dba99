//! Codec: the records of a namespace's backup as bytes. Numbers are big-endian; what has a length
//! comes after it.

use broker::FrozenEntity;
use bytes::{Buf, BufMut, Bytes};
use store::{
    BodyLocation, BodyPointer, EntityId, Entry, EntryKey, Head, Index, MessageRow, Part, PartHead,
    SequenceNumber, StoredMessage,
};

const ENTITY: u8 = 1;
const MESSAGE: u8 = 2;
const ENTRY: u8 = 3;
const END: u8 = 4;

/// A record. All entities come before all messages and entries, which name them by their place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Record {
    Entity(Box<FrozenEntity>),
    Message {
        entity: u64,
        message: Box<StoredMessage>,
    },
    Entry {
        entity: u64,
        index: Index,
        entry: Entry,
    },
    /// The last one.
    End {
        records: u64,
    },
}

impl Record {
    /// Its kind and its content.
    pub fn encode(&self) -> (u8, Vec<u8>) {
        let mut to = Vec::new();
        let kind = match self {
            Self::Entity(entity) => {
                put_entity(entity, &mut to);
                ENTITY
            }
            Self::Message { entity, message } => {
                to.put_u64(*entity);
                put_message(message, &mut to);
                MESSAGE
            }
            Self::Entry {
                entity,
                index,
                entry,
            } => {
                to.put_u64(*entity);
                to.put_u8(*index as u8);
                put_entry(entry, &mut to);
                ENTRY
            }
            Self::End { records } => {
                to.put_u64(*records);
                END
            }
        };
        (kind, to)
    }

    /// A record of a kind; `None` if it is none.
    pub fn decode(kind: u8, mut content: Bytes) -> Option<Self> {
        let from = &mut content;
        let record = match kind {
            ENTITY => Self::Entity(Box::new(entity(from)?)),
            MESSAGE => Self::Message {
                entity: number(from)?,
                message: Box::new(message(from)?),
            },
            ENTRY => Self::Entry {
                entity: number(from)?,
                index: *Index::ALL.get(usize::from(from.try_get_u8().ok()?))?,
                entry: entry(from)?,
            },
            END => Self::End {
                records: number(from)?,
            },
            _ => return None,
        };
        content.is_empty().then_some(record)
    }
}

fn put_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    to.put_u64(bytes.len() as u64);
    to.put_slice(bytes);
}

fn bytes(from: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(number(from)?).ok()?;
    (length <= from.len()).then(|| from.split_to(length))
}

fn number(from: &mut Bytes) -> Option<u64> {
    from.try_get_u64().ok()
}

fn put_optional(bytes: Option<&Bytes>, to: &mut Vec<u8>) {
    to.put_u8(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        put_bytes(bytes, to);
    }
}

fn optional(from: &mut Bytes) -> Option<Option<Bytes>> {
    match from.try_get_u8().ok()? {
        0 => Some(None),
        1 => Some(Some(bytes(from)?)),
        _ => None,
    }
}

fn put_all<T>(all: &[T], put: impl Fn(&T, &mut Vec<u8>), to: &mut Vec<u8>) {
    to.put_u64(all.len() as u64);
    for one in all {
        put(one, to);
    }
}

/// As many as there are said to be, each of which takes a byte or more.
fn all<T>(get: impl Fn(&mut Bytes) -> Option<T>, from: &mut Bytes) -> Option<Vec<T>> {
    let count = usize::try_from(number(from)?).ok()?;
    if count > from.len() {
        return None;
    }
    (0..count).map(|_| get(from)).collect()
}

fn put_entity(entity: &FrozenEntity, to: &mut Vec<u8>) {
    to.put_u64(entity.source.0);
    put_bytes(entity.path.as_bytes(), to);
    put_bytes(&entity.definition, to);
    put_head(&entity.head, to);
    put_all(&entity.rules, put_entry, to);
    let put_expiry = |(block, due_ms): &(u64, u64), to: &mut Vec<u8>| {
        to.put_u64(*block);
        to.put_u64(*due_ms);
    };
    put_all(&entity.expiries, put_expiry, to);
}

fn entity(from: &mut Bytes) -> Option<FrozenEntity> {
    Some(FrozenEntity {
        source: EntityId(number(from)?),
        path: String::from_utf8(bytes(from)?.into()).ok()?,
        definition: bytes(from)?,
        head: head(from)?,
        rules: all(entry, from)?,
        expiries: all(|from| Some((number(from)?, number(from)?)), from)?,
    })
}

fn put_head(head: &Head, to: &mut Vec<u8>) {
    to.put_u64(head.next_number.0);
    to.put_u64(head.last_enqueued_ms);
    put_all(&head.periods, |period, to| to.put_u64(*period), to);
    to.put_u64(head.schedule_from.0);
    to.put_u64(head.schedule_from.1.0);
    to.put_u64(head.session_state_bytes);
    to.put_u64(head.accessed_ms);
    for part in head.parts.iter() {
        to.put_u64(part.count);
        to.put_u64(part.bytes);
        to.put_u64(part.resume);
        put_all(&part.stragglers, |number, to| to.put_u64(number.0), to);
    }
}

fn head(from: &mut Bytes) -> Option<Head> {
    let mut head = Head {
        next_number: SequenceNumber(number(from)?),
        last_enqueued_ms: number(from)?,
        periods: all(number, from)?,
        schedule_from: (number(from)?, SequenceNumber(number(from)?)),
        session_state_bytes: number(from)?,
        accessed_ms: number(from)?,
        ..Head::empty()
    };
    for part in Part::ALL {
        *head.part_mut(part) = PartHead {
            count: number(from)?,
            bytes: number(from)?,
            resume: number(from)?,
            stragglers: all(|from| number(from).map(SequenceNumber), from)?,
        };
    }
    Some(head)
}

fn put_entry(entry: &Entry, to: &mut Vec<u8>) {
    put_bytes(&entry.key.group, to);
    to.put_u64(entry.key.number.0);
    put_bytes(&entry.value, to);
}

fn entry(from: &mut Bytes) -> Option<Entry> {
    Some(Entry {
        key: EntryKey::new(bytes(from)?, SequenceNumber(number(from)?)),
        value: bytes(from)?,
    })
}

/// Where its body was is not written: it gets a place of its own.
fn put_message(message: &StoredMessage, to: &mut Vec<u8>) {
    to.put_u8(message.part as u8);
    to.put_u64(message.number.0);
    let row = &message.row;
    for number in [
        row.enqueued_ms,
        row.ttl_ms,
        row.expires_ms,
        row.session_hash,
        row.enqueued_number,
    ] {
        to.put_u64(number);
    }
    to.put_u32(row.size);
    to.put_u32(row.flags);
    to.put_u32(message.delivery_count);
    put_optional(message.patch.as_ref(), to);
    put_optional(message.body.as_ref(), to);
}

fn message(from: &mut Bytes) -> Option<StoredMessage> {
    let part = *Part::ALL.get(usize::from(from.try_get_u8().ok()?))?;
    let place = SequenceNumber(number(from)?);
    let row = MessageRow {
        enqueued_ms: number(from)?,
        ttl_ms: number(from)?,
        expires_ms: number(from)?,
        session_hash: number(from)?,
        enqueued_number: number(from)?,
        size: from.try_get_u32().ok()?,
        flags: from.try_get_u32().ok()?,
        body: BodyPointer {
            home: EntityId(0),
            number: place,
        },
    };
    Some(StoredMessage {
        part,
        number: place,
        row,
        delivery_count: from.try_get_u32().ok()?,
        patch: optional(from)?,
        body: optional(from)?,
        body_location: BodyLocation::UNKNOWN,
    })
}

/// A record of each kind.
#[cfg(test)]
pub use tests::sample;

#[cfg(test)]
mod tests {
    use super::*;

    pub fn sample() -> Vec<Record> {
        let mut head = Head {
            next_number: SequenceNumber(9),
            last_enqueued_ms: 1,
            periods: vec![2, 3],
            schedule_from: (4, SequenceNumber(5)),
            session_state_bytes: 6,
            accessed_ms: 7,
            ..Head::empty()
        };
        *head.part_mut(Part::Deferred) = PartHead {
            count: 1,
            bytes: 2,
            resume: 3,
            stragglers: vec![SequenceNumber(1)],
        };
        let entry = Entry {
            key: EntryKey::new(&b"group"[..], SequenceNumber(4)),
            value: Bytes::from_static(b"value"),
        };
        let entity = FrozenEntity {
            source: EntityId(3),
            path: "t/Subscriptions/s".to_owned(),
            definition: Bytes::from_static(b"{}"),
            head,
            rules: vec![entry.clone()],
            expiries: vec![(1, 2)],
        };
        let message = StoredMessage {
            part: Part::Deferred,
            number: SequenceNumber(1),
            row: MessageRow {
                enqueued_ms: 1,
                ttl_ms: 2,
                expires_ms: 3,
                size: 4,
                flags: 5,
                session_hash: 6,
                enqueued_number: 7,
                body: BodyPointer {
                    home: EntityId(0),
                    number: SequenceNumber(1),
                },
            },
            delivery_count: 8,
            patch: Some(Bytes::from_static(b"patch")),
            body: Some(Bytes::from_static(b"body")),
            body_location: BodyLocation::UNKNOWN,
        };
        vec![
            Record::Entity(Box::new(entity)),
            Record::Message {
                entity: 0,
                message: Box::new(message),
            },
            Record::Entry {
                entity: 0,
                index: Index::DuplicateId,
                entry,
            },
            Record::End { records: 3 },
        ]
    }

    #[test]
    fn every_record_is_read_as_it_was_written() {
        for record in sample() {
            let (kind, content) = record.encode();
            assert_eq!(Record::decode(kind, content.into()), Some(record));
        }
    }

    #[test]
    fn a_record_that_is_too_short_or_too_long_is_none() {
        for record in sample() {
            let (kind, content) = record.encode();
            for length in 0..content.len() {
                let short = Bytes::copy_from_slice(&content[..length]);
                assert_eq!(Record::decode(kind, short), None, "{record:?} {length}");
            }
            let long = [&content[..], b"x"].concat();
            assert_eq!(Record::decode(kind, long.into()), None);
        }
        assert_eq!(Record::decode(99, Bytes::new()), None);
    }

    #[test]
    fn a_count_or_length_above_what_is_there_is_none_and_takes_no_memory() {
        for record in sample() {
            let (kind, content) = record.encode();
            for at in 0..content.len().saturating_sub(7) {
                // The first of them would be more than there is memory for, as bytes and as items.
                for hostile in [1 << 46, u64::from(u32::MAX), u64::MAX] {
                    let mut content = content.clone();
                    content[at..at + 8].copy_from_slice(&hostile.to_be_bytes());
                    let decoded = Record::decode(kind, content.clone().into());
                    // What is still a record has it as a number.
                    let same = decoded.is_none_or(|it| it.encode() == (kind, content));
                    assert!(same, "{record:?} {at} {hostile}");
                }
            }
        }
    }
}
