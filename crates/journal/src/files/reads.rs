//! Reads: bodies by their locations, neighbouring ones at once.
//!
//! A range of small bodies is read into memory that the thread keeps, and each is copied out of
//! it. A slice would keep the whole range, and fresh pages for each read would cost the system
//! more than the copies do. A large body that lies alone is read into memory of its own.

use std::cell::RefCell;

use bytes::Bytes;
use store::{BodyPointer, StoreError};

use super::Files;
use crate::directory::{io_error, read_error};
use crate::journal_location::{self, JournalLocation};
use crate::pages::{PAGE, Pages};
use crate::value::damaged;

/// Bodies in one file with no more than this between them are read at once: to read it too takes
/// less than to ask the disk once more.
const GAP: u64 = 32 << 10;
/// A body that is read alone and is smaller is copied out of the pages it came in.
const COPY_BELOW: usize = 64 << 10;
/// What is read at once, unless one body is larger.
const MOST_AT_ONCE: u64 = 512 << 10;

thread_local! {
    /// One for each of the few threads that read.
    static ROOM: RefCell<Pages> = RefCell::new(Pages::new(MOST_AT_ONCE as usize + 2 * PAGE));
}

/// A body that is wanted, and where it lies.
pub type Wanted = Option<(BodyPointer, JournalLocation)>;

impl Files {
    /// Reads bodies, in the order of `wanted`; those whose segment is gone are left out.
    pub fn read(&self, wanted: &[Wanted]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let mut bodies = vec![None; wanted.len()];
        let mut order: Vec<_> = (0..wanted.len())
            .filter(|at| wanted[*at].is_some())
            .collect();
        let location = |at: usize| wanted[at].map(|(_, location)| location);
        // An empty body begins where the next one does, and has to come before it.
        order.sort_by_key(|at| {
            location(*at).map(|location| (location.segment, location.offset, location.len))
        });
        let mut order = order.as_slice();
        while let Some(first) = order.first().and_then(|at| location(*at)) {
            let near = order.iter().scan(first, |last, at| {
                let next = location(*at)?;
                let is_near = next.segment == first.segment
                    && next.offset.saturating_sub(last.end()) <= GAP
                    && (next.end().saturating_sub(first.offset) <= MOST_AT_ONCE || next == first);
                *last = next;
                is_near.then_some(())
            });
            let (stretch, rest) = order.split_at(near.count().max(1));
            self.read_stretch(stretch, wanted, &mut bodies)?;
            order = rest;
        }
        Ok(bodies)
    }

    /// The damage that a body's segment is gone.
    pub fn missing(&self, pointer: BodyPointer, location: JournalLocation) -> StoreError {
        let path = self.path(location.segment);
        damaged(
            "a body",
            format!(
                "{pointer:?} should be in {}, which is not there",
                path.display()
            ),
        )
    }

