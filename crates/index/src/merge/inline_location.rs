//! Inline location: the location of a body in the row of the message that it came with.
//!
//! A message mostly leaves its queue as a whole, so one row of the index is enough for both. If
//! the row goes and the body stays, since the message was dead-lettered, deferred, forwarded or
//! shared, its location gets a row of its own in the `body` family. Invariant: as long as
//! [`Merger::inline_only`] is true, a body that is removed together with the row it came with has
//! no row of its own, so nothing has to be deleted for it.

use std::iter;

use bytes::Bytes;
use journal::chunk::LOCATION;
use journal::key::{self, single};
use journal::value;
use store::{BodyPointer, EntityId, Part, SequenceNumber, StoreError};

use super::{Merge, Merger};
use crate::key_search::unless_damaged;
use crate::tables::{Batch, Cursor, Family, Tables};

/// Neighbours from which on a scan is cheaper than looking up each.
const WALK_FROM: usize = 8;

/// A body and its location.
pub(super) type LocatedBody = (BodyPointer, [u8; LOCATION]);

impl Merger {
    /// Pairs removed rows with their removed bodies, and returns the bodies whose rows are removed
    /// alone.
    fn pair_removals(&mut self) -> Vec<BodyPointer> {
        let mut unpaired = Vec::new();
        let mut bodies = self.bodies.removals_mut().peekable();
        let rows = self.rows.removals_mut();
        for row in rows.filter(|row| row.scope.1 == Part::Active && !row.nothing_there) {
            let own = (row.scope.0, row.number);
            while bodies
                .next_if(|body| (body.scope, body.number) < own)
                .is_some()
            {}
            match bodies.next_if(|body| (body.scope, body.number) == own) {
                Some(body) => body.nothing_there |= self.inline_only,
                None => unpaired.push(pointer(own.0, own.1)),
            }
        }
        unpaired
    }
}

impl<T: Tables> Merge<'_, '_, T> {
    /// Puts rows, with the locations of the bodies that came with them.
    pub fn put_rows(&mut self) -> Result<(), StoreError> {
        self.rows.sort_by_key(|(key, _)| *key);
        self.bodies.sort_by_key(|(pointer, _)| *pointer);
        let mut rows = std::mem::take(&mut self.rows).into_iter().peekable();
        let mut bodies = std::mem::take(&mut self.bodies).into_iter().peekable();
        while let Some((key, row)) = rows.next() {
            if rows.peek().is_some_and(|(next, _)| *next == key) {
                // It is put once more.
                continue;
            }
            let (entity, part, number) = key;
            let mut value = value::encode_row(entity, number, row);
            let own = pointer(entity, number.0);
            if part == Part::Active && row.body == own {
                self.bodies
                    .extend(iter::from_fn(|| bodies.next_if(|(it, _)| *it < own)));
                let newest = iter::from_fn(|| bodies.next_if(|(it, _)| *it == own)).last();
                match newest {
                    Some((_, location)) => value::add_location(&mut value, location),
                    None => self.keep_inline_location(own, &mut value)?,
                }
            }
            let key = key::message(entity, part, number);
            self.batch.put(Family::Message, key, value);
        }
        self.bodies.extend(bodies);
        Ok(())
    }

    /// Keeps the inline location of a row that is put without its body.
    fn keep_inline_location(
        &mut self,
        own: BodyPointer,
        value: &mut value::ShortValue,
    ) -> Result<(), StoreError> {
        match inline_location(own, self.tables)? {
            Some(location) => value::add_location(value, location),
            None => self.keep_bodies_apart(),
        }
        Ok(())
    }

    /// From now on a body that is removed with the row it came with may have a row of its own.
    pub fn keep_bodies_apart(&mut self) {
        if self.merger.inline_only {
            self.merger.inline_only = false;
            self.batch.delete(Family::State, single::INLINE_ONLY);
        }
    }

    /// A body of a segment that is about to be removed has a new location. One that is removed
    /// needs none, nor does one that is not here; one whose row is removed in this very group can
    /// wait.
    pub fn move_body(&mut self, pointer: BodyPointer, location: &Bytes) -> Result<(), StoreError> {
        let merger = &*self.merger;
        let is_removed = merger.bodies.holds(pointer.home, pointer.number.0)
            || (merger.rows).holds((pointer.home, Part::Active), pointer.number.0);
        if is_removed {
            return Ok(());
        }
        let location = <[u8; LOCATION]>::try_from(location.as_ref());
        let location = location.expect("what the journal hands on for a body is its place");
        let row = key::own_row(pointer);
        let found = self.tables.get(Family::Message, row);
        // What cannot be read stays where it is.
        let Some(found) = unless_damaged(found)? else {
            return Ok(());
        };
        if let Some(old) = found.filter(|row| value::location_in_row(row).is_some()) {
            let mut moved = old.to_vec();
            let at = moved.len() - LOCATION;
            moved[at..].copy_from_slice(&location);
            self.batch.put(Family::Message, row, moved);
            return Ok(());
        }
        let body = key::body(pointer, 0);
        let found = self.tables.get(Family::Body, body);
        if let Some(Some(_)) = unless_damaged(found)? {
            // Not with the bodies of this group: it stays a row of its own, even if its row is put
            // again.
            self.batch.put(Family::Body, body, location);
        }
        Ok(())
    }

    /// Gives bodies whose messages leave the rows that they came with rows of their own.
    pub fn separate_bodies(&mut self) -> Result<(), StoreError> {
        let unpaired = self.merger.pair_removals();
        for run in unpaired.chunk_by(|one, two| {
            one.home == two.home && key::after_number(one.number) == two.number
        }) {
            if run.len() >= WALK_FROM && self.separate_run(run)? {
                continue;
            }
            for pointer in run {
                let location = inline_location(*pointer, self.tables)?;
                self.bodies
                    .extend(location.map(|location| (*pointer, location)));
            }
        }
        Ok(())
    }

    /// Returns whether it has: not where something of the run cannot be read.
    fn separate_run(&mut self, run: &[BodyPointer]) -> Result<bool, StoreError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(true);
        };
        let until = key::own_row(pointer(last.home, key::after_number(last.number).0));
        let tables = self.tables;
        let mut scan = tables.scan(Family::Message, key::own_row(*first), until);
        let located = self.bodies.len();
        loop {
            let found = unless_damaged(scan.next())?;
            let Some(found) = found else {
                self.bodies.truncate(located);
                return Ok(false);
            };
            let Some((key, value)) = found else {
                return Ok(true);
            };
            let own = key::parse_message(key)
                .map(|(entity, _, SequenceNumber(number))| pointer(entity, number));
            let own =
                own.ok_or_else(|| value::damaged("a message's key", format!("{key:02x?}")))?;
            let location = value::location_in_row(value);
            self.bodies
                .extend(location.map(|location| (own, *location)));
        }
    }
}

/// The location in the row that a body came with. If the row is damaged, the body is lost with it:
/// a receiver of the message is told so.
fn inline_location(
    own: BodyPointer,
    tables: &impl Tables,
) -> Result<Option<[u8; LOCATION]>, StoreError> {
    let row = match tables.get(Family::Message, key::own_row(own)) {
        Err(error) if error.is_damage() => {
            let (entity, number) = (own.home.0, own.number.0);
            tracing::error!(%error, entity, number, "the location of a body is lost with its row");
            None
        }
        row => row?,
    };
    Ok(row.and_then(|row| value::location_in_row(&row).copied()))
}

fn pointer(home: EntityId, number: u64) -> BodyPointer {
    let number = SequenceNumber(number);
    BodyPointer { home, number }
}
