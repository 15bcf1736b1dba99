//! Hooks: where tests stop the commit log or make it fail.

use std::sync::{Condvar, Mutex};

use store::StoreError;

use crate::log::Sync;

/// Shared between a test and the commit log of its store.
#[derive(Default)]
pub(crate) struct Hooks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    fail: bool,
    /// Which records have to wait; a held `Sync::Later` holds all.
    hold: Option<Sync>,
    waiting: bool,
}

impl Hooks {
    /// Makes the next write fail.
    pub fn fail_next(&self) {
        self.state.lock().expect("no panic before").fail = true;
    }

    /// Holds records from now on.
    pub fn hold(&self, from: Sync) {
        self.state.lock().expect("no panic before").hold = Some(from);
    }

    /// Returns when a record is being held.
    pub fn wait_until_held(&self) {
        let state = self.state.lock().expect("no panic before");
        drop(
            self.changed
                .wait_while(state, |state| !state.waiting)
                .expect("no panic before"),
        );
    }

    /// Lets everything pass again.
    pub fn release(&self) {
        self.state.lock().expect("no panic before").hold = None;
        self.changed.notify_all();
    }

    /// Called before each write.
    pub fn pass(&self, sync: Sync) -> Result<(), StoreError> {
        let mut state = self.state.lock().expect("no panic before");
        while state.hold == Some(Sync::Later) || state.hold == Some(sync) {
            state.waiting = true;
            self.changed.notify_all();
            state = self.changed.wait(state).expect("no panic before");
        }
        state.waiting = false;
        if std::mem::take(&mut state.fail) {
            return Err(StoreError::Io("injected fault".into()));
        }
        Ok(())
    }
}
