//! Entities: those that come and go while clients use them, and what becomes of their messages.
//!
//! What stands in an entity that is deleted is gone with it. (I1)

use store::Part;

use super::Ledger;
use crate::books::Changes;
use crate::message::MessageId;
use crate::violation::Violation;

impl Ledger {
    /// Notes what a write set did to entities.
    pub(super) fn note_entities(&mut self, changes: &Changes) -> Result<(), Violation> {
        for entity in &changes.buried {
            for part in Part::ALL {
                let rows: Vec<_> = self.books.rows(*entity, part).map(|(id, _)| id).collect();
                rows.into_iter().for_each(|id| self.bury(id));
            }
        }
        let went = changes.moves.iter().filter(|moved| {
            let from = moved.from.filter(|_| moved.to.is_none());
            from.is_some_and(|from| changes.removed.contains(&from.entity))
        });
        for id in went.map(|moved| moved.id).collect::<Vec<_>>() {
            self.bury(id);
        }
        Ok(())
    }

    fn bury(&mut self, id: MessageId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.buried = true;
        }
    }
}
