//! Export: what a namespace has at one moment goes to a file.
//!
//! The file is written beside its place under another name, synced, and then renamed: a file that
//! has its name is whole. It blocks its thread, and stops when the disk is nearly full.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use broker::{Answer, Contents, FrozenEntity, NamespaceAnswer, NamespaceOrder, Order};
use bytes::Bytes;
use store::{Backup, EntityId, EntryKey, Index, Part, Query, SequenceNumber};

use super::codec::Record;
use super::file::{FileError, FileWriter};
use super::{Error, PIECE, PIECE_BYTES};
use crate::shard::shard_client::ShardClient;
use crate::shard::store_view::StoreView;

/// What is in a new file.
pub struct Exported {
    /// Its size.
    pub bytes: u64,
    /// Queues, topics and subscriptions.
    pub entities: usize,
    pub messages: u64,
}

/// Writes what a namespace has at this moment to `target`, which is not there yet, as long as the
/// disk of the store has space. It blocks while it reads and writes.
pub async fn export(
    shard: &mut ShardClient,
    name: String,
    target: &Path,
    disk: &dyn Backup,
) -> Result<Exported, Error> {
    disk.check_space()?;
    let order = Order::Namespaces(NamespaceOrder::Export(name));
    let Answer::Namespaces(NamespaceAnswer::Contents(contents)) = shard.order(order).await?? else {
        return Err(Error::Unexpected);
    };
    let exported = match shard.store_view().await {
        Ok(store) => Export {
            contents: &contents,
            store,
            disk,
            messages: 0,
        }
        .write_file(target),
        Err(error) => Err(error.into()),
    };
    let release = Order::Namespaces(NamespaceOrder::Release(contents.id));
    // If it is not answered, the end of this client's connection releases the snapshot.
    drop(shard.order(release).await);
    exported
}

struct Export<'a> {
    contents: &'a Contents,
    store: StoreView,
    disk: &'a dyn Backup,
    /// How many were written.
    messages: u64,
}

impl Export<'_> {
    /// The file has its name once it is whole.
    fn write_file(mut self, target: &Path) -> Result<Exported, Error> {
        let partial = partial_path(target);
        let written = self
            .write(&partial)
            .and_then(|bytes| Ok(publish(&partial, target).map(|()| bytes)?));
        if written.is_err() {
            // The next backup of that name writes over it.
            drop(fs::remove_file(&partial));
        }
        Ok(Exported {
            bytes: written?,
            entities: self.contents.entities.len(),
            messages: self.messages,
        })
    }

    fn write(&mut self, path: &Path) -> Result<u64, Error> {
        let mut file = FileWriter::create(path)?;
        for (_, entity) in &self.contents.entities {
            file.write(&Record::Entity(Box::new(entity.clone())))?;
        }
        for (place, (id, entity)) in self.contents.entities.iter().enumerate() {
            for part in Part::ALL {
                self.write_part(place as u64, (*id, entity), part, &mut file)?;
            }
            for index in Index::ALL {
                // Rules are with their subscription.
                if index != Index::Rule {
                    self.write_index(place as u64, *id, index, &mut file)?;
                }
            }
        }
        Ok(file.finish()?)
    }

    fn write_part(
        &mut self,
        place: u64,
        (entity, frozen): (EntityId, &FrozenEntity),
        part: Part,
        file: &mut FileWriter,
    ) -> Result<(), Error> {
        let wanted = frozen.head.part(part).count;
        let (mut from, mut count) = (SequenceNumber(0), 0);
        while count < wanted {
            let query = Query::Range {
                entity,
                part,
                from,
                until: SequenceNumber::MAX,
                limit: PIECE,
                bodies: true,
                max_bytes: PIECE_BYTES,
            };
            self.disk.check_space()?;
            let messages = self.store.read(&query)?.into_messages()?;
            let unreadable = || Error::Unreadable(frozen.path.clone());
            let last = messages.last().ok_or_else(unreadable)?;
            from = last.number.next();
            count += messages.len() as u64;
            for message in messages {
                if message.body.is_none() {
                    return Err(unreadable());
                }
                let message = Box::new(message);
                let entity = place;
                file.write(&Record::Message { entity, message })?;
            }
        }
        self.messages += count;
        Ok(())
    }

    fn write_index(
        &self,
        place: u64,
        entity: EntityId,
        index: Index,
        file: &mut FileWriter,
    ) -> Result<(), Error> {
        let mut from = EntryKey::new(Bytes::new(), SequenceNumber(0));
        let until = vec![u8::MAX; EntryKey::MAX_GROUP];
        let until = EntryKey::new(until, SequenceNumber::MAX);
        loop {
            let query = Query::Entries {
                entity,
                index,
                from,
                until: until.clone(),
                limit: PIECE,
                max_bytes: PIECE_BYTES,
            };
            self.disk.check_space()?;
            let entries = self.store.read(&query)?.into_entries()?;
            let Some(last) = entries.last() else {
                return Ok(());
            };
            from = EntryKey::new(last.key.group.clone(), last.key.number.next());
            for entry in entries {
                let entity = place;
                file.write(&Record::Entry {
                    entity,
                    index,
                    entry,
                })?;
            }
        }
    }
}

/// Beside the target, where no backup is looked for.
fn partial_path(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default();
    target.with_file_name(format!(".{}.partial", name.to_string_lossy()))
}

/// Gives a whole file its name.
fn publish(partial: &Path, target: &Path) -> Result<(), FileError> {
    if fs::symlink_metadata(target).is_ok() {
        return Err(FileError::Io(ErrorKind::AlreadyExists.into()));
    }
    fs::rename(partial, target)?;
    if let Some(parent) = target.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}
