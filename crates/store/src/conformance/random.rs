//! Random logs: random operations, for cases that no list of behaviours covers.
//!
//! Each word of input is one operation; the operations between two submits make one write set.
//! After every reopening the whole store must equal the model at some commit, not older than the
//! newest one known to be durable, and the audit must find nothing.

use bytes::Bytes;

use super::model::Model;
use super::{Harness, MIB, range, read};
use crate::Store;
use crate::id::{CommitId, EntityId, Part};
use crate::query::Found;
use crate::write::WriteSet;

/// Runs one operation per word against a fresh store and against the model.
///
/// # Panics
/// When store and model disagree, or the audit of the store finds something.
pub fn random_log<H: Harness>(harness: &mut H, words: &[u64]) {
    let store = harness.create();
    let mut log = Log {
        harness,
        store: Some(store),
        set: WriteSet::default(),
        model: Model::default(),
        states: vec![Model::default()],
        durable: CommitId(0),
    };
    log.operate(0);
    for word in words {
        log.step(*word);
    }
    log.restart(true);
}

struct Log<'a, H: Harness> {
    harness: &'a mut H,
    /// None only while it is being reopened.
    store: Option<H::Store>,
    set: WriteSet,
    model: Model,
    /// The model after each commit since the last reopening; the first is what was found then.
    states: Vec<Model>,
    /// Known to be durable.
    durable: CommitId,
}

