//! Rows: how rows, bodies and counts come and go, each counted as it does.

use bytes::Bytes;
use store::image::NumberKey;
use store::{BodyPointer, MessageRow, Part};

use super::{Body, Books, Counted, Move, Page, Place};
use crate::message;
use crate::violation::Violation;

impl Books {
    pub(super) fn put_body(
        &mut self,
        pointer: BodyPointer,
        bytes: &Bytes,
    ) -> Result<(), Violation> {
        let id = message::id_of(bytes)
            .ok_or_else(|| Violation::new("I12", format!("{pointer:?} is no message")))?;
        let body = Body {
            id,
            bytes: bytes.clone(),
            pointers: 0,
            shares: None,
        };
        match self.bodies.insert((pointer.home, pointer.number), body) {
            None => Ok(()),
            Some(_) => Err(Violation::new(
                "I9",
                format!("{pointer:?} was written twice"),
            )),
        }
    }

    pub(super) fn remove_body(
        &mut self,
        pointer: BodyPointer,
        page: &mut Page,
    ) -> Result<(), Violation> {
        let key = (pointer.home, pointer.number);
        match self.bodies.remove(&key) {
            Some(body) if body.shares.is_some() => Err(Violation::new(
                "I1",
                format!("the body of message {} was removed and is shared", body.id),
            )),
            Some(body) if body.pointers > 0 => Err(Violation::new(
                "I1",
                format!("the body of message {} was removed before it", body.id),
            )),
            Some(body) => {
                page.changes.passed.insert(key, body.bytes);
                page.bodies.remove(&key);
                Ok(())
            }
            None => Err(Violation::new(
                "I9",
                format!("{pointer:?} was removed and was not there"),
            )),
        }
    }

    /// `copies` rows are to point to a body from now on.
    pub(super) fn share_body(
        &mut self,
        pointer: BodyPointer,
        copies: u32,
        page: &mut Page,
    ) -> Result<(), Violation> {
        let key = (pointer.home, pointer.number);
        page.bodies.insert(key);
        match self.bodies.get_mut(&key) {
            Some(body) if body.shares.is_none() && copies > 0 => {
                body.shares = Some(copies);
                Ok(())
            }
            found => Err(Violation::new(
                "I9",
                format!("{pointer:?} is shared by {copies} and is {found:?}"),
            )),
        }
    }

    /// One row less points to a shared body, which goes with the last.
    pub(super) fn release_body(
        &mut self,
        pointer: BodyPointer,
        page: &mut Page,
    ) -> Result<(), Violation> {
        let key = (pointer.home, pointer.number);
        page.bodies.insert(key);
        let shares = self
            .bodies
            .get_mut(&key)
            .and_then(|body| body.shares.as_mut());
        let Some(shares) = shares else {
            let what = format!("{pointer:?} was released and is not shared");
            return Err(Violation::new("I9", what));
        };
        *shares -= 1;
        if *shares > 0 {
            return Ok(());
        }
        if let Some(body) = self.bodies.get_mut(&key) {
            body.shares = None;
        }
        self.remove_body(pointer, page)
    }

    pub(super) fn put_row(
        &mut self,
        to: Place,
        row: MessageRow,
        page: &mut Page,
    ) -> Result<(), Violation> {
        let pointer = (row.body.home, row.body.number);
        let body = self.bodies.get_mut(&pointer).ok_or_else(|| {
            Violation::new("I12", format!("{to:?} points to a body that is not there"))
        })?;
        body.pointers += 1;
        let root = body.id;
        page.bodies.insert(pointer);
        let (id, copy_of) = self.name(to, root, page);
        let from = page.left.remove(&id);
        if let Some(already) = self.places.insert(id, to) {
            let what = format!("message {id} is put in {to:?} and is in {already:?}");
            return Err(Violation::new("I6", what));
        }
        self.rows.insert(to.key(), (id, row));
        self.note_member(to, id, &row, true, page);
        let tally = self.tallies.entry(to.entity).or_default();
        let count = &mut tally.parts[to.part as usize];
        *count = (count.0 + 1, count.1 + u64::from(row.size));
        if to.part == Part::Active && row.expires_ms != u64::MAX {
            if !self.kind(to.entity).cloud && self.is_live(to.entity) {
                self.deadlines.insert((row.expires_ms, to.key()));
            }
            page.dated.push((to.key(), row.expires_ms));
        }
        if to.part == Part::Scheduled {
            page.due.insert((to.entity, (row.enqueued_ms, to.number)));
        }
        page.changes.entities.insert(to.entity);
        page.changes.moves.push(Move {
            id,
            from: from.map(|(place, _)| place),
            to: Some(to),
            row,
            old_row: from.map(|(_, row)| row),
            copy_of,
        });
        Ok(())
    }

    pub(super) fn remove_row(&mut self, from: Place, page: &mut Page) -> Result<(), Violation> {
        let (id, row) = self.rows.remove(&from.key()).ok_or_else(|| {
            Violation::new("I9", format!("{from:?} was removed and was not there"))
        })?;
        let pointer = (row.body.home, row.body.number);
        if let Some(body) = self.bodies.get_mut(&pointer) {
            body.pointers -= 1;
        }
        self.places.remove(&id);
        self.note_left(id, from, page);
        self.note_member(from, id, &row, false, page);
        self.deadlines.remove(&(row.expires_ms, from.key()));
        let tally = self.tallies.entry(from.entity).or_default();
        let count = &mut tally.parts[from.part as usize];
        *count = (count.0 - 1, count.1 - u64::from(row.size));
        if from.part == Part::Scheduled {
            page.due
                .insert((from.entity, (row.enqueued_ms, from.number)));
        }
        page.left.insert(id, (from, row));
        page.bodies.insert(pointer);
        page.numbers.insert((from.entity, from.number));
        page.changes.entities.insert(from.entity);
        Ok(())
    }

    pub(super) fn put_count(&mut self, key: NumberKey, after: u32, page: &mut Page) {
        let before = self.counts.insert(key, after).unwrap_or(0);
        page.numbers.insert(key);
        let here = self.find(key).map(|(_, id)| id);
        let gone = page.left.iter();
        let id = here.or_else(|| {
            let mut gone = gone.filter(|(_, (place, _))| (place.entity, place.number) == key);
            gone.next().map(|(id, _)| *id)
        });
        // A count without a message is an orphan, which is reported as such.
        if let Some(id) = id {
            let counted = Counted { id, before, after };
            page.changes.counts.push(counted);
        }
    }
}
