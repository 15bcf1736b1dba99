//! Copy: an entity gets the rows of another one, as the groups before have left them.
//!
//! So a copy is a group of its own: what is copied is in the database then. No body is copied: the
//! rows of the copy point to those of the original. A body whose location stands in the row that
//! it came with gets a row of its own first, since that row may go and the body stay.

use journal::key::{self, KeyKind};
use journal::value::{self, damaged};
use store::{BodyPointer, EntityId, StoreError, Write, WriteSet};

use super::Merge;
use crate::key_search::readable_from;
use crate::tables::{Batch, Cursor, Family, Tables};

impl<T: Tables> Merge<'_, '_, T> {
    /// Carries out every copy of a set.
    pub fn copy_entities(&mut self, set: &WriteSet) -> Result<(), StoreError> {
        for write in set.as_slice() {
            if let Write::Copy { from, to } = write {
                self.copy_messages(*from, *to)?;
                self.copy_state(*from, *to)?;
            }
        }
        Ok(())
    }

    /// Rows in a damaged block stay behind, as they do when a receiver comes to them.
    fn copy_messages(&mut self, from: EntityId, to: EntityId) -> Result<(), StoreError> {
        let tables = self.tables;
        let (mut first, until) = key::messages_of(from);
        loop {
            let mut rows = tables.scan(Family::Message, first, until);
            match self.copy_rows(&mut rows, (from, to), &mut first) {
                Err(error) if error.is_damage() => {
                    tracing::error!(%error, entity = from.0, "messages that cannot be read are not copied");
                }
                copied => return copied,
            }
            first = readable_from(first, until, |key| {
                let mut rows = tables.scan(Family::Message, *key, until);
                rows.next().map(drop)
            })?;
        }
    }

    /// Copies rows as far as they can be read; `next` is the first that is not copied.
    fn copy_rows(
        &mut self,
        rows: &mut T::Cursor<'_>,
        (from, to): (EntityId, EntityId),
        next: &mut [u8; 17],
    ) -> Result<(), StoreError> {
        let family = Family::Message;
        while let Some((key, row_value)) = rows.next()? {
            let place = key::parse_message(key);
            let (_, part, number) =
                place.ok_or_else(|| damaged("a message's key", format!("{key:02x?}")))?;
            *next = key::message(from, part, key::after_number(number));
            let row = value::decode_row(from, number, row_value)?;
            if let Some(location) = value::location_in_row(row_value) {
                let own = BodyPointer { home: from, number };
                self.batch.put(Family::Body, key::body(own, 0), location);
                self.batch
                    .put(family, key, value::encode_row(from, number, &row));
                self.keep_bodies_apart();
            }
            self.batch.put(
                family,
                key::message(to, part, number),
                value::encode_row(to, number, &row),
            );
            self.write_if_large()?;
        }
        Ok(())
    }

    /// Copies delivery counts, patches, expiries and entries: their keys have the entity behind the
    /// kind. What comes behind damage stays behind.
    fn copy_state(&mut self, from: EntityId, to: EntityId) -> Result<(), StoreError> {
        let (state, tables) = (Family::State, self.tables);
        let (first, until) = key::expiries_of(from);
        let expiries = tables.scan(state, first, until);
        let (first, until) = key::entries_of(from);
        let entries = tables.scan(state, first, until);
        let numbered = [KeyKind::DeliveryCount, KeyKind::Patch].map(|kind| {
            let (first, until) = key::of_numbers(kind, from);
            tables.scan(state, first, until)
        });
        let mut copy_key = Vec::new();
        for mut scan in [expiries, entries].into_iter().chain(numbered) {
            loop {
                let (key, value) = match scan.next() {
                    Ok(Some(found)) => found,
                    Ok(None) => break,
                    Err(error) if error.is_damage() => {
                        tracing::error!(%error, entity = from.0, "what cannot be read is not copied");
                        break;
                    }
                    Err(error) => return Err(error),
                };
                copy_key.clear();
                copy_key.extend_from_slice(key);
                copy_key[1..9].copy_from_slice(&to.0.to_be_bytes());
                self.batch.put(state, &copy_key, value);
                self.write_if_large()?;
            }
        }
        Ok(())
    }

    /// Writes what is there so far, so that a batch is bounded. Until the position of the group is
    /// written with the last batch, a start copies again, to the same places.
    fn write_if_large(&mut self) -> Result<(), StoreError> {
        if self.batch.size_in_bytes() < self.merger.copy_bytes {
            return Ok(());
        }
        let batch = std::mem::replace(&mut self.batch, self.tables.batch(0));
        self.tables.write(batch)
    }
}
