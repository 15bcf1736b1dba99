//! The official emulator's `Config.json`. (docs/spec/admin.md#12)
//!
//! A missing property takes the emulator's default, not the cloud's. A value inside either's
//! limits is accepted. Unknown members cause a warning, in a correlation filter an error: without
//! the member the filter would select more than was meant.

mod settings;
mod topics;

use broker::{EntityKind, NamespaceDefinition, Tier};
use entity::fault::{self, FaultLocation, RulePart};
use entity::{EntityPath, QueueDefinition};

use super::entities::Entities;
use super::error::Error;
use super::json::Cursor;
use super::namespaces;
use super::unknown_target::UnknownTarget;

/// Whether `root` is such a file rather than one of our own shape.
pub fn is_emulator(root: &Cursor<'_>) -> Result<bool, Error> {
    Ok(root.member("UserConfig")?.is_some())
}

/// Reads the entities. The first namespace is the default one.
pub fn read(root: &Cursor<'_>, tier: Tier) -> Result<Entities, Error> {
    let mut reader = Reader::default();
    let user = root.required("UserConfig")?;
    reader.warn_unknown(root, &["UserConfig"])?;
    reader.warn_unknown(&user, &["Namespaces", "Logging"])?;
    let members = user.required("Namespaces")?.elements()?;
    let Some((first, others)) = members.split_first() else {
        return Err(user.required("Namespaces")?.error("a namespace is missing"));
    };
    reader.namespace(root, 0, first, tier)?;
    let mut entities = reader.entities;
    for (index, member) in (1..).zip(others) {
        let mut reader = Reader::default();
        reader.namespace(root, index, member, tier)?;
        let name = member.required("Name")?;
        let definition = NamespaceDefinition {
            name: name.string()?.to_ascii_lowercase(),
            ..NamespaceDefinition::default()
        };
        let namespaces = &mut entities.namespaces;
        namespaces::add(namespaces, definition, |message| name.error(message))?;
        let added = namespaces.last_mut().expect("it was added just now");
        let name = &added.definition.name;
        let unknown = reader.entities.unknown_targets.into_iter();
        let unknown = unknown.map(|it| it.within(name));
        entities.unknown_targets.extend(unknown);
        (added.queues, added.topics) = (reader.entities.queues, reader.entities.topics);
        entities.warnings.extend(reader.entities.warnings);
    }
    Ok(entities)
}

/// Where the file has an entity or a rule of a namespace.
fn path_of(namespace: usize, location: FaultLocation) -> String {
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
    format!("UserConfig.Namespaces[{namespace}].{within}")
}

/// Where the value is that is wrong. A filter's stands under one of two names.
fn key_of(namespace: usize, location: FaultLocation) -> String {
    let key = match location {
        FaultLocation::Rule(.., RulePart::Filter) => "Properties",
        FaultLocation::Rule(.., RulePart::Action) => "Properties.Action",
        _ => "Name",
    };
    format!("{}.{key}", path_of(namespace, location))
}

#[derive(Default)]
struct Reader {
    entities: Entities,
}

impl Reader {
    /// Reads the namespace that is the file's `index`th.
    fn namespace(
        &mut self,
        root: &Cursor<'_>,
        index: usize,
        namespace: &Cursor<'_>,
        tier: Tier,
    ) -> Result<(), Error> {
        namespace.required("Name")?.string()?;
        self.warn_unknown(namespace, &["Name", "Queues", "Topics"])?;
        for queue in namespace.list("Queues")? {
            self.queue(&queue)?;
        }
        for topic in namespace.list("Topics")? {
            self.topic(&topic)?;
        }
        let Entities { queues, topics, .. } = &mut self.entities;
        fault::check(queues, topics)
            .and_then(|()| fault::admit(tier, queues, topics))
            .map_err(|fault| {
                let text = fault.text(|location| path_of(index, location));
                root.error_at(&key_of(index, fault.location), text)
            })?;
        let keys = ["ForwardTo", "ForwardDeadLetteredMessagesTo"];
        self.entities.unknown_targets =
            UnknownTarget::find(queues, topics, keys, |location, key, text| {
                let path = format!("{}.Properties.{key}", path_of(index, location));
                root.error_at(&path, text)
            });
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
