//! Output: writes the bytes of a record to its segment.
//!
//! They go through the system's cache, large bodies without a copy; or directly, out of pages of
//! our own. Either way zeros follow a record to the end of its page, and the next record
//! overwrites them: so the earlier content of a recycled file need not be read for the rest of a
//! page.

use std::io::{self, ErrorKind, IoSlice};

use crate::file_system::{Access, File};
use crate::handle::Handle;
use crate::pages::{PAGE, Pages};
use bytes::Bytes;

/// Bodies from this size on are not copied into the buffer.
const BORROW_FROM: usize = 8 << 10;
/// The most pieces that one call writes.
const PIECES: usize = 512;
/// The most bytes that one call writes directly.
const AT_ONCE: usize = 4 << 20;
static ZEROS: [u8; PAGE] = [0; PAGE];

/// Writes records one behind the other.
#[derive(Default)]
pub(crate) struct Output {
    /// What direct access writes out of, and what is in its first page already.
    pages: Option<Pages>,
    filled: usize,
}

impl Output {
    /// Goes on behind `begin`, with which a segment begins.
    pub fn begin(&mut self, segment: &Handle, begin: &[u8]) {
        if segment.access() == Access::Direct {
            let pages = self.pages.get_or_insert_with(|| Pages::new(AT_ONCE));
            pages[..begin.len()].copy_from_slice(begin);
            self.filled = begin.len();
        }
    }

    /// Writes `head` and behind it all bodies to `segment`, which ends at `end` so far.
    pub fn write<'a>(
        &mut self,
        segment: &Handle,
        end: u64,
        head: &mut Vec<u8>,
        bodies: impl Iterator<Item = &'a Bytes>,
    ) -> io::Result<()> {
        match &mut self.pages {
            Some(pages) if segment.access() == Access::Direct => {
                let pieces = std::iter::once(&head[..]).chain(bodies.map(|body| &body[..]));
                let mut direct = Direct {
                    file: segment.file(),
                    offset: end - self.filled as u64,
                    pages,
                    filled: self.filled,
                };
                let written = pieces
                    .into_iter()
                    .try_for_each(|piece| direct.add(piece))
                    .and_then(|()| direct.write());
                self.filled = direct.filled;
                written
            }
            _ => write_cached(segment.file(), end, head, bodies),
        }
    }
}

/// One record on its way through the pages.
struct Direct<'a> {
    file: &'a dyn File,
    /// Where the first page belongs.
    offset: u64,
    pages: &'a mut Pages,
    filled: usize,
}

impl Direct<'_> {
    fn add(&mut self, mut piece: &[u8]) -> io::Result<()> {
        while !piece.is_empty() {
            let room = &mut self.pages[self.filled..];
            let (now, later) = piece.split_at(piece.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            self.filled += now.len();
            piece = later;
            if self.filled == self.pages.len() {
                self.write()?;
            }
        }
        Ok(())
    }

    /// Writes what there is, and keeps what is in the last page if that is not full: it is written
    /// again, with more behind it.
    fn write(&mut self) -> io::Result<()> {
        let end = self.filled.next_multiple_of(PAGE);
        self.pages[self.filled..end].fill(0);
        self.file.write_all_at(&self.pages[..end], self.offset)?;
        let whole = self.filled / PAGE * PAGE;
        self.pages.copy_within(whole..self.filled, 0);
        self.offset += whole as u64;
        self.filled -= whole;
        Ok(())
    }
}

fn write_cached<'a>(
    file: &dyn File,
    offset: u64,
    buffer: &mut Vec<u8>,
    bodies: impl Iterator<Item = &'a Bytes>,
) -> io::Result<()> {
    let mut borrowed: Vec<(usize, &Bytes)> = Vec::new();
    for body in bodies {
        if body.len() < BORROW_FROM {
            buffer.extend_from_slice(body);
        } else {
            borrowed.push((buffer.len(), body));
        }
    }
    let mut pieces = Vec::with_capacity(2 * borrowed.len() + 1);
    let mut copied = 0;
    for (until, body) in borrowed {
        pieces.push(&buffer[copied..until]);
        pieces.push(body);
        copied = until;
    }
    pieces.push(&buffer[copied..]);
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let end = offset + length as u64;
    let rest = end.next_multiple_of(PAGE as u64) - end;
    pieces.push(&ZEROS[..usize::try_from(rest).unwrap_or(0)]);
    pieces.retain(|piece| !piece.is_empty());
    write_pieces(file, offset, &pieces)
}

fn write_pieces(file: &dyn File, mut offset: u64, pieces: &[&[u8]]) -> io::Result<()> {
    for pieces in pieces.chunks(PIECES) {
        let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut slices = slices.as_mut_slice();
        while !slices.is_empty() {
            match file.write_pieces_at(slices, offset) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut slices, written);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::{Mode, OsFileSystem};

    /// Writes records of these lengths, and returns what the file holds then.
    fn written(access: Access, records: &[(usize, &[usize])]) -> Vec<u8> {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        // As if it had been used before.
        std::fs::write(file.path(), [0xee; 20 * PAGE]).expect("written");
        let handle = Handle::open(&OsFileSystem, file.path(), Mode::Write, access);
        let handle = handle.expect("opened");
        let begin = [b'#'; 32];
        let mut page = Pages::new(PAGE);
        page[..32].copy_from_slice(&begin);
        handle.file().write_all_at(&page, 0).expect("written");
        let mut output = Output::default();
        output.begin(&handle, &begin);
        let mut end = begin.len() as u64;
        for (number, (head, bodies)) in (b'a'..).zip(records) {
            let bodies: Vec<_> = bodies
                .iter()
                .map(|len| Bytes::from(vec![number; *len]))
                .collect();
            let mut head = vec![number.to_ascii_uppercase(); *head];
            let len = head.len() + bodies.iter().map(Bytes::len).sum::<usize>();
            output
                .write(&handle, end, &mut head, bodies.iter())
                .expect("written");
            end += len as u64;
        }
        let content = std::fs::read(file.path()).expect("read");
        let zeros = end.next_multiple_of(PAGE as u64);
        let (end, zeros) = (end as usize, zeros as usize);
        assert!(
            content[end..zeros].iter().all(|byte| *byte == 0),
            "{access:?}"
        );
        content[..end].to_vec()
    }

    #[test]
    fn both_ways_write_the_same_records_without_a_gap() {
        let records: [(usize, &[usize]); 7] = [
            (24, &[]),
            (100, &[1, 2, 3]),
            (24, &[PAGE - 180]),
            (PAGE, &[0, 9_000, 5, 20_000]),
            (1, &[3 * AT_ONCE + 17, 40]),
            (40, &[1_024]),
            (AT_ONCE, &[]),
        ];
        let mut expected = vec![b'#'; 32];
        for (number, (head, bodies)) in (b'a'..).zip(records) {
            expected.extend(vec![number.to_ascii_uppercase(); head]);
            bodies
                .iter()
                .for_each(|len| expected.extend(vec![number; *len]));
        }
        for access in [Access::Cached, Access::Direct] {
            assert!(written(access, &records) == expected, "{access:?}");
        }
    }
}
