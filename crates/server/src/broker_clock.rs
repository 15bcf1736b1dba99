//! Broker clock: the time that the shard reads and sleeps by. It is real time, or virtual time if
//! the server was started with a virtual clock.

use broker::{Command, Deadline, Incoming, Now, Operation};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::virtual_clock::{ClockError, ClockRequest, ReplySender, ShardProgress, VirtualClock};

/// Broker time.
#[derive(Debug)]
pub struct BrokerClock {
    real: Clock,
    moved: Option<VirtualClock>,
}

impl BrokerClock {
    /// Real time, which can be moved if `is_virtual`.
    pub fn new(real: Clock, is_virtual: bool) -> Self {
        Self {
            real,
            moved: is_virtual.then(VirtualClock::default),
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
    pub fn translate(&self, commands: &mut [Command]) {
        let Some(moved) = &self.moved else {
            return;
        };
        let real = self.real.now();
        let ahead = moved.reading(real).offset;
        for command in commands {
            if let Command::DeleteMessages {
                enqueued_before, ..
            } = command
                // A later moment is none that a client's clock shows: it was read off a message.
                && *enqueued_before <= real.wall
            {
                enqueued_before.0 = enqueued_before.0.saturating_add_signed(ahead);
            }
            for message in messages_of(command) {
                if let Some(due) = &mut message.scheduled {
                    due.0 = due.0.saturating_add_signed(ahead);
                }
            }
        }
    }

    /// Sleeps until the shard should make a turn although nothing arrived.
    pub async fn sleep(&self, deadline: Option<Deadline>, reads: usize) {
        match &self.moved {
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

    /// Takes a user's request; the answer comes when it is done.
    pub fn ask(&mut self, request: ClockRequest, answer: ReplySender) {
        match &mut self.moved {
            Some(moved) => moved.ask(request, answer, self.real.now()),
            None => {
                // The client may be gone.
                let _ = answer.send(Err(ClockError::NotVirtual));
            }
        }
    }

    /// The shard has made a turn.
    pub fn advance_to_deadline(&mut self, progress: ShardProgress) {
        if let Some(moved) = &mut self.moved {
            moved.advance_to_deadline(self.real.now(), progress);
        }
    }
}

/// The messages that a command brings.
fn messages_of(command: &mut Command) -> &mut [Incoming] {
    match command {
        Command::Send { messages, .. }
        | Command::Enlist {
            operation: Operation::Send { messages, .. },
            ..
        } => messages,
        Command::Publish { publication, .. } => std::slice::from_mut(&mut publication.message),
        _ => &mut [],
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

    use broker::{ConnectionId, RequestId, Subqueue, SubqueueId, Wall};
    use store::{CommitId, EntityId};
    use tokio::sync::oneshot;

    use super::*;

    const DAY: u64 = 24 * 60 * 60 * 1_000;

    fn before(clock: &BrokerClock, moment: Wall) -> Wall {
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
        clock.translate(&mut commands);
        match commands {
            [
                Command::DeleteMessages {
                    enqueued_before, ..
                },
            ] => enqueued_before,
            [other] => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_batch_delete_of_what_was_enqueued_before_now_goes_up_to_the_brokers_now() {
        let mut clock = BrokerClock::new(Clock::start(), true);
        let (answer, mut advanced) = oneshot::channel();
        clock.ask(ClockRequest::Advance(Duration::from_millis(DAY)), answer);
        // As the shard does after its turns, until there is nothing left to do.
        for _ in 0..3 {
            clock.advance_to_deadline(ShardProgress {
                deadline: None,
                reads: 0,
                submitted: CommitId(0),
                released: CommitId(0),
            });
        }
        assert!(advanced.try_recv().unwrap().is_ok());
        let now = clock.real.now().wall;
        assert_eq!(before(&clock, now), Wall(now.0 + DAY));
        let read_off_a_message = Wall(now.0 + DAY / 2);
        assert_eq!(before(&clock, read_off_a_message), read_off_a_message);
    }
}
