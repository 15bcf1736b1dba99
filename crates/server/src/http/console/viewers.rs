//! Viewers: those that have a stream of events open, and how many there may be.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use store::NamespaceId;
use tokio::sync::mpsc;

use crate::http::request::reader::Reader;

/// Streams at a time.
pub const VIEWERS: usize = 64;
/// Streams about one namespace besides the default one, and about all of these, so that the clients
/// of one do not shut out others.
pub const OF_ONE: usize = 8;
pub const OF_OTHERS: usize = 48;
/// Streams that have a reading of their own.
pub const OF_READERS: usize = 8;
/// Events of one stream.
pub const EVENTS: u32 = 300;

/// Whether a viewer has the right to see its events still.
pub type HasRight = Box<dyn Fn() -> bool + Send>;

/// The open streams.
#[derive(Default)]
pub struct Viewers(Mutex<Vec<Viewer>>);

/// Viewers that get the same events.
#[derive(Clone, Debug, PartialEq)]
pub struct Audience {
    pub namespace: NamespaceId,
    /// None for viewers of the whole namespace.
    pub reader: Option<Reader>,
}

struct Viewer {
    audience: Audience,
    has_right: HasRight,
    sender: mpsc::Sender<Bytes>,
    /// Events until the stream ends.
    left: u32,
}

impl Viewers {
    /// Adds a viewer. Returns its events, and whether it is the only one.
    pub fn add(
        &self,
        audience: Audience,
        has_right: HasRight,
    ) -> Option<(mpsc::Receiver<Bytes>, bool)> {
        let mut viewers = self.lock();
        let namespace = audience.namespace;
        let is_other = |of: NamespaceId| of != NamespaceId::default();
        let count = |fits: &dyn Fn(&Audience) -> bool| {
            viewers.iter().filter(|it| fits(&it.audience)).count()
        };
        let others = count(&|it| is_other(it.namespace));
        let same = count(&|it| it.namespace == namespace);
        let readers = count(&|it| it.reader.is_some());
        let is_shut_out = is_other(namespace) && (same >= OF_ONE || others >= OF_OTHERS)
            || audience.reader.is_some() && readers >= OF_READERS;
        if viewers.len() >= VIEWERS || is_shut_out {
            return None;
        }
        let (sender, events) = mpsc::channel(1);
        viewers.push(Viewer {
            audience,
            has_right,
            sender,
            left: EVENTS,
        });
        Some((events, viewers.len() == 1))
    }

    /// Ends the streams of those that have no right any more. Returns whether one is left.
    pub fn check_rights(&self) -> bool {
        let mut viewers = self.lock();
        viewers.retain(|viewer| (viewer.has_right)());
        !viewers.is_empty()
    }

    /// What is looked at, each once.
    pub fn audiences(&self) -> Vec<Audience> {
        let mut audiences: Vec<Audience> = Vec::new();
        for viewer in &*self.lock() {
            if !audiences.contains(&viewer.audience) {
                audiences.push(viewer.audience.clone());
            }
        }
        audiences
    }

    /// Gives an event to each viewer of an audience that has read the last one. Returns whether a
    /// viewer of any audience is left.
    pub fn send(&self, audience: &Audience, event: &Bytes) -> bool {
        let mut viewers = self.lock();
        viewers.retain_mut(|viewer| {
            if viewer.audience != *audience {
                return true;
            }
            viewer.left -= 1;
            let result = viewer.sender.try_send(event.clone());
            let is_gone = matches!(result, Err(mpsc::error::TrySendError::Closed(_)));
            viewer.left > 0 && !is_gone
        });
        !viewers.is_empty()
    }

