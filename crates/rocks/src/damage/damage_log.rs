//! Damage log: what was found damaged while the store runs, each once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use store::StoreError;

use crate::statistics::Statistics;

/// More are neither counted nor logged: they cannot be told from those that were found before.
const MOST_REMEMBERED: usize = 4_096;

/// Counts and logs damage, be it found by a receiver or by the scrubber.
pub(crate) struct DamageLog {
    seen: Mutex<BTreeSet<String>>,
    statistics: Arc<Statistics>,
}

impl DamageLog {
    pub fn new(statistics: Arc<Statistics>) -> Self {
        Self {
            seen: Mutex::default(),
            statistics,
        }
    }

    /// Notes an error, if it tells of damage that is not known yet.
    pub fn note(&self, error: &StoreError) {
        // A damaged block is met from many sides; the detail names the file and the offset.
        let (StoreError::Corrupt { detail, .. }
        | StoreError::UnreadableRows { detail, .. }
        | StoreError::UnreadableEntries { detail, .. }) = error
        else {
            return;
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = seen.len() < MOST_REMEMBERED && seen.insert(detail.clone());
        let is_last = is_news && seen.len() == MOST_REMEMBERED;
        drop(seen);
        if is_news {
            self.statistics.count_damage();
            tracing::error!(%error, "the store is damaged: what is affected is not delivered");
        }
        if is_last {
            tracing::error!(
                "more than {MOST_REMEMBERED} places of the store are damaged: others are not logged"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_damage_is_counted_once_and_a_failure_is_none() {
        let statistics = Arc::new(Statistics::default());
        let log = DamageLog::new(statistics.clone());
        let damage = |detail: &str| journal::value::damaged("a body", detail);
        log.note(&damage("one"));
        log.note(&damage("two"));
        log.note(&damage("one"));
        log.note(&StoreError::Io("a failure".into()));
        assert_eq!(statistics.snapshot().damaged, 2);
    }

    #[test]
    fn damage_without_end_is_counted_up_to_a_bound() {
        let statistics = Arc::new(Statistics::default());
        let log = DamageLog::new(statistics.clone());
        for place in 0..MOST_REMEMBERED + 9 {
            log.note(&journal::value::damaged("a body", place.to_string()));
        }
        assert_eq!(statistics.snapshot().damaged, MOST_REMEMBERED as u64);
    }
}
