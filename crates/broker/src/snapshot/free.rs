//! Free: a snapshot that was removed goes once no entity borrows from it, and with it the bodies
//! that it owns.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::{EntityId, NamespaceId, Write};

use super::{FOUND, Owned};
use crate::api::entity_error::EntityError;
use crate::api::id::ConnectionId;
use crate::context::Context;
use crate::entities::definition;
use crate::entities::directory::Directory;
use crate::entities::tombstone::{Bodies, Tombstone};

/// Removes a snapshot: its name is free from now on.
pub(crate) fn remove(
    directory: &mut Directory,
    namespace: NamespaceId,
    name: &str,
    cx: &mut Context<'_>,
) -> Result<(), EntityError> {
    let id = directory.snapshots.find(namespace, name)?;
    take_name(directory, id, cx);
    Ok(())
}

/// Removes all snapshots of a namespace.
pub(crate) fn remove_all(directory: &mut Directory, namespace: NamespaceId, cx: &mut Context<'_>) {
    let all = directory.snapshots.by_id.iter();
    let named = all.filter(|(_, it)| it.namespace == namespace && it.name.is_some());
    let named: Vec<_> = named.map(|(id, _)| *id).collect();
    for id in named {
        take_name(directory, id, cx);
    }
}

fn take_name(directory: &mut Directory, id: EntityId, cx: &mut Context<'_>) {
    let snapshot = directory.snapshots.by_id.get_mut(&id).expect(FOUND);
    snapshot.name = None;
    cx.write(Write::PutEntity(definition::snapshot_row(id, snapshot)));
    cx.shared.lent.is_to_check = true;
}

/// Ends the hold of a snapshot. Without a name it goes once no entity needs it.
pub(crate) fn release(directory: &mut Directory, id: EntityId, cx: &mut Context<'_>) {
    let released = directory.snapshots.holds.remove(&id);
    cx.shared.lent.is_to_check |= released.is_some();
}

/// The same of all holds of a connection, which is gone.
pub(crate) fn release_of(
    directory: &mut Directory,
    connection: ConnectionId,
    cx: &mut Context<'_>,
) {
    let holds = &mut directory.snapshots.holds;
    let before = holds.len();
    holds.retain(|_, hold| hold.connection != connection);
    cx.shared.lent.is_to_check |= holds.len() < before;
}

/// Begins to remove the rows of snapshots that were removed and that no entity needs.
pub(crate) fn free_unused(directory: &mut Directory, cx: &mut Context<'_>) {
    if !std::mem::take(&mut cx.shared.lent.is_to_check) {
        return;
    }
    let all = directory.snapshots.by_id.iter();
    let removed = all.filter(|(_, it)| it.name.is_none() && it.left.is_none());
    let holds = &directory.snapshots.holds;
    let removed = removed.filter(|(id, _)| !holds.contains_key(id));
    let removed: Vec<_> = removed.map(|(id, _)| *id).collect();
    for id in removed {
        if !is_needed(directory, id) {
            begin(directory, id, cx);
        }
    }
}

/// Whether an entity or another snapshot may have rows that point to its bodies.
fn is_needed(directory: &Directory, id: EntityId) -> bool {
    let mut queues = directory.iter();
    let mut others = directory.snapshots.by_id.values();
    queues.any(|queue| queue.rows.origins.borrows_from(id))
        || others.any(|other| other.borrows_from(id))
        || directory.tombstones.values().any(Tombstone::borrows)
}

/// What it has of each entity becomes a tombstone.
fn begin(directory: &mut Directory, id: EntityId, cx: &mut Context<'_>) {
    let snapshot = directory.snapshots.by_id.get_mut(&id).expect(FOUND);
    let owned: Owned = Arc::new(snapshot.owned());
    snapshot.left = Some(snapshot.frozen.len());
    for (part, frozen) in &snapshot.frozen {
        let bodies = Bodies::Owned(Arc::clone(&owned));
        let (namespace, head) = (snapshot.namespace, frozen.head.clone());
        let mut tombstone = Tombstone::new(*part, namespace, None, head, bodies);
        tombstone.set_alarm(0, cx);
        directory.tombstones.insert(*part, tombstone);
    }
    if snapshot.frozen.is_empty() {
        end(directory, id, cx);
    }
}

/// A part of a snapshot has no rows any more. It stays until all of them are empty: as long as one
/// has rows, a restart has to know which bodies are the snapshot's.
pub(crate) fn part_is_empty(directory: &mut Directory, part: EntityId, cx: &mut Context<'_>) {
    let tombstone = directory.tombstones.get_mut(&part);
    tombstone.expect("it was advanced just now").rest(cx);
    let id = *directory.snapshots.parts.get(&part).expect(FOUND);
    let snapshot = directory.snapshots.by_id.get_mut(&id).expect(FOUND);
    let left = snapshot.left.as_mut().expect("its rows are being removed");
    *left -= 1;
    if *left == 0 {
        end(directory, id, cx);
    }
}

fn end(directory: &mut Directory, id: EntityId, cx: &mut Context<'_>) {
    let snapshot = directory.snapshots.by_id.remove(&id).expect(FOUND);
    for part in snapshot.frozen.keys() {
        directory.snapshots.parts.remove(part);
        if let Some(tombstone) = directory.tombstones.remove(part) {
            tombstone.end(cx);
        }
    }
    cx.write(Write::RemoveEntity(id));
    cx.shared.lent.replace(directory.snapshots.lent());
    // It may have been what kept another one.
    cx.shared.lent.is_to_check = true;
    let sources = snapshot.frozen.values().map(|frozen| frozen.source);
    for home in sources.collect::<BTreeSet<_>>() {
        let tombstone = directory.tombstones.get(&home);
        let waits = tombstone.is_some_and(|tombstone| tombstone.is_home_only);
        if waits && !cx.shared.lent.is_home(home) {
            directory.end_tombstone(home, cx);
        }
    }
}
