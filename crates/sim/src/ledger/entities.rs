//! Entities: those that come and go while clients use them, and what becomes of their messages.
//!
//! What stands in an entity that is deleted is gone with it, and nothing else is. An entity goes
//! because a request deletes it or because no client uses it. (I1, I13)

use broker::{Mono, Status};
use store::image::Image;
use store::{EntityId, Part};

use super::{Ledger, Queue};
use crate::books::Changes;
use crate::message::MessageId;
use crate::violation::Violation;

/// No entity has it.
const NONE: EntityId = EntityId(u64::MAX);

impl Ledger {
    /// There may soon be such an entity.
    pub fn expect(&mut self, queue: Queue) {
        let kind = queue.kind(&self.queues);
        self.books.expect(queue.path, kind);
        self.expected.insert(queue.path.to_lowercase(), queue);
    }

    /// Which of the queues a path is now, or was last. What a crash has taken back is not the last
    /// one.
    #[must_use]
    pub fn index_of(&self, path: &str) -> Option<usize> {
        let queues = self.queues.iter().enumerate();
        let named = queues.filter(|(_, queue)| queue.path.eq_ignore_ascii_case(path));
        let is_live = |queue: &Queue| self.books.is_live(queue.id);
        let last = named.max_by_key(|(index, queue)| (is_live(queue), *index));
        last.map(|(index, _)| index)
    }

    /// The entity at a path.
    #[must_use]
    pub fn live(&self, path: &str) -> Option<EntityId> {
        let id = self.queues[self.index_of(path)?].id;
        self.books.is_live(id).then_some(id)
    }

    /// An entity was used.
    pub(super) fn note_use(&mut self, entity: EntityId) {
        if let Some(index) = self.queue_of(entity) {
            self.queues[index].used = self.turn.now.mono;
        }
    }

    /// Notes what a write set did to entities.
    pub(super) fn note_entities(&mut self, changes: &Changes) -> Result<(), Violation> {
        for row in &changes.created {
            if self.queue_of(row.id).is_some() {
                continue;
            }
            let expected = self.expected.get(&row.path.to_lowercase());
            let Some(queue) = expected.filter(|_| self.turn.planned.makes(&row.path)) else {
                let what = format!("{row:?} was made without a request for that");
                return Err(Violation::new("I1", what));
            };
            let used = self.turn.now.mono;
            let id = row.id;
            let queue = Queue {
                id,
                used,
                began: used,
                going: self.turn.planned.removes(&row.path),
                ..queue.clone()
            };
            self.queues.push(queue);
            self.last_enqueued.push(0);
        }
        for entity in changes.tombstones.iter().chain(&changes.removed) {
            self.check_removal(*entity)?;
        }
        Ok(())
    }

    /// Notes what went with entities, what came in the same write set included.
    pub(super) fn note_tombstones(&mut self, changes: &Changes) {
        for entity in &changes.tombstones {
            for part in Part::ALL {
                let rows: Vec<_> = self.books.rows(*entity, part).map(|(id, _)| id).collect();
                rows.into_iter().for_each(|id| self.remove_with_entity(id));
            }
        }
        let went = changes.moves.iter().filter(|moved| {
            let from = moved.from.filter(|_| moved.to.is_none());
            from.is_some_and(|from| changes.removed.contains(&from.entity))
        });
        for id in went.map(|moved| moved.id).collect::<Vec<_>>() {
            self.remove_with_entity(id);
        }
    }

    /// An order asked for it, or it was not used for long enough.
    fn check_removal(&mut self, entity: EntityId) -> Result<(), Violation> {
        let Some(index) = self.queue_of(entity) else {
            return Ok(());
        };
        let now = self.turn.now.mono.0;
        let queue = &mut self.queues[index];
        let idle = now >= queue.used.0.saturating_add(queue.auto_delete_on_idle)
            || now >= queue.began.0.saturating_add(queue.expires);
        if queue.gone || queue.going || idle {
            if !queue.gone && !queue.going {
                self.versions.note_change();
            }
            queue.gone = true;
            queue.unsteady = true;
            return Ok(());
        }
        let what = format!("{} was removed without a request for that", queue.path);
        Err(Violation::new("I1", what))
    }

    fn remove_with_entity(&mut self, id: MessageId) {
        let turn = self.turn.index;
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.removed_with_entity = true;
            entry.free(turn);
        }
    }

    /// A crash has brought back what was removed, and taken what was new.
    pub(super) fn entities_crashed(&mut self, image: &Image) {
        let now: Mono = self.turn.now.mono;
        for queue in &mut self.queues {
            if image.last_entity.is_some_and(|last| queue.id > last) {
                // Another entity will have this id.
                queue.id = NONE;
            }
            queue.gone = !self.books.is_live(queue.id);
            queue.going = false;
            queue.status = Status::Active;
            queue.used = now;
            queue.began = now;
        }
        for (id, entry) in self
            .entries
            .iter_mut()
            .filter(|(_, entry)| entry.removed_with_entity)
        {
            let place = self.books.place(*id);
            entry.removed_with_entity = place.is_none_or(|place| !self.books.is_live(place.entity));
        }
    }
}
