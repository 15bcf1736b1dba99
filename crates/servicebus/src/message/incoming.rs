//! Incoming: turns the bytes of a delivery into messages for the broker.
//! (docs/spec/amqp.md#4.1, #4.5; docs/spec/entities.md#4, #7.1)
//!
//! This file reads and checks every field that the broker uses. The message itself is passed on as
//! the bytes that were received, with two repairs: sections in another order are put into the
//! standard's order, and a message without an id gets one. A batch is accepted or refused as a
//! whole.

use amqp::message::{Header, Sections, batch_parts, check_field, scan_in_any_order};
use amqp::{DecodeError, Error};
use broker::{Incoming, Wall, is_same_session};
use bytes::Bytes;
use dialect::MessageIds;

use crate::errors;
use amqp::items::{self, Items};

/// The message format of a batch. (docs/spec/amqp.md#4.5)
pub(crate) const BATCH_FORMAT: u32 = 0x8001_3700;
/// Most messages in one batch.
pub(crate) const MAX_BATCH: usize = 65_536;
/// Most characters of a message id, a session id or a partition key.
const MAX_ID: usize = 128;
/// Most bytes of a property's name or value.
pub(crate) const MAX_PROPERTY: usize = 32 << 10;
/// What stands in front of a value of that size: a constructor and its length. [AMQP 1.6.20]
const VARIABLE_WIDTH_HEADER: usize = 5;
/// Most bytes of all properties, annotations and the header together.
pub(crate) const MAX_PROPERTIES: usize = 64 << 10;

/// Positions in the properties list. [AMQP 3.2.4]
const MESSAGE_ID: usize = 0;
const ABSOLUTE_EXPIRY_TIME: usize = 8;
const CREATION_TIME: usize = 9;
const GROUP_ID: usize = 10;
const REPLY_TO_GROUP_ID: usize = 12;
/// How many there are.
const FIELDS: usize = 13;

/// The messages of a delivery. `has_delays` tells whether their delivery times count.
/// (docs/spec/amqp.md#13.5)
pub(crate) fn messages(
    format: u32,
    payload: &Bytes,
    max_size: u64,
    has_delays: bool,
    ids: &mut MessageIds,
) -> Result<Vec<Incoming>, Error> {
    let size = payload.len() as u64;
    if size > max_size {
        return Err(errors::too_large(size, max_size));
    }
    match format {
        0 => Ok(vec![message(payload, has_delays, ids)?]),
        BATCH_FORMAT => batch(payload, has_delays, ids),
        other => Err(errors::unknown_format(other)),
    }
}

/// One message that came another way than by a link.
///
/// # Errors
/// When its sender would get this error over a link.
pub fn read(payload: &Bytes, max_size: u64, ids: &mut MessageIds) -> Result<Incoming, Error> {
    let size = payload.len() as u64;
    if size > max_size {
        return Err(errors::too_large(size, max_size));
    }
    message(payload, false, ids)
}

/// The address in the property `to`.
pub(crate) fn to(payload: &Bytes) -> Result<Option<String>, Error> {
    let (payload, sections) = ordered(payload)?;
    if sections.properties.is_empty() {
        return Ok(None);
    }
    let properties = payload.slice(sections.properties);
    let properties = amqp::message::Properties::decode(&properties).map_err(undecodable)?;
    let to = properties.to.as_ref().and_then(amqp::Value::as_text);
    Ok(to.map(str::to_owned))
}

fn batch(payload: &Bytes, has_delays: bool, ids: &mut MessageIds) -> Result<Vec<Incoming>, Error> {
    let (payload, sections) = ordered(payload)?;
    if sections.body_sections == 0 {
        return Ok(Vec::new());
    }
    let parts = batch_parts(&payload, &sections, MAX_BATCH).map_err(undecodable)?;
    let parts = parts.iter();
    parts.map(|part| message(part, has_delays, ids)).collect()
}

/// The message with its sections in the standard's order, as nearly all come.
/// (docs/spec/amqp.md#4.1)
fn ordered(payload: &Bytes) -> Result<(Bytes, Sections), Error> {
    scan_in_any_order(payload).map_err(undecodable)
}

