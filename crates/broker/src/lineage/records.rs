//! Records: the rings of all namespaces whose messages are recorded.
//!
//! A ring is made with the first event, and takes memory as events come. All of them together are
//! bounded too: beyond that the largest one loses its oldest events, so a namespace with many
//! messages does not take the record of one with few.

use rustc_hash::FxHashMap;
use store::{EntityId, NamespaceId};

use super::reader::LineageReader;
use super::ring::Ring;
use crate::api::lineage::LineageEffects;
use crate::api::time::Wall;

/// All rings together have no more bytes than this many full ones.
const FULL_RINGS: usize = 8;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Records {
    rings: FxHashMap<NamespaceId, Ring>,
    /// Of all rings.
    bytes: usize,
    /// The most of one ring.
    most: usize,
    /// When the process began to record.
    since: Wall,
}

impl Records {
    pub(crate) fn new(most: usize, since: Wall) -> Self {
        Self {
            rings: FxHashMap::default(),
            bytes: 0,
            most,
            since,
        }
    }

    /// Takes what a turn says. `path` finds the paths of entities.
    pub(crate) fn take<'a>(
        &mut self,
        effects: LineageEffects,
        now: Wall,
        path: impl Fn(EntityId) -> Option<&'a str>,
    ) {
        for (namespace, _) in effects.switched.iter().filter(|(_, is_on)| *is_on) {
            self.rings.insert(*namespace, Ring::new(now));
        }
        for event in effects.events {
            let since = self.since;
            let ring = self.rings.entry(event.namespace);
            let ring = ring.or_insert_with(|| Ring::new(since));
            let before = ring.bytes();
            ring.push(event, self.most, &path);
            self.bytes = self.bytes + ring.bytes() - before;
            if self.bytes > self.most.saturating_mul(FULL_RINGS) {
                self.shrink_largest();
            }
        }
        for (namespace, _) in effects.switched.iter().filter(|(_, is_on)| !is_on) {
            let ring = self.rings.remove(namespace);
            self.bytes -= ring.map_or(0, |ring| ring.bytes());
        }
    }

    fn shrink_largest(&mut self) {
        let largest = self.rings.values_mut().max_by_key(|ring| ring.bytes());
        if let Some(ring) = largest {
            let before = ring.bytes();
            ring.drop_oldest();
            self.bytes = self.bytes + ring.bytes() - before;
        }
    }

    /// What is recorded of a namespace now.
    pub(crate) fn reader(&self, namespace: NamespaceId) -> LineageReader {
        match self.rings.get(&namespace) {
            Some(ring) => LineageReader::new(ring.since, ring.segments()),
            None => LineageReader::new(self.since, Vec::new()),
        }
    }
}
