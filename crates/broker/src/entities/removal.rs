//! Removal: the rows of deleted entities, and of snapshots that nothing needs, are removed in
//! pieces.

use store::EntityId;

use crate::context::Context;
use crate::entities::directory::Directory;
use crate::entities::tombstone::Tombstone;
use crate::snapshot::free;

/// Continues the removal of a tombstone, and drops it when nothing is left.
pub(crate) fn advance(
    directory: &mut Directory,
    id: EntityId,
    advance: impl FnOnce(&mut Tombstone, &mut Context<'_>) -> bool,
    cx: &mut Context<'_>,
) {
    // A tombstone ends with its topic, and its read may come back later.
    let Some(tombstone) = directory.tombstones.get_mut(&id) else {
        return;
    };
    if !advance(tombstone, cx) {
        return;
    }
    if directory.snapshots.is_part(id) {
        free::part_is_empty(directory, id, cx);
    } else if cx.shared.lent.is_home(id) {
        tombstone.rest(cx);
    } else {
        directory.end_tombstone(id, cx);
    }
}
