//! Broker clock: what the shard reads and sleeps by. Real time, or virtual time where the server
//! was started so.

use broker::{Command, Deadline, Incoming, Now, Operation};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::virtual_clock::{Answer, Progress, Refusal, Request, VirtualClock};

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
    /// broker's: what is scheduled for an hour from now is due when an hour has passed here.
    pub fn translate(&self, commands: &mut [Command]) {
        let Some(moved) = &self.moved else {
            return;
        };
        let real = self.real.now();
        let ahead = moved.reading(real).offset;
        for command in commands {
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
            // Lets others run, so that a long advance does not keep a thread for itself.
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
    pub fn ask(&mut self, request: Request, answer: Answer) {
        match &mut self.moved {
            Some(moved) => moved.ask(request, answer, self.real.now()),
            None => {
                // Who asked may be gone.
                let _ = answer.send(Err(Refusal::NotVirtual));
            }
        }
    }

    /// The shard has made a turn.
    pub fn proceed(&mut self, progress: Progress) {
        if let Some(moved) = &mut self.moved {
            moved.proceed(self.real.now(), progress);
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
        _ => &mut [],
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
