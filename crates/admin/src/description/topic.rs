//! A topic's description. (docs/spec/admin.md#5.2)

use broker::{
    EntityDescription, EntityInfo, OriginalTexts, QueueSettings, Status, StoreOnlyProperties,
};

use super::View;
use super::fields::Fields;
use super::formatted_entity::{FormattedEntity, counts};
use super::queue::check_express;
use crate::authorization;
use crate::error::Error;
use crate::query::Version;
use crate::xml::{INSTANCE, SERVICE_BUS, Writer};

const STATUSES: [Status; 4] = [
    Status::Active,
    Status::Disabled,
    Status::SendDisabled,
    Status::ReceiveDisabled,
];

pub(super) fn read(fields: &Fields<'_>) -> Result<EntityDescription, Error> {
    let enable_partitioning = fields.flag("EnablePartitioning", false)?;
    let (default_message_time_to_live, ttl_text) = fields.time_to_live()?;
    let (history, history_text) = fields.history()?;
    let (auto_delete_on_idle, idle_text) = fields.idle()?;
    let settings = QueueSettings {
        default_message_time_to_live,
        max_size: fields.max_size(enable_partitioning)?,
        max_message_size: fields.max_message_size()?,
        requires_duplicate_detection: fields.flag("RequiresDuplicateDetection", false)?,
        duplicate_detection_history_time_window: history,
        status: fields.status(&STATUSES)?,
        auto_delete_on_idle,
        ..fields.unsaid()
    };
    let kept = StoreOnlyProperties {
        user_metadata: fields.user_metadata()?,
        enable_batched_operations: fields.flag("EnableBatchedOperations", true)?,
        filtering_messages_before_publishing: fields
            .flag("FilteringMessagesBeforePublishing", false)?,
        is_anonymous_accessible: fields.flag("IsAnonymousAccessible", false)?,
        support_ordering: fields.flag("SupportOrdering", !enable_partitioning)?,
        enable_partitioning,
        enable_subscription_partitioning: fields.flag("EnableSubscriptionPartitioning", false)?,
        enable_express: fields.flag("EnableExpress", false)?,
        texts: OriginalTexts {
            default_message_time_to_live: ttl_text,
            duplicate_detection_history_time_window: history_text,
            auto_delete_on_idle: idle_text,
            ..OriginalTexts::default()
        },
        ..StoreOnlyProperties::default()
    };
    check_express(&settings, &kept)?;
    Ok(EntityDescription {
        settings,
        kept,
        ..EntityDescription::default()
    })
}

pub(super) fn write(writer: &mut Writer, info: &EntityInfo, view: View<'_>) {
    let entity = FormattedEntity { info, view };
    let (settings, kept) = (&info.queue.settings, &*info.kept);
    writer.open(
        "TopicDescription",
        &[("xmlns", SERVICE_BUS), ("xmlns:i", INSTANCE)],
    );
    writer.text("DefaultMessageTimeToLive", entity.time_to_live());
    writer.number("MaxSizeInMegabytes", settings.max_size >> 20);
    writer.boolean(
        "RequiresDuplicateDetection",
        settings.requires_duplicate_detection,
    );
    writer.text("DuplicateDetectionHistoryTimeWindow", entity.history());
    writer.boolean("EnableBatchedOperations", kept.enable_batched_operations);
    let bytes = info.queue.bytes.saturating_add(info.below.bytes);
    writer.number("SizeInBytes", bytes);
    writer.boolean(
        "FilteringMessagesBeforePublishing",
        kept.filtering_messages_before_publishing,
    );
    writer.boolean("IsAnonymousAccessible", kept.is_anonymous_accessible);
    authorization::write(writer, &kept.authorization_rules);
    writer.text("Status", entity.status());
    entity.write_times(writer);
    writer.optional("UserMetadata", kept.user_metadata.as_ref());
    writer.boolean("SupportOrdering", kept.support_ordering);
    if view.runtime {
        write_runtime(writer, info, view);
    }
    writer.text("AutoDeleteOnIdle", entity.idle());
    writer.boolean("EnablePartitioning", kept.enable_partitioning);
    writer.text("EntityAvailabilityStatus", "Available");
    writer.boolean(
        "EnableSubscriptionPartitioning",
        kept.enable_subscription_partitioning,
    );
    writer.boolean("EnableExpress", kept.enable_express);
    if view.version >= Version::WithMessageSize {
        writer.number("MaxMessageSizeInKilobytes", entity.max_message_kilobytes());
    }
    writer.close("TopicDescription");
}

fn write_runtime(writer: &mut Writer, info: &EntityInfo, view: View<'_>) {
    counts(info).write(writer, "d2p1");
    let below = &info.below;
    writer.number("SubscriptionCount", below.subscriptions as u64);
    if view.version >= Version::WithFilterCounts {
        writer.number("SqlFilterCount", below.sql_filters as u64);
        writer.number("CorrelationFilterCount", below.correlation_filters as u64);
    }
}