    /// Ends all streams.
    pub fn end(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Viewer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use access::{Access, AccessRule, AccessRules, Rights, Secret};

    use super::*;

    const DEFAULT: Audience = of(0);
    const EVENT: Bytes = Bytes::from_static(b"data: {}\n\n");

    /// Adds a viewer whose right stays.
    fn add(viewers: &Viewers, audience: Audience) -> Option<(mpsc::Receiver<Bytes>, bool)> {
        viewers.add(audience, Box::new(|| true))
    }

    /// The viewers of a whole namespace.
    const fn of(namespace: u32) -> Audience {
        Audience {
            namespace: NamespaceId(namespace),
            reader: None,
        }
    }

    /// The reader of one request.
    fn reader() -> Audience {
        let rule = AccessRule {
            name: "a".to_owned(),
            primary: Secret::new("key".to_owned()),
            secondary: None,
            rights: Rights::ALL,
            entity: Some("orders".to_owned()),
        };
        let access = Access::new(AccessRules {
            rules: vec![rule],
            ..AccessRules::default()
        });
        let credential = access.log_in("a", b"key").unwrap();
        Audience {
            reader: Some(Reader::new(credential)),
            ..DEFAULT
        }
    }

    #[test]
    fn viewers_are_bounded_and_those_that_have_gone_make_room() {
        let viewers = Viewers::default();
        let all: Vec<_> = (0..VIEWERS)
            .map(|_| add(&viewers, DEFAULT).unwrap())
            .collect();
        assert!(all[0].1 && !all[1].1);
        assert!(add(&viewers, DEFAULT).is_none());
        drop(all);
        assert!(!viewers.send(&DEFAULT, &EVENT));
        assert!(add(&viewers, DEFAULT).unwrap().1);
    }

    #[test]
    fn other_namespaces_leave_room_for_each_other_and_for_the_default_one() {
        let viewers = Viewers::default();
        let mut open = Vec::new();
        for namespace in 1..=7 {
            let mut added = (0..=OF_ONE).map_while(|_| add(&viewers, of(namespace)));
            open.extend(added.by_ref());
        }
        assert_eq!(open.len(), OF_OTHERS);
        assert!(add(&viewers, of(8)).is_none());
        open.extend((0..VIEWERS - OF_OTHERS).map_while(|_| add(&viewers, DEFAULT)));
        assert_eq!(open.len(), VIEWERS);
    }

    #[test]
    fn a_stream_ends_with_the_right_to_see_it() {
        let viewers = Viewers::default();
        let (mut kept, _) = add(&viewers, DEFAULT).unwrap();
        let is_signed_in = Arc::new(AtomicBool::new(true));
        let of_viewer = Arc::clone(&is_signed_in);
        let has_right = Box::new(move || of_viewer.load(Ordering::Relaxed));
        let (mut ended, _) = viewers.add(DEFAULT, has_right).unwrap();
        assert!(viewers.check_rights() && viewers.send(&DEFAULT, &EVENT));
        assert!(kept.try_recv().is_ok() && ended.try_recv().is_ok());
        is_signed_in.store(false, Ordering::Relaxed);
        assert!(viewers.check_rights() && viewers.send(&DEFAULT, &EVENT));
        assert!(kept.try_recv().is_ok());
        assert_eq!(
            ended.try_recv(),
            Err(mpsc::error::TryRecvError::Disconnected)
        );
    }

    #[test]
    fn a_viewer_that_does_not_read_misses_events() {
        let viewers = Viewers::default();
        let (mut events, _) = add(&viewers, DEFAULT).unwrap();
        assert!(viewers.send(&DEFAULT, &EVENT) && viewers.send(&DEFAULT, &EVENT));
        assert_eq!(events.try_recv(), Ok(EVENT));
        assert!(events.try_recv().is_err());
    }

    #[test]
    fn a_stream_ends_after_its_last_event() {
        let viewers = Viewers::default();
        let (mut events, _) = add(&viewers, DEFAULT).unwrap();
        for _ in 1..EVENTS {
            assert!(viewers.send(&DEFAULT, &EVENT));
        }
        assert!(!viewers.send(&DEFAULT, &EVENT));
        assert!(events.try_recv().is_ok());
        assert_eq!(
            events.try_recv(),
            Err(mpsc::error::TryRecvError::Disconnected)
        );
    }

    #[test]
    fn a_viewer_gets_the_events_of_its_namespace_alone() {
        let other = of(1);
        let viewers = Viewers::default();
        let (mut of_default, _) = add(&viewers, DEFAULT).unwrap();
        let (mut of_other, is_first) = add(&viewers, other.clone()).unwrap();
        assert!(!is_first);
        assert_eq!(viewers.audiences(), [DEFAULT, other.clone()]);
        assert!(viewers.send(&other, &EVENT));
        assert!(of_default.try_recv().is_err());
        assert_eq!(of_other.try_recv(), Ok(EVENT));
        drop(of_other);
        assert!(viewers.send(&other, &EVENT));
        assert_eq!(viewers.audiences(), [DEFAULT]);
        drop(of_default);
        assert!(!viewers.send(&DEFAULT, &EVENT));
    }

    #[test]
    fn each_reader_of_some_entities_has_events_of_its_own_and_there_are_few() {
        let viewers = Viewers::default();
        let one = reader();
        let (mut of_one, _) = add(&viewers, one.clone()).unwrap();
        let (mut of_all, _) = add(&viewers, DEFAULT).unwrap();
        let mut others: Vec<_> = (1..OF_READERS)
            .map(|_| add(&viewers, reader()).unwrap())
            .collect();
        assert!(add(&viewers, reader()).is_none());
        assert_eq!(viewers.audiences().len(), OF_READERS + 1);
        assert!(viewers.send(&one, &EVENT));
        assert_eq!(of_one.try_recv(), Ok(EVENT));
        assert!(of_all.try_recv().is_err());
        assert!(
            others
                .iter_mut()
                .all(|(events, _)| events.try_recv().is_err())
        );
    }
}
