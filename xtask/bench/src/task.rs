//! Task: what a connection does that a single row needs. It lives with its row, not with the
//! client.

use std::time::Instant;

use anyhow::Result;
use endpoint::{Connection, Event, LinkId, SessionId};

/// What one connection does.
pub trait Task {
    /// Asks for its links.
    fn attach(&mut self, engine: &mut Connection, session: SessionId);

    /// Links that have to be there before it starts.
    fn links(&self) -> Vec<LinkId>;

    /// Lets it do what it is there for.
    fn start(&mut self, now: Instant, engine: &mut Connection);

    /// Sends nothing new from now on.
    fn stop(&mut self) {}

    /// Does what it may do without being asked.
    fn act(&mut self, _now: Instant, _engine: &mut Connection) {}

    /// Takes what has happened; says whether that was its business.
    ///
    /// # Errors
    /// When the broker did not do what it should.
    fn handle(&mut self, now: Instant, event: &Event, engine: &mut Connection) -> Result<bool>;

    /// How far it is.
    fn tally(&self) -> Tally;
}

/// How far a task is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Whether everything it has sent has its outcome.
    pub is_answered: bool,
    /// Messages that the broker took.
    pub accepted: u64,
    /// Messages that it did not.
    pub refused: u64,
    /// Messages that came, and that were completed, of a task that receives.
    pub taken: Option<Taken>,
    /// When the newest outcome came.
    pub last: Option<Instant>,
}

/// What a task has received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// Messages that came.
    pub received: u64,
    /// Messages completed.
    pub settled: u64,
}
