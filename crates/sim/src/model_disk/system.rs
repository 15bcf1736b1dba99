//! System: the model disk as a file system.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use journal::Access;
use journal::file_system::{File, FileSystem, Mode};

use super::content::Content;
use super::file::ModelFile;
use super::folder::{Entry, Folder};
use super::{Call, ModelDisk, State};

impl FileSystem for ModelDisk {
    fn open(&self, path: &Path, mode: Mode, access: Access) -> io::Result<Box<dyn File>> {
        let mut state = self.lock();
        let fault = state.call(Call::Grow)?;
        let found = state.folder(path)?.get(name(path)?);
        let id = match (found, mode) {
            (Some(Entry::Folder), _) => return Err(ErrorKind::IsADirectory.into()),
            (Some(_), Mode::CreateNew) => return Err(ErrorKind::AlreadyExists.into()),
            (Some(Entry::File(id)), _) => id,
            (None, Mode::Read | Mode::Write) => return Err(ErrorKind::NotFound.into()),
            (None, _) if fault.is_some() => return Err(ErrorKind::StorageFull.into()),
            (None, _) => {
                let id = state.next;
                state.next += 1;
                state.contents.insert(id, Content::default());
                state.folder_mut(path)?.add(name(path)?, Entry::File(id));
                id
            }
        };
        if mode == Mode::Truncate
            && let Some(content) = state.contents.get_mut(&id)
        {
            content.set_len(0);
        }
        let access = if state.direct { access } else { Access::Cached };
        Ok(Box::new(ModelFile {
            disk: self.clone(),
            id,
            opening: state.opening,
            access,
        }))
    }

    fn is_directory(&self, path: &Path) -> bool {
        let state = self.lock();
        !state.is_off && state.folders.contains_key(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if state.call(Call::Grow)?.is_some() {
            return Err(ErrorKind::StorageFull.into());
        }
        let mut missing: Vec<_> = path.ancestors().collect();
        missing.retain(|path| !state.folders.contains_key(*path));
        for path in missing.into_iter().rev() {
            state.folder_mut(path)?.add(name(path)?, Entry::Folder);
            state.folders.insert(path.to_path_buf(), Folder::default());
        }
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut state = self.lock();
        state.call(Call::Other)?;
        let names = state
            .folders
            .get(folder)
            .ok_or(ErrorKind::NotFound)?
            .names();
        Ok(names.map(|name| folder.join(name)).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if state.call(Call::Grow)?.is_some() {
            return Err(ErrorKind::StorageFull.into());
        }
        let entry = state.folder(from)?.get(name(from)?);
        let entry = entry.ok_or(ErrorKind::NotFound)?;
        if from.parent() == to.parent() {
            state.folder_mut(from)?.rename(name(from)?, name(to)?);
        } else {
            state.folder_mut(to)?.add(name(to)?, entry);
            state.folder_mut(from)?.remove(name(from)?);
        }
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if state.call(Call::Grow)?.is_some() {
            return Err(ErrorKind::StorageFull.into());
        }
        let entry = state.folder(from)?.get(name(from)?);
        let entry = entry.ok_or(ErrorKind::NotFound)?;
        let folder = state.folder_mut(to)?;
        if folder.get(name(to)?).is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        folder.add(name(to)?, entry);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.call(Call::Other)?;
        let folder = state.folder_mut(path)?;
        folder.get(name(path)?).ok_or(ErrorKind::NotFound)?;
        folder.remove(name(path)?);
        Ok(())
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.call(Call::Other)?;
        if !state.folders.contains_key(path) {
            return Err(ErrorKind::NotFound.into());
        }
        state.folders.retain(|folder, _| !folder.starts_with(path));
        state.folder_mut(path)?.remove(name(path)?);
        Ok(())
    }

    fn names(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.lock();
        state.call(Call::Other)?;
        match state.folder(path)?.get(name(path)?) {
            Some(Entry::File(id)) => {
                Ok(state.folders.values().map(|folder| folder.count(id)).sum())
            }
            Some(Entry::Folder) => Ok(1),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let fault = state.call(Call::Sync)?;
        if fault.is_some() {
            return Err(io::Error::other("a sync fails"));
        }
        if !state.swallowed.folders {
            let folder = state.folders.get_mut(path).ok_or(ErrorKind::NotFound)?;
            folder.sync();
        }
        Ok(())
    }
}

impl State {
    /// The folder that `path` is in.
    fn folder(&self, path: &Path) -> io::Result<&Folder> {
        let folder = path.parent().and_then(|parent| self.folders.get(parent));
        folder.ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn folder_mut(&mut self, path: &Path) -> io::Result<&mut Folder> {
        let folder = path
            .parent()
            .and_then(|parent| self.folders.get_mut(parent));
        folder.ok_or_else(|| ErrorKind::NotFound.into())
    }
}

fn name(path: &Path) -> io::Result<&std::ffi::OsStr> {
    path.file_name()
        .ok_or_else(|| ErrorKind::InvalidInput.into())
}
