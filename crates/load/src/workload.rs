//! Workload: the task of a connection.
//!
//! `cargo xtask bench` has many kinds of it, `railbus bench` two.

use std::time::Instant;

use endpoint::{Connection, Event, LinkId, SessionId};

use crate::Error;
use crate::receiver::SettleMode;

/// The task of a connection.
pub trait Workload {
    /// Why it cannot go on, its connection's reasons included.
    type Error: From<Error>;

    /// Attaches its links; messages are settled as the broker needs it.
    fn attach(&mut self, engine: &mut Connection, session: SessionId, settle_mode: SettleMode);

    /// Its links, once requested.
    fn links(&self) -> Vec<LinkId>;

    /// Starts the workload, from `now` on.
    fn start(&mut self, now: Instant, engine: &mut Connection);

    /// Sends nothing new from now on.
    fn stop_sending(&mut self) {}

    /// Asks for the end of what is received, if anything is.
    fn drain(&mut self, _engine: &mut Connection) {}

    /// When it has to act without an event.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Acts, as far as credit and time allow.
    fn act(&mut self, _now: Instant, _engine: &mut Connection) {}

    /// Handles an event. Ends of sessions and connections are no events here: they are errors, as
    /// is the end of a link that the workload did not detach.
    fn handle(
        &mut self,
        now: Instant,
        event: Event,
        engine: &mut Connection,
    ) -> Result<(), Self::Error>;

    /// Its progress, for an error.
    fn status(&self) -> Option<String> {
        None
    }

    /// Whether so few messages come that a buffer is not worth its memory.
    fn is_idle(&self) -> bool {
        false
    }
}
