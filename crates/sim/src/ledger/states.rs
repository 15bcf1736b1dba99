//! States: what holders keep with their sessions. (I1, I4)
//!
//! A state is what a holder asked for last and was told is set; what was asked for and not
//! answered may be there or not, in the order in which it was written. A crash takes nothing
//! that was answered.

use std::collections::{BTreeMap, BTreeSet};

use broker::{ReceiverId, RequestError, RequestId, SendError};
use bytes::{BufMut, Bytes, BytesMut};
use store::CommitId;

use super::Ledger;
use super::answers::{Asked, LockState};
use super::sessions::Key;
use crate::books::StateChange;
use crate::rng::Rng;
use crate::session::Session;
use crate::violation::Violation;

/// A request to set a state that has not been answered.
#[derive(Debug)]
struct Setting {
    key: Key,
    value: Option<Bytes>,
    lock_state: LockState,
    /// Under which it was written.
    commit: Option<CommitId>,
}

/// One session's state.
#[derive(Debug)]
struct State {
    /// Everything that it was since the last crash; the last is what it is.
    history: Vec<Option<Bytes>>,
    /// Where in the history that is which was answered last.
    confirmed: usize,
}

impl State {
    fn new(value: Option<Bytes>) -> Self {
        Self {
            history: vec![value],
            confirmed: 0,
        }
    }
}

/// All states.
#[derive(Debug, Default)]
pub(super) struct States {
    all: BTreeMap<Key, State>,
    settings: BTreeMap<RequestId, Setting>,
    /// Names the values.
    last: u64,
    /// Values that the shard said are set, and values that it showed to a client.
    granted: BTreeSet<Bytes>,
    shown: BTreeSet<Bytes>,
}

impl States {
    fn history(&self, key: Key) -> &[Option<Bytes>] {
        self.all.get(&key).map_or(&[], |state| &state.history)
    }

    /// How often a session's state has changed since the last crash.
    pub(super) fn changes(&self, key: Key) -> usize {
        self.history(key).len().max(1)
    }

    /// Whether a session has a state.
    pub(super) fn is_there(&self, key: Key) -> bool {
        self.history(key).last().is_some_and(Option::is_some)
    }

    /// Sessions of which anything is known.
    pub(super) fn known(&self) -> impl Iterator<Item = Key> {
        self.all.keys().copied()
    }
}

impl Ledger {
    /// A state that no session has had, or none at all.
    pub fn fresh_state(&mut self, rng: &mut Rng) -> Option<Bytes> {
        if rng.chance(150) {
            return None;
        }
        self.states.last += 1;
        let mut state = BytesMut::new();
        state.put_u64(self.states.last);
        let length = rng.below(300);
        state.put_slice(&rng.bytes(length));
        Some(state.freeze())
    }

    /// A client was told that a state is set.
    ///
    /// # Errors
    /// I1, when the shard never said so.
    pub fn state_answered(
        &self,
        queue: usize,
        session: Session,
        state: Option<&Bytes>,
    ) -> Result<(), Violation> {
        self.check_answered(queue, session, state, &self.states.granted)
    }

    /// A client was told a state.
    ///
    /// # Errors
    /// I1, when the shard never said so.
    pub fn state_received(
        &self,
        queue: usize,
        session: Session,
        state: Option<&Bytes>,
    ) -> Result<(), Violation> {
        self.check_answered(queue, session, state, &self.states.shown)
    }

    fn check_answered(
        &self,
        queue: usize,
        session: Session,
        state: Option<&Bytes>,
        said: &BTreeSet<Bytes>,
    ) -> Result<(), Violation> {
        if state.is_none_or(|state| said.contains(state)) {
            return Ok(());
        }
        let path = self.queues[queue].path;
        let what = format!("a client was told {state:?} of {session:?} of {path}, the shard not");
        Err(Violation::new("I1", what))
    }

    pub(super) fn observe_get_state(&mut self, request: RequestId, key: Key) {
        let (lock_state, holder) = self.held_for(request, key);
        let since = self.states.changes(key) - 1;
        let asked = Asked::State {
            key,
            holder,
            lock_state,
            since,
        };
        self.answers.expect(request, asked);
    }

    pub(super) fn observe_set_state(
        &mut self,
        request: RequestId,
        key: Key,
        value: Option<&Bytes>,
    ) {
        self.observe_get_state(request, key);
        let (lock_state, _) = self.held_for(request, key);
        let setting = Setting {
            key,
            value: value.cloned(),
            lock_state,
            commit: None,
        };
        self.states.settings.insert(request, setting);
    }

