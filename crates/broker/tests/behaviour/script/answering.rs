//! Lines of scripts that answer the reads which wait.
//!
//! An answer may be an error: `damaged`, `unreadable` for rows, `lost` for what is scheduled,
//! `broken`; or an entry in it is `mangled`.

use broker::Command;
use store::{EntryKey, Found, Index, SequenceNumber, StoreError};

use super::{QUEUE, START, Stage, millis};

impl Stage {
    pub(super) fn answers(&mut self) -> Vec<Command> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (store, fresh) = (self.shard.store(), self.fresh_reads);
        let again = |(query, mut answer)| {
            if let (Command::Loaded { found, .. }, true) = (&mut answer, fresh) {
                *found = store.reader().read(store.durable(), &query);
            }
            answer
        };
        waiting.map(again).collect()
    }

    /// Answers the reads that wait, and not those which that causes.
    pub(super) fn answer(&mut self, args: &[&str]) {
        let mut commands = match args {
            ["first"] => vec![self.waiting.remove(0).1],
            ["last"] => self
                .waiting
                .pop()
                .map(|waiting| waiting.1)
                .into_iter()
                .collect(),
            _ => self.answers(),
        };
        let error = error(args);
        for command in &mut commands {
            let Command::Loaded { found, .. } = command else {
                continue;
            };
            match (&error, args) {
                (Some(error), _) => *found = Err(error.clone()),
                (None, ["mangled", number]) => mangle(found, number.parse().unwrap()),
                (None, _) => {}
            }
        }
        self.turn(commands);
    }
}

fn error(args: &[&str]) -> Option<StoreError> {
    Some(match args {
        ["damaged"] => StoreError::Corrupt {
            what: "a body".to_owned(),
            detail: "its checksum is wrong".to_owned(),
        },
        ["unreadable", intact, from, until] => StoreError::UnreadableRows {
            intact: intact.parse().unwrap(),
            from: SequenceNumber(from.parse().unwrap()),
            until: SequenceNumber(until.parse().unwrap()),
            detail: "a block fails its checksum".to_owned(),
        },
        // All that is due so far from the script's begin.
        ["lost", intact, until] => StoreError::UnreadableEntries {
            entity: QUEUE,
            index: Index::Schedule,
            intact: intact.parse().unwrap(),
            until: EntryKey::by_u64(START + millis(until), SequenceNumber(0)),
            detail: "a block fails its checksum".to_owned(),
        },
        ["broken"] => StoreError::Io("no answer".to_owned()),
        _ => return None,
    })
}

/// Cuts off the values of a message's entries.
fn mangle(found: &mut Result<Found, StoreError>, number: u64) {
    if let Ok(Found::Entries(entries)) = found {
        let entries = entries.iter_mut();
        let its_own = entries.filter(|entry| entry.key.number == SequenceNumber(number));
        its_own.for_each(|entry| entry.value.truncate(3));
    }
}
