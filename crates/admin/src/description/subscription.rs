//! A subscription's description. Its default rule is read elsewhere, and never shown.
//! (docs/spec/admin.md#5.3)

use broker::{
    EntityDescription, EntityInfo, OriginalTexts, QueueSettings, Status, StoreOnlyProperties,
};

use super::View;
use super::fields::{Fields, kept_targets};
use super::formatted_entity::{FormattedEntity, counts};
use crate::error::Error;
use crate::query::Version;
use crate::xml::{INSTANCE, SERVICE_BUS, Writer};

const STATUSES: [Status; 3] = [Status::Active, Status::Disabled, Status::ReceiveDisabled];

pub(super) fn read(fields: &Fields<'_>) -> Result<EntityDescription, Error> {
    let (lock_duration, lock_text) = fields.lock_duration()?;
    let (default_message_time_to_live, ttl_text) = fields.time_to_live()?;
    let (auto_delete_on_idle, idle_text) = fields.idle()?;
    let settings = QueueSettings {
        lock_duration,
        max_delivery_count: fields.max_delivery_count()?,
        default_message_time_to_live,
        dead_lettering_on_message_expiration: fields
            .flag("DeadLetteringOnMessageExpiration", false)?,
        requires_session: fields.flag("RequiresSession", false)?,
        forward_to: fields.target("ForwardTo"),
        forward_dead_lettered_messages_to: fields.target("ForwardDeadLetteredMessagesTo"),
        status: fields.status(&STATUSES)?,
        auto_delete_on_idle,
        ..fields.unsaid()
    };
    let kept = StoreOnlyProperties {
        user_metadata: fields.user_metadata()?,
        enable_batched_operations: fields.flag("EnableBatchedOperations", true)?,
        texts: OriginalTexts {
            lock_duration: lock_text,
            default_message_time_to_live: ttl_text,
            auto_delete_on_idle: idle_text,
            ..kept_targets(&settings)
        },
        ..StoreOnlyProperties::default()
    };
    Ok(EntityDescription {
        settings,
        dead_lettering_on_filter_evaluation_exceptions: fields
            .flag("DeadLetteringOnFilterEvaluationExceptions", true)?,
        kept,
    })
}

pub(super) fn write(writer: &mut Writer, info: &EntityInfo, view: View<'_>) {
    let entity = FormattedEntity { info, view };
    let (settings, kept) = (&info.queue.settings, &*info.kept);
    writer.open(
        "SubscriptionDescription",
        &[("xmlns", SERVICE_BUS), ("xmlns:i", INSTANCE)],
    );
    writer.text("LockDuration", entity.lock_duration());
    writer.boolean("RequiresSession", settings.requires_session);
    writer.text("DefaultMessageTimeToLive", entity.time_to_live());
    writer.boolean(
        "DeadLetteringOnMessageExpiration",
        settings.dead_lettering_on_message_expiration,
    );
    writer.boolean(
        "DeadLetteringOnFilterEvaluationExceptions",
        info.dead_lettering_on_filter_evaluation_exceptions,
    );
    writer.number("MessageCount", counts(info).total());
    writer.number("MaxDeliveryCount", settings.max_delivery_count.into());
    writer.boolean("EnableBatchedOperations", kept.enable_batched_operations);
    writer.text("Status", entity.status());
    writer.optional("ForwardTo", entity.forward_to());
    entity.write_times(writer);
    if view.runtime {
        counts(info).write(writer, "d3p1");
    }
    writer.optional("UserMetadata", kept.user_metadata.as_ref());
    writer.optional("ForwardDeadLetteredMessagesTo", entity.dead_letters_to());
    writer.text("AutoDeleteOnIdle", entity.idle());
    writer.text("EntityAvailabilityStatus", "Available");
    if view.version >= Version::WithMessageSize {
        writer.boolean("IsClientAffine", false);
    }
    writer.close("SubscriptionDescription");
}