impl<H: Harness> Log<'_, H> {
    fn step(&mut self, word: u64) {
        match word % 64 {
            0 => self.restart(true),
            1 | 2 => self.restart(false),
            3..=5 => self.make_durable(),
            6..=8 => self.check_reads(word / 64),
            9 => self.copy(word / 64),
            10..=25 => {
                self.submit();
            }
            _ => self.operate(word / 64),
        }
    }

    /// One change of the model and its writes.
    fn operate(&mut self, word: u64) {
        let (kind, choice) = (word % 64, word / 64);
        let (model, set) = (&mut self.model, &mut self.set);
        let Some(entity) = model.pick_entity(choice) else {
            return model.create_entity(set);
        };
        let choice = choice / 8;
        let message = model.pick_message(entity, choice);
        match (kind, message) {
            (0, _) if model.entities().len() < 4 => model.create_entity(set),
            (1, _) => model.remove_entity(entity, set),
            (2, _) => model.send(entity, Part::Active, MIB + 1, set),
            (3, _) => model.send(entity, Part::Active, 2 * MIB + 77, set),
            (4..=8, _) => model.send(entity, Part::Scheduled, 100, set),
            (9..=11, _) => model.set_expiry(entity, choice % 4, Some(choice % 1_000), set),
            (12, _) => model.set_expiry(entity, choice % 4, None, set),
            (47..=52, _) => model.put_entry(entity, choice, set),
            (53, _) => model.remove_entry(entity, choice, set),
            (54, _) => model.remove_entries(entity, choice, set),
            (55..=58, _) => publish(model, entity, choice, body_len(choice / 64), set),
            (59, _) => publish(model, entity, choice, MIB + 1, set),
            (13..=20, Some(number)) => {
                // Several in a row, so that one is where it was within a group.
                for turn in 0..1 + choice / 64 % 3 {
                    let part = moved(model.part_of(entity, number), choice >> turn);
                    if part != model.part_of(entity, number) {
                        model.change_part(entity, number, part, set);
                    }
                }
            }
            (21..=26, Some(number)) => {
                let to = model.pick_entity(choice / 5).unwrap_or(entity);
                model.renumber(entity, number, to, set);
            }
            (27..=32, Some(number)) => {
                let patch = choice
                    .is_multiple_of(2)
                    .then(|| Bytes::from(choice.to_string()));
                model.abandon(entity, number, patch, set);
            }
            (33..=38, Some(number)) => model.complete(entity, number, set),
            (39..=42, Some(_)) => {
                for number in model.pick_run(entity, choice % 4, 40) {
                    model.complete(entity, number, set);
                }
            }
            (43..=46, _) => {
                for _ in 0..12 {
                    model.send(entity, Part::Active, 40, set);
                }
            }
            _ => model.send(entity, Part::Active, body_len(choice), set),
        }
    }

    /// Copies an entity, copies it back, or removes a copy, in a set of its own.
    fn copy(&mut self, word: u64) {
        self.submit();
        let (kind, choice) = (word % 4, word / 4);
        let (model, set) = (&mut self.model, &mut self.set);
        match (kind, model.pick_entity(choice), model.pick_copy(choice)) {
            (0, Some(entity), _) => model.keep_copy(entity, set),
            (1, _, Some(kept)) => model.copy_back(kept, set),
            (_, _, Some(kept)) => model.remove_copy(kept, set),
            _ => {}
        }
        self.submit();
    }

    fn submit(&mut self) -> CommitId {
        let set = std::mem::take(&mut self.set);
        let id = self.store_mut().submit(set);
        assert_eq!(
            id,
            CommitId(self.states.len() as u64),
            "ids rise by one per set"
        );
        self.states.push(self.model.clone());
        id
    }

    fn make_durable(&mut self) {
        let id = self.submit();
        let store = self
            .store
            .as_mut()
            .expect("the store is open between steps");
        self.harness.make_durable(store, id);
        self.durable = id;
    }

    fn check_reads(&mut self, choice: u64) {
        let after = self.submit();
        let Some(entity) = self.model.pick_entity(choice) else {
            return;
        };
        let image = self.model.image();
        for part in Part::ALL {
            let query = range(EntityId(entity), part, choice % 16, 30 + choice % 64);
            let expected = image.read(&query).and_then(Found::into_messages);
            let expected = expected.expect("the model has all bodies");
            let found = read(self.store_mut(), after, &query);
            assert!(
                found == expected,
                "{part:?} of {entity} reads as in the model"
            );
        }
    }

    /// Closes or kills the store, opens it again and looks at everything.
    fn restart(&mut self, orderly: bool) {
        if orderly {
            self.durable = self.submit();
        }
        let store = self.store.take().expect("the store is open between steps");
        let mut store = if orderly {
            self.harness.reopen(store)
        } else {
            self.harness.crash(store)
        };
        let image = self.harness.image(&mut store);
        assert_eq!(store.recover().expect("readable"), image.recovery());
        let durable = usize::try_from(self.durable.0).expect("few commits");
        let survivor = self.states[durable..]
            .iter()
            .find(|state| state.image() == image);
        let survivor =
            survivor.expect("the store is as after some commit, not before the durable one");
        let findings = image.audit_with(|key| survivor.borrows(key));
        assert_eq!(findings, [], "the audit finds nothing");
        self.model = survivor.clone();
        self.states = vec![self.model.clone()];
        self.set = WriteSet::default();
        self.durable = CommitId(0);
        self.store = Some(store);
    }

    fn store_mut(&mut self) -> &mut H::Store {
        self.store
            .as_mut()
            .expect("the store is open between steps")
    }
}

/// Up to four copies, in any entities: in the same one twice, or in none but the home.
fn publish(model: &mut Model, home: u64, choice: u64, len: usize, set: &mut WriteSet) {
    let copies = 1 + choice % 4;
    let to = (0..copies).filter_map(|copy| model.pick_entity(choice / 4 + copy * (choice % 3)));
    let to: Vec<u64> = to.collect();
    model.publish(home, &to, len, set);
}

/// Where a message may go from `part` under its own number. It may wait among the scheduled ones
/// and come back, any number of times.
fn moved(part: Part, choice: u64) -> Part {
    match part {
        Part::Active if choice.is_multiple_of(5) => Part::Deferred,
        Part::Active if choice % 5 == 1 => Part::Transfer,
        Part::Active if choice % 5 < 4 => Part::Scheduled,
        Part::Scheduled => Part::Active,
        Part::Active | Part::Deferred => Part::DeadLetter,
        Part::DeadLetter => Part::DeadLetterDeferred,
        Part::Transfer => Part::TransferDeferred,
        Part::DeadLetterDeferred | Part::TransferDeferred => part,
    }
}

fn body_len(choice: u64) -> usize {
    [0, 1, 10, 100, 1_000, 5_000, 20_000][usize::try_from(choice % 7).expect("below seven")]
}
