//! Tests of the user of snapshots: what a broker must not do is found.

use super::Asked;
use crate::faults::Faults;
use crate::storage::StorageKind;
use crate::world::{Plan, World};

/// A world in which the first namespace has a snapshot with messages.
fn with_snapshot() -> World {
    let mut world = World::new(Plan {
        seed: 1,
        operations: 0,
        faults: Faults::NONE,
        storage: StorageKind::Memory,
    });
    let has_snapshot = |world: &World| {
        let mut spaces = world.snapshots.model.values();
        spaces.any(|space| space.snapshots.values().any(|content| content.len() > 3))
    };
    while !has_snapshot(&world) || !matches!(world.snapshots.asked, Asked::Nothing) {
        world.step().expect("the broker is sound");
    }
    world
}

/// What a survey finds.
fn survey(mut world: World) -> &'static str {
    world.survey_snapshots().expect("it waits for answers");
    let found = world.run_until_idle();
    found.expect_err("it is found").invariant
}

#[test]
fn a_snapshot_that_has_lost_a_message_is_found() {
    let mut world = with_snapshot();
    let spaces = &mut world.snapshots.model;
    let has_snapshot = |name: &&String| !spaces[*name].snapshots.is_empty();
    let name = spaces.keys().find(has_snapshot).cloned();
    let name = name.expect("it was taken");
    let space = spaces.get_mut(&name).expect("it is there");
    for content in space.snapshots.values_mut() {
        let (path, part, id) = *content.first().expect("it has messages");
        content.insert((path, part, id + (1 << 20)));
    }
    world.restore_space(&name);
    world.run_until_idle().expect("it is answered");
    assert_eq!(survey(world), "I1");
}

/// Neither what was before a request is there nor what is after it.
#[test]
fn a_crash_that_leaves_half_of_a_request_is_found() {
    let mut world = with_snapshot();
    for space in world.snapshots.model.values_mut() {
        space.content.pop_first();
    }
    let mut other = world.snapshots.model.clone();
    for space in other.values_mut() {
        space.content.clear();
    }
    world.snapshots.doubt = Some(other);
    assert_eq!(survey(world), "I1");
}
