//! The official emulator's `Config.json`. (docs/spec/admin.md#12)
//!
//! A missing property takes the emulator's default, not the cloud's. A value inside either's
//! limits is accepted. Unknown members cause a warning.

mod topics;

use broker::QueueSettings;
use entity::QueueDefinition;
use entity::fault::{self, FaultLocation, RulePart};
use entity::{
    DeliveryCount, EntityPath, HistoryWindow, IdleTime, LockDuration, TimeToLive, delivery_count,
};

use super::choice::parse_status;
use super::entities::Entities;
use super::error::Error;
use super::json::Cursor;

/// What the emulator allows in one namespace is not a limit here, but there can be only one.
const NAMESPACES: usize = 1;

/// Whether `root` is such a file rather than one of our own shape.
pub fn is_emulator(root: &Cursor<'_>) -> Result<bool, Error> {
    Ok(root.member("UserConfig")?.is_some())
}

/// Reads the entities.
pub fn read(root: &Cursor<'_>) -> Result<Entities, Error> {
    let mut reader = Reader {
        entities: Entities::default(),
    };
    let user = root.required("UserConfig")?;
    reader.warn_unknown(root, &["UserConfig"])?;
    reader.warn_unknown(&user, &["Namespaces", "Logging"])?;
    let namespaces = user.required("Namespaces")?.elements()?;
    match &namespaces[..] {
        [] => return Err(user.required("Namespaces")?.error("a namespace is missing")),
        [namespace] => reader.namespace(namespace)?,
        [_, second, ..] => {
            return Err(second.error(format!("only {NAMESPACES} namespace is possible")));
        }
    }
    fault::check(&reader.entities.queues, &reader.entities.topics)
        .map_err(|fault| root.error_at(&key_of(fault.location), fault.text(path_of)))?;
    Ok(reader.entities)
}

/// Where the file has an entity or a rule.
fn path_of(location: FaultLocation) -> String {
    let within = match location {
        FaultLocation::Queue(queue) => format!("Queues[{queue}]"),
        FaultLocation::Topic(topic) => format!("Topics[{topic}]"),
        FaultLocation::Subscription(topic, subscription) => {
            format!("Topics[{topic}].Subscriptions[{subscription}]")
        }
        FaultLocation::Rule(topic, subscription, rule, _) => {
            format!("Topics[{topic}].Subscriptions[{subscription}].Rules[{rule}]")
        }
    };
    format!("UserConfig.Namespaces[0].{within}")
}

/// Where the value is that is wrong. A filter's stands under one of two names.
fn key_of(location: FaultLocation) -> String {
    let key = match location {
        FaultLocation::Rule(.., RulePart::Filter) => "Properties",
        FaultLocation::Rule(.., RulePart::Action) => "Properties.Action",
        _ => "Name",
    };
    format!("{}.{key}", path_of(location))
}

struct Reader {
    entities: Entities,
}

impl Reader {
    fn namespace(&mut self, namespace: &Cursor<'_>) -> Result<(), Error> {
        namespace.required("Name")?.string()?;
        self.warn_unknown(namespace, &["Name", "Queues", "Topics"])?;
        for queue in namespace.list("Queues")? {
            self.queue(&queue)?;
        }
        for topic in namespace.list("Topics")? {
            self.topic(&topic)?;
        }
        Ok(())
    }

    fn queue(&mut self, queue: &Cursor<'_>) -> Result<(), Error> {
        self.warn_unknown(queue, &["Name", "Properties"])?;
        let path = path(&queue.required("Name")?)?;
        let properties = queue.member("Properties")?;
        let settings = match properties {
            Some(properties) => self.settings(&properties)?,
            None => defaults(),
        };
        self.entities
            .queues
            .push(QueueDefinition { path, settings });
        Ok(())
    }

