//! Loss: a report of what a repair leaves out.
//!
//! The journal counts up to its first damaged record. What records behind it say can mostly still
//! be read: the messages that they put are gone, and those that they removed are there again. Of a
//! record that cannot be read nothing is known but its position.

use std::collections::BTreeMap;

use store::{EntityId, EntityRow, Write, WriteSet};

/// What is gone of one entity, and what is there again.
#[derive(Debug, Default, Eq, PartialEq)]
struct OfEntity {
    gone: Vec<u64>,
    again: Vec<u64>,
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
    for (entity, mut found) in by_entity(beyond) {
        let name = names
            .get(&entity)
            .map_or_else(|| format!("entity {}", entity.0), |path| (*path).to_owned());
        // Sent and removed again, it is missed by no receiver.
        let again = found.again.clone();
        let gone = &found.gone;
        found
            .again
            .retain(|number| gone.binary_search(number).is_err());
        found
            .gone
            .retain(|number| again.binary_search(number).is_err());
        if !found.gone.is_empty() {
            let numbers = ranges(&found.gone);
            sentences.push(format!("{name}: messages {numbers} are gone"));
        }
        if !found.again.is_empty() {
            let numbers = ranges(&found.again);
            sentences.push(format!(
                "{name}: messages {numbers} were removed and are there again"
            ));
        }
    }
    sentences
}

fn by_entity(beyond: &[(u64, WriteSet)]) -> BTreeMap<EntityId, OfEntity> {
    let mut found: BTreeMap<EntityId, OfEntity> = BTreeMap::new();
    for write in beyond.iter().flat_map(|(_, set)| set.as_slice()) {
        match write {
            Write::PutMessage { entity, number, .. } => {
                found.entry(*entity).or_default().gone.push(number.0);
            }
            Write::RemoveMessage { entity, number, .. } => {
                found.entry(*entity).or_default().again.push(number.0);
            }
            _ => {}
        }
    }
    for of_entity in found.values_mut() {
        for numbers in [&mut of_entity.gone, &mut of_entity.again] {
            numbers.sort_unstable();
            numbers.dedup();
        }
    }
    found
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
    use store::Part;
    use store::conformance::{entity_row, put, remove};

    use super::*;

    #[test]
    fn a_report_names_what_is_gone_and_what_is_there_again() {
        let entity = EntityId(1);
        let set = |puts: &[u64], removes: &[u64]| {
            let mut set = WriteSet::default();
            for number in puts {
                put(&mut set, entity, Part::Active, *number, 9);
            }
            for number in removes {
                remove(&mut set, entity, Part::Active, *number);
            }
            set
        };
        let beyond = [
            (13, set(&[5, 6, 7], &[])),
            (14, set(&[9], &[2])),
            (15, set(&[], &[6])),
        ];
        let found = sentences((10, 14), &beyond, &[entity_row(entity)]);
        assert_eq!(
            found,
            [
                "commits 11 to 15 are gone",
                "commits 11-12 cannot be read: what they did is not known",
                "Queues/q-1: messages 5, 7, 9 are gone",
                "Queues/q-1: messages 2 were removed and are there again",
            ]
        );
    }
}
