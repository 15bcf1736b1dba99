//! Reader: the record of a namespace as it was at one moment, from which histories are read.
//!
//! A history by message id or session follows what came of the messages that were accepted with
//! it. One by number follows its message, and also goes back to what that came of. One of an
//! entity, or of all, follows nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use store::{EntityId, SequenceNumber};

use super::cut;
use super::ring::{Segment, StoredEvent, Text};
use crate::api::lineage::{History, HistoryEvent, HistoryQuery, MessageEvent, MessagePlace};
use crate::api::time::Wall;
use crate::queue::session_key::is_same_session;

/// The record of a namespace at one moment.
#[derive(Debug)]
pub struct LineageReader {
    since: Wall,
    segments: Vec<Arc<Segment>>,
}

impl LineageReader {
    pub(super) fn new(since: Wall, segments: Vec<Arc<Segment>>) -> Self {
        Self { since, segments }
    }

    /// The last `most` events of the messages that are asked for.
    #[must_use]
    pub fn history(&self, query: &HistoryQuery, most: usize) -> History {
        let query = Query::new(query);
        let followed = query.follows().then(|| self.follow(&query));
        let mut found = Found::default();
        for (segment, event) in self.events() {
            let is_followed = match &followed {
                None => true,
                Some(_) if is_of_entity(event) => found.is_live_in(event.place.entity),
                Some(followed) => followed.contains(&event.place),
            };
            if is_followed {
                found.note(event);
                if query.shows(segment, event) {
                    found.add(segment, event, most);
                }
            }
        }
        let seen_all = followed.is_none_or(|it| it.len() == found.seen.len());
        let is_complete = seen_all && !found.lacks_beginning && !found.events.is_empty();
        History {
            since: self.since,
            is_complete,
            more: found.more,
            events: found.events.into(),
            paths: found.paths,
        }
    }

    /// The messages that are asked for, what came of them, and of what they came if that is asked
    /// for.
    fn follow(&self, query: &Query<'_>) -> FxHashSet<MessagePlace> {
        let mut followed = FxHashSet::default();
        for (segment, event) in self.events().filter(|(_, event)| !is_of_entity(event)) {
            let source = event.event.source();
            let comes_of_one = source.is_some_and(|source| followed.contains(&source));
            if comes_of_one || query.selects(segment, event) {
                followed.insert(event.place);
            }
        }
        if !query.is_by_acceptance() {
            for (_, event) in self.events().rev() {
                if followed.contains(&event.place) {
                    followed.extend(event.event.source());
                }
            }
        }
        followed
    }

    fn events(&self) -> impl DoubleEndedIterator<Item = (&Segment, &StoredEvent)> {
        let segments = self.segments.iter();
        segments.flat_map(|segment| segment.events.iter().map(move |event| (&**segment, event)))
    }
}

/// Whether an event is about all messages of its entity.
fn is_of_entity(event: &StoredEvent) -> bool {
    event.place.number == SequenceNumber(0)
}

/// A query, in the form in which events are compared with it.
struct Query<'a> {
    message_id: Option<&'a [u8]>,
    session_id: Option<&'a [u8]>,
    /// In lower case.
    entity: Option<String>,
    number: Option<SequenceNumber>,
}

impl<'a> Query<'a> {
    fn new(query: &'a HistoryQuery) -> Self {
        let text = |text: &'a Option<String>| text.as_deref().map(|text| cut(text.as_bytes()));
        Self {
            message_id: text(&query.message_id),
            session_id: text(&query.session_id),
            entity: query.entity.as_deref().map(str::to_lowercase),
            number: query.number,
        }
    }

    /// Whether it names messages by what they were accepted with.
    fn is_by_acceptance(&self) -> bool {
        self.message_id.is_some() || self.session_id.is_some()
    }

    /// Whether messages are followed from one entity to another.
    fn follows(&self) -> bool {
        self.is_by_acceptance() || self.number.is_some()
    }

    /// Whether it asks for the message of an event.
    fn selects(&self, segment: &Segment, event: &StoredEvent) -> bool {
        if !self.is_by_acceptance() {
            return self.is_at(segment, event);
        }
        let (MessageEvent::Accepted {
            message_id,
            session_id,
        }
        | MessageEvent::Scheduled {
            message_id,
            session_id,
            ..
        }) = event.event
        else {
            return false;
        };
        let is = |wanted: Option<&[u8]>, text: Option<Text>, equal: fn(&[u8], &[u8]) -> bool| {
            wanted.is_none_or(|wanted| text.is_some_and(|text| equal(segment.text(text), wanted)))
        };
        is(self.message_id, message_id, |text, wanted| text == wanted)
            && is(self.session_id, session_id, is_same_session)
    }

    /// Whether it asks for an event of a message that it asks for.
    fn shows(&self, segment: &Segment, event: &StoredEvent) -> bool {
        // A message by its number is followed wherever it goes.
        let anywhere = self.number.is_some() && !self.is_by_acceptance();
        anywhere || self.is_at(segment, event)
    }

    fn is_at(&self, segment: &Segment, event: &StoredEvent) -> bool {
        let path = || segment.paths.get(&event.place.entity);
        self.number.is_none_or(|it| it == event.place.number)
            && self.entity.as_ref().is_none_or(|entity| {
                let path = path().map(|path| path.to_lowercase());
                path.as_ref() == Some(entity)
            })
    }
}

/// What has been found so far.
#[derive(Default)]
struct Found {
    events: VecDeque<HistoryEvent>,
    more: bool,
    paths: BTreeMap<EntityId, Arc<str>>,
    /// Messages of which there is any event.
    seen: FxHashSet<MessagePlace>,
    /// Those that have not gone.
    live: FxHashSet<MessagePlace>,
    /// Whether the first event of some message is gone.
    lacks_beginning: bool,
}

impl Found {
    fn is_live_in(&self, entity: EntityId) -> bool {
        self.live.iter().any(|place| place.entity == entity)
    }

    fn note(&mut self, event: &StoredEvent) {
        if is_of_entity(event) {
            return self.live.retain(|it| it.entity != event.place.entity);
        }
        if self.seen.insert(event.place) {
            self.lacks_beginning |= !event.event.is_first();
        }
        if event.event.is_last() {
            self.live.remove(&event.place);
        } else {
            self.live.insert(event.place);
        }
        if let MessageEvent::Activated { from } | MessageEvent::Redriven { from, .. } = event.event
        {
            self.live.remove(&from);
        }
    }

    fn add(&mut self, segment: &Segment, event: &StoredEvent, most: usize) {
        if self.events.len() == most {
            self.events.pop_front();
            self.more = true;
        }
        let text = |text| String::from_utf8_lossy(segment.text(text)).into_owned();
        let event = HistoryEvent {
            at: event.at,
            place: event.place,
            event: event.event.clone().map(text),
        };
        for entity in event.event.entities(event.place) {
            if let Some(path) = segment.paths.get(&entity) {
                self.paths.insert(entity, Arc::clone(path));
            }
        }
        self.events.push_back(event);
    }
}
