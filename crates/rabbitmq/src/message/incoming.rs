//! Incoming: reads what a publisher sends. (docs/spec/rabbitmq.md#9; docs/spec/amqp.md#4.2)
//!
//! The bare message is stored byte for byte. Delivery annotations are dropped; exchange and routing
//! key are written into the message annotations, except for a message that went to a queue by its
//! name: its consumers are told without that. A message without an id gets one among its
//! annotations, which Service Bus's clients and rules see. (docs/spec/rabbitmq.md#16)

use amqp::items::{self, Items};
use amqp::message::{BodyKind, Header, Properties, Sections, check_field};
use amqp::{DecodeError, Error, Value, decode, encode};
use broker::{FURTHER_KEYS, GIVEN_ID, Incoming, ROUTER, ROUTING_KEY, Wall};
use bytes::{Bytes, BytesMut};
use dialect::{GivenId, MessageIds};

use crate::errors;
use crate::message::MESSAGE_ANNOTATIONS;

/// When Service Bus's clients make a message available.
const SCHEDULED: &str = "x-opt-scheduled-enqueue-time";
const MESSAGE_ID: usize = 0;

/// A message that was read.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// With the payload as it came.
    pub(crate) message: Incoming,
    pub(crate) to: Option<String>,
    pub(crate) further_keys: Vec<String>,
    sections: Sections,
    /// The id that it gets, if it came without one.
    given_id: Option<GivenId>,
    /// Whether its annotations have some that only the broker writes.
    is_marked: bool,
}

/// Reads a message of `user`, or of a client that has shown no name.
pub(crate) fn parse(
    payload: &Bytes,
    user: Option<&str>,
    ids: &mut MessageIds,
) -> Result<Parsed, Error> {
    let sections = Sections::scan(payload).map_err(undecodable)?;
    if sections.body_kind == BodyKind::None {
        return Err(errors::no_body());
    }
    let mut parsed = Parsed {
        message: Incoming {
            payload: payload.clone(),
            ..Incoming::default()
        },
        to: None,
        further_keys: Vec::new(),
        sections,
        given_id: None,
        is_marked: false,
    };
    parsed.read_header()?;
    parsed.read_annotations()?;
    parsed.read_properties(user)?;
    check_application_properties(&parsed.section(|it| &it.application_properties))?;
    if parsed.message.message_id.is_none() {
        parsed.given_id = Some(ids.next_id());
    }
    Ok(parsed)
}

impl Parsed {
    fn section(&self, range: impl Fn(&Sections) -> &std::ops::Range<usize>) -> Bytes {
        self.message.payload.slice(range(&self.sections).clone())
    }

    fn read_header(&mut self) -> Result<(), Error> {
        let section = self.section(|it| &it.header);
        if !section.is_empty() {
            let header = Header::decode(&section).map_err(undecodable)?;
            self.message.ttl_ms = header.ttl.map(u64::from);
            self.message.priority = header.priority;
        }
        Ok(())
    }

    fn read_annotations(&mut self) -> Result<(), Error> {
        let section = self.section(|it| &it.message_annotations);
        let mut entries = Items::of(&section).map_err(undecodable)?;
        while let Some((key, value)) = entries.next_entry().map_err(undecodable)? {
            items::check_annotation_key(key)
                .and_then(|()| items::check(value))
                .map_err(undecodable)?;
            match items::text(key) {
                Some(ROUTER | ROUTING_KEY | GIVEN_ID) => self.is_marked = true,
                Some(FURTHER_KEYS) => {
                    self.further_keys = texts(value).ok_or_else(errors::bad_x_cc)?;
                }
                Some(SCHEDULED) if value != [items::NULL] => {
                    let time = items::integer(value).ok_or_else(errors::bad_schedule)?;
                    self.message.scheduled = u64::try_from(time).ok().map(Wall);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_properties(&mut self, user: Option<&str>) -> Result<(), Error> {
        let section = self.section(|it| &it.properties);
        if section.is_empty() {
            return Ok(());
        }
        let mut fields = Items::of(&section).map_err(undecodable)?;
        let mut position = 0;
        while let Some(field) = fields.next().map_err(undecodable)? {
            check_field(position, field).map_err(undecodable)?;
            if position == MESSAGE_ID && field != [items::NULL] {
                self.message.message_id = Some(section.slice_ref(field));
            }
            position += 1;
        }
        let properties = Properties::decode(&section).map_err(undecodable)?;
        if let Some(claimed) = properties
            .user_id
            .filter(|it| Some(it.as_ref()) != user.map(str::as_bytes))
        {
            let claimed = String::from_utf8_lossy(&claimed);
            return Err(errors::wrong_user(&claimed, user.unwrap_or_default()));
        }
        self.to = properties
            .to
            .as_ref()
            .and_then(Value::as_text)
            .map(str::to_owned);
        self.message.session_id = properties.group_id.map(Bytes::from);
        Ok(())
    }

    /// For a queue that it was sent to by name.
    pub(crate) fn unrouted(self) -> Incoming {
        let has_delivery_annotations = !self.sections.delivery_annotations.is_empty();
        if self.is_marked || has_delivery_annotations || self.given_id.is_some() {
            self.rewritten(None)
        } else {
            self.message
        }
    }

    /// For the queues of an exchange.
    pub(crate) fn routed_by(self, exchange: &str, key: &str) -> Incoming {
        self.rewritten(Some((exchange, key)))
    }

    fn rewritten(self, route: Option<(&str, &str)>) -> Incoming {
        let payload = &self.message.payload;
        let mut out = BytesMut::with_capacity(payload.len() + 128);
        out.extend_from_slice(&payload[self.sections.header.clone()]);
        encode::descriptor(&mut out, MESSAGE_ANNOTATIONS);
        let start = encode::map32_begin(&mut out);
        let section = &payload[self.sections.message_annotations.clone()];
        // Only the broker writes these.
        let mut entries = items::copy_entries(&mut out, section, |key, _| {
            matches!(key, ROUTER | ROUTING_KEY | GIVEN_ID)
        });
        if let Some((exchange, key)) = route {
            for (name, value) in [(ROUTER, exchange), (ROUTING_KEY, key)] {
                encode::symbol(&mut out, name);
                encode::string(&mut out, value);
                entries += 1;
            }
        }
        if let Some(id) = &self.given_id {
            encode::symbol(&mut out, GIVEN_ID);
            encode::string(&mut out, std::str::from_utf8(id).expect("digits are text"));
            entries += 1;
        }
        encode::map32_finish(&mut out, start, entries);
        out.extend_from_slice(&payload[self.sections.bare()]);
        let message_id = self.message.message_id;
        Incoming {
            payload: out.freeze(),
            message_id,
            ..self.message
        }
    }
}

/// The strings of an encoded list.
fn texts(value: &[u8]) -> Option<Vec<String>> {
    let Ok(Value::List(list)) = decode::value(&Bytes::copy_from_slice(value)) else {
        return None;
    };
    let texts = list.into_iter().map(|item| match item {
        Value::String(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

fn check_application_properties(section: &[u8]) -> Result<(), Error> {
    let mut fields = Items::of(section).map_err(undecodable)?;
    while let Some((key, value)) = fields.next_entry().map_err(undecodable)? {
        if items::text(key).is_none() {
            return Err(undecodable(DecodeError::WrongType(
                "application-properties",
            )));
        }
        items::check(value).map_err(undecodable)?;
    }
    Ok(())
}

#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn undecodable(error: DecodeError) -> Error {
    errors::undecodable(&error)
}
