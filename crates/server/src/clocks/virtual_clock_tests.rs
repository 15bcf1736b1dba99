//! A virtual clock over a model of a shard: a list of future events, each of which may add others.

use super::*;

const DAY: u64 = 24 * 60 * 60 * 1_000;
const START: u64 = 1_700_000_000_000;

/// Something that happens at a time of the broker's monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Event {
    at: u64,
    name: &'static str,
    /// Comes back after this time, this many times.
    again: Option<(u64, u32)>,
    /// Has to be read first, which takes a turn.
    read: bool,
}

/// A clock, real time, and a shard that does one thing a turn.
struct Fixture {
    clock: VirtualClock,
    real: Now,
    events: Vec<Event>,
    reads: Vec<Event>,
    commits: u64,
    durable: u64,
    log: Vec<String>,
}

impl Fixture {
    fn new(events: &[(u64, &'static str)]) -> Self {
        let events = events.iter().map(|&(at, name)| Event {
            at,
            name,
            again: None,
            read: false,
        });
        Self {
            clock: VirtualClock::default(),
            real: Now {
                wall: Wall(START),
                mono: Mono(0),
            },
            events: events.collect(),
            reads: Vec::new(),
            commits: 0,
            durable: 0,
            log: Vec::new(),
        }
    }

    fn ask(
        &mut self,
        request: ClockRequest,
    ) -> oneshot::Receiver<Result<ClockReading, ClockError>> {
        let (answer, receiver) = oneshot::channel();
        self.clock.ask(request, answer, self.real);
        receiver
    }

    fn advance(&mut self, millis: u64) -> oneshot::Receiver<Result<ClockReading, ClockError>> {
        self.ask(ClockRequest::Advance(Duration::from_millis(millis)))
    }

    /// Real time goes on.
    fn pass(&mut self, millis: u64) {
        self.real = later(self.real, millis);
    }

    fn now(&self) -> Now {
        self.clock.now(self.real)
    }

    fn deadline(&self) -> Option<Deadline> {
        let first = self.events.iter().map(|event| event.at).min()?;
        Some(Deadline {
            mono: Some(Mono(first)),
            wall: None,
        })
    }

    /// Does what is due: one thing that came back from a read, or else the first that is due.
    fn turn(&mut self) {
        if let Some(event) = self.reads.pop() {
            self.happen(&event);
        } else {
            let now = self.now().mono.0;
            self.events.sort_by_key(|event| event.at);
            if self.events.first().is_some_and(|event| event.at <= now) {
                let event = self.events.remove(0);
                if event.read {
                    self.reads.push(event);
                } else {
                    self.happen(&event);
                }
            }
        }
        let progress = ShardProgress {
            deadline: self.deadline(),
            reads: self.reads.len(),
            submitted: CommitId(self.commits),
            released: CommitId(self.durable),
        };
        self.clock.advance_to_deadline(self.real, progress);
    }

    fn happen(&mut self, event: &Event) {
        self.commits += 1;
        self.log
            .push(format!("{} at {}", event.name, self.now().mono.0));
        if let Some((period, times)) = event.again
            && times > 0
        {
            self.events.push(Event {
                at: event.at + period,
                again: Some((period, times - 1)),
                ..*event
            });
        }
    }

    /// Turns while the clock wants them; returns how many there were.
    fn run(&mut self) -> usize {
        let mut turns = 0;
        while !self.reads.is_empty()
            || self
                .clock
                .wants_turn(self.real, self.deadline(), self.reads.len())
        {
            self.turn();
            turns += 1;
            assert!(turns < 10_000, "an advance comes to an end");
        }
        turns
    }

    fn run_durably(&mut self) {
        self.run();
        self.durable = self.commits;
        self.turn();
        self.run();
    }
}

fn offset_of(receiver: &mut oneshot::Receiver<Result<ClockReading, ClockError>>) -> i64 {
    let reading = receiver.try_recv().expect("an answer is there");
    reading.expect("the clock could be moved").offset
}

#[test]
fn all_that_is_due_happens_in_order_and_at_its_own_time() {
    let mut site = Fixture::new(&[(5_000, "b"), (1_000, "a"), (DAY, "c"), (DAY + 1, "d")]);
    let mut answer = site.advance(DAY);
    site.run_durably();
    assert_eq!(site.log, ["a at 1000", "b at 5000", "c at 86400000"]);
    assert_eq!(offset_of(&mut answer), i64::try_from(DAY).unwrap());
}

#[test]
fn what_happens_may_set_more_that_is_due() {
    let mut site = Fixture::new(&[(60_000, "lock")]);
    site.events[0].again = Some((60_000, 10));
    let _answer = site.advance(180_000);
    site.run_durably();
    assert_eq!(
        site.log,
        ["lock at 60000", "lock at 120000", "lock at 180000"]
    );
}

#[test]
fn time_does_not_move_on_while_a_read_is_under_way() {
    let mut site = Fixture::new(&[(1_000, "read"), (2_000, "other")]);
    site.events[0].read = true;
    let _answer = site.advance(DAY);
    site.run_durably();
    assert_eq!(site.log, ["read at 1000", "other at 2000"]);
}

#[test]
fn the_answer_waits_until_what_happened_is_durable_and_said() {
    let mut site = Fixture::new(&[(1_000, "a")]);
    let mut answer = site.advance(DAY);
    site.run();
    assert_eq!(site.log.len(), 1);
    assert!(answer.try_recv().is_err());
    site.durable = 1;
    site.turn();
    assert!(answer.try_recv().is_ok());
}

#[test]
fn later_commands_do_not_delay_an_answer() {
    let mut site = Fixture::new(&[(1_000, "a")]);
    let mut answer = site.advance(DAY);
    site.run();
    site.commits += 5;
    site.durable = 1;
    site.turn();
    assert!(answer.try_recv().is_ok());
}

#[test]
fn advances_at_once_happen_one_after_the_other() {
    let mut site = Fixture::new(&[(DAY, "a"), (2 * DAY, "b")]);
    let mut first = site.advance(DAY);
    let mut second = site.advance(DAY);
    site.run_durably();
    assert_eq!(offset_of(&mut first), i64::try_from(DAY).unwrap());
    site.run_durably();
    assert_eq!(offset_of(&mut second), i64::try_from(2 * DAY).unwrap());
    assert_eq!(site.log, ["a at 86400000", "b at 172800000"]);
}

#[test]
fn a_running_clock_goes_on_after_an_advance_and_counts_the_time_it_took() {
    let mut site = Fixture::new(&[]);
    let _answer = site.advance(DAY);
    site.pass(30);
    site.run_durably();
    assert_eq!(site.now().mono.0, DAY + 30);
    site.pass(70);
    assert_eq!(site.now().wall.0, START + DAY + 100);
}

#[test]
fn a_frozen_clock_only_moves_by_an_advance() {
    let mut site = Fixture::new(&[]);
    site.pass(10);
    let mut answer = site.ask(ClockRequest::Freeze(true));
    assert!(answer.try_recv().unwrap().unwrap().frozen);
    site.pass(1_000);
    assert_eq!(site.now().mono.0, 10);
    let _answer = site.advance(500);
    site.run_durably();
    site.pass(1_000);
    assert_eq!(site.now().mono.0, 510);
    assert_eq!(site.now().wall.0, START + 510);
}

#[test]
fn a_clock_that_was_frozen_runs_on_from_where_it_stood() {
    let mut site = Fixture::new(&[]);
    drop(site.ask(ClockRequest::Freeze(true)));
    site.pass(1_000);
    let mut answer = site.ask(ClockRequest::Freeze(false));
    assert_eq!(offset_of(&mut answer), -1_000);
    site.pass(5);
    assert_eq!(site.now().mono.0, 5);
    let deadline = Deadline {
        mono: Some(Mono(100)),
        wall: Some(Wall(START + 200)),
    };
    let real = site.clock.real(deadline);
    assert_eq!(real.mono, Some(Mono(1_100)));
    assert_eq!(real.wall, Some(Wall(START + 1_200)));
}

#[test]
fn a_freeze_during_an_advance_waits_for_its_end() {
    let mut site = Fixture::new(&[]);
    let mut advance = site.advance(DAY);
    let mut freeze = site.ask(ClockRequest::Freeze(true));
    assert!(freeze.try_recv().is_err());
    site.run_durably();
    assert!(!advance.try_recv().unwrap().unwrap().frozen);
    assert!(freeze.try_recv().unwrap().unwrap().frozen);
    site.pass(1_000);
    assert_eq!(site.now().mono.0, DAY);
}

#[test]
fn showing_does_not_wait_for_an_advance() {
    let mut site = Fixture::new(&[(1_000, "a")]);
    let _advance = site.advance(DAY);
    site.turn();
    let mut show = site.ask(ClockRequest::Show);
    assert_eq!(offset_of(&mut show), 1_000);
}

#[test]
fn more_than_a_century_ahead_is_refused_and_changes_nothing() {
    let mut site = Fixture::new(&[]);
    for amount in [MOST + 1, u64::MAX] {
        let mut answer = site.advance(amount);
        assert_eq!(answer.try_recv(), Ok(Err(ClockError::TooFar)));
    }
    let _answer = site.advance(MOST);
    site.run_durably();
    let mut answer = site.advance(1);
    assert_eq!(answer.try_recv(), Ok(Err(ClockError::TooFar)));
    assert_eq!(site.now().mono.0, MOST);
}

#[test]
fn advancing_by_nothing_waits_for_what_is_due_now() {
    let mut site = Fixture::new(&[(0, "a")]);
    let mut answer = site.advance(0);
    site.run_durably();
    assert_eq!(site.log, ["a at 0"]);
    assert_eq!(offset_of(&mut answer), 0);
}

#[test]
fn a_client_may_be_gone_before_its_answer() {
    let mut site = Fixture::new(&[(1_000, "a")]);
    drop(site.advance(DAY));
    site.run_durably();
    assert_eq!(site.log, ["a at 1000"]);
    assert_eq!(site.now().mono.0, DAY);
}
