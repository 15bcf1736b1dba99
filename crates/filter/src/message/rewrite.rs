//! Rewrite: writes sections with changes from the sections that were received.

use amqp::encode;
use amqp::items::{self, Items};
use amqp::message::{Header, Properties, descriptor};
use amqp::{Symbol, Value};
use bytes::{Bytes, BytesMut};

use crate::message::PARTITION_KEY;
use crate::message::changes::SystemChange;
use crate::message::property::Property;

/// Appends a header with a changed time to live.
pub(crate) fn header(out: &mut BytesMut, section: &[u8], changes: &[SystemChange]) {
    let Some(ttl) = time_to_live(changes) else {
        return out.extend_from_slice(section);
    };
    let mut header = Header::decode(section).unwrap_or_default();
    if header.ttl == ttl {
        return out.extend_from_slice(section);
    }
    header.ttl = ttl;
    header.encode(out);
}

fn time_to_live(changes: &[SystemChange]) -> Option<Option<u32>> {
    changes.iter().find_map(|change| match change {
        // The largest one is as good as never. [AMQP 3.2.1]
        SystemChange::TimeToLive(ttl) => Some(ttl.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX))),
        SystemChange::Text(..) => None,
    })
}

/// Changes of annotations, as [`map`] takes them.
pub(crate) fn annotations(changes: &[SystemChange]) -> Vec<(String, Option<Value>)> {
    let found = changes.iter().find_map(|change| match change {
        SystemChange::Text(Property::PartitionKey, key) => Some(key),
        _ => None,
    });
    let changed = found.map(|key| (PARTITION_KEY.to_owned(), key.clone().map(Value::String)));
    changed.into_iter().collect()
}

/// Appends the properties section with its changes.
pub(crate) fn properties(out: &mut BytesMut, section: &[u8], changes: &[SystemChange]) {
    let touches =
        |change: &&SystemChange| !matches!(change, SystemChange::Text(Property::PartitionKey, _));
    let mut changes = changes.iter().filter(touches).peekable();
    if changes.peek().is_none() {
        return out.extend_from_slice(section);
    }
    let mut properties = Properties::decode(&Bytes::copy_from_slice(section)).unwrap_or_default();
    let before = properties.clone();
    for change in changes {
        change_properties(&mut properties, change);
    }
    if properties == before {
        out.extend_from_slice(section);
    } else {
        properties.encode(out);
    }
}

fn change_properties(properties: &mut Properties, change: &SystemChange) {
    let (property, text) = match change {
        // It said how long the message was to live, which the header says now.
        SystemChange::TimeToLive(_) => return properties.absolute_expiry_time = None,
        SystemChange::Text(property, text) => (property, text.clone()),
    };
    match property {
        Property::MessageId => properties.message_id = text.map(Value::String),
        Property::CorrelationId => properties.correlation_id = text.map(Value::String),
        Property::To => properties.to = text.map(Value::String),
        Property::ReplyTo => properties.reply_to = text.map(Value::String),
        Property::Label => properties.subject = text,
        Property::ContentType => properties.content_type = text.map(Symbol::from),
        Property::SessionId => properties.group_id = text,
        Property::ReplyToSessionId => properties.reply_to_group_id = text,
        _ => {}
    }
}

/// Appends a section that holds a map, with entries replaced in their places, removed, and added
/// behind the others. Without entries there is no section.
pub(crate) fn map(
    out: &mut BytesMut,
    section: &[u8],
    descriptor: u64,
    changes: &[(String, Option<Value>)],
) {
    if changes.is_empty() {
        return out.extend_from_slice(section);
    }
    let mut entries = BytesMut::with_capacity(section.len());
    let mut count = 0;
    let mut written = vec![false; changes.len()];
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    while let Ok(Some((key, value))) = items.next_entry() {
        let name = items::text(key);
        let change = changes
            .iter()
            .position(|(changed, _)| Some(changed.as_str()) == name);
        match change {
            None => {
                entries.extend_from_slice(key);
                entries.extend_from_slice(value);
                count += 1;
            }
            Some(place) if !written[place] => {
                written[place] = true;
                count += usize::from(replace(&mut entries, key, &changes[place].1));
            }
            // A name that repeats: only its first counted.
            Some(_) => {}
        }
    }
    for (change, _) in changes
        .iter()
        .zip(&written)
        .filter(|(_, written)| !**written)
    {
        count += usize::from(add(&mut entries, descriptor, change));
    }
    if count > 0 {
        finish(out, descriptor, &entries, count);
    }
}

/// Writes an entry's new value behind its old key, unless it is removed.
fn replace(entries: &mut BytesMut, key: &[u8], value: &Option<Value>) -> bool {
    if let Some(value) = value {
        entries.extend_from_slice(key);
        encode::value(entries, value);
    }
    value.is_some()
}

fn add(entries: &mut BytesMut, descriptor: u64, change: &(String, Option<Value>)) -> bool {
    let (name, Some(value)) = change else {
        return false;
    };
    // Annotations are found by symbols, properties by strings. [AMQP 3.2.3, 3.2.5]
    if descriptor == descriptor::MESSAGE_ANNOTATIONS {
        encode::symbol(entries, name);
    } else {
        encode::string(entries, name);
    }
    encode::value(entries, value);
    true
}

fn finish(out: &mut BytesMut, descriptor: u64, entries: &[u8], count: usize) {
    // Every section has a descriptor below 256. [AMQP 3.2]
    encode::descriptor(out, descriptor as u8);
    let map = encode::map_begin(out, count);
    out.extend_from_slice(entries);
    encode::map_finish(out, map);
}
