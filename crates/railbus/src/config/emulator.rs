//! The official emulator's `Config.json`. (docs/spec/admin.md#12)
//!
//! A missing property takes the emulator's default, not the cloud's. A value inside either's
//! limits is accepted. Unknown members cause a warning, in a correlation filter an error: without
//! the member the filter would select more than was meant.

mod settings;
mod topics;

use broker::{EntityKind, Tier};
use entity::fault::{self, FaultLocation, RulePart};
use entity::{EntityPath, QueueDefinition};

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
pub fn read(root: &Cursor<'_>, tier: Tier) -> Result<Entities, Error> {
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
    let Entities { queues, topics, .. } = &mut reader.entities;
    fault::check(queues, topics)
        .and_then(|()| fault::admit(tier, queues, topics))
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
        let settings = self.settings(EntityKind::Queue, queue)?.settings;
        self.entities
            .queues
            .push(QueueDefinition { path, settings });
        Ok(())
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

/// Refuses members of a correlation filter that are not known.
fn refuse_unknown(object: &Cursor<'_>, known: &[&str]) -> Result<(), Error> {
    match object.unknown(known)?.first() {
        None => Ok(()),
        Some(member) => {
            let known = known.join(", ");
            let text =
                format!("this member is not known in a correlation filter; there are {known}");
            Err(member.error(text))
        }
    }
}

fn checked<T>(value: &Cursor<'_>, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, Error> {
    parse(value.string()?).map_err(|message| value.error(message))
}

fn path(name: &Cursor<'_>) -> Result<String, Error> {
    checked(name, |text| {
        EntityPath::parse(text).map(EntityPath::into_string)
    })
}
