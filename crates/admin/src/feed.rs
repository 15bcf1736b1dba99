//! Feeds: pages of lists, and the empty feed that stands for "not found".
//! (docs/spec/admin.md#4.5, #6)

use broker::Wall;
use entity::time;

use crate::description::View;
use crate::entry::{self, Content};
use crate::query::Query;
use crate::xml::{ATOM, Writer};

/// One page of a list.
pub(crate) struct Feed<'a> {
    /// `Queues`, `Topics`, `Subscriptions` or `Rules`.
    pub title: &'a str,
    /// The request's whole URL.
    pub url: &'a str,
    /// The same without a query.
    pub list: &'a str,
    /// Where the entries are, each under its name.
    pub parent: &'a str,
    /// The query's `api-version`, as it was sent.
    pub version: Option<&'a str>,
    pub query: Query,
    /// Whether there are others after them.
    pub more: bool,
    pub updated: Wall,
}

/// A document of entries. Of links it has the one to itself and then, if there is a next page,
/// that one: a client takes the second of exactly two.
pub(crate) fn document(feed: &Feed<'_>, entries: &[Content<'_>], view: View<'_>) -> String {
    let mut writer = Writer::default();
    writer.open("feed", &[("xmlns", ATOM)]);
    writer.text_with("title", &[("type", "text")], feed.title);
    writer.text("id", feed.url);
    writer.text("updated", time::text(feed.updated));
    writer.empty("link", &[("rel", "self"), ("href", feed.url)]);
    if feed.more && !entries.is_empty() {
        writer.empty(
            "link",
            &[("rel", "next"), ("href", &next(feed, entries.len()))],
        );
    }
    for content in entries {
        let name = content.title(view.settings);
        let version = feed
            .version
            .map(|version| format!("?api-version={version}"));
        let id = format!("{}/{name}{}", feed.parent, version.unwrap_or_default());
        entry::write(&mut writer, *content, &id, &[("xml:base", feed.url)], view);
    }
    writer.close("feed");
    writer.finish()
}

fn next(feed: &Feed<'_>, count: usize) -> String {
    let version = feed
        .version
        .map(|version| format!("&api-version={version}"));
    format!(
        "{}?%24skip={}&%24top={}{}",
        feed.list,
        feed.query.skip.saturating_add(count),
        feed.query.top,
        version.unwrap_or_default()
    )
}

/// The document that stands for a missing entity.
pub(crate) fn nothing(id: &str, updated: Wall) -> String {
    let mut writer = Writer::default();
    writer.open("feed", &[("xmlns", ATOM)]);
    writer.text_with("title", &[("type", "text")], "Publicly Listed Services");
    let subtitle = "This is the list of publicly-listed services currently available.";
    writer.text_with("subtitle", &[("type", "text")], subtitle);
    writer.text("id", format!("uuid:{id};id=1"));
    writer.text("updated", time::text(updated));
    writer.text("generator", "Service Bus 1.1");
    writer.close("feed");
    writer.finish()
}
