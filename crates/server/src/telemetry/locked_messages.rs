//! Locked contexts: the trace contexts of messages that are locked, until they are settled.
//!
//! A settlement names a lock and no message, so its span takes the context from here. An AMQP
//! connection has its own; all requests over HTTP share one, since one request receives and
//! another one settles.

use std::sync::{Mutex, MutexGuard, PoisonError};

use broker::LockToken;
use rustc_hash::FxHashMap;

use super::trace_context::TraceContext;

/// Deliveries that are remembered until they are settled. Beyond it the settlements of those before
/// have no spans.
const MOST: usize = 4_096;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct LockedContexts(Mutex<FxHashMap<LockToken, TraceContext>>);

impl LockedContexts {
    /// Remembers the context of a message that was locked.
    pub fn insert(&self, token: LockToken, context: TraceContext) {
        let mut contexts = self.contexts();
        if contexts.len() >= MOST {
            contexts.clear();
        }
        contexts.insert(token, context);
    }

    /// Takes those of `tokens` that there are.
    pub fn take(&self, tokens: &[LockToken]) -> Vec<TraceContext> {
        let mut contexts = self.contexts();
        let found = tokens.iter().filter_map(|token| contexts.remove(token));
        found.collect()
    }

    fn contexts(&self) -> MutexGuard<'_, FxHashMap<LockToken, TraceContext>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