    fn settings(&mut self, properties: &Cursor<'_>) -> Result<QueueSettings, Error> {
        const KNOWN: [&str; 11] = [
            "AutoDeleteOnIdle",
            "DeadLetteringOnMessageExpiration",
            "DefaultMessageTimeToLive",
            "DuplicateDetectionHistoryTimeWindow",
            "ForwardDeadLetteredMessagesTo",
            "ForwardTo",
            "LockDuration",
            "MaxDeliveryCount",
            "RequiresDuplicateDetection",
            "RequiresSession",
            "Status",
        ];
        self.warn_unknown(properties, &KNOWN)?;
        let mut settings = defaults();
        let boolean = |name, value: &mut bool| set(properties, name, value, Cursor::boolean);
        boolean(
            "DeadLetteringOnMessageExpiration",
            &mut settings.dead_lettering_on_message_expiration,
        )?;
        boolean(
            "RequiresDuplicateDetection",
            &mut settings.requires_duplicate_detection,
        )?;
        boolean("RequiresSession", &mut settings.requires_session)?;
        set(
            properties,
            "DefaultMessageTimeToLive",
            &mut settings.default_message_time_to_live,
            |value| checked(value, |text| TimeToLive::parse(text).map(|millis| millis.0)),
        )?;
        set(
            properties,
            "DuplicateDetectionHistoryTimeWindow",
            &mut settings.duplicate_detection_history_time_window,
            |value| {
                checked(value, |text| {
                    HistoryWindow::parse(text).map(|millis| millis.0)
                })
            },
        )?;
        set(
            properties,
            "LockDuration",
            &mut settings.lock_duration,
            |value| {
                checked(value, |text| {
                    LockDuration::parse(text).map(|millis| millis.0)
                })
            },
        )?;
        delivery_count_of(properties, &mut settings)?;
        set(
            properties,
            "AutoDeleteOnIdle",
            &mut settings.auto_delete_on_idle,
            |value| checked(value, |text| IdleTime::parse(text).map(|millis| millis.0)),
        )?;
        set(properties, "Status", &mut settings.status, |value| {
            checked(value, parse_status)
        })?;
        set(properties, "ForwardTo", &mut settings.forward_to, target)?;
        set(
            properties,
            "ForwardDeadLetteredMessagesTo",
            &mut settings.forward_dead_lettered_messages_to,
            target,
        )?;
        Ok(settings)
    }

    fn warn_unknown(&mut self, object: &Cursor<'_>, known: &[&str]) -> Result<(), Error> {
        for member in object.unknown(known)? {
            self.entities.warnings.push(format!(
                "{}: this member is not known and has no effect",
                member.location()
            ));
        }
        Ok(())
    }
}

fn delivery_count_of(properties: &Cursor<'_>, settings: &mut QueueSettings) -> Result<(), Error> {
    set(
        properties,
        "MaxDeliveryCount",
        &mut settings.max_delivery_count,
        |value| {
            let count = DeliveryCount::check(value.integer()?);
            count
                .map(delivery_count)
                .map_err(|message| value.error(message))
        },
    )
}

/// A queue, topic or subscription without properties.
fn defaults() -> QueueSettings {
    QueueSettings {
        default_message_time_to_live: 3_600_000,
        duplicate_detection_history_time_window: 20_000,
        lock_duration: 60_000,
        max_delivery_count: 3,
        ..QueueSettings::default()
    }
}

/// Overwrites `value` if the member is there.
fn set<'a, T>(
    properties: &Cursor<'a>,
    name: &str,
    value: &mut T,
    read: impl Fn(&Cursor<'a>) -> Result<T, Error>,
) -> Result<(), Error> {
    if let Some(member) = properties.member(name)? {
        *value = read(&member)?;
    }
    Ok(())
}

fn checked<T>(value: &Cursor<'_>, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, Error> {
    parse(value.string()?).map_err(|message| value.error(message))
}

fn path(name: &Cursor<'_>) -> Result<String, Error> {
    checked(name, |text| {
        EntityPath::parse(text).map(EntityPath::into_string)
    })
}

/// The empty text means no target.
fn target(value: &Cursor<'_>) -> Result<Option<String>, Error> {
    if value.string()?.is_empty() {
        Ok(None)
    } else {
        path(value).map(Some)
    }
}
