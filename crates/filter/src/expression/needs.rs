//! Needs: the parts of a message that an expression may read, known without a message.

use crate::message::property::Property;

/// Parts of a message. A part that is not needed is never read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are the standard's sections")]
pub struct Needs {
    pub header: bool,
    pub message_annotations: bool,
    pub properties: bool,
    pub application_properties: bool,
    /// Properties that the broker assigns, such as the sequence number.
    pub facts: bool,
    /// Values assigned when the message arrives: its number, its times, new ids.
    pub arrival: bool,
}

impl Needs {
    /// Adds what `property` is read from.
    pub(crate) fn add(&mut self, property: Property) {
        match property {
            Property::MessageId => (self.properties, self.message_annotations) = (true, true),
            Property::CorrelationId
            | Property::Label
            | Property::To
            | Property::ReplyTo
            | Property::ContentType
            | Property::SessionId
            | Property::ReplyToSessionId
            | Property::JmsTimestamp
            | Property::JmsGroupSequence
            | Property::JmsUserId => self.properties = true,
            Property::PartitionKey
            | Property::ViaPartitionKey
            | Property::RoutingKey
            | Property::ScheduledEnqueueTimeUtc => self.message_annotations = true,
            Property::TimeToLive => (self.header, self.properties) = (true, true),
            Property::JmsDeliveryMode | Property::JmsPriority => self.header = true,
            Property::EnqueuedTimeUtc
            | Property::ExpiresAtUtc
            | Property::LockedUntilUtc
            | Property::SequenceNumber
            | Property::EnqueuedSequenceNumber
            | Property::DeadLetterSource => (self.facts, self.arrival) = (true, true),
            Property::DeliveryCount
            | Property::Size
            | Property::ForcePersistence
            | Property::State
            | Property::JmsDeliveryCount => self.facts = true,
        }
    }

    /// The parts that either needs.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            header: self.header | other.header,
            message_annotations: self.message_annotations | other.message_annotations,
            properties: self.properties | other.properties,
            application_properties: self.application_properties | other.application_properties,
            facts: self.facts | other.facts,
            arrival: self.arrival | other.arrival,
        }
    }
}
