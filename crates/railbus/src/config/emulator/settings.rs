//! Properties of an entity of a `Config.json`. (docs/spec/admin.md#12)

use broker::{EntityDescription, EntityKind, QueueSettings};
use entity::{Given, InEmulator, Property, Slot, ValueRefusal};

use super::Reader;
use crate::config::error::Error;
use crate::config::json::Cursor;

impl Reader {
    /// The properties of `entity`, which is a member of a list.
    pub(super) fn settings(
        &mut self,
        kind: EntityKind,
        entity: &Cursor<'_>,
    ) -> Result<EntityDescription, Error> {
        let mut description = defaults();
        let Some(properties) = entity.member("Properties")? else {
            return Ok(description);
        };
        let table: Vec<_> = entity::named(kind)
            .filter_map(|(_, property)| Some((property.element?, property)))
            .filter(|(_, property)| !matches!(property.emulator, InEmulator::Never(_)))
            .collect();
        let known: Vec<_> = table.iter().map(|(name, _)| *name).collect();
        self.warn_unknown(&properties, &known)?;
        for (name, property) in table {
            if let Some(member) = properties.member(name)? {
                read(property, &member, &mut description)?;
            }
        }
        Ok(description)
    }
}

/// The emulator's defaults, where they are not ours.
fn defaults() -> EntityDescription {
    EntityDescription {
        settings: QueueSettings {
            default_message_time_to_live: 3_600_000,
            duplicate_detection_history_time_window: 20_000,
            lock_duration: 60_000,
            max_delivery_count: 3,
            ..QueueSettings::default()
        },
        ..EntityDescription::default()
    }
}

fn read(
    property: &Property,
    member: &Cursor<'_>,
    description: &mut EntityDescription,
) -> Result<(), Error> {
    let given = match (property.slot)(description) {
        Slot::Flag(_) => Given::Flag(member.boolean()?),
        Slot::Count(_) | Slot::Megabytes(_) => Given::Number(member.integer()?),
        Slot::Status(status) => {
            let found = entity::status_of(member.string()?);
            *status = found.map_err(|message| member.error(message))?;
            return Ok(());
        }
        // The empty text means no target.
        Slot::Target(..) if member.string()?.is_empty() => return Ok(()),
        _ => Given::Text(member.string()?),
    };
    property
        .set_as_in_cloud(description, given)
        .map_err(|refusal| match refusal {
            ValueRefusal::Value(message) => member.error(message),
            ValueRefusal::Type(expected) => member.error(format!("{expected} is expected here")),
        })
}
