//! Outcome: what became of a store in which a bit was flipped.

use std::collections::BTreeMap;
use std::fmt;

use store::{EntityId, Entry, Image, Index, Part, Query, Recovery, SequenceNumber, StoredMessage};

use super::sample::{Shape, entries_of};
use super::*;

/// What a store with a flipped bit did.
#[derive(Debug)]
pub(super) enum Outcome {
    Refused(StoreError),
    /// Nothing is missing or wrong.
    Healed,
    /// Some reads are answered with an error, and the others are right.
    Heard(StoreError),
    /// Something is missing, wrong or too much, without an error.
    Silent(String),
    /// It was opened, and stopped or was refused later: RocksDB had to rewrite what is damaged.
    Stopped(String),
}

impl Outcome {
    pub fn column(&self) -> usize {
        match self {
            Self::Refused(_) => 0,
            Self::Healed => 1,
            Self::Heard(_) => 2,
            Self::Silent(_) => 3,
            Self::Stopped(_) => 4,
        }
    }
}

impl Outcome {
    /// A refusal has to say where the damage is.
    pub fn check_text(&self, flip: &Flip) {
        let refusal = match self {
            Self::Refused(error) => Some(error.to_string()),
            Self::Stopped(why) => Some(why.clone()),
            _ => None,
        };
        if let Some(text) = refusal {
            let names_file = text.contains('/') || text.contains("the format file");
            assert!(names_file, "{flip:?}: no file is named in: {text}");
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(formatter, "refused: {error}"),
            Self::Healed => formatter.write_str("healed"),
            Self::Heard(error) => write!(formatter, "heard: {error}"),
            Self::Silent(what) => write!(formatter, "silent: {what}"),
            Self::Stopped(why) => write!(formatter, "stopped: {why}"),
        }
    }
}

type Place = (EntityId, Part);

/// The contents of the store without a flipped bit.
pub(super) struct Expected {
    image: Image,
    recovery: Recovery,
    messages: BTreeMap<Place, Vec<StoredMessage>>,
    entries: BTreeMap<(EntityId, Index), Vec<Entry>>,
}

impl Expected {
    pub fn of(whole: &Path, shape: Shape) -> Self {
        let copy = new_directory();
        copy_files(whole, copy.path());
        let mut store = shape.open(copy.path()).expect("the whole store opens");
        let image = store.image().expect("it is whole");
        let entities = image.entities.keys().copied();
        let mut messages = BTreeMap::new();
        let mut entries = BTreeMap::new();
        for entity in entities {
            for part in Part::ALL {
                let query = range(entity, part, 0, u64::MAX);
                messages.insert((entity, part), read(&store, CommitId(0), &query));
            }
            for index in Index::ALL {
                let found = entries_of(&store, entity, index).expect("readable");
                entries.insert((entity, index), found);
            }
        }
        let recovery = store.recover().expect("recovered");
        Self {
            image,
            recovery,
            messages,
            entries,
        }
    }

    /// Reads everything there is in `store`.
    pub fn compare(&self, store: &RocksStore) -> Outcome {
        let damage = match store.image() {
            Ok(image) if image == self.image => return Outcome::Healed,
            Ok(image) => return Outcome::Silent(difference(&self.image, &image)),
            Err(error) => error,
        };
        let compared = self
            .compare_recovery(store)
            .and_then(|()| self.compare_messages(store))
            .and_then(|()| self.compare_entries(store));
        compared.map_or_else(Outcome::Silent, |()| Outcome::Heard(damage))
    }

    fn compare_recovery(&self, store: &RocksStore) -> Result<(), String> {
        match recovery::load(&*store.open_store.database) {
            Ok(recovery) if recovery != self.recovery => Err(format!(
                "recovered {recovery:?} instead of {:?}",
                self.recovery
            )),
            _ => Ok(()),
        }
    }

    fn compare_messages(&self, store: &RocksStore) -> Result<(), String> {
        for (&(entity, part), expected) in &self.messages {
            let rows = Query::Range {
                entity,
                part,
                from: SequenceNumber(0),
                until: SequenceNumber(u64::MAX),
                limit: usize::MAX,
                bodies: false,
                max_bytes: usize::MAX,
            };
            if let Ok(found) = ask(store, &rows) {
                let numbers = conformance::numbers(&found);
                if numbers != conformance::numbers(expected) {
                    return Err(format!("{entity:?} {part:?} has rows {numbers:?}"));
                }
            }
            compare_some(store, (entity, part), expected)?;
        }
        Ok(())
    }

    fn compare_entries(&self, store: &RocksStore) -> Result<(), String> {
        for (&(entity, index), expected) in &self.entries {
            let found = entries_of(store, entity, index);
            if found.is_ok_and(|found| found != *expected) {
                return Err(format!(
                    "entries {index:?} of {entity:?} are not what they were"
                ));
            }
        }
        Ok(())
    }
}

/// Compares messages that follow each other, in halves where some cannot be read.
fn compare_some(
    store: &RocksStore,
    (entity, part): Place,
    expected: &[StoredMessage],
) -> Result<(), String> {
    let (Some(first), Some(last)) = (expected.first(), expected.last()) else {
        return Ok(());
    };
    let numbers = (first.number.0, last.number.0);
    match ask(store, &range(entity, part, numbers.0, numbers.1 + 1)) {
        Ok(found) if found == expected => Ok(()),
        Ok(_) => Err(format!(
            "{entity:?} {part:?} {numbers:?} are not what they were"
        )),
        Err(_) if expected.len() == 1 => Ok(()),
        Err(_) => {
            let (before, behind) = expected.split_at(expected.len() / 2);
            compare_some(store, (entity, part), before)?;
            compare_some(store, (entity, part), behind)
        }
    }
}

fn ask(store: &RocksStore, query: &Query) -> Result<Vec<StoredMessage>, StoreError> {
    let found = store.reader().read(CommitId(0), query);
    found.and_then(Found::into_messages)
}

/// Where two images differ, in short.
fn difference(expected: &Image, found: &Image) -> String {
    let missing = expected
        .messages
        .keys()
        .filter(|key| !found.messages.contains_key(key));
    let added = found
        .messages
        .keys()
        .filter(|key| !expected.messages.contains_key(key));
    let wrong = expected
        .bodies
        .iter()
        .filter(|(key, body)| found.bodies.get(key) != Some(body));
    format!(
        "{} messages missing, {} too many, {} bodies wrong; entities {}, heads {}, entries {}",
        missing.count(),
        added.count(),
        wrong.count(),
        expected.entities == found.entities,
        expected.heads == found.heads,
        expected.entries == found.entries,
    )
}
