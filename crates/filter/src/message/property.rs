//! Property: the properties of AMQP and of Service Bus, under the names that expressions use.
//!
//! SQL names follow `sys.` and match in any case (docs/spec/entities.md#17.6). JMS names have no
//! prefix and match in their own case only (JMS 2.0, 3.8.1.1).

/// A property that is not an application's own.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[allow(missing_docs, reason = "the variants are the contract's names")]
pub enum Property {
    MessageId,
    CorrelationId,
    Label,
    To,
    ReplyTo,
    ContentType,
    SessionId,
    ReplyToSessionId,
    PartitionKey,
    ViaPartitionKey,
    TimeToLive,
    ScheduledEnqueueTimeUtc,
    EnqueuedTimeUtc,
    ExpiresAtUtc,
    LockedUntilUtc,
    SequenceNumber,
    EnqueuedSequenceNumber,
    DeliveryCount,
    Size,
    ForcePersistence,
    State,
    DeadLetterSource,
    /// The key with which a client of RabbitMQ has published. (docs/spec/rabbitmq.md#8.1)
    RoutingKey,
    /// `PERSISTENT` or `NON_PERSISTENT`; selectors only.
    JmsDeliveryMode,
    /// Selectors only.
    JmsPriority,
    /// When the message was created, in milliseconds since the Unix epoch; selectors only.
    JmsTimestamp,
    /// Selectors only.
    JmsGroupSequence,
    /// Counted from 1; selectors only.
    JmsDeliveryCount,
    /// Selectors only.
    JmsUserId,
}

/// The names behind `sys.`, the first of each property being the one it is shown by.
const SQL: &[(&str, Property)] = &[
    ("MessageId", Property::MessageId),
    ("CorrelationId", Property::CorrelationId),
    ("Label", Property::Label),
    ("Subject", Property::Label),
    ("To", Property::To),
    ("ReplyTo", Property::ReplyTo),
    ("ContentType", Property::ContentType),
    ("SessionId", Property::SessionId),
    ("ReplyToSessionId", Property::ReplyToSessionId),
    ("PartitionKey", Property::PartitionKey),
    ("ViaPartitionKey", Property::ViaPartitionKey),
    ("TimeToLive", Property::TimeToLive),
    ("ScheduledEnqueueTimeUtc", Property::ScheduledEnqueueTimeUtc),
    ("EnqueuedTimeUtc", Property::EnqueuedTimeUtc),
    ("ExpiresAtUtc", Property::ExpiresAtUtc),
    ("LockedUntilUtc", Property::LockedUntilUtc),
    ("SequenceNumber", Property::SequenceNumber),
    ("EnqueuedSequenceNumber", Property::EnqueuedSequenceNumber),
    ("DeliveryCount", Property::DeliveryCount),
    ("Size", Property::Size),
    ("ForcePersistence", Property::ForcePersistence),
    ("State", Property::State),
    ("DeadLetterSource", Property::DeadLetterSource),
    ("x-routing-key", Property::RoutingKey),
];

const JMS: &[(&str, Property)] = &[
    ("JMSMessageID", Property::MessageId),
    ("JMSCorrelationID", Property::CorrelationId),
    ("JMSType", Property::Label),
    ("JMSDeliveryMode", Property::JmsDeliveryMode),
    ("JMSPriority", Property::JmsPriority),
    ("JMSTimestamp", Property::JmsTimestamp),
    ("JMSXGroupID", Property::SessionId),
    ("JMSXGroupSeq", Property::JmsGroupSequence),
    ("JMSXDeliveryCount", Property::JmsDeliveryCount),
    ("JMSXUserID", Property::JmsUserId),
];

/// Headers that JMS keeps out of selectors. (JMS 2.0, 3.8.1.1)
const NOT_SELECTABLE: &[&str] = &[
    "JMSDestination",
    "JMSReplyTo",
    "JMSExpiration",
    "JMSRedelivered",
    "JMSDeliveryTime",
];

impl Property {
    /// The property called `name` in any case, as it would follow `sys.`.
    #[must_use]
    pub fn by_sql_name(name: &str) -> Option<Self> {
        let found = SQL
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, property)| *property)
    }

    /// The property that a selector means by `name`.
    pub(crate) fn by_jms_name(name: &str) -> Option<Self> {
        let found = JMS.iter().find(|(known, _)| *known == name);
        found.map(|(_, property)| *property)
    }

    pub(crate) fn is_kept_from_selectors(name: &str) -> bool {
        NOT_SELECTABLE.contains(&name)
    }

    /// The name in texts.
    #[must_use]
    pub fn name(self) -> &'static str {
        let names = SQL.iter().chain(JMS);
        let mut found = names.filter(|(_, property)| *property == self);
        found.next().map_or("", |(name, _)| name)
    }

    pub(crate) fn jms_name(self) -> &'static str {
        let mut found = JMS.iter().filter(|(_, property)| *property == self);
        found.next().map_or("", |(name, _)| name)
    }

    /// Whether an action may set or remove it, to whatever effect. (docs/spec/entities.md#17.10)
    pub(crate) fn is_settable(self) -> bool {
        matches!(
            self,
            Self::MessageId
                | Self::CorrelationId
                | Self::Label
                | Self::To
                | Self::ReplyTo
                | Self::ContentType
                | Self::SessionId
                | Self::ReplyToSessionId
                | Self::TimeToLive
                | Self::PartitionKey
                | Self::ScheduledEnqueueTimeUtc
        )
    }
}
