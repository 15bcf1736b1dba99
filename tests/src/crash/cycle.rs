//! Cycle: one life of a broker and its end, and the count of what it left.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use rustix::process::Signal;

use super::backup::{self, Backup};
use super::book::{self, Book};
use super::dice::Dice;
use super::kinds::{ENTITIES, Kinds};
use super::traffic::{QUEUE, Traffic, Work};
use crate::disk_faults::{CUT, DiskFaults, Fault, calls};
use crate::{Broker, Peer, Setup, http};

/// Messages that one connection takes.
const PART: u32 = 4_000;
/// More messages than this are purged after a cycle.
const MANY: usize = 1_000;
/// Messages of a cycle, at most.
const MESSAGES: u64 = 160;
/// Messages for which each kind takes a step.
const PER_STEP: u64 = 8;
/// Cycles of which one makes a backup.
const PER_BACKUP: u64 = 6;
/// How a broker on a small memory is configured: files of the journal are small, and the index is
/// flushed often.
pub(super) const CONFIGURATION: &str = "memory = '16MiB'\nmax-message-size = '8MiB'";

/// A data directory, and what has to be in it.
#[derive(Debug)]
pub struct Site {
    setup: Setup,
    book: Book,
    kinds: Kinds,
    backup: Option<Backup>,
    dice: Dice,
    tally: Tally,
}

/// What a number of cycles came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Cycles.
    pub cycles: u64,
    /// Of them those in which the fault ended the broker.
    pub ended: u64,
    /// Of these, before it was ready.
    pub at_start: u64,
    /// Sends that were accepted.
    pub accepted: u64,
    /// Completions that were confirmed.
    pub completed: u64,
    /// Backups that were answered.
    pub backups: u64,
}

