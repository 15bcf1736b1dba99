//! Staged bodies: large bodies that are on the disk before the record that names them.
//!
//! In a record such a body would make every commit behind it wait until it is written. So the
//! caller hands it over first, in a thread of its own. It is written to a file of its own, a piece
//! at a time, and comes back as the same bytes in memory; when these are put, the record has their
//! location. A staged body is recognized by its address in memory, which stays valid as long as a
//! copy of the handle lives. A slice of it is not recognized, and is written as any body.
//!
//! Invariant: at most one record names a staged file, and only a record that comes after all of
//! the file is durable. If the last handle goes before that, the file goes too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use store::BodyPointer;

use crate::incremental_free::free_incrementally;
use crate::journal_location::{self, JournalLocation};

/// Bodies from this size on have files of their own. That costs a few syncs more, which is little
/// compared with writing the body; and most queues take no messages that large at all.
pub const STAGED_FROM: usize = 4 << 20;
/// Bytes that are written before the disk is waited for: a commit that comes meanwhile has at most
/// these before it.
pub(crate) const PIECE: usize = 256 << 10;
/// Set in the number of a staged file, so that it is never taken for a segment.
const STAGED_BIT: u64 = 1 << 63;

/// Whether this is the id of a staged file.
pub fn is_staged(id: u64) -> bool {
    id & STAGED_BIT != 0
}

/// The id of the staged file with this number, and the other way round.
pub(crate) fn toggle_staged_bit(number: u64) -> u64 {
    number ^ STAGED_BIT
}

/// A body in a file of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StagedFile {
    id: u64,
    len: u32,
    /// Of the bytes alone.
    crc: u32,
}

impl StagedFile {
    /// Where it is, as the body of a message.
    pub fn location(&self, pointer: BodyPointer) -> JournalLocation {
        JournalLocation {
            segment: self.id,
            offset: 0,
            len: self.len,
            checksum: journal_location::checksum_of(pointer, self.crc, self.len as usize),
        }
    }
}

/// The staged bodies that no record names.
#[derive(Default)]
pub struct StagedBodies {
    state: Mutex<State>,
    /// Held for each piece, so that there is one at a time.
    pub(crate) disk: Mutex<()>,
    /// How many records the journal got besides.
    records: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Nothing is written any more.
    closing: bool,
    last: u64,
    /// What can be put, by where it begins in memory.
    ready: BTreeMap<usize, StagedFile>,
    /// All of them, and those that are being written.
    unnamed: BTreeSet<u64>,
    /// Those of them that will never be put.
    abandoned: Vec<u64>,
}

impl StagedBodies {
    /// None that was there had a greater number than `last`.
    pub fn after(last: u64) -> Self {
        let staged = Self::default();
        staged.lock().last = last;
        staged
    }

    /// These ids have been given to others.
    pub fn skip(&self, ids: impl Iterator<Item = u64>) {
        let greatest = ids.filter(|id| is_staged(*id)).map(toggle_staged_bit).max();
        let mut state = self.lock();
        state.last = state.last.max(greatest.unwrap_or(0));
    }

    /// The store is about to be closed: what is being written need not be written to its end.
    pub fn close(&self) {
        self.lock().closing = true;
    }

