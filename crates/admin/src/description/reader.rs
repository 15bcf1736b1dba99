//! Reading: the values of a description's elements, each checked. (docs/spec/entities.md#2)

use broker::{EntityDescription, EntityInfo, EntityKind, Status, Tier};
use entity::{Property, Slot, duration};

use super::description_of;
use crate::error::Error;
use crate::settings::Settings;
use crate::typed;
use crate::xml::Element;

/// In characters.
const USER_METADATA: usize = 1_024;
/// The factor by which a partitioned entity is larger.
const PARTITIONS: u64 = 16;
/// How large an entity can be, in megabytes.
const MEGABYTES: [u64; 5] = [1_024, 2_048, 3_072, 4_096, 5_120];
/// The same in the Premium tier.
const PREMIUM_MEGABYTES: [u64; 9] = [
    1_024, 2_048, 3_072, 4_096, 5_120, 10_240, 20_480, 40_960, 81_920,
];

/// Reads the description of an entity, without its authorization rules. `current` is its present
/// state.
pub(crate) fn read(
    kind: EntityKind,
    element: &Element,
    settings: &Settings,
    current: Option<&EntityInfo>,
) -> Result<EntityDescription, Error> {
    let mut current = current.map(description_of);
    let mut read = EntityDescription::default();
    let is_partitioned = kind != EntityKind::Subscription
        && flag("EnablePartitioning", element.value("EnablePartitioning"))?.unwrap_or(false);
    if is_partitioned {
        read.store_only.support_ordering = false;
        read.settings.max_size *= PARTITIONS;
    }
    for (_, property) in entity::named(kind).filter(|(_, property)| property.element.is_none()) {
        // What only a configuration file can set keeps its value.
        if let Some(current) = &mut current {
            property.copy(current, &mut read);
        }
    }
    for (name, property) in entity::elements(kind) {
        let field = Field {
            kind,
            name,
            property,
            element,
            settings,
            is_partitioned,
        };
        let current = current.as_mut().map(|current| (property.slot)(current));
        field.read((property.slot)(&mut read), current)?;
    }
    check_express(&read)?;
    Ok(read)
}

/// (docs/spec/entities.md#19)
fn check_express(read: &EntityDescription) -> Result<(), Error> {
    if read.store_only.enable_express && read.settings.requires_duplicate_detection {
        let why = "an express entity cannot detect duplicates";
        return Err(Error::value("EnableExpress", why));
    }
    Ok(())
}

fn flag(name: &str, text: Option<&str>) -> Result<Option<bool>, Error> {
    let read = |text| {
        let flag = typed::boolean(text);
        flag.ok_or_else(|| Error::value(name, "it is neither true nor false"))
    };
    text.map(read).transpose()
}

fn number(name: &str, text: &str) -> Result<u64, Error> {
    let number = text.parse();
    number.map_err(|_| Error::value(name, "it is no number from 0 on"))
}

/// A target as it is stored and shown: scheme and host of a URI in lower case, the path as it was
/// written. (docs/spec/admin.md#2.2)
fn target_text(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!(
        "{}://{}{path}",
        scheme.to_lowercase(),
        authority.to_lowercase()
    )
}

/// One element, and what its value is measured by.
struct Field<'a> {
    kind: EntityKind,
    name: &'static str,
    property: &'static Property,
    /// The whole description.
    element: &'a Element,
    settings: &'a Settings,
    is_partitioned: bool,
}

