//! Files of the local authority: replaced as a whole, never seen in part, keys readable by their
//! owner alone.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

/// What others may do with a file.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Read it.
    Public,
    /// Nothing.
    Secret,
}

/// Makes `directory` if need be, and locks it until the result is dropped.
pub fn lock(directory: &Path) -> io::Result<File> {
    fs::create_dir_all(directory)?;
    let path = directory.join("lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    lock.lock()?;
    Ok(lock)
}

/// Writes `path` anew; it is on the disk afterwards.
pub fn replace(path: &Path, text: &str, access: Access) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    // A temporary file is readable by its owner alone.
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    if let Access::Public = access {
        file.as_file()
            .set_permissions(Permissions::from_mode(0o644))?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory)?.sync_all()
}
