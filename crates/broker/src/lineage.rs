//! Lineage: a bounded record of what has happened to messages, for namespaces that want one.
//!
//! The core tells of events as effects (`Queue::record`); where nothing is recorded that is one
//! look at a switch. The shard keeps the record beside the core: a ring of events for each
//! namespace, bounded in bytes, in memory alone. Histories are read away from the shard, from what
//! a ring had at one moment.

pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod records;
mod ring;

use rustc_hash::FxHashMap;
use store::NamespaceId;

/// Longer texts are cut: bytes.
pub(crate) const MAX_TEXT: usize = 512;

/// The namespaces whose messages are recorded.
#[derive(Debug, Default)]
pub(crate) struct LineageSwitch {
    /// Where a namespace does not say.
    default: bool,
    /// What namespaces say themselves.
    own: FxHashMap<NamespaceId, bool>,
    /// Whether there is room for a record at all.
    is_possible: bool,
}

impl LineageSwitch {
    pub(crate) fn new(default: bool, is_possible: bool) -> Self {
        Self {
            default: default && is_possible,
            own: FxHashMap::default(),
            is_possible,
        }
    }

    #[inline]
    pub(crate) fn is_on(&self, namespace: NamespaceId) -> bool {
        if self.own.is_empty() {
            return self.default;
        }
        self.own.get(&namespace).copied().unwrap_or(self.default)
    }

    /// A namespace says whether its messages are recorded, or no more. Returns whether they are
    /// now, if that has changed.
    pub(crate) fn set(&mut self, namespace: NamespaceId, own: Option<bool>) -> Option<bool> {
        let before = self.is_on(namespace);
        match own.filter(|_| self.is_possible) {
            Some(own) => drop(self.own.insert(namespace, own)),
            None => drop(self.own.remove(&namespace)),
        }
        let now = self.is_on(namespace);
        (now != before).then_some(now)
    }
}

/// As much of a text as is recorded.
pub(crate) fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_TEXT)]
}
