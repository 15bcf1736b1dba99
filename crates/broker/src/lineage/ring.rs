//! Ring: the newest events of one namespace, bounded in bytes.
//!
//! Events are kept in segments; the oldest segment goes as a whole when the ring is full. A segment
//! that is full is never changed again, so readers share it. Each knows the paths of the
//! entities that its events are about, since an entity may be deleted before it is asked for.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use store::EntityId;

use super::cut;
use crate::api::lineage::{LineageEvent, MessageEvent, MessagePlace};
use crate::api::time::Wall;

/// The most bytes of a segment, about.
const SEGMENT_BYTES: usize = 64 << 10;
/// A full ring has no fewer segments.
const LEAST_SEGMENTS: usize = 4;
/// What the path of an entity takes besides its bytes.
const PATH_BYTES: usize = 64;

/// Where a text stands in its segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    start: u32,
    length: u16,
}

/// An event as it is kept.
#[derive(Clone, Debug)]
pub(super) struct StoredEvent {
    pub at: Wall,
    pub place: MessagePlace,
    pub event: MessageEvent<Text>,
}

/// Events that followed each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    pub events: Vec<StoredEvent>,
    texts: Vec<u8>,
    pub paths: FxHashMap<EntityId, Arc<str>>,
    path_bytes: usize,
    /// The last entity whose path was noted.
    last: Option<EntityId>,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Ring {
    /// When it began, or lost its last segment.
    pub since: Wall,
    full: VecDeque<Arc<Segment>>,
    full_bytes: usize,
    newest: Segment,
    /// Room of a segment that has gone, for the next one.
    spare: Segment,
}

impl Segment {
    /// Of how much memory it makes use.
    fn bytes(&self) -> usize {
        self.events.len() * size_of::<StoredEvent>() + self.texts.len() + self.path_bytes
    }

    fn clear(&mut self) {
        self.events.clear();
        self.texts.clear();
        self.paths.clear();
        (self.path_bytes, self.last) = (0, None);
    }

    fn push<'a>(&mut self, event: LineageEvent, path: impl Fn(EntityId) -> Option<&'a str>) {
        for entity in event.event.entities(event.place) {
            self.note_path(entity, &path);
        }
        let texts = &mut self.texts;
        let stored = event.event.map(|text| {
            let (start, text) = (texts.len(), cut(&text));
            texts.extend_from_slice(text);
            Text {
                start: u32::try_from(start).expect("a segment is small"),
                length: u16::try_from(text.len()).expect("a text is cut"),
            }
        });
        self.events.push(StoredEvent {
            at: event.at,
            place: event.place,
            event: stored,
        });
    }

    fn note_path<'a>(&mut self, entity: EntityId, path: impl Fn(EntityId) -> Option<&'a str>) {
        // Most events are about the entity of the event before.
        if self.last == Some(entity) || self.paths.contains_key(&entity) {
            return;
        }
        if let Some(path) = path(entity) {
            self.path_bytes += path.len() + PATH_BYTES;
            self.paths.insert(entity, path.into());
            self.last = Some(entity);
        }
    }

    pub(super) fn text(&self, text: Text) -> &[u8] {
        let start = text.start as usize;
        &self.texts[start..start + usize::from(text.length)]
    }
}

impl Ring {
    pub(super) fn new(since: Wall) -> Self {
        Self {
            since,
            full: VecDeque::new(),
            full_bytes: 0,
            newest: Segment::default(),
            spare: Segment::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.full_bytes + self.newest.bytes()
    }

    /// Adds an event; the oldest ones go if there would be more than `most` bytes.
    pub(super) fn push<'a>(
        &mut self,
        event: LineageEvent,
        most: usize,
        path: impl Fn(EntityId) -> Option<&'a str>,
    ) {
        self.newest.push(event, path);
        if self.newest.bytes() >= SEGMENT_BYTES.min(most / LEAST_SEGMENTS) {
            let next = std::mem::take(&mut self.spare);
            let full = std::mem::replace(&mut self.newest, next);
            self.full_bytes += full.bytes();
            self.full.push_back(Arc::new(full));
            while self.bytes() > most && self.drop_oldest() {}
        }
    }

    /// The oldest segment goes. Returns whether there was one.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let dropped = match self.full.pop_front() {
            Some(dropped) => {
                self.full_bytes -= dropped.bytes();
                dropped
            }
            None => Arc::new(std::mem::take(&mut self.newest)),
        };
        let Some(last) = dropped.events.last().map(|event| event.at) else {
            return false;
        };
        self.since = self.since.max(last);
        if let Some(mut spare) = Arc::into_inner(dropped) {
            spare.clear();
            self.spare = spare;
        }
        true
    }

    /// All that it has now.
    pub(super) fn segments(&self) -> Vec<Arc<Segment>> {
        let newest = Arc::new(self.newest.clone());
        self.full.iter().cloned().chain([newest]).collect()
    }
}
