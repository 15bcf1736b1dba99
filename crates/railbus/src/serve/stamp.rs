//! Stamp: identifies a version of a file without reading it.
//!
//! Files are polled instead of watched: they are often replaced through links, and on file systems
//! without notifications.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file it is, its size, and when it was written, in seconds and nanoseconds.
pub type Stamp = (u64, u64, i64, i64);

/// The size of a file of that stamp, in bytes.
pub fn size((_, size, _, _): Stamp) -> u64 {
    size
}

/// The stamp of the file at `path`; `None` if there is none.
pub fn of(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}
