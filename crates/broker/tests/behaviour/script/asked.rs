//! Asked: what the store is asked for, as scripts show it.

use store::{EntryKey, Part, Query, SequenceNumber};

use super::{START, time};

/// A question to the store as scripts show it.
pub(super) fn asked(query: &Query) -> String {
    match query {
        Query::Range {
            part,
            from,
            until,
            limit,
            bodies,
            ..
        } => {
            let bodies = if *bodies { " with bodies" } else { "" };
            let until = if *until == SequenceNumber::MAX {
                "max".to_owned()
            } else {
                until.to_string()
            };
            format!("{limit} of {part:?} {from}..{until}{bodies}")
        }
        Query::Points { part, numbers, .. } => messages(*part, numbers.iter().copied()),
        Query::Bodies { part, known, .. } => messages(*part, known.iter().map(|it| it.number)),
        Query::Entries {
            index,
            from,
            until,
            limit,
            ..
        } => format!("{limit} of {index:?} {}..{}", place(from), place(until)),
        Query::EntryPoints { index, keys, .. } => format!("{index:?} {keys:?}"),
        Query::Groups {
            index,
            after,
            limit,
            ..
        } => format!("{limit} groups of {index:?} after {after:?}"),
    }
}

fn messages(part: Part, numbers: impl Iterator<Item = SequenceNumber>) -> String {
    let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
    format!("{part:?} {}", numbers.join(" "))
}

/// An entry's place, if its group is a time, counted from the script's begin.
fn place(key: &EntryKey) -> String {
    match key.group_u64() {
        Some(u64::MAX) => "max".to_owned(),
        Some(at) => format!("{} {}", time(at.saturating_sub(START)), key.number),
        None => format!("{key:?}"),
    }
}
