//! Descriptions of queues, topics and subscriptions: XML elements to properties for the broker, and
//! properties to elements in the canonical order. (docs/spec/admin.md#5)
//!
//! Elements come in any order and unknown ones are ignored. A description is complete: an absent
//! property gets its default, also in an update. A value that the entity already has is accepted
//! again, even if a configuration file has set one beyond the limits here. The properties are those
//! of [`entity::PROPERTIES`].

mod order;
mod reader;
mod writer;

use broker::{EntityDescription, EntityInfo, EntityKind};

use crate::query::Version;
use crate::settings::Settings;
use crate::xml::Element;

pub(crate) use reader::read;
pub(crate) use writer::write;

/// The kind of entity that an element describes.
pub(crate) fn kind(element: &Element) -> Option<EntityKind> {
    let kinds = [
        EntityKind::Queue,
        EntityKind::Topic,
        EntityKind::Subscription,
    ];
    kinds.into_iter().find(|kind| root(*kind) == element.name)
}

/// The name of the element that describes a kind of entity.
fn root(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "QueueDescription",
        EntityKind::Topic => "TopicDescription",
        EntityKind::Subscription => "SubscriptionDescription",
    }
}

/// What an entity is, as a description says it.
fn description_of(info: &EntityInfo) -> EntityDescription {
    EntityDescription {
        settings: info.queue.settings.clone(),
        dead_lettering_on_filter_evaluation_exceptions: info
            .dead_lettering_on_filter_evaluation_exceptions,
        store_only: (*info.store_only).clone(),
    }
}

/// Which elements of an entity are written. (docs/spec/admin.md#5)
#[derive(Clone, Copy)]
pub(crate) enum Extent<'a> {
    /// All, with counts and the time of last use.
    Runtime,
    /// The properties, and what is known of a new entity.
    Created,
    /// Those that this description of an update held, and the time to live, for which a client's
    /// parser asks.
    Updated(&'a Element),
}

/// How an entity is written.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub settings: &'a Settings,
    /// The host name that the client used for the broker.
    pub host: &'a str,
    pub version: Version,
    pub extent: Extent<'a>,
}
