//! Descriptions of queues, topics and subscriptions: from elements to what the broker is told, and
//! from what it tells to elements in the canonical order. (docs/spec/admin.md#5)
//!
//! Elements come in any order and unknown ones are passed over. A description is whole: what it
//! does not say has its default, in an update too. What an entity has already it may be given
//! again, even where a configuration file went beyond what can be said here.

mod fields;
mod formatted_entity;
mod queue;
mod subscription;
mod topic;

use broker::{EntityDescription, EntityInfo, EntityKind};

use crate::error::Error;
use crate::query::Version;
use crate::settings::Settings;
use crate::xml::{Element, Writer};

use fields::Fields;

/// The kind of entity that an element describes.
pub(crate) fn kind(element: &Element) -> Option<EntityKind> {
    match &*element.name {
        "QueueDescription" => Some(EntityKind::Queue),
        "TopicDescription" => Some(EntityKind::Topic),
        "SubscriptionDescription" => Some(EntityKind::Subscription),
        _ => None,
    }
}

/// What an entity of this kind is to be, besides its authorization rules. `current` is what it is.
pub(crate) fn read(
    kind: EntityKind,
    element: &Element,
    settings: &Settings,
    current: Option<&EntityInfo>,
) -> Result<EntityDescription, Error> {
    let fields = Fields {
        element,
        settings,
        current,
    };
    match kind {
        EntityKind::Queue => queue::read(&fields),
        EntityKind::Topic => topic::read(&fields),
        EntityKind::Subscription => subscription::read(&fields),
    }
}

/// How an entity is shown.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub settings: &'a Settings,
    /// As whom the client knows the broker.
    pub host: &'a str,
    pub version: Version,
    /// Whether counts are shown, and when it was used.
    pub runtime: bool,
}

/// Writes an entity's description.
pub(crate) fn write(writer: &mut Writer, info: &EntityInfo, view: View<'_>) {
    match info.queue.kind {
        EntityKind::Queue => queue::write(writer, info, view),
        EntityKind::Topic => topic::write(writer, info, view),
        EntityKind::Subscription => subscription::write(writer, info, view),
    }
}
