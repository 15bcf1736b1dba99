//! A queue's description. (docs/spec/admin.md#5.1)

use broker::{
    EntityDescription, EntityInfo, OriginalTexts, QueueSettings, Status, StoreOnlyProperties,
};

use super::View;
use super::fields::{Fields, kept_targets};
use super::formatted_entity::{FormattedEntity, counts};
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
    let (lock_duration, lock_text) = fields.lock_duration()?;
    let (default_message_time_to_live, ttl_text) = fields.time_to_live()?;
    let (history, history_text) = fields.history()?;
    let (auto_delete_on_idle, idle_text) = fields.idle()?;
    let settings = QueueSettings {
        lock_duration,
        max_delivery_count: fields.max_delivery_count()?,
        default_message_time_to_live,
        dead_lettering_on_message_expiration: fields
            .flag("DeadLetteringOnMessageExpiration", false)?,
        max_size: fields.max_size(enable_partitioning)?,
        max_message_size: fields.max_message_size()?,
        requires_session: fields.flag("RequiresSession", false)?,
        requires_duplicate_detection: fields.flag("RequiresDuplicateDetection", false)?,
        duplicate_detection_history_time_window: history,
        forward_to: fields.target("ForwardTo"),
        forward_dead_lettered_messages_to: fields.target("ForwardDeadLetteredMessagesTo"),
        status: fields.status(&STATUSES)?,
        auto_delete_on_idle,
        ..fields.unsaid()
    };
    let kept = StoreOnlyProperties {
        user_metadata: fields.user_metadata()?,
        enable_batched_operations: fields.flag("EnableBatchedOperations", true)?,
        is_anonymous_accessible: fields.flag("IsAnonymousAccessible", false)?,
        support_ordering: fields.flag("SupportOrdering", !enable_partitioning)?,
        enable_partitioning,
        enable_express: fields.flag("EnableExpress", false)?,
        texts: OriginalTexts {
            lock_duration: lock_text,
            default_message_time_to_live: ttl_text,
            duplicate_detection_history_time_window: history_text,
            auto_delete_on_idle: idle_text,
            ..kept_targets(&settings)
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

/// (docs/spec/entities.md#19)
pub(super) fn check_express(
    settings: &QueueSettings,
    kept: &StoreOnlyProperties,
) -> Result<(), Error> {
    if kept.enable_express && settings.requires_duplicate_detection {
        let why = "an express entity can not detect duplicates";
        return Err(Error::value("EnableExpress", why));
    }
    Ok(())
}

pub(super) fn write(writer: &mut Writer, info: &EntityInfo, view: View<'_>) {
    let entity = FormattedEntity { info, view };
    let (settings, kept) = (&info.queue.settings, &*info.kept);
    writer.open(
        "QueueDescription",
        &[("xmlns", SERVICE_BUS), ("xmlns:i", INSTANCE)],
    );
    writer.text("LockDuration", entity.lock_duration());
    writer.number("MaxSizeInMegabytes", settings.max_size >> 20);
    writer.boolean(
        "RequiresDuplicateDetection",
        settings.requires_duplicate_detection,
    );
    writer.boolean("RequiresSession", settings.requires_session);
    writer.text("DefaultMessageTimeToLive", entity.time_to_live());
    writer.boolean(
        "DeadLetteringOnMessageExpiration",
        settings.dead_lettering_on_message_expiration,
    );
    writer.text("DuplicateDetectionHistoryTimeWindow", entity.history());
    writer.number("MaxDeliveryCount", settings.max_delivery_count.into());
    writer.boolean("EnableBatchedOperations", kept.enable_batched_operations);
    writer.number("SizeInBytes", info.queue.bytes);
    writer.number("MessageCount", counts(info).total());
    writer.boolean("IsAnonymousAccessible", kept.is_anonymous_accessible);
    authorization::write(writer, &kept.authorization_rules);
    writer.text("Status", entity.status());
    writer.optional("ForwardTo", entity.forward_to());
    entity.write_times(writer);
    writer.optional("UserMetadata", kept.user_metadata.as_ref());
    writer.boolean("SupportOrdering", kept.support_ordering);
    if view.runtime {
        counts(info).write(writer, "d2p1");
    }
    writer.text("AutoDeleteOnIdle", entity.idle());
    writer.boolean("EnablePartitioning", kept.enable_partitioning);
    writer.text("EntityAvailabilityStatus", "Available");
    writer.optional("ForwardDeadLetteredMessagesTo", entity.dead_letters_to());
    writer.boolean("EnableExpress", kept.enable_express);
    if view.version >= Version::WithMessageSize {
        writer.number("MaxMessageSizeInKilobytes", entity.max_message_kilobytes());
    }
    writer.close("QueueDescription");
}
