//! Deletion pause: a pause between the pieces of a deletion while other requests are under way.
//!
//! A durable piece still costs time: its thread, the index and compaction take processors, and
//! other requests wait behind them. So the shard may not begin the next piece at once. The pause
//! is real time even where broker time is virtual, since a purge has to go on while that is
//! frozen. To the shard it looks like a store whose sync takes longer.

use std::time::Duration;

use broker::Shard;
use tokio::time::Instant;

/// The length of a pause. A small piece takes half a millisecond, its compaction and disk writes
/// several times that.
const PAUSE: Duration = Duration::from_millis(8);

/// The pause that is going on, if any.
#[derive(Debug, Default)]
pub struct DeletionPause {
    until: Option<Instant>,
}

impl DeletionPause {
    /// Begins or ends a pause, before a turn.
    pub fn update(&mut self, now: Instant, shard: &mut Shard) {
        match self.until {
            Some(until) if until <= now => {
                self.until = None;
                shard.hold_deletions(false);
            }
            Some(_) => {}
            None if shard.is_deleting_beside_others() => {
                self.until = Some(now + PAUSE);
                shard.hold_deletions(true);
            }
            None => {}
        }
    }

    /// Returns when the pause is over; never if there is none.
    pub async fn finished(&self) {
        match self.until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use broker::{
        BrokerSettings, Command, ConnectionId, Ensured, Incoming, Now, Order, Output,
        QueueSettings, RequestId, Subqueue, SubqueueId, Wall,
    };
    use store::{EntityId, MemoryStore, NamespaceId};

    use super::*;

    /// A shard with a queue of messages, whose smallest pieces are one message.
    struct Fixture {
        shard: Shard,
        pause: DeletionPause,
        now: Instant,
    }

    const QUEUE: EntityId = EntityId(1);
    const REQUEST: RequestId = RequestId {
        connection: ConnectionId(1),
        token: 1,
    };

    impl Fixture {
        fn new(messages: usize) -> Self {
            let settings = BrokerSettings {
                turn_work: 4,
                ..BrokerSettings::default()
            };
            let store = Box::new(MemoryStore::new());
            let shard = Shard::open(
                settings,
                servicebus::describe_forward_error,
                store,
                Now::default(),
            )
            .expect("it is empty");
            let (pause, now) = (DeletionPause::default(), Instant::now());
            let mut site = Self { shard, pause, now };
            let ensured = Ensured::Queue {
                path: "q".to_owned(),
                settings: QueueSettings::default(),
            };
            site.turn(vec![Command::Administer {
                request: REQUEST,
                namespace: NamespaceId(0),
                order: Box::new(Order::ensure(vec![ensured])),
            }]);
            site.turn(vec![send(messages)]);
            site
        }

        fn turn(&mut self, mut commands: Vec<Command>) -> Vec<Output> {
            let mut said = Vec::new();
            self.pause.update(self.now, &mut self.shard);
            let shard = &mut self.shard;
            shard.turn(Now::default(), &mut commands, &mut said, &mut Vec::new());
            said
        }

        fn left(&self) -> u64 {
            self.shard.broker.queue(QUEUE).expect("it is there").active
        }
    }

    fn send(messages: usize) -> Command {
        Command::Send {
            request: REQUEST,
            entity: QUEUE,
            messages: vec![Incoming::default(); messages],
        }
    }

    fn delete(count: usize) -> Command {
        Command::DeleteMessages {
            request: REQUEST,
            subqueue: SubqueueId {
                entity: QUEUE,
                subqueue: Subqueue::Main,
            },
            session: None,
            enqueued_before: Wall(u64::MAX),
            count,
        }
    }

    #[test]
    fn a_deletion_pauses_while_other_requests_wait_and_then_goes_on() {
        let mut site = Fixture::new(9);
        site.turn(vec![delete(9)]);
        assert_eq!(site.left(), 8);
        site.turn(Vec::new());
        assert_eq!(site.left(), 8, "it rests");
        site.now += PAUSE - Duration::from_millis(1);
        site.turn(vec![send(1)]);
        assert_eq!(site.left(), 9, "whoever comes meanwhile is served");
        site.now += Duration::from_millis(1);
        site.turn(Vec::new());
        assert_eq!(site.left(), 8);
        site.turn(Vec::new());
        assert_eq!(site.left(), 8, "it rests again");
    }

    #[test]
    fn a_deletion_does_not_pause_without_other_requests() {
        let mut site = Fixture::new(99);
        site.turn(vec![delete(99)]);
        for _ in 0..4 {
            site.now += PAUSE;
            site.turn(Vec::new());
            site.turn(Vec::new());
        }
        let left = site.left();
        site.turn(Vec::new());
        assert_eq!(site.left(), left - 3, "the largest piece");
        site.turn(Vec::new());
        assert_eq!(site.left(), left - 6, "and the next at once");
    }
}
