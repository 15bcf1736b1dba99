//! Entries: the Atom envelope of one entity, rule or namespace. (docs/spec/admin.md#4.3)

use broker::{EntityInfo, EntityKind, NamespaceInfo, RuleDescription, Tier};
use entity::time;

use crate::description::{self, View};
use crate::rule;
use crate::settings::Settings;
use crate::xml::{ATOM, INSTANCE, SERVICE_BUS, Writer};

/// The content of an entry.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    Entity(&'a EntityInfo),
    Rule(&'a RuleDescription),
    Namespace(NamespaceInfo),
}

impl Content<'_> {
    /// The last name: the whole path of a queue or topic.
    pub(crate) fn title<'s>(&'s self, settings: &'s Settings) -> &'s str {
        match self {
            Self::Entity(info) if info.queue.kind == EntityKind::Subscription => {
                last_segment(&info.queue.path)
            }
            Self::Entity(info) => &info.queue.path,
            Self::Rule(rule) => &rule.name,
            Self::Namespace(_) => &settings.namespace,
        }
    }

    fn has_author(&self) -> bool {
        match self {
            Self::Entity(info) => info.queue.kind != EntityKind::Subscription,
            Self::Rule(_) => false,
            Self::Namespace(_) => true,
        }
    }

    fn published(&self) -> Option<String> {
        match self {
            Self::Entity(info) => Some(time::text(info.queue.created)),
            Self::Rule(rule) => Some(time::text(rule.created)),
            Self::Namespace(_) => None,
        }
    }

    fn updated(&self) -> String {
        time::text(match self {
            Self::Entity(info) => info.queue.updated,
            Self::Rule(rule) => rule.created,
            Self::Namespace(info) => info.modified,
        })
    }
}

fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A document of one entry.
pub(crate) fn document(content: Content<'_>, id: &str, view: View<'_>) -> String {
    let mut writer = Writer::default();
    write(&mut writer, content, id, &[("xmlns", ATOM)], view);
    writer.finish()
}

/// Writes an entry; `id` is where it is found.
pub(crate) fn write(
    writer: &mut Writer,
    content: Content<'_>,
    id: &str,
    attributes: &[(&str, &str)],
    view: View<'_>,
) {
    writer.open("entry", attributes);
    writer.text("id", id);
    let title = content.title(view.settings);
    writer.text_with("title", &[("type", "text")], title);
    writer.optional("published", content.published());
    writer.text("updated", content.updated());
    if content.has_author() {
        writer.open("author", &[]);
        writer.text("name", &view.settings.namespace);
        writer.close("author");
    }
    writer.empty("link", &[("rel", "self"), ("href", id)]);
    writer.open("content", &[("type", "application/xml")]);
    match content {
        Content::Entity(info) => description::write(writer, info, view),
        Content::Rule(description) => rule::write(writer, description),
        Content::Namespace(info) => write_namespace(writer, info, view.settings),
    }
    writer.close("content");
    writer.close("entry");
}

/// (docs/spec/admin.md#5.5)
fn write_namespace(writer: &mut Writer, info: NamespaceInfo, settings: &Settings) {
    let attributes = [("xmlns", SERVICE_BUS), ("xmlns:i", INSTANCE)];
    writer.open("NamespaceInfo", &attributes);
    writer.text("CreatedTime", time::text(info.created));
    writer.text("MessagingSKU", settings.tier.name());
    if settings.tier == Tier::Premium {
        writer.number("MessagingUnits", 1);
    }
    writer.text("ModifiedTime", time::text(info.modified));
    writer.text("Name", &settings.namespace);
    writer.text("NamespaceType", "Messaging");
    writer.close("NamespaceInfo");
}
