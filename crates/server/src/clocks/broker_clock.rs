//! Broker clock: the time that the shard reads and sleeps by.
//!
//! It is the real time of `clock`, plus the offset of `virtual_clock` if the server was started
//! with a virtual clock. Then each namespace may be ahead of it, by advances that
//! `namespace_clocks` carries out.

use broker::{Broker, Command, Deadline, Now, Operation, Shard};
use store::NamespaceId;
use tokio::time::Instant;

use crate::clocks::clock::Clock;
use crate::clocks::namespace_clocks::NamespaceClocks;
use crate::clocks::virtual_clock::{
    ClockError, ClockRequest, ReplySender, ShardProgress, VirtualClock,
};

/// Broker time.
#[derive(Debug)]
pub struct BrokerClock {
    real: Clock,
    moved: Option<VirtualClock>,
    namespaces: NamespaceClocks,
}

impl BrokerClock {
    /// Real time, which can be moved if `is_virtual`.
    pub fn new(real: Clock, is_virtual: bool) -> Self {
        Self {
            real,
            moved: is_virtual.then(VirtualClock::default),
            namespaces: NamespaceClocks::default(),
        }
    }

    /// What the broker goes by.
    pub fn now(&self) -> Now {
        let real = self.real.now();
        self.moved.as_ref().map_or(real, |moved| moved.now(real))
    }

    /// Turns the moments that clients name by their own clocks, which show real time, into the
    /// broker's: what is scheduled for an hour from now is due when an hour has passed here, and
    /// what was enqueued before now has been, however far ahead the broker is.
    pub fn translate(&self, commands: &mut [Command], broker: &Broker) {
        let Some(moved) = &self.moved else {
            return;
        };
        let real = self.real.now();
        let offset = moved.reading(real).offset;
        for command in commands {
            let Some(own) = ahead_of(command, broker) else {
                continue;
            };
            let ahead = offset.saturating_add_unsigned(own);
            if let Command::DeleteMessages {
                enqueued_before, ..
            } = command
                // A later moment is none that a client's clock shows: it was read off a message.
                && *enqueued_before <= real.wall
            {
                enqueued_before.0 = enqueued_before.0.saturating_add_signed(ahead);
            }
            for message in command.messages_mut() {
                if let Some(due) = &mut message.scheduled {
                    due.0 = due.0.saturating_add_signed(ahead);
                }
            }
        }
    }

    /// Whether the clock of a namespace is to move on with the next turn.
    pub fn moves_namespace(&self, shard: &Shard) -> bool {
        self.namespaces.want_turn(shard)
    }

    /// Sleeps until the shard should make a turn although nothing arrived.
    pub async fn sleep(&self, deadline: Option<Deadline>, reads: usize, moves_namespace: bool) {
        match &self.moved {
            Some(_) if moves_namespace => tokio::task::yield_now().await,
            None => sleep_until(deadline.and_then(|deadline| self.real.wake(deadline))).await,
            // Lets other tasks run, so that a long advance does not occupy a thread.
            Some(moved) if moved.wants_turn(self.real.now(), deadline, reads) => {
                tokio::task::yield_now().await;
            }
            Some(moved) if moved.is_held() => std::future::pending().await,
            Some(moved) => {
                let deadline = deadline.map(|deadline| moved.real(deadline));
                sleep_until(deadline.and_then(|deadline| self.real.wake(deadline))).await;
            }
        }
    }

    /// Takes a user's request about the broker's clock, or that of a namespace; the answer comes
    /// when it is done.
    pub fn ask(
        &mut self,
        namespace: Option<NamespaceId>,
        request: ClockRequest,
        answer: ReplySender,
        shard: &Shard,
    ) {
        let real = self.real.now();
        match (&mut self.moved, namespace) {
            (Some(moved), None) => moved.ask(request, answer, real),
            (Some(moved), Some(namespace)) => {
                let reading = moved.reading(real);
                self.namespaces
                    .ask(namespace, request, answer, reading, shard);
            }
            (None, _) => {
                // The client may be gone.
                let _ = answer.send(Err(ClockError::NotVirtual));
            }
        }
    }

    /// The shard has made a turn. Adds what the next one is to begin with.
    pub fn advance_to_deadline(
        &mut self,
        progress: ShardProgress,
        shard: &Shard,
        commands: &mut Vec<Command>,
    ) {
        let real = self.real.now();
        if let Some(moved) = &mut self.moved {
            moved.advance_to_deadline(real, progress);
            let (now, reading) = (moved.now(real), moved.reading(real));
            self.namespaces
                .advance_to_deadlines(now, reading, shard, commands);
        }
    }
}