    /// Reads bodies that lie near each other, at once.
    fn read_stretch(
        &self,
        stretch: &[usize],
        wanted: &[Wanted],
        bodies: &mut [Option<Bytes>],
    ) -> Result<(), StoreError> {
        let mut locations = stretch.iter().filter_map(|at| Some((*at, wanted[*at]?)));
        let Some((at, (pointer, first))) = locations.next() else {
            return Ok(());
        };
        let Some((_, (_, last))) = locations.next_back() else {
            bodies[at] = self.read_one(pointer, first)?;
            return Ok(());
        };
        self.with_handle(first, last.end(), |bytes| {
            for at in stretch {
                if let Some((pointer, location)) = wanted[*at] {
                    let from =
                        usize::try_from(location.offset - first.offset).unwrap_or(usize::MAX);
                    let body = bytes
                        .get(from..)
                        .and_then(|rest| rest.get(..location.len as usize));
                    let body = body.ok_or_else(|| checksum_mismatch(pointer))?;
                    self.verify(pointer, location, body)?;
                    bodies[*at] = Some(Bytes::copy_from_slice(body));
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Reads a body that has no neighbours.
    fn read_one(
        &self,
        pointer: BodyPointer,
        location: JournalLocation,
    ) -> Result<Option<Bytes>, StoreError> {
        if (location.len as usize) < COPY_BELOW {
            return self.with_handle(location, location.end(), |body| {
                self.verify(pointer, location, body)?;
                Ok(Bytes::copy_from_slice(body))
            });
        }
        let mut pages = Pages::new(0);
        let body = self.fill(location, location.end(), &mut pages)?;
        let body = body.map(|range| pages.into_bytes(range));
        body.iter()
            .try_for_each(|body| self.verify(pointer, location, body))?;
        Ok(body)
    }

    fn verify(
        &self,
        pointer: BodyPointer,
        location: JournalLocation,
        body: &[u8],
    ) -> Result<(), StoreError> {
        if journal_location::checksum(pointer, body) == location.checksum {
            return Ok(());
        }
        let path = self.path(location.segment);
        let (path, offset) = (path.display(), location.offset);
        let detail = format!("{pointer:?} at byte {offset} of {path} fails its checksum");
        Err(damaged("a body", detail))
    }

    /// Looks at what lies from the begin of `first` up to `until`, unless its segment is gone.
    fn with_handle<T>(
        &self,
        first: JournalLocation,
        until: u64,
        take: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        ROOM.with_borrow_mut(|room| {
            let range = self.fill(first, until, room)?;
            range.map(|range| take(&room[range])).transpose()
        })
    }

    /// Reads what lies from the begin of `first` up to `until` into `pages`, and says where in them
    /// it is.
    fn fill(
        &self,
        first: JournalLocation,
        until: u64,
        pages: &mut Pages,
    ) -> Result<Option<std::ops::Range<usize>>, StoreError> {
        let path = || self.path(first.segment);
        let opening = |error| io_error("opening", &path(), &error);
        let Some(file) = self.get(first.segment).map_err(opening)? else {
            return Ok(None);
        };
        // A place has a checksum of its own, or is as long as its row says, and bodies that are
        // longer than may be are never accepted.
        let len = usize::try_from(until.saturating_sub(first.offset)).unwrap_or(usize::MAX);
        match file.read(first.offset, len, pages) {
            Ok(range) => Ok(Some(range)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                let detail = format!("{} ends early", path().display());
                Err(damaged("a body", detail))
            }
            Err(error) => Err(read_error(&path(), first.offset, &error)),
        }
    }
}

fn checksum_mismatch(pointer: BodyPointer) -> StoreError {
    damaged(
        "a body",
        format!("{pointer:?} does not lie where it should"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::{Access, os};
    use crate::files::Removal;

    #[test]
    fn bodies_are_read_in_the_order_in_which_they_are_wanted() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = Files::open(
            os(),
            directory.path().join("journal"),
            Access::Cached,
            Removal::InBackground,
        );
        let files = files.expect("opened");
        let (file, _) = files.create(1).expect("made");
        let body = |number: u64| vec![b'a' + u8::try_from(number).expect("small"); 300_000];
        let pointer = |number| BodyPointer {
            home: store::EntityId(1),
            number: store::SequenceNumber(number),
        };
        let location = |number: u64| JournalLocation {
            segment: 1,
            offset: 100 + number * 310_000,
            len: 300_000,
            checksum: journal_location::checksum(pointer(number), &body(number)),
        };
        for number in 0..4 {
            file.file()
                .write_all_at(&body(number), location(number).offset)
                .expect("written");
        }
        let gone = JournalLocation {
            segment: 2,
            ..location(0)
        };
        let wanted = [
            Some((pointer(2), location(2))),
            None,
            Some((pointer(0), location(0))),
            Some((pointer(1), gone)),
            Some((pointer(3), location(3))),
        ];
        let read = files.read(&wanted).expect("read");
        let expected = [Some(2), None, Some(0), None, Some(3)];
        let expected = expected.map(|number| number.map(|number| Bytes::from(body(number))));
        assert_eq!(read, expected);
        // Another's body is not taken for one's own.
        assert!(files.read(&[Some((pointer(1), location(2)))]).is_err());
        let empty = JournalLocation {
            len: 0,
            checksum: journal_location::checksum(pointer(4), &[]),
            ..location(3)
        };
        let wanted = [Some((pointer(3), location(3))), Some((pointer(4), empty))];
        let read = files.read(&wanted).expect("read");
        assert_eq!(read, [Some(Bytes::from(body(3))), Some(Bytes::new())]);
    }
}
