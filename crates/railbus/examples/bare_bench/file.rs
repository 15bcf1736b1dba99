//! Log: the same bytes in one file, which is there as a whole before the first of them.
//!
//! Blocks that were written before take the least time to sync, and past the system's cache they
//! are not copied twice. At its end the file is written over from its beginning, so it cannot be
//! read back: it shows what the disk could do, not what a store would.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::committer::{Set, Store, Write};
use crate::row::{self, Head};

/// What direct access goes in multiples of.
const PAGE: usize = 4_096;
/// The file's length, and what is written of it at once.
const LENGTH: u64 = 256 << 20;
const AT_ONCE: usize = 4 << 20;

/// See the module.
pub struct Log {
    file: File,
    memory: Vec<u8>,
    /// Where the pages in `memory` begin.
    start: usize,
    /// Bytes in those pages, the first of which belongs at `offset`.
    filled: usize,
    offset: u64,
}

impl Log {
    /// Makes it in `directory`.
    pub fn create(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let log = Self::with(open(&directory.join("log"))?);
        for part in 0..LENGTH / AT_ONCE as u64 {
            let zeros = &log.memory[log.start..log.start + AT_ONCE];
            log.file.write_all_at(zeros, part * AT_ONCE as u64)?;
        }
        log.file.sync_all()?;
        Ok(log)
    }

    fn with(file: File) -> Self {
        let memory = vec![0; AT_ONCE + PAGE];
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Self {
            file,
            memory,
            start,
            filled: 0,
            offset: 0,
        }
    }

    fn add(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let from = self.start + self.filled;
            let (now, later) = bytes.split_at(bytes.len().min(AT_ONCE - self.filled));
            self.memory[from..from + now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == AT_ONCE {
                self.write()?;
            }
        }
        Ok(())
    }

    /// Writes what there is. The last page stays, to be written again with more in it.
    fn write(&mut self) -> io::Result<()> {
        let pages = self.filled.next_multiple_of(PAGE);
        if self.offset + pages as u64 > LENGTH {
            self.offset = 0;
        }
        let (start, whole) = (self.start, self.filled / PAGE * PAGE);
        let memory = &mut self.memory[start..];
        memory[self.filled..pages].fill(0);
        self.file.write_all_at(&memory[..pages], self.offset)?;
        memory.copy_within(whole..self.filled, 0);
        self.offset += whole as u64;
        self.filled -= whole;
        Ok(())
    }
}

/// Past the system's cache, if the file system can.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    let direct = i32::try_from(OFlags::DIRECT.bits()).map_err(io::Error::other)?;
    let opened = options.clone().custom_flags(direct).open(path);
    if matches!(&opened, Err(error) if error.kind() == io::ErrorKind::InvalidInput) {
        eprintln!("the file system knows no direct access: the system's cache is used");
        return options.open(path);
    }
    opened
}

impl Store for Log {
    fn commit(&mut self, group: &[Set], heads: &[(u32, Head)]) -> io::Result<()> {
        for write in group.iter().flatten() {
            match write {
                Write::Put(place, body, _) => {
                    self.add(&place.message())?;
                    self.add(&row::message(body.len()))?;
                    self.add(&place.body())?;
                    self.add(body)?;
                }
                Write::Remove(place, _) => {
                    self.add(&place.message())?;
                    self.add(&place.body())?;
                }
            }
        }
        for (queue, head) in heads {
            self.add(&Head::key(*queue))?;
            self.add(&head.encode())?;
        }
        self.write()?;
        self.file.sync_data()
    }
}
