//! Model: what the namespaces of a user of snapshots must have.

use std::collections::{BTreeMap, BTreeSet};

use broker::{Browsed, MessageState, Subqueue};
use store::Part;

use crate::message::{self, MessageId};

/// The queue and the subscriptions, of all namespaces.
pub(super) const PATHS: [&str; 4] = [
    "queue",
    "by-session",
    "topic/Subscriptions/all",
    "topic/Subscriptions/changed",
];

/// A message, as it was sent, at a place: one of the paths, and a part of it.
type Placed = (usize, Part, MessageId);

/// All messages of a namespace.
pub(super) type Content = BTreeSet<Placed>;

/// A namespace.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Space {
    pub content: Content,
    pub snapshots: BTreeMap<String, Content>,
}

/// All namespaces, by their names.
pub(super) type Model = BTreeMap<String, Space>;

/// What can be seen of namespaces: their messages, and the names of their snapshots.
pub(super) type Seen = BTreeMap<String, (Content, BTreeSet<String>)>;

/// What is to be seen of them.
pub(super) fn visible(model: &Model) -> Seen {
    let spaces = model.iter().map(|(name, space)| {
        let snapshots = space.snapshots.keys().cloned().collect();
        (name.clone(), (space.content.clone(), snapshots))
    });
    spaces.collect()
}

/// A change of one of the namespaces, which is there.
pub(super) fn changed(model: &Model, name: &str, change: impl FnOnce(&mut Space)) -> Model {
    let mut model = model.clone();
    change(model.get_mut(name).expect("it is one of them"));
    model
}

/// Where a message is that is shown.
pub(super) fn placed(path: usize, subqueue: Subqueue, shown: &Browsed) -> Option<Placed> {
    let part = match (subqueue, shown.state) {
        (Subqueue::Main, MessageState::Active) => Part::Active,
        (Subqueue::Main, MessageState::Deferred) => Part::Deferred,
        (Subqueue::Main, MessageState::Scheduled) => Part::Scheduled,
        _ => Part::DeadLetter,
    };
    Some((path, part, message::id_of(&shown.payload)?))
}
