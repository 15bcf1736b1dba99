//! Loss: a report of what a repair leaves out.
//!
//! The journal counts up to its first damaged record. What records behind it say can mostly still
//! be read: the messages that they put are gone, those that they removed are there again, and those
//! that they moved are where they were; definitions, rules and states of sessions are as before. Of
//! a record that cannot be read nothing is known but its position.

use std::collections::{BTreeMap, BTreeSet};

use store::{EntityId, EntityRow, Index, SequenceNumber, Write, WriteSet};

/// What is undone of one entity.
#[derive(Debug, Default)]
struct OfEntity {
    messages: BTreeMap<SequenceNumber, Change>,
    /// The path with which it was defined last.
    defined: Option<String>,
    is_removed: bool,
    /// What else has changed, in words.
    changed: BTreeSet<&'static str>,
}

/// What the first and the last write say of a message.
#[derive(Clone, Copy, Debug)]
struct Change {
    was_there: bool,
    is_there: bool,
}

/// Logs which commits and messages are gone: those after `position`, up to `acknowledged`, of which
/// `beyond` can still be read.
pub(crate) fn report(
    (position, acknowledged): (u64, u64),
    beyond: &[(u64, WriteSet)],
    entities: &[EntityRow],
) {
    for sentence in sentences((position, acknowledged), beyond, entities) {
        tracing::warn!("repair: {sentence}");
    }
}

fn sentences(
    (position, acknowledged): (u64, u64),
    beyond: &[(u64, WriteSet)],
    entities: &[EntityRow],
) -> Vec<String> {
    let last = beyond
        .last()
        .map_or(acknowledged, |(last, _)| (*last).max(acknowledged));
    let readable: Vec<_> = beyond.iter().map(|(position, _)| *position).collect();
    let unknown: Vec<_> = (position + 1..=last)
        .filter(|position| readable.binary_search(position).is_err())
        .take(1_000)
        .collect();
    let mut sentences = vec![format!("commits {} to {last} are gone", position + 1)];
    if !unknown.is_empty() {
        let unknown = ranges(&unknown);
        sentences.push(format!(
            "commits {unknown} cannot be read: what they did is not known"
        ));
    }
    let names: BTreeMap<_, _> = entities
        .iter()
        .map(|row| (row.id, row.path.as_str()))
        .collect();
    for (entity, undone) in by_entity(beyond) {
        let known = names.get(&entity).copied().or(undone.defined.as_deref());
        let name = known.map_or_else(|| format!("entity {}", entity.0), str::to_owned);
        let is_known = names.contains_key(&entity);
        let undone = undone.sentences(is_known).into_iter();
        sentences.extend(undone.map(|sentence| format!("{name}: {sentence}")));
    }
    sentences
}

impl OfEntity {
    /// Whether the index `is_known` to have the entity.
    fn sentences(&self, is_known: bool) -> Vec<String> {
        let mut sentences = Vec::new();
        match (&self.defined, is_known) {
            (Some(_), false) => sentences.push("it was created and is gone".to_owned()),
            (Some(_), true) => sentences.push("its definition is as before".to_owned()),
            (None, _) => {}
        }
        if self.is_removed {
            sentences.push("it was deleted and is there again".to_owned());
        }
        // Those that were sent and removed again are missed by no receiver.
        for (change, sentence) in [
            ((false, true), "are gone"),
            ((true, false), "were removed and are there again"),
            ((true, true), "were moved or changed and are as before"),
        ] {
            let found = self.messages.iter();
            let found = found.filter(|(_, it)| (it.was_there, it.is_there) == change);
            let numbers: Vec<_> = found.map(|(number, _)| number.0).collect();
            if !numbers.is_empty() {
                sentences.push(format!("messages {} {sentence}", ranges(&numbers)));
            }
        }
        let changed = self.changed.iter();
        sentences.extend(changed.map(|what| format!("{what} are as before")));
        sentences
    }

    fn note(&mut self, number: SequenceNumber, is_there: bool) {
        let first = Change {
            was_there: !is_there,
            is_there,
        };
        self.messages.entry(number).or_insert(first).is_there = is_there;
    }
}

