//! Handle: an open segment.
//!
//! With `Access::Direct` writes go from our memory to the disk and not through the system's cache:
//! a fifth to a quarter less time for a record of 200 KiB, and for one of 3 MiB a sixth of the
//! processor time; a record of one page takes as long either way. Reads then bypass that cache
//! too, so that the two never differ. The broker's own memory has the bodies that a queue needs
//! soon.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

use crate::file_system::{Access, File, FileSystem, Mode};
use crate::pages::{PAGE, Pages};

/// An open segment.
#[derive(Debug)]
pub struct Handle {
    file: Box<dyn File>,
    access: Access,
}

impl Handle {
    /// Opens the file at `path`. If its file system knows no direct access, or none in pages of
    /// this size, the system's cache is used.
    pub fn open(
        system: &dyn FileSystem,
        path: &Path,
        mode: Mode,
        access: Access,
    ) -> io::Result<Self> {
        let file = system.open(path, mode, access)?;
        let access = file.access();
        Ok(Self { file, access })
    }

    pub fn file(&self) -> &dyn File {
        &*self.file
    }

    pub fn access(&self) -> Access {
        self.access
    }

    /// Makes durable what was written.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// Writes zeros from `from` on, both of which are whole pages.
    pub fn fill(&self, from: u64, len: u64) -> io::Result<()> {
        let zeros = Pages::new(usize::try_from(len).unwrap_or_default());
        self.file.write_all_at(&zeros, from)
    }

    /// Reads `len` bytes at `from` into `pages`, which grow if they have to, and returns where in
    /// them the bytes are. What else is in them means nothing.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before.
    pub(crate) fn read(
        &self,
        from: u64,
        len: usize,
        pages: &mut Pages,
    ) -> io::Result<Range<usize>> {
        if self.access == Access::Cached {
            pages.make_room(len);
            self.file.read_exact_at(&mut pages[..len], from)?;
            return Ok(0..len);
        }
        let first = from / PAGE as u64 * PAGE as u64;
        let before = usize::try_from(from - first).unwrap_or_default();
        let wanted = before..before.saturating_add(len);
        pages.make_room(wanted.end);
        let whole = wanted.end.next_multiple_of(PAGE);
        let mut read = 0;
        while read < wanted.end {
            match self
                .file
                .read_at(&mut pages[read..whole], first + read as u64)
            {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                // Within a page only at the end of the file, or what is left of it is read again.
                Ok(more) if read + more >= wanted.end => read += more,
                Ok(more) if first + (read + more) as u64 >= self.file.len()? => {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Ok(more) if more < PAGE => return Err(ErrorKind::Interrupted.into()),
                Ok(more) => read += more / PAGE * PAGE,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::OsFileSystem;

    fn written(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        std::fs::write(file.path(), content).expect("written");
        file
    }

    #[test]
    fn any_range_is_read_the_same_way_with_either_access() {
        let content: Vec<_> = (0..3 * PAGE + 100).map(|at| (at % 251) as u8).collect();
        let file = written(&content);
        for access in [Access::Cached, Access::Direct] {
            let handle = Handle::open(&OsFileSystem, file.path(), Mode::Read, access);
            let handle = handle.expect("opened");
            let mut pages = Pages::new(0);
            let ends = [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, content.len()];
            for (from, until) in ends
                .iter()
                .flat_map(|from| ends.map(|until| (*from, until)))
            {
                if let Some(len) = until.checked_sub(from) {
                    let read = handle.read(from as u64, len, &mut pages);
                    let read = &pages[read.expect("it is there")];
                    assert_eq!(read, &content[from..until], "{access:?} {from}..{until}");
                }
            }
            for (from, len) in [(content.len(), 1), (0, content.len() + 1), (5 * PAGE, 1)] {
                let error = handle.read(from as u64, len, &mut pages);
                let error = error.expect_err("it is not there");
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{access:?}");
            }
        }
    }
}