/// One message, checked.
fn message(payload: &Bytes, has_delays: bool, ids: &mut MessageIds) -> Result<Incoming, Error> {
    let (payload, sections) = ordered(payload)?;
    let body = sections.body.len() + sections.footer.len();
    if payload.len() - body > MAX_PROPERTIES {
        return Err(errors::out_of_range(
            "The set of all properties",
            MAX_PROPERTIES,
            "bytes",
        ));
    }
    check_delivery_annotations(&payload[sections.delivery_annotations.clone()])?;
    let annotations = Annotations::read(&payload[sections.message_annotations.clone()])?;
    let properties = Properties::read(&payload[sections.properties.clone()])?;
    check_application_properties(&payload[sections.application_properties.clone()])?;
    annotations.check(&properties)?;
    let header = &payload[sections.header.clone()];
    let header = match header.is_empty() {
        true => Header::default(),
        false => Header::decode(header).map_err(undecodable)?,
    };
    let ttl_ms = time_to_live(&header, &properties)?;
    let priority = header.priority;
    let message_id = properties.message_id.map(|id| payload.slice_ref(id));
    let session_id = properties
        .group_id
        .map(|id| payload.slice_ref(id.as_bytes()));
    let scheduled = annotations.due(has_delays)?;
    let payload = match message_id {
        Some(_) => payload,
        None => ids.give(&payload, &sections),
    };
    Ok(Incoming {
        ttl_ms,
        priority,
        message_id,
        session_id,
        scheduled,
        payload,
        distribution: None,
        transfer_to: None,
        only_in: None,
    })
}

/// The sender's own time to live. A header's largest value means more than fits there, and the
/// times of the properties tell how much. (docs/spec/entities.md#7.1)
fn time_to_live(header: &Header, properties: &Properties<'_>) -> Result<Option<u64>, Error> {
    match header.ttl {
        None => Ok(None),
        Some(0) => Err(errors::no_time_to_live()),
        Some(u32::MAX) => Ok(Some(properties.span().unwrap_or(u32::MAX.into()))),
        Some(ttl) => Ok(Some(ttl.into())),
    }
}

/// The fields of a properties section that the broker uses.
#[derive(Default)]
struct Properties<'a> {
    /// Encoded.
    message_id: Option<&'a [u8]>,
    group_id: Option<&'a str>,
    absolute_expiry_time: Option<i64>,
    creation_time: Option<i64>,
}

impl<'a> Properties<'a> {
    fn read(section: &'a [u8]) -> Result<Self, Error> {
        let mut properties = Self::default();
        let mut items = Items::of(section).map_err(undecodable)?;
        let mut position = 0;
        while let Some(item) = items.next().map_err(undecodable)? {
            if position == FIELDS {
                return Err(undecodable(DecodeError::Trailing(item.len())));
            }
            // Most fields are null, which any may be.
            if item != [items::NULL] {
                check_field(position, item)
                    .and_then(|()| items::check(item))
                    .map_err(undecodable)?;
                properties.take(position, item)?;
            }
            position += 1;
        }
        Ok(properties)
    }

    fn take(&mut self, position: usize, item: &'a [u8]) -> Result<(), Error> {
        match position {
            MESSAGE_ID => {
                check_id("The message id", item)?;
                self.message_id = Some(item);
            }
            ABSOLUTE_EXPIRY_TIME => self.absolute_expiry_time = items::integer(item),
            CREATION_TIME => self.creation_time = items::integer(item),
            GROUP_ID => {
                check_id("The session id", item)?;
                self.group_id = items::text(item);
            }
            REPLY_TO_GROUP_ID => check_id("The reply-to session id", item)?,
            _ => {}
        }
        Ok(())
    }

    /// From creation to expiry, if both are present and the time is not zero.
    fn span(&self) -> Option<u64> {
        let span = self
            .absolute_expiry_time?
            .checked_sub(self.creation_time?)?;
        u64::try_from(span).ok().filter(|span| *span > 0)
    }
}

