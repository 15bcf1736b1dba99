//! Activity: receivers, locks and sessions of an entity, as scripts show them.

use broker::{ActivityWanted, Browsed, LockTime};

use super::{Stage, time};

impl Stage {
    /// What goes on at an entity, `most` of each.
    pub(super) fn activity(&mut self, args: &[&str]) {
        let most = args.first().map_or(10, |most| most.parse().unwrap());
        let entity = self.entity(&[]);
        let activity =
            self.shard
                .broker
                .activity(entity, self.broker_now(), &ActivityWanted::First(most));
        let activity = activity.unwrap();
        let (receivers, locks) = (activity.receiver_count, activity.lock_counts.iter());
        let locks: usize = locks.sum();
        let sessions = activity.session_count;
        self.tell(&format!(
            "receivers {receivers} locks {locks} sessions {sessions}"
        ));
        if locks > activity.locks.len() {
            self.tell(&format!("locks by subqueue {:?}", activity.lock_counts));
        }
        for receiver in activity.receivers {
            let session = receiver.session.map(|id| text(&id));
            let session = session.unwrap_or_else(|| match receiver.waits_for_session {
                true => "waits".to_owned(),
                false => "-".to_owned(),
            });
            let selector = receiver.selector.as_ref();
            let selector =
                selector.map_or_else(String::new, |it| format!(" selector {}", it.text()));
            self.tell(&format!(
                "receiver {:?} credit {} session {session}{selector}",
                receiver.mode, receiver.credit
            ));
        }
        for lock in activity.locks {
            let left = lock.left_ms.map_or_else(|| "-".to_owned(), time);
            let link = lock.link.map_or("by number", |_| "by a receiver");
            self.tell(&format!(
                "lock {} in {:?} {link} for {left}",
                lock.number, lock.subqueue
            ));
        }
        for session in activity.sessions {
            let hold = session.hold.map_or_else(
                || "idle".to_owned(),
                |hold| format!("held for {} locked {}", time(hold.left_ms), hold.locked),
            );
            self.tell(&format!("session {} {hold}", text(&session.id)));
        }
    }
}

fn text(id: &[u8]) -> String {
    String::from_utf8_lossy(id).into_owned()
}

/// A message as a peek shows it, with whose lock it has.
pub(super) fn peeked(message: &Browsed) -> String {
    let is_links = message.lock == Some(LockTime::WithReceiver);
    super::browsed(message) + if is_links { " locked by a link" } else { "" }
}
