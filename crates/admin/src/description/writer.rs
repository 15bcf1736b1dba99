//! Writing: an entity's description, element after element.
//!
//! A duration or a target that was written through this interface is returned as it was written, as
//! long as the entity still has that value; a configuration file may have changed it since.

use broker::{EntityInfo, EntityKind, MessageCounts};
use entity::{Slot, duration, status_text, time};

use super::{Extent, View, description_of, order, root};
use crate::authorization;
use crate::query::Version;
use crate::xml::{COUNTS, Element, INSTANCE, SERVICE_BUS, Writer};

/// Go reads counts into 32 bits.
const MAX_COUNT: u64 = i32::MAX as u64;

/// Writes an entity's description.
pub(crate) fn write(writer: &mut Writer, info: &EntityInfo, view: View<'_>) {
    let kind = info.queue.kind;
    let mut description = description_of(info);
    let namespaces = [("xmlns", SERVICE_BUS), ("xmlns:i", INSTANCE)];
    writer.open(root(kind), &namespaces);
    let shown = order::of(kind).iter().filter(|name| is_shown(name, view));
    for name in shown {
        let property = entity::elements(kind).find(|(element, _)| element == name);
        match property {
            Some((_, property)) => {
                write_value(writer, name, (property.slot)(&mut description), view);
            }
            None => write_read_only(writer, name, info),
        }
    }
    writer.close(root(kind));
}

/// Whether an element is written at all.
fn is_shown(name: &str, view: View<'_>) -> bool {
    let is_runtime = matches!(view.extent, Extent::Runtime);
    let is_in_version = match name {
        "AccessedAt" | "CountDetails" | "SubscriptionCount" => is_runtime,
        "SqlFilterCount" | "CorrelationFilterCount" => {
            is_runtime && view.version >= Version::WithFilterCounts
        }
        "MaxMessageSizeInKilobytes" | "IsClientAffine" | "ClientAffineProperties" => {
            view.version >= Version::WithMessageSize
        }
        _ => true,
    };
    is_in_version
        && match view.extent {
            Extent::Updated(sent) => is_repeated(name, sent),
            Extent::Runtime | Extent::Created => true,
        }
}

/// Whether the answer to an update has an element.
fn is_repeated(name: &str, sent: &Element) -> bool {
    match name {
        "DefaultMessageTimeToLive" => true,
        // One client's parser asks for the second of a subscription, which it sends.
        "AuthorizationRules" | "EntityAvailabilityStatus" => sent.child(name).is_some(),
        _ if is_read_only(name) => false,
        _ => sent.child(name).is_some_and(|it| !it.text.is_empty()),
    }
}

/// Whether an element is no property. A client may send it back all the same.
fn is_read_only(name: &str) -> bool {
    !entity::PROPERTIES
        .iter()
        .any(|property| property.element == Some(name))
}

fn write_value(writer: &mut Writer, name: &str, value: Slot<'_>, view: View<'_>) {
    match value {
        Slot::Flag(flag) => writer.boolean(name, *flag),
        Slot::Duration(millis, text) => writer.text(name, duration_text(*millis, text.as_deref())),
        Slot::Count(count) => writer.number(name, entity::shown_count(*count)),
        Slot::Megabytes(bytes) => writer.number(name, *bytes >> 20),
        Slot::Bytes(bytes) => {
            let bytes = bytes.unwrap_or(view.settings.max_message_size);
            writer.number(name, bytes >> 10);
        }
        Slot::Target(path, text) => {
            let target = path.as_deref();
            let target = target.map(|path| target_text(path, text.as_deref(), view.host));
            writer.optional(name, target);
        }
        Slot::Status(status) => writer.text(name, status_text(*status)),
        Slot::Text(text) => writer.optional(name, text.as_ref()),
        // No element shows it.
        Slot::Expiry(_) | Slot::Limit(_) | Slot::Overflow(_) | Slot::RetryBackoff(_) => {}
    }
}

/// A duration in milliseconds as text; the text that was written, if it has this value.
fn duration_text(millis: u64, written: Option<&str>) -> String {
    let written = written.filter(|text| duration::millis(text) == Some(millis));
    written.map_or_else(|| duration::text(millis), str::to_owned)
}

/// A target written through this interface is returned as it is; a file has only a path.
/// (docs/spec/admin.md#2.2)
fn target_text(path: &str, written: Option<&str>, host: &str) -> String {
    if written == Some(path) || path.contains("://") {
        return path.to_owned();
    }
    format!("sb://{host}/{}", path.trim_matches('/'))
}

fn write_read_only(writer: &mut Writer, name: &str, info: &EntityInfo) {
    let (queue, below) = (&info.queue, &info.below);
    match name {
        "SizeInBytes" => writer.number(name, queue.size().saturating_add(below.bytes)),
        "MessageCount" => writer.number(name, queue.counts().total()),
        "AuthorizationRules" => authorization::write(writer, &info.store_only.authorization_rules),
        "CreatedAt" => writer.text(name, time::text(queue.created)),
        "UpdatedAt" => writer.text(name, time::text(queue.updated)),
        "AccessedAt" => {
            let accessed = queue.accessed.map(time::text);
            writer.text(name, accessed.as_deref().unwrap_or(time::NEVER));
        }
        "CountDetails" if queue.kind == EntityKind::Subscription => {
            write_counts(writer, &queue.counts(), "d3p1");
        }
        "CountDetails" => write_counts(writer, &queue.counts(), "d2p1"),
        "EntityAvailabilityStatus" => writer.text(name, "Available"),
        "SubscriptionCount" => writer.number(name, below.subscriptions as u64),
        "SqlFilterCount" => writer.number(name, below.sql_filters as u64),
        "CorrelationFilterCount" => writer.number(name, below.correlation_filters as u64),
        "IsClientAffine" => writer.boolean(name, info.client_affine.is_some()),
        "ClientAffineProperties" => {
            if let Some(properties) = &info.client_affine {
                writer.open(name, &[]);
                writer.optional("ClientId", non_empty(&properties.client_id));
                writer.boolean("IsDurable", properties.is_durable);
                writer.boolean("IsShared", properties.is_shared);
                writer.close(name);
            }
        }
        _ => unreachable!("{name} has a place in the order, and no value"),
    }
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// The declaration of the prefix is the element's only attribute: one client looks there for the
/// prefix. (docs/spec/admin.md#5.7)
fn write_counts(writer: &mut Writer, counts: &MessageCounts, prefix: &str) {
    let declaration = format!("xmlns:{prefix}");
    writer.open("CountDetails", &[(&declaration, COUNTS)]);
    let counts = [
        ("ActiveMessageCount", counts.active),
        ("DeadLetterMessageCount", counts.dead_letter),
        ("ScheduledMessageCount", counts.scheduled),
        ("TransferMessageCount", counts.transfer),
        (
            "TransferDeadLetterMessageCount",
            counts.transfer_dead_letter,
        ),
    ];
    for (name, count) in counts {
        writer.number(&format!("{prefix}:{name}"), count.min(MAX_COUNT));
    }
    writer.close("CountDetails");
}
