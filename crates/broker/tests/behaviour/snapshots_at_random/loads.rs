//! Loads at random: what a namespace has is read as a backup of it is, and loaded again, into the
//! same namespace or a new one; or it is given up in the middle.

use broker::{EntityError, LoadTarget};

use super::*;
use crate::contents::{ask, pieces};

impl Run {
    pub(super) fn load(&mut self, choice: u64) {
        if !self.syncs || self.forks.len() >= 2 {
            return;
        }
        let content = self.content(NAME);
        let exported = ask(&mut self.world, NamespaceOrder::Export(NAME.to_owned()));
        let Ok(NamespaceAnswer::Contents(contents)) = exported else {
            panic!("{exported:?}");
        };
        assert_eq!(self.content(NAME), content, "it changes nothing");
        if choice.is_multiple_of(2) {
            // What is exported stays as it is.
            (0..4).for_each(|more| self.send(choice / 8 + more));
        }
        let pieces = pieces(&self.world, &contents);
        let entities = contents.entities.iter().map(|(_, entity)| entity.clone());
        let begun = ask(
            &mut self.world,
            NamespaceOrder::BeginLoad(entities.collect()),
        );
        let Ok(NamespaceAnswer::Loading(load)) = begun else {
            panic!("{begun:?}");
        };
        let stop = usize::try_from(choice / 4 % 40).unwrap();
        for (index, piece) in pieces.iter().enumerate() {
            if index == stop {
                return self.give_up(load, contents.id, choice);
            }
            self.order(NamespaceOrder::Load {
                load,
                piece: Box::new(piece.clone()),
            });
            self.world.audit();
        }
        let (name, target) = if choice.is_multiple_of(3) {
            let name = NAME.to_owned();
            (name.clone(), LoadTarget::Existing(name))
        } else {
            self.count += 1;
            let name = format!("l{}", self.count);
            self.forks.push(name.clone());
            (name.clone(), LoadTarget::New(named(&name)))
        };
        self.order(NamespaceOrder::EndLoad { load, target });
        assert_eq!(self.content(&name), content);
        self.order(NamespaceOrder::Release(contents.id));
    }

    /// A load that lacks something does not end; then it is let go, or the process ends.
    fn give_up(&mut self, load: EntityId, exported: EntityId, choice: u64) {
        let ended = ask(
            &mut self.world,
            NamespaceOrder::EndLoad {
                load,
                target: LoadTarget::Existing(NAME.to_owned()),
            },
        );
        // Only ids of duplicates may be missing, which are not counted.
        if ended.is_ok() || choice.is_multiple_of(5) {
            self.crash();
            return;
        }
        assert!(matches!(ended, Err(EntityError::Invalid(_))), "{ended:?}");
        self.order(NamespaceOrder::Release(load));
        self.order(NamespaceOrder::Release(exported));
    }
}