/// How far the namespace of a command is ahead, in milliseconds, if the command names moments.
fn ahead_of(command: &Command, broker: &Broker) -> Option<u64> {
    match command {
        Command::DeleteMessages { subqueue, .. } => Some(broker.ahead_of(subqueue.entity)),
        Command::Send { entity, .. } => Some(broker.ahead_of(*entity)),
        Command::Enlist { operation, .. } => match &**operation {
            Operation::Send { entity, .. } => Some(broker.ahead_of(*entity)),
            _ => None,
        },
        Command::Publish { publication, .. } => {
            Some(broker.ahead(publication.namespace).unwrap_or(0))
        }
        _ => None,
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use broker::{BrokerSettings, ConnectionId, RequestId, Subqueue, SubqueueId, Wall};
    use store::{EntityId, MemoryStore};
    use tokio::sync::oneshot;

    use super::*;
    use crate::clocks::virtual_clock::ClockReading;

    const DAY: u64 = 24 * 60 * 60 * 1_000;

    fn before(clock: &BrokerClock, shard: &Shard, moment: Wall) -> Wall {
        let mut commands = [Command::DeleteMessages {
            request: RequestId {
                connection: ConnectionId(1),
                token: 1,
            },
            subqueue: SubqueueId {
                entity: EntityId(1),
                subqueue: Subqueue::Main,
            },
            session: None,
            enqueued_before: moment,
            count: 1,
        }];
        clock.translate(&mut commands, &shard.broker);
        match commands {
            [
                Command::DeleteMessages {
                    enqueued_before, ..
                },
            ] => enqueued_before,
            [other] => panic!("{other:?}"),
        }
    }

    fn shard(clock: &BrokerClock) -> Shard {
        let store = Box::new(MemoryStore::new());
        let (settings, describe) = (
            BrokerSettings::default(),
            servicebus::describe_forward_error,
        );
        Shard::open(settings, describe, store, clock.now()).unwrap()
    }

    /// Turns, as the shard task makes them, until a request is answered.
    fn answer(
        clock: &mut BrokerClock,
        shard: &mut Shard,
        namespace: Option<NamespaceId>,
        request: ClockRequest,
    ) -> Result<ClockReading, ClockError> {
        let (sender, mut answer) = oneshot::channel();
        clock.ask(namespace, request, sender, shard);
        let (mut commands, mut said, mut reads) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            if let Ok(answer) = answer.try_recv() {
                return answer;
            }
            shard.turn(clock.now(), &mut commands, &mut said, &mut reads);
            let progress = ShardProgress {
                deadline: shard.deadline(),
                reads: 0,
                submitted: shard.submitted(),
                released: shard.released(),
            };
            clock.advance_to_deadline(progress, shard, &mut commands);
        }
    }

    const A_DAY: ClockRequest = ClockRequest::Advance(Duration::from_millis(DAY));

    #[test]
    fn a_batch_delete_of_what_was_enqueued_before_now_goes_up_to_the_brokers_now() {
        let mut clock = BrokerClock::new(Clock::start(), true);
        let mut shard = shard(&clock);
        answer(&mut clock, &mut shard, None, A_DAY).unwrap();
        let now = clock.real.now().wall;
        assert_eq!(before(&clock, &shard, now), Wall(now.0 + DAY));
        let read_off_a_message = Wall(now.0 + DAY / 2);
        assert_eq!(
            before(&clock, &shard, read_off_a_message),
            read_off_a_message
        );
    }

    #[test]
    fn a_namespace_is_ahead_of_the_broker_by_its_own_advances() {
        let mut clock = BrokerClock::new(Clock::start(), true);
        let mut shard = shard(&clock);
        let default = Some(NamespaceId::default());
        let mut ask = |namespace, request| answer(&mut clock, &mut shard, namespace, request);
        let day = i64::try_from(DAY).unwrap();
        assert_eq!(ask(default, A_DAY).unwrap().offset, day);
        assert_eq!(ask(None, ClockRequest::Show).unwrap().offset, 0);
        assert_eq!(ask(None, A_DAY).unwrap().offset, day);
        assert_eq!(ask(default, ClockRequest::Show).unwrap().offset, 2 * day);
        ask(None, ClockRequest::Freeze(true)).unwrap();
        let frozen = ask(default, A_DAY).unwrap();
        assert!(frozen.frozen, "as the broker is");
        assert_eq!(ask(default, ClockRequest::Show), Ok(frozen));
    }

    #[test]
    fn what_a_namespaces_clock_cannot_do_is_refused() {
        let mut clock = BrokerClock::new(Clock::start(), true);
        let mut shard = shard(&clock);
        let mut ask = |namespace, request| answer(&mut clock, &mut shard, namespace, request);
        let default = Some(NamespaceId::default());
        let freeze = ClockRequest::Freeze(true);
        assert_eq!(ask(default, freeze), Err(ClockError::NotAlone));
        let far = ClockRequest::Advance(Duration::from_millis(101 * 365 * DAY));
        assert_eq!(ask(default, far), Err(ClockError::TooFar));
        let none = Some(NamespaceId(9));
        assert_eq!(ask(none, A_DAY), Err(ClockError::NamespaceGone));
        let mut clock = BrokerClock::new(Clock::start(), false);
        let real = answer(&mut clock, &mut shard, default, A_DAY);
        assert_eq!(real, Err(ClockError::NotVirtual));
    }
}