    /// A state is written because its holder asked for that.
    pub(super) fn explain_state(
        &mut self,
        change: &StateChange,
        commit: CommitId,
    ) -> Result<(), Violation> {
        let Some(session) = change.session else {
            // There was none to clear.
            return Ok(());
        };
        let key = (change.entity, session);
        let asked = |setting: &&mut Setting| {
            let open = setting.commit.is_none() && setting.lock_state != LockState::Lost;
            open && (setting.key, &setting.value) == (key, &change.value)
        };
        let mut settings = self.states.settings.values_mut();
        if let Some(setting) = settings.find(asked) {
            setting.commit = Some(commit);
        } else if !self.committed_state(key, change.value.as_ref(), commit)? {
            let what = format!(
                "the state of {key:?} is {:?}, asked for by no client",
                change.value
            );
            return Err(Violation::new("I4", what));
        }
        let state = self.states.all.entry(key);
        let state = state.or_insert_with(|| State::new(None));
        state.history.push(change.value.clone());
        Ok(())
    }

    /// The shard tells a state, which it was at some time since that was asked.
    pub(super) fn verify_state(
        &mut self,
        asked: Option<&Asked>,
        result: &Result<Option<Bytes>, RequestError>,
    ) -> Result<(), Violation> {
        let Some(&Asked::State {
            key,
            holder,
            lock_state,
            since,
        }) = asked
        else {
            return Ok(());
        };
        let told = match result {
            Ok(told) => told,
            Err(error) => return self.check_state_refusal(key, holder, lock_state, error),
        };
        check_held(lock_state, key)?;
        let history = self.states.history(key);
        let since = history.get(since..).unwrap_or_default();
        let was = since.contains(told) || (history.is_empty() && told.is_none());
        if !was {
            let what = format!("the state of {key:?} is told as {told:?}, and was {since:?}");
            return Err(Violation::new("I4", what));
        }
        self.states.shown.extend(told.clone());
        Ok(())
    }

    /// The shard says whether it has set a state.
    pub(super) fn verify_state_set(
        &mut self,
        request: RequestId,
        asked: Option<&Asked>,
        result: &Result<(), RequestError>,
        durable: CommitId,
    ) -> Result<(), Violation> {
        let Some(setting) = self.states.settings.remove(&request) else {
            return Ok(());
        };
        if let Err(error) = result {
            if setting.commit.is_some() {
                let what = format!("{setting:?} was refused and done");
                return Err(Violation::new("I4", what));
            }
            let Some(&Asked::State { key, holder, .. }) = asked else {
                return Ok(());
            };
            return self.check_state_refusal(key, holder, setting.lock_state, error);
        }
        check_held(setting.lock_state, setting.key)?;
        let durably = setting.commit.is_some_and(|commit| commit <= durable);
        let nothing = setting.commit.is_none() && setting.value.is_none();
        if !durably && !nothing {
            let what = format!("{setting:?} was answered before it was durable");
            return Err(Violation::new("I1", what));
        }
        self.confirm_state(setting.key, &setting.value);
        Ok(())
    }

    /// A state was said to be set.
    pub(super) fn confirm_state(&mut self, key: Key, value: &Option<Bytes>) {
        if let Some(state) = self.states.all.get_mut(&key) {
            let history = state.history.iter();
            let here = history.skip(state.confirmed + 1);
            let here = here.take_while(|other| *other != value).count();
            state.confirmed = (state.confirmed + 1 + here).min(state.history.len() - 1);
        }
        self.states.granted.extend(value.clone());
    }

    /// A request is refused only if its client has lost the session or the disk is nearly full.
    fn check_state_refusal(
        &self,
        key: Key,
        holder: Option<ReceiverId>,
        lock_state: LockState,
        error: &RequestError,
    ) -> Result<(), Violation> {
        let hold = self.sessions.holds.get(&key);
        let hold = hold.filter(|hold| Some(hold.receiver) == holder);
        let lasts = hold.is_some_and(|hold| hold.lasts(self.turn.now.mono));
        let sound = match error {
            RequestError::SessionLockLost => lock_state != LockState::Held || !lasts,
            RequestError::Refused(SendError::DiskNearlyFull) => true,
            _ => false,
        };
        if sound {
            return Ok(());
        }
        let what = format!("the holder of {key:?} was refused its state with {error:?}");
        Err(Violation::new("I3", what))
    }

    /// Every state is one that was answered last or written after that.
    pub(super) fn states_crashed(&mut self) -> Result<(), Violation> {
        let left = self.books.states();
        let keys: BTreeSet<_> = self.states.known().chain(left.keys().copied()).collect();
        let before = std::mem::take(&mut self.states.all);
        self.states.settings.clear();
        for key in keys {
            let value = left.get(&key).cloned();
            let possible = before.get(&key);
            let possible = possible.map_or(&[][..], |state| &state.history[state.confirmed..]);
            let sound = possible.contains(&value) || (possible.is_empty() && value.is_none());
            if !sound {
                let what = format!("a crash left {value:?} as the state of {key:?}: {possible:?}");
                return Err(Violation::new("I1", what));
            }
            self.states.all.insert(key, State::new(value));
        }
        Ok(())
    }
}

fn check_held(lock_state: LockState, key: Key) -> Result<(), Violation> {
    if lock_state == LockState::Lost {
        let what = format!("a state of {key:?} was got or set by another than its holder");
        return Err(Violation::new("I3", what));
    }
    Ok(())
}
