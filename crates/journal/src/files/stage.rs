//! Stage: writes a large body to a file of its own.
//!
//! It is written as a segment is, past the system's cache if possible: a mebibyte in the cache
//! delays other writes under load, and takes twice the processor time. Then it is written in whole
//! pages, with zeros behind its end.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use super::Files;
use crate::file_system::{Access, Mode};
use crate::handle::Handle;
use crate::pages::{PAGE, Pages};
use crate::staged::PIECE;

/// Between one piece and the next, if a record was written meanwhile: more will come, and each that
/// finds the disk busy has to wait for it. A piece takes a sixth of this.
const PAUSE: Duration = Duration::from_millis(2);

impl Files {
    /// Makes `body` durable in a file of its own, and returns the same bytes as those that are
    /// there. Blocks. What it returns has to be put as it is: it is known by its address.
    pub fn stage(&self, body: &Bytes) -> io::Result<Bytes> {
        if self.staged.knows(body) {
            return Ok(body.clone());
        }
        let id = self.staged.begin();
        let staged = self.write_staged(id, body).and_then(|crc| {
            let ready = self.staged.ready(id, body.clone(), crc);
            ready.ok_or_else(|| ErrorKind::AlreadyExists.into())
        });
        if staged.is_err() {
            self.staged.abandon(id);
        }
        staged
    }

    /// Returns the checksum of the bytes.
    fn write_staged(&self, id: u64, body: &[u8]) -> io::Result<u32> {
        let path = self.path(id);
        let file = self.system.open(&path, Mode::CreateNew, Access::Cached)?;
        // So that there is room for all of it or none.
        file.allocate(0, body.len() as u64)?;
        drop(file);
        let crc = match self.write_pieces(&path, body, self.access) {
            // Some file systems refuse only what is written.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.tell_cached();
                self.write_pieces(&path, body, Access::Cached)
            }
            written => written,
        }?;
        self.system.sync_directory(&self.folder)?;
        Ok(crc)
    }

    /// Writes `body` to the file at `path`, and returns its checksum.
    fn write_pieces(&self, path: &Path, body: &[u8], access: Access) -> io::Result<u32> {
        let file = Handle::open(&*self.system, path, Mode::Write, access)?;
        let mut pages = Pages::new(PIECE);
        let (mut crc, mut offset) = (0, 0);
        let mut seen = 0;
        self.staged.has_records_since(&mut seen);
        for piece in body.chunks(PIECE) {
            if self.staged.is_closing() {
                return Err(io::Error::other("the store is being closed"));
            }
            if self.staged.has_records_since(&mut seen) {
                thread::sleep(PAUSE);
            }
            crc = crc32c::crc32c_append(crc, piece);
            let written = match file.access() {
                Access::Cached => piece,
                Access::Direct => whole_pages(piece, &mut pages),
            };
            self.write_piece(&file, written, offset)?;
            offset += piece.len() as u64;
        }
        Ok(crc)
    }

    /// Makes one piece durable, while no other is being written.
    fn write_piece(&self, file: &Handle, piece: &[u8], offset: u64) -> io::Result<()> {
        let _disk = self
            .staged
            .disk
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        file.file().write_all_at(piece, offset)?;
        file.sync()
    }

    /// Removes the staged files that no record will name.
    pub fn remove_abandoned(&self) -> io::Result<()> {
        let mut removed = Ok(());
        for id in self.staged.take_abandoned() {
            match self.remove(id) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    self.staged.abandon(id);
                    removed = Err(error);
                }
                _ => self.staged.forget(id),
            }
        }
        removed
    }
}

/// `piece` in `pages`, with zeros up to the end of its last one.
fn whole_pages<'a>(piece: &[u8], pages: &'a mut Pages) -> &'a [u8] {
    let end = piece.len().next_multiple_of(PAGE);
    pages[..piece.len()].copy_from_slice(piece);
    pages[piece.len()..end].fill(0);
    &pages[..end]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use store::BodyPointer;

    use super::*;
    use crate::file_system::os;
    use crate::files::Removal;
    use crate::journal_location::{self, JournalLocation};

    /// The file that `body` is staged to, and what is read of it as a body.
    fn staged(access: Access, body: &Bytes) -> (Vec<u8>, Bytes) {
        // Where other tests' files are there may be no direct access.
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let files = Files::open(
            os(),
            directory.path().join("journal"),
            access,
            Removal::InBackground,
        );
        let files = files.expect("opened");
        let handle = files.stage(body).expect("staged");
        let segment = files.staged().expect("listed")[0];
        let pointer = BodyPointer {
            home: store::EntityId(1),
            number: store::SequenceNumber(2),
        };
        let location = JournalLocation {
            segment,
            offset: 0,
            len: u32::try_from(body.len()).expect("small"),
            checksum: journal_location::checksum(pointer, body),
        };
        let mut read = files.read(&[Some((pointer, location))]).expect("read");
        assert_eq!(handle, *body);
        let body = read.pop().flatten().expect("it is there");
        (fs::read(files.path(segment)).expect("read"), body)
    }

    #[test]
    fn a_body_of_any_length_lies_in_its_file_from_its_begin_on() {
        for len in [1, PAGE, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + PAGE + 7] {
            let bytes: Vec<_> = (0..len).map(|at| (at % 251) as u8).collect();
            let body = Bytes::from(bytes);
            for access in [Access::Cached, Access::Direct] {
                let (file, read) = staged(access, &body);
                assert!(read == body, "{access:?} {len}");
                assert!(file[..len] == body, "{access:?} {len}");
                assert!(file[len..].iter().all(|byte| *byte == 0));
                assert!(file.len() == len || file.len() == len.next_multiple_of(PAGE));
            }
        }
    }
}