/// The message annotations that the broker uses.
#[derive(Default)]
struct Annotations<'a> {
    partition_key: Option<&'a str>,
    scheduled: Option<Wall>,
    /// Encoded.
    delivery_time: Option<&'a [u8]>,
}

impl<'a> Annotations<'a> {
    fn read(section: &'a [u8]) -> Result<Self, Error> {
        let mut annotations = Self::default();
        let mut items = Items::of(section).map_err(undecodable)?;
        while let Some((key, value)) = items.next_entry().map_err(undecodable)? {
            items::check_annotation_key(key)
                .and_then(|()| items::check(value))
                .map_err(undecodable)?;
            annotations.take(key, value)?;
        }
        Ok(annotations)
    }

    fn take(&mut self, key: &[u8], value: &'a [u8]) -> Result<(), Error> {
        match items::text(key) {
            Some("x-opt-partition-key") => {
                check_id("The partition key", value)?;
                self.partition_key = items::text(value);
            }
            Some("x-opt-via-partition-key") => check_id("The via partition key", value)?,
            Some("x-opt-scheduled-enqueue-time") => self.scheduled = scheduled_time(value)?,
            Some("x-opt-delivery-time") => self.delivery_time = Some(value),
            _ => {}
        }
        Ok(())
    }

    /// When the message is to become available.
    fn due(&self, has_delays: bool) -> Result<Option<Wall>, Error> {
        match self.delivery_time {
            Some(time) if has_delays && self.scheduled.is_none() => scheduled_time(time),
            _ => Ok(self.scheduled),
        }
    }

    fn check(&self, properties: &Properties<'_>) -> Result<(), Error> {
        if let (Some(key), Some(session)) = (self.partition_key, properties.group_id)
            && !session.is_empty()
            && !is_same_session(key.as_bytes(), session.as_bytes())
        {
            return Err(errors::partition_key_differs());
        }
        Ok(())
    }
}

/// When the message is to become available; whether that is later than now is the broker's to say.
/// A value that is no time is refused, since a scheduled message must never be delivered early.
fn scheduled_time(value: &[u8]) -> Result<Option<Wall>, Error> {
    if value == [items::NULL] {
        return Ok(None);
    }
    let time = items::integer(value).ok_or_else(errors::no_scheduled_time)?;
    Ok(u64::try_from(time).ok().map(Wall))
}

fn check_delivery_annotations(section: &[u8]) -> Result<(), Error> {
    let mut items = Items::of(section).map_err(undecodable)?;
    while let Some((key, value)) = items.next_entry().map_err(undecodable)? {
        items::check_annotation_key(key)
            .and_then(|()| items::check(value))
            .map_err(undecodable)?;
    }
    Ok(())
}

fn check_application_properties(section: &[u8]) -> Result<(), Error> {
    let mut items = Items::of(section).map_err(undecodable)?;
    while let Some((key, value)) = items.next_entry().map_err(undecodable)? {
        if items::text(key).is_none() {
            return Err(undecodable(DecodeError::WrongType(
                "application-properties",
            )));
        }
        items::check(value).map_err(undecodable)?;
        if key.len().max(value.len()) > MAX_PROPERTY + VARIABLE_WIDTH_HEADER {
            return Err(errors::out_of_range(
                "A property's name or value",
                MAX_PROPERTY,
                "bytes",
            ));
        }
    }
    Ok(())
}

fn check_id(what: &str, item: &[u8]) -> Result<(), Error> {
    // Bytes bound characters, so short ids need no counting.
    let too_long = item.len() > MAX_ID
        && match items::text(item) {
            Some(text) => text.chars().count() > MAX_ID,
            // A binary, with the bytes that announce it; other types are shorter anyway.
            None => item.len() > MAX_ID + 5,
        };
    if too_long {
        Err(errors::out_of_range(what, MAX_ID, "characters"))
    } else {
        Ok(())
    }
}

fn undecodable(error: DecodeError) -> Error {
    errors::undecodable(&error)
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "incoming_type_tests.rs"]
mod type_tests;
