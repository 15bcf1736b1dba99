//! Reader: a client that has rights to some entities and none to the whole namespace.
//!
//! It may do to its entities what their keys allow, and its overview, counts and events have these
//! entities alone. Rights are looked up at each reading, so a removed key shows nothing from then
//! on. (docs/spec/admin.md#17)

use std::sync::Arc;

use access::{Credential, Directory};
use broker::QueueInfo;

use crate::http::routes::Route;

/// What a client without a right to the namespace shows for itself. Two are the same if they are
/// of one request.
#[derive(Clone, Debug)]
pub struct Reader(Arc<Credential>);

impl Reader {
    pub fn new(credential: Credential) -> Self {
        Self(Arc::new(credential))
    }

    /// Keeps of `entities` those that it may listen to.
    pub fn keep_own(&self, entities: &mut Vec<QueueInfo>, directory: &Directory) {
        entities.retain(|queue| self.sees(&queue.path, directory));
    }

    fn sees(&self, path: &str, directory: &Directory) -> bool {
        let rights = directory.access().rights(&self.0, &path.to_lowercase());
        rights.listen || rights.manage
    }
}

impl PartialEq for Reader {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Whether a route shows a client what it sees of the namespace, however little that is.
pub fn is_partial(route: Route) -> bool {
    matches!(route, Route::Overview | Route::Counts | Route::Events)
}
