//! Backups: the place for backups of the store, and the means to make them.

use std::path::PathBuf;
use std::sync::Arc;

use store::Backup;

/// Where backups are made, and what makes them.
#[derive(Clone)]
pub struct Backups {
    /// Made with the first of them.
    pub directory: PathBuf,
    pub backup: Arc<dyn Backup>,
    /// Held by the one backup of a namespace that may be made at a time.
    pub namespaces: Arc<tokio::sync::Mutex<()>>,
}
