//! Locked messages: what spans say of messages that are locked, until they are settled.
//!
//! A settlement names a lock and no message, so its span takes the message from here. An AMQP
//! connection has its own; all requests over HTTP share one, since one request receives and
//! another one settles.

use std::sync::{Mutex, MutexGuard, PoisonError};

use broker::LockToken;
use rustc_hash::FxHashMap;

use super::traced_message::TracedMessage;

/// Deliveries that are remembered until they are settled. Beyond it the settlements of those before
/// have no spans.
const MOST: usize = 4_096;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct LockedMessages(Mutex<FxHashMap<LockToken, TracedMessage>>);

impl LockedMessages {
    /// Remembers a message that was locked.
    pub fn insert(&self, token: LockToken, message: TracedMessage) {
        let mut messages = self.messages();
        if messages.len() >= MOST {
            messages.clear();
        }
        messages.insert(token, message);
    }

    /// Takes those of `tokens` that there are.
    pub fn take(&self, tokens: &[LockToken]) -> Vec<(LockToken, TracedMessage)> {
        let mut messages = self.messages();
        let tokens = tokens.iter();
        let found = tokens.filter_map(|token| Some((*token, messages.remove(token)?)));
        found.collect()
    }

    fn messages(&self) -> MutexGuard<'_, FxHashMap<LockToken, TracedMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