fn by_entity(beyond: &[(u64, WriteSet)]) -> BTreeMap<EntityId, OfEntity> {
    let mut found: BTreeMap<EntityId, OfEntity> = BTreeMap::new();
    for write in beyond.iter().flat_map(|(_, set)| set.as_slice()) {
        let undone = found.entry(write.entity()).or_default();
        match write {
            Write::PutMessage { number, .. } => undone.note(*number, true),
            Write::RemoveMessage { number, .. } => undone.note(*number, false),
            Write::PutEntity(row) => undone.defined = Some(row.path.clone()),
            Write::RemoveEntity(_) => undone.is_removed = true,
            Write::PutEntry { index, .. }
            | Write::RemoveEntry { index, .. }
            | Write::RemoveEntries { index, .. } => undone.changed.extend(described(*index)),
            Write::PutPatch { .. } | Write::PutDeliveryCount { .. } => {
                undone.changed.insert("delivery counts and properties");
            }
            _ => {}
        }
    }
    found
}

/// What an operator calls the entries of an index, if they are more than a way to messages.
fn described(index: Index) -> Option<&'static str> {
    match index {
        Index::Schedule | Index::Session | Index::SessionExpiry => None,
        Index::SessionState => Some("states of sessions"),
        Index::DuplicateId | Index::DuplicateTime => Some("ids of messages that are duplicates"),
        Index::Rule => Some("rules or bindings"),
    }
}

/// Ascending numbers in short: `1-3, 7`.
fn ranges(numbers: &[u64]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): (u64, u64)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    let runs: Vec<_> = runs.into_iter().map(run).collect();
    runs.join(", ")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use store::conformance::{entity_row, put, remove, row_of};
    use store::{EntryKey, Part};

    use super::*;

    const ENTITY: EntityId = EntityId(1);

    fn set(fill: impl FnOnce(&mut WriteSet)) -> WriteSet {
        let mut set = WriteSet::default();
        fill(&mut set);
        set
    }

    fn removed(set: &mut WriteSet, part: Part, number: u64) {
        set.push(Write::RemoveMessage {
            entity: ENTITY,
            part,
            number: SequenceNumber(number),
        });
    }

    #[test]
    fn a_report_names_what_is_gone_and_what_is_there_again() {
        let put = |set: &mut WriteSet, number| put(set, ENTITY, Part::Active, number, 9);
        let remove = |set: &mut WriteSet, number| remove(set, ENTITY, Part::Active, number);
        let beyond = [
            (13, set(|set| (5..8).for_each(|number| put(set, number)))),
            (
                14,
                set(|set| {
                    put(set, 9);
                    remove(set, 2);
                }),
            ),
            (15, set(|set| remove(set, 6))),
            (
                16,
                set(|set| {
                    removed(set, Part::Active, 3);
                    let number = SequenceNumber(3);
                    set.push(Write::PutMessage {
                        entity: ENTITY,
                        part: Part::DeadLetter,
                        number,
                        row: row_of(ENTITY, number, 9),
                    });
                }),
            ),
        ];
        let found = sentences((10, 14), &beyond, &[entity_row(ENTITY)]);
        assert_eq!(
            found,
            [
                "commits 11 to 16 are gone",
                "commits 11-12 cannot be read: what they did is not known",
                "Queues/q-1: messages 5, 7, 9 are gone",
                "Queues/q-1: messages 2 were removed and are there again",
                "Queues/q-1: messages 3 were moved or changed and are as before",
            ]
        );
    }

    #[test]
    fn a_report_names_entities_rules_and_states() {
        let other = EntityId(2);
        let entry = |index| Write::PutEntry {
            entity: ENTITY,
            index,
            key: EntryKey::new(Bytes::from("key"), SequenceNumber(0)),
            value: Bytes::from("value"),
        };
        let beyond = [(
            2,
            set(|set| {
                set.push(Write::PutEntity(entity_row(other)));
                set.push(Write::RemoveEntity(EntityId(3)));
                set.push(Write::PutEntity(entity_row(ENTITY)));
                for index in [Index::Rule, Index::SessionState, Index::Schedule] {
                    set.push(entry(index));
                }
            }),
        )];
        let known = [entity_row(ENTITY), entity_row(EntityId(3))];
        assert_eq!(
            sentences((1, 2), &beyond, &known),
            [
                "commits 2 to 2 are gone",
                "Queues/q-1: its definition is as before",
                "Queues/q-1: rules or bindings are as before",
                "Queues/q-1: states of sessions are as before",
                "Queues/q-2: it was created and is gone",
                "Queues/q-3: it was deleted and is there again",
            ]
        );
    }
}
