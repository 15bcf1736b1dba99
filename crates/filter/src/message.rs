//! Message: an encoded message as filters see it. Each section is read at its first use.
//!
//! A filter sees the message as it was sent, without its body, and the properties that the broker
//! assigns. The message was checked when it arrived; a value that cannot be read is unknown.

pub mod changes;
pub mod modified_message;
pub mod property;
pub mod rewrite;
pub mod session_id;
pub mod user_properties;

use std::cell::OnceCell;

use amqp::DecodeError;
use amqp::hexadecimal::{hexadecimal, uuid_text};
use amqp::items::{self, Items};
use amqp::message::{Header, Sections};

use crate::expression::dialect::Dialect;
use crate::expression::fields::{Fields, PropertyLookup};
use crate::message::property::Property;
use crate::message::user_properties::UserProperties;
use crate::values::ticks;
use crate::values::value::Value;

/// Annotations that filters see. (docs/spec/amqp.md#4.2)
pub(crate) const PARTITION_KEY: &str = "x-opt-partition-key";
const VIA_PARTITION_KEY: &str = "x-opt-via-partition-key";
const ROUTING_KEY: &str = "x-routing-key";
const SCHEDULED_ENQUEUE_TIME: &str = "x-opt-scheduled-enqueue-time";

/// The annotation with the id that the broker gave a message whose properties it must not change.
/// It counts as the message's id where the properties have none. (docs/spec/rabbitmq.md#16)
pub const GIVEN_ID: &str = "x-opt-given-id";

/// Positions in the properties list. [AMQP 3.2.4]
const MESSAGE_ID: usize = 0;
const USER_ID: usize = 1;
const TO: usize = 2;
const SUBJECT: usize = 3;
const REPLY_TO: usize = 4;
const CORRELATION_ID: usize = 5;
const CONTENT_TYPE: usize = 6;
const ABSOLUTE_EXPIRY_TIME: usize = 8;
const CREATION_TIME: usize = 9;
const GROUP_ID: usize = 10;
const GROUP_SEQUENCE: usize = 11;
const REPLY_TO_GROUP_ID: usize = 12;
/// How many there are.
const FIELDS: usize = 13;

/// The priority of a message that does not tell one. [AMQP 3.2.1]
const DEFAULT_PRIORITY: u8 = 4;

/// The properties that the broker assigns to a message. One that is not assigned yet is unknown to
/// filters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are the contract's properties")]
pub struct Facts<'a> {
    /// Milliseconds since the Unix epoch, as all times here.
    pub enqueued_time_ms: Option<i64>,
    pub expires_at_ms: Option<i64>,
    pub locked_until_ms: Option<i64>,
    pub sequence_number: Option<i64>,
    pub enqueued_sequence_number: Option<i64>,
    /// Deliveries so far.
    pub delivery_count: Option<u32>,
    /// 0 active, 1 deferred, 2 scheduled.
    pub state: Option<i32>,
    pub dead_letter_source: Option<&'a str>,
}

/// A message that filters are evaluated on.
pub struct Message<'a> {
    bytes: &'a [u8],
    sections: Sections,
    facts: Facts<'a>,
    header: OnceCell<Header>,
    annotations: OnceCell<Annotations<'a>>,
    properties: OnceCell<[Option<&'a [u8]>; FIELDS]>,
    user: OnceCell<UserProperties<'a>>,
}

/// The encoded annotations that filters see.
#[derive(Clone, Copy, Default)]
struct Annotations<'a> {
    given_id: Option<&'a [u8]>,
    partition_key: Option<&'a [u8]>,
    via_partition_key: Option<&'a [u8]>,
    scheduled_enqueue_time: Option<&'a [u8]>,
    routing_key: Option<&'a [u8]>,
}

