//! The table of properties against the documents that list them.

use broker::{EntityDescription, EntityKind};
use entity::{Property, Slot, duration};

const KINDS: [EntityKind; 3] = [
    EntityKind::Queue,
    EntityKind::Topic,
    EntityKind::Subscription,
];

/// The cells of the rows of all tables in a text.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix('|'));
    rows.map(|row| row.split('|').map(str::trim).collect())
}

/// The values and the default of a property, as the document for users has them.
fn values(property: &Property) -> String {
    let range = &property.range;
    let quoted = |texts: &[&str]| {
        let texts: Vec<_> = texts.iter().map(|text| format!("`{text}`")).collect();
        texts.join(", ")
    };
    let time = |millis| match millis {
        duration::NEVER => "never".to_owned(),
        millis => format!("`{}`", duration::text(millis)),
    };
    match (property.slot)(&mut EntityDescription::default()) {
        Slot::Flag(flag) => format!("`{flag}`"),
        Slot::Duration(default, _) => {
            let (least, most) = (time(*range.start()), time(*range.end()));
            let default = time(*default);
            match *range.end() {
                duration::NEVER => format!("from {least}; {default}"),
                _ => format!("{least} to {most}; {default}"),
            }
        }
        Slot::Count(default) => format!("from {}; {default}", range.start()),
        Slot::Megabytes(default) => format!("up to {}; {}", range.end(), *default >> 20),
        Slot::Bytes(_) => format!("up to `{}MiB`; the broker's", range.end() >> 20),
        Slot::Limit(_) => format!("from {}; no limit", range.start()),
        Slot::RetryBackoff(_) => "a table with `min`, `max` and `factor`; none".to_owned(),
        Slot::Target(..) => "the path of a queue or topic; none".to_owned(),
        slot @ Slot::Expiry(_) => format!("{}; the broker's", quoted(slot.choices())),
        slot => format!("{0}; `{1}`", quoted(slot.choices()), slot.choices()[0]),
    }
}

#[test]
fn the_document_for_users_has_each_property_with_its_values() {
    let document = include_str!("../../../docs/topics.md");
    for kind in KINDS {
        for (name, property) in entity::named(kind) {
            let quoted = format!("`{name}`");
            let row = rows(document).find(|row| row[0] == quoted);
            let row = row.unwrap_or_else(|| panic!("docs/topics.md has no row for {name}"));
            let of_kind = KINDS.map(|kind| property.kinds.contains(&kind));
            let shown = [1, 2, 3].map(|column| row[column] == "yes");
            assert_eq!(shown, of_kind, "the kinds of {name}");
            assert_eq!(row[4], values(property), "the values of {name}");
        }
    }
}

#[test]
fn the_contract_has_each_property_and_says_whether_it_can_change() {
    let contract = include_str!("../../../docs/spec/entities.md");
    for (kind, anchor) in KINDS.into_iter().zip(["2.1", "2.2", "2.3"]) {
        let start = contract
            .find(&format!("<a id=\"{anchor}\">"))
            .expect("the section");
        let section = &contract[start..];
        let end = section.find("\n### ").unwrap_or(section.len());
        for (name, property) in entity::elements(kind) {
            let mut rows = rows(&section[..end]);
            let row = rows.find(|row| row[0].split(" / ").any(|listed| listed == name));
            let row = row.unwrap_or_else(|| panic!("section {anchor} has no row for {name}"));
            assert_eq!(row[5] == "**no**", property.fixed, "{name} of a {kind}");
        }
    }
}
