//! Property: what is known of one property of entities, and how its value is read and shown.
//!
//! [`crate::PROPERTIES`] has a row for each. Every form of a description loops over that table: our
//! own files and JSON by [`Property::set`] and [`Property::get`] here, the command line and the
//! emulator's file in `railbus`, Atom descriptions in `admin`. A default value is that of the
//! broker's settings.

use std::ops::RangeInclusive;

use broker::{EntityDescription, EntityKind, Expiry, Overflow, RetryBackoff, Status};
use bytesize::ByteSize;
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde_json::Value as Json;

use crate::name::EntityPath;
use crate::{bounded, duration, retry_backoff};

/// One property.
#[derive(Debug)]
pub struct Property {
    /// The key in our own files and JSON, and the option of the command line. Without one only
    /// Atom descriptions have it.
    pub name: Option<&'static str>,
    /// The element of Atom descriptions and the member of a `Config.json`. Without one only our
    /// own forms have it.
    pub element: Option<&'static str>,
    /// The kinds of entity that have it.
    pub kinds: &'static [EntityKind],
    /// Where its value is, and of which type it is.
    pub slot: fn(&mut EntityDescription) -> Slot<'_>,
    /// The values of a duration, a count or a size.
    pub range: RangeInclusive<u64>,
    /// The least in the cloud, for Atom descriptions and the emulator's `Config.json`, if other
    /// files may say less.
    pub cloud_least: Option<u64>,
    /// Whether it cannot be changed after creation.
    pub fixed: bool,
    /// Whether the emulator's `Config.json` has it.
    pub emulator: InEmulator,
    /// Explains the option.
    pub help: &'static str,
}