impl<'a> Message<'a> {
    /// Finds the sections of an encoded message.
    ///
    /// # Errors
    /// When the bytes are no message.
    pub fn read(bytes: &'a [u8], facts: Facts<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            bytes,
            sections: Sections::scan(bytes)?,
            facts,
            header: OnceCell::new(),
            annotations: OnceCell::new(),
            properties: OnceCell::new(),
            user: OnceCell::new(),
        })
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn sections(&self) -> &Sections {
        &self.sections
    }

    pub(crate) fn user_properties(&self) -> &UserProperties<'a> {
        self.user.get_or_init(|| {
            UserProperties::read(&self.bytes[self.sections.application_properties.clone()])
        })
    }

    fn header(&self) -> &Header {
        self.header.get_or_init(|| {
            Header::decode(&self.bytes[self.sections.header.clone()]).unwrap_or_default()
        })
    }

    fn annotations(&self) -> &Annotations<'a> {
        self.annotations.get_or_init(|| {
            Annotations::read(&self.bytes[self.sections.message_annotations.clone()])
        })
    }

    /// An encoded field of the properties section, if it is set.
    fn field(&self, position: usize) -> Option<&'a [u8]> {
        let fields = self
            .properties
            .get_or_init(|| fields(&self.bytes[self.sections.properties.clone()]));
        fields.get(position).copied().flatten()
    }

    fn text_field(&self, position: usize) -> Value<'a> {
        self.field(position).map_or(Value::Unknown, text_form)
    }

    fn message_id(&self) -> Value<'a> {
        let id = self.field(MESSAGE_ID);
        text_of(id.or_else(|| self.annotations().given_id))
    }

    fn integer_field(&self, position: usize) -> Option<i64> {
        items::integer(self.field(position)?)
    }

    /// The largest time to live that fits in a header means as much as the properties tell.
    /// (docs/spec/entities.md#7.1)
    fn time_to_live(&self) -> Value<'a> {
        let Some(ttl) = self.header().ttl else {
            return Value::Unknown;
        };
        let told = || {
            let expiry = self.integer_field(ABSOLUTE_EXPIRY_TIME)?;
            let span = expiry.checked_sub(self.integer_field(CREATION_TIME)?)?;
            (span > 0).then_some(span)
        };
        let beyond = if ttl == u32::MAX { told() } else { None };
        Value::Duration(ticks::of_ms(beyond.unwrap_or(ttl.into())))
    }

    fn annotated(&self, property: Property) -> Value<'a> {
        let annotations = self.annotations();
        match property {
            Property::PartitionKey => text_of(annotations.partition_key),
            Property::ViaPartitionKey => text_of(annotations.via_partition_key),
            Property::RoutingKey => text_of(annotations.routing_key),
            _ => {
                let time = annotations.scheduled_enqueue_time.and_then(items::integer);
                time.map_or(Value::Unknown, |ms| Value::DateTime(ticks::of_ms(ms)))
            }
        }
    }

    fn fact(&self, property: Property) -> Value<'a> {
        let integer = |value: Option<i64>| value.map_or(Value::Unknown, Value::Int);
        let time =
            |ms: Option<i64>| ms.map_or(Value::Unknown, |ms| Value::DateTime(ticks::of_ms(ms)));
        let facts = &self.facts;
        match property {
            Property::EnqueuedTimeUtc => time(facts.enqueued_time_ms),
            Property::ExpiresAtUtc => time(facts.expires_at_ms),
            Property::LockedUntilUtc => time(facts.locked_until_ms),
            Property::SequenceNumber => integer(facts.sequence_number),
            Property::EnqueuedSequenceNumber => integer(facts.enqueued_sequence_number),
            Property::DeliveryCount => integer(facts.delivery_count.map(i64::from)),
            Property::JmsDeliveryCount => {
                integer(facts.delivery_count.map(|count| i64::from(count) + 1))
            }
            Property::Size => integer(i64::try_from(self.bytes.len()).ok()),
            Property::State => integer(facts.state.map(i64::from)),
            Property::DeadLetterSource => facts
                .dead_letter_source
                .map_or(Value::Unknown, |source| Value::Text(source.into())),
            // `ForcePersistence` has no place in an AMQP message.
            _ => Value::Unknown,
        }
    }
}

