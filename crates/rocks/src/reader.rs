//! Reader: answers queries from a snapshot of the database.
//!
//! A read waits until the commit it names is applied, takes a snapshot and walks over it with
//! bounded scans and sorted point reads.

mod bodies;
pub mod entries;
pub mod scan;
mod view;

use std::sync::Arc;

use store::{CommitId, EntityId, Found, Part, Query, Reader, StoreError};

use crate::commit::commit_progress::CommitProgress;
use crate::damage::damage_log::DamageLog;
use crate::index::unapplied::Unapplied;
use crate::open_store::OpenStore;
use crate::reader::entries::Entries;

use view::View;

/// Reads from a store, from any thread.
pub(crate) struct RocksReader {
    pub open_store: Arc<OpenStore>,
    pub progress: Arc<CommitProgress>,
    pub unapplied: Arc<Unapplied>,
    pub damage: Arc<DamageLog>,
}

impl Reader for RocksReader {
    fn read(&self, after: CommitId, query: &Query) -> Result<Found, StoreError> {
        let found = self.answer(after, query);
        found.inspect_err(|error| self.damage.note(error))
    }
}

impl RocksReader {
    fn answer(&self, after: CommitId, query: &Query) -> Result<Found, StoreError> {
        if self.progress.applied() < after {
            self.unapplied.request_apply(after);
        }
        self.progress.wait_until_applied(after)?;
        let database = &self.open_store.database;
        let _files = database.files.read();
        let db = &database.db;
        let families = database.families();
        let snapshot = &db.snapshot();
        let view = |entity: &EntityId, part: &Part, bodies: &bool| View {
            db,
            files: &self.open_store.files,
            families,
            snapshot,
            entity: *entity,
            part: *part,
            bodies: *bodies,
        };
        let messages = match query {
            Query::Range {
                entity,
                part,
                from,
                until,
                limit,
                bodies,
                max_bytes,
            } => view(entity, part, bodies).range(*from, *until, *limit, *max_bytes),
            Query::Points {
                entity,
                part,
                numbers,
                bodies,
                max_bytes,
            } => view(entity, part, bodies).points(numbers, *max_bytes),
            Query::Bodies {
                entity,
                part,
                known,
            } => view(entity, part, &true).known(known),
            Query::Entries { .. } | Query::EntryPoints { .. } | Query::Groups { .. } => {
                let entries = Entries {
                    db,
                    families,
                    snapshot,
                };
                return entries.read(query).map(Found::Entries);
            }
        };
        messages.map(Found::Messages)
    }
}