/// The place of a value. Durations and targets have their original text beside them.
#[derive(Debug)]
pub enum Slot<'a> {
    /// True or false.
    Flag(&'a mut bool),
    /// Milliseconds.
    Duration(&'a mut u64, &'a mut Option<String>),
    /// A number.
    Count(&'a mut u32),
    /// Bytes, written as megabytes.
    Megabytes(&'a mut u64),
    /// Bytes; none takes the broker's setting.
    Bytes(&'a mut Option<u64>),
    /// The path of another entity.
    Target(&'a mut Option<String>, &'a mut Option<String>),
    /// What clients may do.
    Status(&'a mut Status),
    /// A number; none sets no limit.
    Limit(&'a mut Option<u64>),
    /// What becomes of what is too much.
    Overflow(&'a mut Overflow),
    /// None takes the broker's setting.
    Expiry(&'a mut Option<Expiry>),
    /// None delivers again at once.
    RetryBackoff(&'a mut Option<RetryBackoff>),
    /// Any text.
    Text(&'a mut Option<String>),
}

/// Whether the emulator's `Config.json` has a property.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InEmulator {
    /// An export writes it, since the emulator's default is not ours.
    Always,
    /// Only Railbus reads it; an export writes a value that is not the default.
    Unusual,
    /// It does not; the warning of an export calls the property so.
    Never(&'static str),
}

/// A value in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum Given<'a> {
    Flag(bool),
    Number(i128),
    Text(&'a str),
    RetryBackoff(RetryBackoff),
}

/// Why a value is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ValueRefusal {
    /// It is of another type than this.
    Type(&'static str),
    /// One sentence.
    Value(String),
}

impl From<String> for ValueRefusal {
    fn from(text: String) -> Self {
        Self::Value(text)
    }
}

/// A count as descriptions show it, which is a signed number of 32 bits. A queue that RabbitMQ's
/// clients declare without a limit has the largest.
#[must_use]
pub fn shown_count(count: u32) -> u64 {
    u64::from(count).min(i32::MAX as u64)
}

impl Property {
    /// What most properties are.
    pub(crate) const PLAIN: Self = Self {
        name: None,
        element: None,
        kinds: &[],
        slot: |entity| Slot::Text(&mut entity.store_only.user_metadata),
        range: 0..=u64::MAX,
        cloud_least: None,
        fixed: false,
        emulator: InEmulator::Always,
        help: "",
    };

    /// Its value, as our own files and JSON have it.
    #[must_use]
    pub fn get(&self, entity: &mut EntityDescription) -> Option<Json> {
        match (self.slot)(entity) {
            Slot::Flag(flag) => Some((*flag).into()),
            Slot::Duration(millis, _) => Some(duration::text(*millis).into()),
            Slot::Count(count) => Some(shown_count(*count).into()),
            Slot::Megabytes(bytes) => Some((*bytes >> 20).into()),
            Slot::Bytes(number) | Slot::Limit(number) => number.map(Json::from),
            Slot::Overflow(overflow) => serde_json::to_value(overflow).ok(),
            Slot::Target(path, _) => path.clone().map(Json::from),
            Slot::Status(status) => serde_json::to_value(status).ok(),
            Slot::Expiry(expiry) => expiry.and_then(|expiry| serde_json::to_value(expiry).ok()),
            Slot::RetryBackoff(backoff) => {
                let table = backoff.map(retry_backoff::Table::from);
                table.and_then(|table| serde_json::to_value(table).ok())
            }
            Slot::Text(text) => text.clone().map(Json::from),
        }
    }

    /// Its value where nothing is said of it.
    #[must_use]
    pub fn default(&self) -> Option<Json> {
        self.get(&mut EntityDescription::default())
    }

    /// Gives `to` the value that `from` has.
    pub fn copy(&self, from: &mut EntityDescription, to: &mut EntityDescription) {
        match ((self.slot)(from), (self.slot)(to)) {
            (Slot::Flag(from), Slot::Flag(to)) => *to = *from,
            (Slot::Count(from), Slot::Count(to)) => *to = *from,
            (Slot::Megabytes(from), Slot::Megabytes(to)) => *to = *from,
            (Slot::Bytes(from), Slot::Bytes(to)) => *to = *from,
            (Slot::Limit(from), Slot::Limit(to)) => *to = *from,
            (Slot::Overflow(from), Slot::Overflow(to)) => *to = *from,
            (Slot::Status(from), Slot::Status(to)) => *to = *from,
            (Slot::Expiry(from), Slot::Expiry(to)) => *to = *from,
            (Slot::RetryBackoff(from), Slot::RetryBackoff(to)) => *to = *from,
            (Slot::Text(from), Slot::Text(to)) => to.clone_from(from),
            (Slot::Duration(from, text), Slot::Duration(to, copied)) => {
                *to = *from;
                copied.clone_from(text);
            }
            (Slot::Target(from, text), Slot::Target(to, copied)) => {
                to.clone_from(from);
                copied.clone_from(text);
            }
            _ => unreachable!("a property has one type"),
        }
    }

    /// Reads a value of our own files and JSON, and checks it.
    ///
    /// # Errors
    /// When it is of another type, or not possible.
    pub fn set(
        &self,
        entity: &mut EntityDescription,
        given: Given<'_>,
    ) -> Result<(), ValueRefusal> {
        self.set_within(&self.range, entity, given)
    }

    /// The values that it has in the cloud.
    #[must_use]
    pub fn cloud_range(&self) -> RangeInclusive<u64> {
        self.cloud_least.unwrap_or(*self.range.start())..=*self.range.end()
    }

    /// As [`set`](Self::set), with the values that are possible in the cloud.
    ///
    /// # Errors
    /// When it is of another type, or not possible there.
    pub fn set_as_in_cloud(
        &self,
        entity: &mut EntityDescription,
        given: Given<'_>,
    ) -> Result<(), ValueRefusal> {
        self.set_within(&self.cloud_range(), entity, given)
    }

    fn set_within(
        &self,
        range: &RangeInclusive<u64>,
        entity: &mut EntityDescription,
        given: Given<'_>,
    ) -> Result<(), ValueRefusal> {
        match ((self.slot)(entity), given) {
            (Slot::Flag(slot), Given::Flag(flag)) => *slot = flag,
            (Slot::Duration(slot, _), Given::Text(text)) => {
                *slot = bounded::duration(text, range)?;
            }
            (Slot::Count(slot), Given::Number(number)) => {
                let count = bounded::count(number, range)?;
                *slot = u32::try_from(count).expect("the range of a count is that of 32 bits");
            }
            (Slot::Megabytes(slot), Given::Number(number)) => {
                *slot = bounded::count(number, range)? << 20;
            }
            (Slot::Limit(slot), Given::Number(number)) => {
                *slot = Some(bounded::count(number, range)?);
            }
            (Slot::Overflow(slot), Given::Text(text)) => *slot = parse(text)?,
            (Slot::Bytes(slot), Given::Number(number)) => {
                let bytes = bounded::count(number, &(0..=u64::MAX))?;
                *slot = Some(bounded::size(ByteSize(bytes), range)?);
            }
            (Slot::Bytes(slot), Given::Text(text)) => {
                *slot = Some(bounded::size(parse(text)?, range)?);
            }
            (Slot::Target(slot, _), Given::Text(text)) => {
                *slot = Some(EntityPath::parse(text)?.into_string());
            }
            (Slot::Status(slot), Given::Text(text)) => *slot = parse(text)?,
            (Slot::Expiry(slot), Given::Text(text)) => *slot = Some(parse(text)?),
            (Slot::RetryBackoff(slot), Given::RetryBackoff(backoff)) => *slot = Some(backoff),
            (Slot::Text(slot), Given::Text(text)) => *slot = Some(text.to_owned()),
            (slot, _) => return Err(ValueRefusal::Type(slot.expected())),
        }
        Ok(())
    }
}

/// What serde reads from a text.
fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ValueRefusal> {
    let read = T::deserialize(StrDeserializer::<ValueError>::new(text));
    read.map_err(|error| ValueRefusal::Value(error.to_string()))
}

impl Slot<'_> {
    /// The type of a value in our own files and JSON.
    #[must_use]
    pub fn expected(&self) -> &'static str {
        match self {
            Self::Flag(_) => "a boolean",
            Self::Count(_) | Self::Megabytes(_) | Self::Limit(_) => "a whole number",
            Self::Bytes(_) => "a number of bytes or a text such as \"64MiB\"",
            Self::RetryBackoff(_) => "a table with min, max and factor",
            _ => "a string",
        }
    }

    /// The values in our own files and JSON, if there are only a few; the first is the default.
    #[must_use]
    pub fn choices(&self) -> &'static [&'static str] {
        match self {
            Self::Status(_) => &["active", "disabled", "send-disabled", "receive-disabled"],
            Self::Expiry(_) => &["eager", "cloud"],
            Self::Overflow(_) => &["drop-head", "reject-publish", "reject-publish-dlx"],
            _ => &[],
        }
    }
}

/// Each status by the name that Atom descriptions and the emulator's file have for it. Those that
/// are the system's to set are none. (docs/spec/entities.md#3)
const STATUSES: [(Status, &str); 4] = [
    (Status::Active, "Active"),
    (Status::Disabled, "Disabled"),
    (Status::SendDisabled, "SendDisabled"),
    (Status::ReceiveDisabled, "ReceiveDisabled"),
];

/// The name of a status in Atom descriptions and in the emulator's file.
///
/// # Panics
/// Never: each status has a name.
#[must_use]
pub fn status_text(status: Status) -> &'static str {
    let found = STATUSES.iter().find(|(known, _)| *known == status);
    found.expect("the list has each status").1
}

/// The status of such a name.
///
/// # Errors
/// When there is none; the error says which there are.
pub fn status_of(text: &str) -> Result<Status, String> {
    let found = STATUSES.iter().find(|(_, known)| *known == text);
    found.map(|(status, _)| *status).ok_or_else(|| {
        format!("`{text}` is not one of Active, Disabled, SendDisabled and ReceiveDisabled")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PROPERTIES;

    #[test]
    fn each_choice_is_read_and_shown_by_its_name() {
        for property in PROPERTIES {
            let mut entity = EntityDescription::default();
            for name in (property.slot)(&mut entity).choices() {
                assert_eq!(property.set(&mut entity, Given::Text(name)), Ok(()));
                assert_eq!(property.get(&mut entity), Some(Json::from(*name)));
            }
        }
    }

    #[test]
    fn each_status_has_a_name_for_atom() {
        for name in ["Active", "Disabled", "SendDisabled", "ReceiveDisabled"] {
            assert_eq!(status_of(name).map(status_text), Ok(name));
        }
        assert!(status_of("Deleting").is_err());
        assert!(status_of("active").is_err());
    }

    #[test]
    fn a_copy_has_the_value_and_the_original_text() {
        let mut from = EntityDescription::default();
        from.settings.lock_duration = 5_000;
        from.store_only.texts.lock_duration = Some("PT05S".to_owned());
        from.settings.expiry = Some(Expiry::Cloud);
        from.store_only.user_metadata = Some("x".to_owned());
        let mut to = EntityDescription::default();
        for property in PROPERTIES {
            property.copy(&mut from, &mut to);
        }
        assert_eq!(from, to);
    }
}
