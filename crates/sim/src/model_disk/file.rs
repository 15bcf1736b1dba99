//! File: an open file of the model disk, until it is restarted.

use std::io::{self, ErrorKind, IoSlice};

use journal::Access;
use journal::file_system::File;

use super::content::{Content, PAGE};
use super::{Call, Fault, ModelDisk, State, power_is_off};

/// A handle.
#[derive(Debug)]
pub(super) struct ModelFile {
    pub disk: ModelDisk,
    pub id: u64,
    pub opening: u64,
    pub access: Access,
}

impl ModelFile {
    /// Does one call.
    fn call<T>(
        &self,
        call: Call,
        work: impl FnOnce(&mut State, &mut Content, Option<Fault>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.disk.lock();
        if state.opening != self.opening {
            return Err(power_is_off());
        }
        let fault = state.call(call)?;
        let content = state.contents.remove(&self.id);
        let mut content = content.ok_or(ErrorKind::NotFound)?;
        let done = work(&mut state, &mut content, fault);
        state.contents.insert(self.id, content);
        done
    }

    /// Direct access takes whole pages from and to aligned memory.
    fn check_aligned(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(PAGE)
            && bytes.len().is_multiple_of(PAGE)
            && offset.is_multiple_of(PAGE as u64);
        if self.access == Access::Direct && !is_aligned {
            return Err(ErrorKind::InvalidInput.into());
        }
        Ok(())
    }
}

impl File for ModelFile {
    fn access(&self) -> Access {
        self.access
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check_aligned(bytes, offset)?;
        self.call(Call::Read, |_, content, fault| match fault {
            Some(_) => Err(ErrorKind::Interrupted.into()),
            None => Ok(content.read(bytes, offset)),
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.check_aligned(bytes, offset)?;
        self.call(Call::Write, |state, content, fault| {
            let len = match fault {
                None => bytes.len(),
                Some(Fault::Interrupted) => return Err(ErrorKind::Interrupted.into()),
                Some(Fault::ShortWrite) if self.access == Access::Direct => {
                    state.rng.below(bytes.len() / PAGE + 1) * PAGE
                }
                Some(Fault::ShortWrite) => state.rng.below(bytes.len() + 1),
                Some(fault) => {
                    // Some of it may have been written.
                    let len = state.rng.below(bytes.len() / PAGE + 1) * PAGE;
                    content.write(&bytes[..len], offset);
                    return Err(match fault {
                        Fault::NoSpace => ErrorKind::StorageFull.into(),
                        _ => io::Error::other("a write fails"),
                    });
                }
            };
            let len = if len == 0 { bytes.len() } else { len };
            content.write(&bytes[..len], offset);
            Ok(len)
        })
    }

    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let bytes: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| piece.iter().copied())
            .collect();
        self.write_at(&bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.call(Call::Sync, |state, content, fault| {
            if fault.is_some() {
                content.fail_sync(&mut state.rng);
                return Err(io::Error::other("a sync fails"));
            }
            if !state.swallowed.files {
                content.sync();
            }
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.call(Call::Other, |_, content, _| Ok(content.len()))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.call(Call::Other, |_, content, _| {
            content.set_len(len);
            Ok(())
        })
    }

    fn allocate(&self, from: u64, len: u64) -> io::Result<()> {
        self.call(Call::Grow, |_, content, fault| {
            if fault.is_some() {
                return Err(ErrorKind::StorageFull.into());
            }
            content.set_len(content.len().max(from + len));
            Ok(())
        })
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.call(Call::Other, |_, _, _| Ok(()))
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.call(Call::Other, |_, _, _| Ok(true))
    }
}
