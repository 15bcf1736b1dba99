//! Copy: an entity gets the rows of another one, as the groups before have left them.
//!
//! So a copy is a group of its own: what is copied is in the database then. No body is copied: the
//! rows of the copy point to those of the original. A body whose location stands in the row that
//! it came with gets a row of its own first, since that row may go and the body stay.

use store::{BodyPointer, EntityId, StoreError, Write, WriteSet};

use super::Merge;
use crate::database::Database;
use crate::key::{self, KeyKind};
use crate::scan::Scan;
use crate::value::{self, damaged};

impl Merge<'_> {
    /// Carries out every copy of a set.
    pub fn copy_entities(&mut self, set: &WriteSet, database: &Database) -> Result<(), StoreError> {
        for write in set.as_slice() {
            if let Write::Copy { from, to } = write {
                self.copy_messages(*from, *to, database)?;
                self.copy_state(*from, *to, database)?;
            }
        }
        Ok(())
    }

    fn copy_messages(
        &mut self,
        from: EntityId,
        to: EntityId,
        database: &Database,
    ) -> Result<(), StoreError> {
        let family = self.families.message;
        let (first, until) = key::messages_of(from);
        let mut scan = Scan::new(&database.db, family, first, until);
        while let Some((key, row_value)) = scan.next()? {
            let place = key::parse_message(key);
            let (_, part, number) =
                place.ok_or_else(|| damaged("a message's key", format!("{key:02x?}")))?;
            let row = value::decode_row(from, number, row_value)?;
            if let Some(location) = value::location_in_row(row_value) {
                let own = BodyPointer { home: from, number };
                self.batch
                    .put_cf(self.families.body, key::body(own, 0), location);
                self.batch
                    .put_cf(family, key, value::encode_row(from, number, &row));
                self.keep_bodies_apart();
            }
            self.batch.put_cf(
                family,
                key::message(to, part, number),
                value::encode_row(to, number, &row),
            );
        }
        Ok(())
    }

    /// Copies delivery counts, patches, expiries and entries: their keys have the entity behind the
    /// kind.
    fn copy_state(
        &mut self,
        from: EntityId,
        to: EntityId,
        database: &Database,
    ) -> Result<(), StoreError> {
        let state = self.families.state;
        let (first, until) = key::expiries_of(from);
        let expiries = Scan::new(&database.db, state, first, until);
        let (first, until) = key::entries_of(from);
        let entries = Scan::new(&database.db, state, first, until);
        let numbered = [KeyKind::DeliveryCount, KeyKind::Patch].map(|kind| {
            let (first, until) = key::of_numbers(kind, from);
            Scan::new(&database.db, state, first, until)
        });
        let mut copy_key = Vec::new();
        for mut scan in [expiries, entries].into_iter().chain(numbered) {
            while let Some((key, value)) = scan.next()? {
                copy_key.clear();
                copy_key.extend_from_slice(key);
                copy_key[1..9].copy_from_slice(&to.0.to_be_bytes());
                self.batch.put_cf(state, &copy_key, value);
            }
        }
        Ok(())
    }
}
