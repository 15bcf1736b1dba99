//! Fold session ids: a queue of an older store begins to compare ids whatever their letter case.
//!
//! Rows know sessions by hashes of ids, which differ once ids are folded. So a queue whose store
//! was written before goes on as it is while it has messages or states of sessions, and changes
//! over in the first tick that finds none. (docs/spec/entities.md#18, docs/storage.md)

use store::{Part, Write};

use crate::context::Context;
use crate::entities::definition;
use crate::queue::Queue;
use crate::queue::session_key::SessionIds;

impl Queue {
    /// Whether ids are compared as they are, and nothing depends on it.
    pub(crate) fn may_fold_session_ids(&self) -> bool {
        let parts = [Part::Active, Part::Deferred, Part::Scheduled];
        self.rows.session_ids == Some(SessionIds::Exact)
            && parts.iter().all(|part| self.rows.count(*part) == 0)
            && self
                .sessions
                .as_ref()
                .is_some_and(|sessions| sessions.is_unused())
    }

    /// Folds ids from now on, if it may. The definition is written with what the turn writes.
    pub(crate) fn fold_session_ids(&mut self, cx: &mut Context<'_>) {
        if self.may_fold_session_ids() {
            self.rows.session_ids = Some(SessionIds::Folded);
            self.sessions_mut().0.ids = SessionIds::Folded;
            cx.write(Write::PutEntity(definition::row_of(self)));
        }
    }
}