impl Fields for Message<'_> {
    fn user<'a>(&'a self, name: &str, dialect: Dialect) -> PropertyLookup<'a> {
        let properties = self.user_properties();
        let item = match dialect {
            Dialect::Sql => properties.find(name),
            Dialect::Jms => properties.exact(name),
        };
        match item {
            None => PropertyLookup::Missing,
            Some([items::NULL]) => PropertyLookup::Null,
            Some(item) => PropertyLookup::Value(Value::of_item(item)),
        }
    }

    fn system(&self, property: Property) -> Value<'_> {
        match property {
            Property::MessageId => self.message_id(),
            Property::CorrelationId => self.text_field(CORRELATION_ID),
            Property::Label => self.text_field(SUBJECT),
            Property::To => self.text_field(TO),
            Property::ReplyTo => self.text_field(REPLY_TO),
            Property::ContentType => self.text_field(CONTENT_TYPE),
            Property::SessionId => self.text_field(GROUP_ID),
            Property::ReplyToSessionId => self.text_field(REPLY_TO_GROUP_ID),
            Property::JmsUserId => self.text_field(USER_ID),
            Property::JmsTimestamp => self
                .integer_field(CREATION_TIME)
                .map_or(Value::Unknown, Value::Int),
            Property::JmsGroupSequence => self
                .field(GROUP_SEQUENCE)
                .map_or(Value::Unknown, Value::of_item),
            Property::TimeToLive => self.time_to_live(),
            Property::JmsDeliveryMode => {
                let is_durable = self.header().durable == Some(true);
                let mode = if is_durable {
                    "PERSISTENT"
                } else {
                    "NON_PERSISTENT"
                };
                Value::Text(mode.into())
            }
            Property::JmsPriority => {
                Value::Int(self.header().priority.unwrap_or(DEFAULT_PRIORITY).into())
            }
            Property::PartitionKey
            | Property::ViaPartitionKey
            | Property::RoutingKey
            | Property::ScheduledEnqueueTimeUtc => self.annotated(property),
            fact => self.fact(fact),
        }
    }

    fn cost(&self) -> usize {
        self.user_properties().cost()
    }
}

impl<'a> Annotations<'a> {
    fn read(section: &'a [u8]) -> Self {
        let mut annotations = Self::default();
        let mut items = Items::of(section).unwrap_or(Items::NONE);
        while let Ok(Some((key, value))) = items.next_entry() {
            let place = match items::text(key) {
                Some(GIVEN_ID) => &mut annotations.given_id,
                Some(PARTITION_KEY) => &mut annotations.partition_key,
                Some(ROUTING_KEY) => &mut annotations.routing_key,
                Some(VIA_PARTITION_KEY) => &mut annotations.via_partition_key,
                Some(SCHEDULED_ENQUEUE_TIME) => &mut annotations.scheduled_enqueue_time,
                _ => continue,
            };
            place.get_or_insert(value);
        }
        annotations
    }
}

/// The encoded fields that are set.
fn fields(section: &[u8]) -> [Option<&[u8]>; FIELDS] {
    let mut fields = [None; FIELDS];
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    for field in &mut fields {
        match items.next() {
            Ok(Some(item)) => *field = Some(item).filter(|item| **item != [items::NULL]),
            _ => break,
        }
    }
    fields
}

fn text_of(item: Option<&[u8]>) -> Value<'_> {
    item.map_or(Value::Unknown, text_form)
}

/// Ids and addresses may be of other types than text, and are compared by their text form.
/// (docs/spec/entities.md#17.4)
fn text_form(item: &[u8]) -> Value<'_> {
    if let Ok(items::Item::Binary(content)) = items::read(item) {
        return Value::text(hexadecimal(content));
    }
    match Value::of_item(item) {
        Value::Guid(guid) => Value::text(uuid_text(&guid)),
        Value::Int(number) => Value::text(number.to_string()),
        Value::Unsigned(number) => Value::text(number.to_string()),
        Value::Double(number) => Value::text(number.to_string()),
        text @ Value::Text(_) => text,
        _ => Value::Unknown,
    }
}