impl Field<'_> {
    /// Reads the value, if there is one. `current` is the entity's present one.
    fn read(&self, slot: Slot<'_>, current: Option<Slot<'_>>) -> Result<(), Error> {
        let text = self.element.value(self.name);
        match (slot, text) {
            (Slot::Text(slot), _) => *slot = self.user_metadata()?,
            (_, None) => {}
            (Slot::Flag(slot), text) => *slot = flag(self.name, text)?.unwrap_or(*slot),
            (Slot::Duration(slot, kept), Some(text)) => {
                *slot = self.duration(text, current)?;
                *kept = (duration::text(*slot) != text).then(|| text.to_owned());
            }
            (Slot::Count(slot), Some(text)) => *slot = self.count(text)?,
            (Slot::Megabytes(slot), Some(text)) => *slot = self.max_size(text, current)?,
            (Slot::Bytes(slot), Some(text)) => *slot = self.max_message_size(text, current)?,
            (Slot::Target(slot, kept), Some(text)) => {
                *slot = Some(target_text(text));
                kept.clone_from(slot);
            }
            (Slot::Status(slot), Some(text)) => *slot = self.status(text)?,
            // No element has it.
            (
                Slot::Expiry(_) | Slot::Limit(_) | Slot::Overflow(_) | Slot::RetryBackoff(_),
                Some(_),
            ) => {}
        }
        Ok(())
    }

    fn error(&self, why: impl std::fmt::Display) -> Error {
        Error::value(self.name, why)
    }

    /// In milliseconds.
    fn duration(&self, text: &str, current: Option<Slot<'_>>) -> Result<u64, Error> {
        let millis = duration::millis(text);
        let millis = millis.ok_or_else(|| self.error("it is no ISO 8601 duration"))?;
        let range = self.property.cloud_range();
        let is_current = matches!(current, Some(Slot::Duration(known, _)) if *known == millis);
        if range.contains(&millis) || is_current {
            return Ok(millis);
        }
        if self.name == "LockDuration" && millis > *range.end() {
            return Err(self.too_long_a_lock());
        }
        let (least, most) = (duration::text(*range.start()), duration::text(*range.end()));
        Err(self.error(format!("it is not from {least} to {most}")))
    }

    fn too_long_a_lock(&self) -> Error {
        let name = self.name;
        let text = format!(
            "Bad Request. The lock duration is longer than the maximum of '5' minutes. \
             Parameter name: {name}"
        );
        let error = Error::bad(text);
        Error {
            sub_code: error
                .sub_code
                .filter(|_| self.kind != EntityKind::Subscription),
            ..error
        }
    }

    fn count(&self, text: &str) -> Result<u32, Error> {
        let (number, range) = (number(self.name, text)?, self.property.cloud_range());
        let count = u32::try_from(number).ok();
        let (least, most) = (range.start(), range.end());
        count
            .filter(|_| range.contains(&number))
            .ok_or_else(|| self.error(format!("it is not from {least} to {most}")))
    }

    /// Bytes of the entity. A partitioned one is shown, and may be named, with all its partitions.
    fn max_size(&self, text: &str, current: Option<Slot<'_>>) -> Result<u64, Error> {
        let megabytes = number(self.name, text)?;
        if let Some(Slot::Megabytes(current)) = current
            && *current >> 20 == megabytes
        {
            return Ok(*current);
        }
        let factor = if self.is_partitioned { PARTITIONS } else { 1 };
        let allowed = if self.settings.tier == Tier::Premium {
            &PREMIUM_MEGABYTES[..]
        } else {
            &MEGABYTES[..]
        };
        let found = allowed
            .iter()
            .find(|allowed| **allowed == megabytes || **allowed * factor == megabytes);
        let texts: Vec<_> = allowed.iter().map(u64::to_string).collect();
        found
            .map(|megabytes| (megabytes << 20) * factor)
            .ok_or_else(|| self.error(format!("it can be {}", texts.join(", "))))
    }

    /// Bytes of one message, if the entity is to have its own limit.
    fn max_message_size(
        &self,
        text: &str,
        current: Option<Slot<'_>>,
    ) -> Result<Option<u64>, Error> {
        let kilobytes = number(self.name, text)?;
        let default = self.settings.max_message_size;
        if let Some(Slot::Bytes(current)) = current
            && current.unwrap_or(default) >> 10 == kilobytes
        {
            return Ok(*current);
        } else if default >> 10 == kilobytes {
            return Ok(None);
        } else if self.settings.tier != Tier::Premium {
            let why = "only entities of the Premium tier have a limit of their own";
            return Err(self.error(why));
        }
        let range = self.property.cloud_range();
        let (least, most) = (range.start() >> 10, range.end() >> 10);
        if !(least..=most).contains(&kilobytes) {
            let name = self.name;
            let text = format!(
                "Bad Request. The value for '{name}' must be between {least} and {most}. \
                 Parameter name: {name}"
            );
            return Err(Error::bad(text));
        }
        Ok(Some(kilobytes << 10))
    }

    fn status(&self, text: &str) -> Result<Status, Error> {
        let found = entity::status_of(text).ok();
        found.ok_or_else(|| self.error(format!("'{text}' cannot be set here")))
    }

    fn user_metadata(&self) -> Result<Option<String>, Error> {
        let text = self.element.child(self.name);
        let text = text.map(|child| child.text.clone());
        let text = text.filter(|text| !text.is_empty());
        let is_too_long = |text: &String| text.chars().count() > USER_METADATA;
        if text.as_ref().is_some_and(is_too_long) {
            return Err(self.error(format!("it has more than {USER_METADATA} characters")));
        }
        Ok(text)
    }
}
