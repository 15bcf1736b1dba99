//! Descriptions of queues, topics and subscriptions: XML elements to properties for the broker, and
//! properties to elements in the canonical order. (docs/spec/admin.md#5)
//!
//! Elements come in any order and unknown ones are ignored. A description is complete: an absent
//! property gets its default, also in an update. A value that the entity already has is accepted
//! again, even if a configuration file has set one beyond the limits here.

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

/// Reads the description of an entity, without its authorization rules. `current` is its present
/// state.
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

/// How an entity is written.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub settings: &'a Settings,
    /// The host name that the client used for the broker.
    pub host: &'a str,
    pub version: Version,
    /// Whether counts and the time of last use are written.
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
