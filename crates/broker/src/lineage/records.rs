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
        effects: &mut LineageEffects,
        now: Wall,
        path: impl Fn(EntityId) -> Option<&'a str>,
    ) {
        for (namespace, _) in effects.switched.iter().filter(|(_, is_on)| *is_on) {
            let ring = self.rings.insert(*namespace, Ring::new(now));
            self.bytes -= ring.map_or(0, |ring| ring.bytes());
        }
        let mut events = effects.events.drain(..).peekable();
        while let Some(namespace) = events.peek().map(|event| event.namespace) {
            let ring = self.rings.entry(namespace);
            let ring = ring.or_insert_with(|| Ring::new(self.since));
            let before = ring.bytes();
            while let Some(event) = events.next_if(|event| event.namespace == namespace) {
                ring.push(event, self.most, &path);
            }
            self.bytes = self.bytes + ring.bytes() - before;
            while self.bytes > self.most.saturating_mul(FULL_RINGS) {
                self.shrink_largest();
            }
        }
        drop(events);
        for (namespace, is_on) in effects.switched.drain(..) {
            if !is_on {
                let ring = self.rings.remove(&namespace);
                self.bytes -= ring.map_or(0, |ring| ring.bytes());
            }
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

#[cfg(test)]
mod tests {
    use store::SequenceNumber;

    use super::*;
    use crate::api::lineage::{HistoryQuery, LineageEvent, MessageEvent, MessagePlace};

    const MOST: usize = 8_192;

    fn event(namespace: u32, number: u64) -> LineageEvent {
        LineageEvent {
            namespace: NamespaceId(namespace),
            at: Wall(number),
            place: MessagePlace {
                entity: EntityId(namespace.into()),
                number: SequenceNumber(number),
            },
            event: MessageEvent::Accepted {
                message_id: None,
                session_id: None,
            },
        }
    }

    fn take(records: &mut Records, events: impl Iterator<Item = LineageEvent>) {
        let mut effects = LineageEffects {
            events: events.collect(),
            switched: Vec::new(),
        };
        records.take(&mut effects, Wall(0), |_| Some("q"));
    }

    fn switch(records: &mut Records, namespace: u32, is_on: bool, now: u64) {
        let mut effects = LineageEffects {
            events: Vec::new(),
            switched: vec![(NamespaceId(namespace), is_on)],
        };
        records.take(&mut effects, Wall(now), |_| None);
    }

    /// The bytes of all rings, as they are counted.
    fn bytes(records: &Records) -> usize {
        let bytes = records.rings.values().map(Ring::bytes).sum();
        assert_eq!(records.bytes, bytes);
        bytes
    }

    fn numbers(records: &Records, namespace: u32) -> Vec<u64> {
        let reader = records.reader(NamespaceId(namespace));
        let history = reader.history(&HistoryQuery::default(), usize::MAX);
        let numbers = history.events.iter().map(|event| event.place.number.0);
        numbers.collect()
    }

    #[test]
    fn a_ring_keeps_the_newest_events_within_its_bytes() {
        let mut records = Records::new(MOST, Wall(0));
        for number in 1..=10_000 {
            take(&mut records, std::iter::once(event(1, number)));
            assert!(bytes(&records) <= MOST);
        }
        let kept = numbers(&records, 1);
        let first = kept[0];
        assert!(kept.iter().copied().eq(first..=10_000), "{kept:?}");
        assert!(
            kept.len() * size_of::<LineageEvent>() > MOST / 2,
            "{}",
            kept.len()
        );
        let since = records.rings[&NamespaceId(1)].since;
        assert_eq!(since, Wall(first - 1), "the last one that is gone");
    }

    #[test]
    fn all_rings_are_bounded_and_the_largest_gives_way() {
        let mut records = Records::new(MOST, Wall(0));
        take(&mut records, (1..=5).map(|number| event(0, number)));
        for namespace in 1..=40 {
            take(
                &mut records,
                (1..=200).map(|number| event(namespace, number)),
            );
            assert!(bytes(&records) <= MOST * FULL_RINGS);
        }
        assert_eq!(numbers(&records, 0), [1, 2, 3, 4, 5]);
        assert_eq!(records.rings.len(), 41);
    }

    #[test]
    fn a_record_ends_when_it_is_switched_off_and_begins_when_it_is_on() {
        let mut records = Records::new(MOST, Wall(1));
        take(&mut records, (1..=5).map(|number| event(1, number)));
        switch(&mut records, 1, false, 6);
        assert_eq!((bytes(&records), numbers(&records, 1)), (0, Vec::new()));
        switch(&mut records, 1, true, 7);
        let reader = records.reader(NamespaceId(1));
        assert_eq!(reader.history(&HistoryQuery::default(), 9).since, Wall(7));
        take(&mut records, std::iter::once(event(1, 8)));
        assert_eq!(numbers(&records, 1), [8]);
    }
}
