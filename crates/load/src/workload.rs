//! Work: what a connection is for.
//!
//! `cargo xtask bench` has many kinds of it, `railbus bench` two.

use std::time::Instant;

use endpoint::{Connection, Event, LinkId, SessionId};

use crate::Error;
use crate::receiver::Settling;

/// What a connection is for.
pub trait Workload {
    /// Why it cannot go on, its connection's reasons included.
    type Error: From<Error>;

    /// Asks for everything that it needs; messages are completed as the broker wants it.
    fn attach(&mut self, engine: &mut Connection, session: SessionId, settling: Settling);

    /// Its links, once asked for.
    fn links(&self) -> Vec<LinkId>;

    /// Lets it do what it is there for, from `now` on.
    fn start(&mut self, now: Instant, engine: &mut Connection);

    /// Sends nothing new from now on.
    fn stop_sending(&mut self) {}

    /// Asks for the end of what is received, if anything is.
    fn drain(&mut self, _engine: &mut Connection) {}

    /// When it has something to do without being asked.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Does what it may at the moment.
    fn act(&mut self, _now: Instant, _engine: &mut Connection) {}

    /// Takes what the broker did. Ends of sessions and connections are not told: they are errors, as is the
    /// end of a link unless the work has wanted it.
    fn handle(
        &mut self,
        now: Instant,
        event: Event,
        engine: &mut Connection,
    ) -> Result<(), Self::Error>;

    /// How far it is, for an error.
    fn status(&self) -> Option<String> {
        None
    }

    /// Whether hardly anything comes, so that a buffer is not worth its memory.
    fn is_idle(&self) -> bool {
        false
    }
}
