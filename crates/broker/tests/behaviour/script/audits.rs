//! Audits: what the rows of a disk must agree on, whatever happened.

use std::collections::BTreeSet;

use store::{EntityId, Image, MemoryDisk};

/// Every scheduled message has its entry, every entry its message, and a restart finds them all.
pub fn schedule(disk: &MemoryDisk) {
    disk.with_current(|image| {
        let rows = image.messages.iter();
        let rows = rows.filter(|((_, part, _), _)| *part == store::Part::Scheduled);
        let rows = rows.filter(|((entity, ..), _)| !is_removed(image, *entity));
        let rows: BTreeSet<_> = rows
            .map(|((entity, _, number), row)| (*entity, row.enqueued_ms, *number))
            .collect();
        let entries = image.entries.keys();
        let entries = entries.filter(|(_, index, _)| *index == store::Index::Schedule);
        let entries = entries.filter(|(entity, ..)| !is_removed(image, *entity));
        let entries: BTreeSet<_> = entries
            .map(|(entity, _, key)| (*entity, key.group_u64().unwrap(), key.number))
            .collect();
        assert_eq!(rows, entries);
        for (entity, at, number) in rows {
            let from = image.heads[&entity].schedule_from;
            assert!(from <= (at, number), "{number} would not be found");
        }
    });
}

/// Every message that may expire is in a block whose stored deadline is not later than its own.
pub fn expiries(disk: &MemoryDisk) {
    disk.with_current(|image| {
        for ((entity, part, number), row) in &image.messages {
            if *part == store::Part::Active && row.expires_ms != u64::MAX {
                let block = number.0 / store::record::EXPIRY_BLOCK;
                let due = image.expiries.get(&(*entity, *part, block));
                let due = due.copied().unwrap_or(u64::MAX);
                assert!(
                    due <= row.expires_ms,
                    "{number} is in no block that is due in time"
                );
            }
        }
    });
}

/// Whether an entity's rows are being removed in pieces, its entries at the end: those of a deleted
/// entity, or of a snapshot.
pub fn is_removed(image: &Image, entity: EntityId) -> bool {
    let row = image.entities.get(&entity);
    row.is_some_and(|row| {
        let definition = String::from_utf8_lossy(&row.definition);
        definition.starts_with(r#"{"grave""#) || definition.starts_with(r#"{"frozen""#)
    })
}