    /// Whether the store is about to be closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// The id of a file that is about to be written.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.lock();
        state.last = state.last.saturating_add(1);
        let id = toggle_staged_bit(state.last);
        state.unnamed.insert(id);
        id
    }

    /// The file is durable: a handle for its body.
    pub(crate) fn ready(self: &Arc<Self>, id: u64, body: Bytes, crc: u32) -> Option<Bytes> {
        let len = u32::try_from(body.len()).ok()?;
        let mut state = self.lock();
        let at = address(&body);
        if state.ready.contains_key(&at) {
            // The same bytes were handed over twice at once.
            return None;
        }
        state.ready.insert(at, StagedFile { id, len, crc });
        drop(state);
        Some(Bytes::from_owner(StagedBuffer {
            body,
            id,
            staged: Arc::clone(self),
        }))
    }

    /// A record is being written.
    pub(crate) fn count_record(&self) {
        self.records.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a record was written since the caller had `seen` this many; updates `seen`.
    pub(crate) fn has_records_since(&self, seen: &mut u64) -> bool {
        let records = self.records.load(Ordering::Relaxed);
        std::mem::replace(seen, records) != records
    }

    /// Whether `body` is one already.
    pub(crate) fn knows(&self, body: &Bytes) -> bool {
        self.lock().ready.contains_key(&address(body))
    }

    /// Claims `body` for the record that is about to name its file, if it is staged. No other
    /// record can claim it.
    fn claim(&self, body: &Bytes) -> Option<StagedFile> {
        let mut state = self.lock();
        let at = address(body);
        let claim = *state.ready.get(&at)?;
        if claim.len as usize != body.len() {
            return None;
        }
        state.ready.remove(&at);
        state.unnamed.remove(&claim.id);
        Some(claim)
    }

    /// Notes that this one will never be put.
    pub(crate) fn abandon(&self, id: u64) {
        self.lock().abandoned.push(id);
    }

    /// Takes the files that will never be put; each is returned once.
    pub(crate) fn take_abandoned(&self) -> Vec<u64> {
        std::mem::take(&mut self.lock().abandoned)
    }

    /// The file is gone.
    pub(crate) fn forget(&self, id: u64) {
        self.lock().unnamed.remove(&id);
    }

    /// Whether a record may name the file, be it an old one.
    pub(crate) fn is_named(&self, id: u64) -> bool {
        !self.lock().unnamed.contains(&id)
    }

    /// Whether there is any that may be abandoned.
    pub fn has_unnamed(&self) -> bool {
        !self.lock().unnamed.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The staged bodies that one record names.
#[derive(Default)]
pub struct StagedFiles(BTreeMap<usize, StagedFile>);

impl StagedFiles {
    /// Claims those of `bodies` that are staged.
    pub fn of<'a>(staged: &StagedBodies, bodies: impl Iterator<Item = &'a Bytes>) -> Self {
        let mut staged_files = Self::default();
        for body in bodies.filter(|body| body.len() >= STAGED_FROM) {
            if staged_files.get(body).is_none()
                && let Some(claim) = staged.claim(body)
            {
                staged_files.0.insert(address(body), claim);
            }
        }
        staged_files
    }

    /// What was claimed for `body`.
    pub fn get(&self, body: &Bytes) -> Option<StagedFile> {
        if self.0.is_empty() {
            return None;
        }
        let claim = self.0.get(&address(body)).copied();
        claim.filter(|claim| claim.len as usize == body.len())
    }
}

fn address(body: &Bytes) -> usize {
    body.as_ptr().addr()
}

/// Owns the bytes, so that their address stays valid.
struct StagedBuffer {
    body: Bytes,
    id: u64,
    staged: Arc<StagedBodies>,
}

impl AsRef<[u8]> for StagedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for StagedBuffer {
    fn drop(&mut self) {
        let mut state = self.staged.lock();
        let at = address(&self.body);
        // Otherwise a record names it.
        if state
            .ready
            .get(&at)
            .is_some_and(|claim| claim.id == self.id)
        {
            state.ready.remove(&at);
            state.abandoned.push(self.id);
        }
        drop(state);
        free_incrementally(std::mem::take(&mut self.body));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(byte: u8) -> Bytes {
        Bytes::from(vec![byte; STAGED_FROM])
    }

    fn stage(staged: &Arc<StagedBodies>, body: Bytes) -> Bytes {
        let id = staged.begin();
        let crc = crc32c::crc32c(&body);
        staged.ready(id, body, crc).expect("it is new")
    }

    #[test]
    fn a_body_is_known_as_a_whole_and_to_one_record_only() {
        let staged = Arc::new(StagedBodies::after(6));
        let body = stage(&staged, large(1));
        let other = large(1);
        let part = body.slice(..STAGED_FROM - 1);
        assert!(staged.claim(&other).is_none() && staged.claim(&part).is_none());
        let copy = body.clone();
        let staged_files = StagedFiles::of(&staged, [&body, &copy, &other].into_iter());
        let claim = staged_files.get(&copy).expect("it is staged");
        assert_eq!(
            (claim.id, claim.len as usize),
            (toggle_staged_bit(7), STAGED_FROM)
        );
        assert!(staged_files.get(&other).is_none());
        assert!(staged.claim(&body).is_none(), "it has its record");
        drop((body, copy));
        assert_eq!(staged.take_abandoned(), []);
        assert!(!staged.has_unnamed());
    }

    #[test]
    fn a_body_that_is_never_put_is_abandoned_with_its_last_handle() {
        let staged = Arc::new(StagedBodies::after(0));
        let body = stage(&staged, large(1));
        let copy = body.clone();
        drop(body);
        assert_eq!(staged.take_abandoned(), []);
        drop(copy);
        assert!(staged.has_unnamed() && !staged.is_named(toggle_staged_bit(1)));
        assert_eq!(staged.take_abandoned(), [toggle_staged_bit(1)]);
        staged.forget(toggle_staged_bit(1));
        assert!(!staged.has_unnamed());
    }

    #[test]
    fn bytes_that_are_handed_over_again_stay_those_they_are() {
        let staged = Arc::new(StagedBodies::after(0));
        let body = stage(&staged, large(1));
        assert!(staged.knows(&body));
        let again = staged.begin();
        assert_eq!(staged.ready(again, body.clone(), 0), None);
        let claim = staged.claim(&body).expect("as it was");
        assert_eq!(claim.id, toggle_staged_bit(1));
    }

    #[test]
    fn the_checksum_of_a_place_is_that_of_the_body_under_its_key() {
        let staged = Arc::new(StagedBodies::after(0));
        let body = stage(&staged, large(3));
        let pointer = BodyPointer {
            home: store::EntityId(4),
            number: store::SequenceNumber(5),
        };
        let claim = staged.claim(&body).expect("it is staged");
        assert_eq!(
            claim.location(pointer).checksum,
            journal_location::checksum(pointer, &body)
        );
    }
}
