//! Stamp: what tells two versions of a file apart without reading it.
//!
//! Files are looked at from time to time rather than being told of changes: they are often replaced
//! through links, and on file systems that tell nobody.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file it is, its size, and when it was written, in seconds and nanoseconds.
pub type Stamp = (u64, u64, i64, i64);

/// The size of a file of that stamp, in bytes.
pub fn size((_, size, _, _): Stamp) -> u64 {
    size
}

/// The stamp of what `path` leads to; none if there is nothing.
pub fn of(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}