impl Site {
    /// An empty data directory; `seed` decides what happens.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            setup: Setup::new()
                .configure(CONFIGURATION)
                .configure(ENTITIES)
                .environment("RUST_LOG", "info"),
            book: Book::default(),
            kinds: Kinds::new(),
            backup: None,
            dice: Dice::new(seed),
            tally: Tally::default(),
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            accepted: self.book.accepted,
            completed: self.book.completed,
            ..self.tally
        }
    }

    /// How many steps each kind of traffic has taken, by its name.
    #[must_use]
    pub fn steps(&self) -> Vec<(&'static str, u64)> {
        self.kinds.tally()
    }

    /// A random number that belongs to this run.
    pub fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// Lets a broker work until `faults` end it or it has sent enough, and counts what it left.
    ///
    /// # Errors
    /// When the broker has broken its promise, in one sentence.
    pub fn fault(&mut self, faults: DiskFaults) -> Result<u64, String> {
        let setup = self.faulty(faults);
        let work = Work {
            messages: MESSAGES,
            kill_after: None,
        };
        let begun = setup.start_or_end();
        self.tally.cycles += 1;
        self.tally.at_start += u64::from(begun.is_err());
        let (status, log) = match begun {
            Ok(broker) => {
                let may_refuse = Fault::OF_CALLS.contains(&faults.fault);
                self.work(&broker, work, may_refuse, || ())?;
                // Unless it has ended, it is told to; that may be when it fails.
                broker.try_signal(Signal::TERM);
                broker.end()
            }
            Err(ended) => ended,
        };
        check_end(faults.fault, status, &log)?;
        self.tally.ended += u64::from(!status.success());
        let counted = calls(&self.counter());
        self.count()?;
        Ok(counted)
    }

    /// Lets a broker work, and kills it at some acceptance.
    ///
    /// # Errors
    /// When the broker has broken its promise, in one sentence.
    pub fn kill(&mut self) -> Result<(), String> {
        let work = Work {
            messages: MESSAGES,
            kill_after: Some(1 + self.dice.roll(MESSAGES)),
        };
        let broker = self.setup.start();
        self.work(&broker, work, false, || broker.signal(Signal::KILL))?;
        broker.try_signal(Signal::KILL);
        drop(broker);
        self.tally.cycles += 1;
        self.tally.ended += 1;
        self.count()
    }

    /// Lets a broker work for long and stops it in good order; returns its resident memory before,
    /// in KiB.
    ///
    /// # Errors
    /// When the broker has broken its promise, in one sentence.
    pub fn soak(&mut self, messages: u64) -> Result<u64, String> {
        let broker = self.setup.start();
        let work = Work {
            messages,
            kill_after: None,
        };
        self.work(&broker, work, false, || ())?;
        let memory = broker.memory("VmRSS");
        self.tally.cycles += 1;
        let status = broker.stop();
        if !status.success() {
            return Err(format!("asked to stop, the broker ended with {status}"));
        }
        self.count()?;
        Ok(memory)
    }

    fn faulty(&self, faults: DiskFaults) -> Setup {
        let environment = faults.environment(self.setup.data(), &self.counter());
        environment
            .into_iter()
            .fold(self.setup.clone(), |setup, (name, value)| {
                setup.environment(&name, &value)
            })
    }

    fn counter(&self) -> PathBuf {
        self.setup.directory().join("calls")
    }

    fn work(
        &mut self,
        broker: &Broker,
        work: Work,
        may_refuse: bool,
        kill: impl FnOnce() + Send,
    ) -> Result<(), String> {
        let address = broker.address();
        let book = Mutex::new(&mut self.book);
        let traffic = Traffic {
            address,
            book: &book,
            is_over: AtomicBool::new(false),
            receiver: Mutex::new(None),
        };
        let steps = work.messages / PER_STEP;
        let name = format!("cycle-{}", self.tally.cycles);
        let (dice, mut of_kinds) = (
            Dice::new(self.dice.roll_any()),
            Dice::new(self.dice.roll_any()),
        );
        let has_backup = self.dice.roll(PER_BACKUP) == 0;
        let kinds = &mut self.kinds;
        self.backup = kinds.work(address, steps, &mut of_kinds, may_refuse, |windows| {
            std::thread::scope(|scope| {
                let backup = has_backup.then(|| {
                    scope.spawn(|| Backup::make(address, name, windows, &book, may_refuse))
                });
                traffic.run(work, dice, kill)?;
                match backup.map(|backup| backup.join()) {
                    Some(made) => made.map_err(|_| "the client of a backup panicked".to_owned())?,
                    None => Ok(None),
                }
            })
        })?;
        self.tally.backups += u64::from(self.backup.is_some());
        Ok(())
    }

    /// Starts a broker without faults and compares all that it has with the book. It is killed
    /// then, so that nothing stays locked.
    fn count(&mut self) -> Result<(), String> {
        let started = self.setup.start_or_end();
        let broker = started.map_err(|(status, log)| {
            format!("the next start ended with {status} and said:\n{log}")
        })?;
        // A connection has a bound of unsettled deliveries, which ends a drain: each takes a part.
        let mut peers = Vec::new();
        let mut bodies = Vec::new();
        let mut is_last = false;
        while !is_last {
            let mut peer = Peer::connect(broker.address());
            let link = peer.receiver(QUEUE, 0);
            let part = peer.drain(link, PART);
            is_last = part.is_empty();
            bodies.extend(part);
            peers.push(peer);
        }
        let numbers: Result<Vec<_>, _> = bodies
            .iter()
            .map(|received| book::number_of(&received.body()))
            .collect();
        self.book.count(&numbers?)?;
        self.kinds.count(broker.address())?;
        let log = broker.log();
        broker.kill();
        self.setup.forget_log();
        if let Some(backup) = self.backup.take() {
            backup.check(self.setup.data())?;
        }
        backup::remove_all(self.setup.data())?;
        if self.book.len() > MANY {
            self.empty()?;
        }
        match log.contains("panicked") {
            true => Err(format!("a thread has panicked:\n{log}")),
            false => Ok(()),
        }
    }

    /// Removes all that is there, so that a run may have any number of cycles.
    fn empty(&mut self) -> Result<(), String> {
        let broker = self.setup.start();
        let path = format!("/$railbus/entities/{QUEUE}/purge");
        let (status, answer) = http::request(broker.address(), "POST", &path, &[], "{}");
        broker.kill();
        let wanted = format!("\"purged\":{}", self.book.len());
        if status != 200 || !answer.contains(&wanted) {
            return Err(format!(
                "a purge of all answers {status} {answer}, not {wanted}"
            ));
        }
        self.book.forget();
        Ok(())
    }
}

/// How a broker with this fault may end.
fn check_end(fault: Fault, status: ExitStatus, log: &str) -> Result<(), String> {
    use std::os::unix::process::ExitStatusExt;
    let is_expected = match fault {
        Fault::None => status.success(),
        // The fault may not have come.
        Fault::CutTail | Fault::CutPages => status.success() || status.code() == Some(CUT),
        Fault::Kill => status.success() || status.signal() == Some(9),
        // It goes on, says why it ends, or says why it does not start.
        Fault::Eio | Fault::Enospc | Fault::Short => matches!(status.code(), Some(0..=2)),
    };
    if !is_expected || log.contains("panicked") {
        return Err(format!("with {fault:?} it ended with {status}:\n{log}"));
    }
    let last = log.lines().last().unwrap_or_default();
    if Fault::OF_CALLS.contains(&fault) && !status.success() && !last.starts_with("railbus: ") {
        return Err(format!("it ended with {status} without saying why:\n{log}"));
    }
    Ok(())
}
