//! Kinds: the ways in which clients use a broker beside the queue of [`Traffic`], each with
//! entities, a client and a ledger of its own.
//!
//! In a cycle each kind takes some steps, at the same time as all others. A step is one or two
//! requests, chosen by dice; it waits for the answers. A count compares each ledger with all that
//! the kind's entities have, their dead letters too.
//!
//! [`Traffic`]: super::traffic::Traffic

mod dead_letters;
mod deferral;
mod delay;
mod duplicates;
mod schedule;
mod sessions;
mod subscriptions;
mod transactions;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use amqp::DeliveryState;

use super::client::{Client, Delivery, Step, Stop};
use super::dice::Dice;
use super::ledger::Ledger;
use super::survey::Survey;

/// The entities of all kinds. No message leaves by its deliveries.
pub(super) const ENTITIES: &str = "
[[queues]]
name = 'scheduled'
max-delivery-count = 2147483647

[[queues]]
name = 'letters'
max-delivery-count = 2147483647

[[queues]]
name = 'deferred'
max-delivery-count = 2147483647

[[queues]]
name = 'sessions'
requires-session = true
max-delivery-count = 2147483647

[[queues]]
name = 'left'
max-delivery-count = 2147483647

[[queues]]
name = 'right'
max-delivery-count = 2147483647

[[queues]]
name = 'delayed'
max-delivery-count = 2147483647

[[queues]]
name = 'once'
requires-duplicate-detection = true
duplicate-detection-history-time-window = 'P7D'
max-delivery-count = 2147483647

[[topics]]
name = 'events'

[[topics.subscriptions]]
name = 'all'
max-delivery-count = 2147483647

[[topics.subscriptions]]
name = 'even'
max-delivery-count = 2147483647

[[topics.subscriptions.rules]]
name = 'even'
filter = { sql = \"parity = 'even'\" }
";

/// One of the kinds.
trait Kind: Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// A client that does what the kind is about.
    fn connect(&self, address: SocketAddr) -> Step<Box<dyn Worker + '_>>;

    /// Compares the ledger with what a broker has.
    fn count(&self, survey: &mut Survey) -> Result<(), String>;

    /// See [`Ledger::open_window`].
    fn open_window(&self);

    /// The kind as it was possible in the window.
    fn close_window(&self) -> Box<dyn Kind>;
}

trait Worker {
    fn step(&mut self, dice: &mut Dice) -> Step<()>;
}

/// All kinds, on one data directory.
#[derive(Debug)]
pub(super) struct Kinds {
    all: Vec<Box<dyn Kind>>,
    /// Steps of each whose answers came.
    steps: Vec<u64>,
}

impl Kinds {
    pub fn new() -> Self {
        let all: Vec<Box<dyn Kind>> = vec![
            Box::new(schedule::Schedule::new(1)),
            Box::new(dead_letters::DeadLetters::new(2)),
            Box::new(deferral::Deferral::new(3)),
            Box::new(sessions::Sessions::new(4)),
            Box::new(subscriptions::Subscriptions::new(5)),
            Box::new(transactions::Transactions::new(6)),
            Box::new(delay::Delay::new(7)),
            Box::new(duplicates::Duplicates::new(8)),
        ];
        let steps = vec![0; all.len()];
        Self { all, steps }
    }

    /// How many steps each kind has taken.
    pub fn tally(&self) -> Vec<(&'static str, u64)> {
        let names = self.all.iter().map(|kind| kind.name());
        names.zip(self.steps.iter().copied()).collect()
    }

    /// Lets each kind take `steps` steps, unless the broker ends before, while `main` runs. A
    /// broker that `may_refuse` has a disk that fails.
    pub fn work<T>(
        &mut self,
        address: SocketAddr,
        steps: u64,
        dice: &mut Dice,
        may_refuse: bool,
        main: impl FnOnce(&Windows<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let windows = Windows(&self.all);
        let mut taken = Vec::new();
        let result = std::thread::scope(|scope| {
            let threads: Vec<_> = (self.all.iter())
                .map(|kind| {
                    let dice = Dice::new(dice.roll_any());
                    scope.spawn(move || run(kind.as_ref(), address, steps, dice))
                })
                .collect();
            let mut result = main(&windows);
            for (thread, kind) in threads.into_iter().zip(&self.all) {
                let name = kind.name();
                let joined = thread.join();
                let (steps, end) = joined.map_err(|_| format!("the client of {name} panicked"))?;
                taken.push(steps);
                match end {
                    Stop::Broken(text) => result = Err(format!("{name}: {text}")),
                    Stop::Refused(text) if !may_refuse => {
                        result = Err(format!("{name}: {text}"));
                    }
                    _ => {}
                }
            }
            result
        });
        for (all, taken) in self.steps.iter_mut().zip(taken) {
            *all += taken;
        }
        result
    }

    /// Compares all ledgers with what a broker has.
    pub fn count(&self, address: SocketAddr) -> Result<(), String> {
        let mut survey = Survey::begin(address)?;
        for kind in &self.all {
            let counted = kind.count(&mut survey);
            counted.map_err(|text| format!("{}: {text}", kind.name()))?;
        }
        Ok(())
    }
}

/// The ledgers of all kinds while these are at work.
pub(super) struct Windows<'a>(&'a [Box<dyn Kind>]);

impl Windows<'_> {
    pub fn open(&self) {
        self.0.iter().for_each(|kind| kind.open_window());
    }

    /// All kinds as they were possible since the windows were opened.
    pub fn close(&self) -> Kinds {
        let all: Vec<_> = self.0.iter().map(|kind| kind.close_window()).collect();
        let steps = vec![0; all.len()];
        Kinds { all, steps }
    }
}

/// Takes the steps; returns how many were answered, and why it ended.
fn run(kind: &dyn Kind, address: SocketAddr, steps: u64, mut dice: Dice) -> (u64, Stop) {
    let mut taken = 0;
    let mut work = || -> Step<()> {
        let mut worker = kind.connect(address)?;
        while taken < steps {
            worker.step(&mut dice)?;
            taken += 1;
        }
        Ok(())
    };
    let end = work().err().unwrap_or(Stop::Gone);
    (taken, end)
}

/// A client that panics ends the test with its own message.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Completes a message, after which it is nowhere.
fn complete<P: Copy + Debug + Eq>(
    client: &mut Client,
    ledger: &Mutex<Ledger<P>>,
    delivery: &Delivery,
) -> Step<()> {
    let number = delivery.seen.number;
    lock(ledger).begin(number, None);
    client.settle(delivery, DeliveryState::Accepted)?;
    lock(ledger).end(number, &[None]);
    Ok(())
}

/// The first of the messages that can be received.
fn take_one(client: &mut Client, link: endpoint::LinkId) -> Step<Option<Delivery>> {
    Ok(client.take(link, 1)?.pop())
}
