//! Delay: the time for which a connection is neither read nor written, since its peer has shown
//! wrong credentials and its address had too many of them.
//!
//! The connection stays for that long even if its peer leaves, so a peer gains nothing by guessing
//! on a new connection each time.

use tokio::time::Instant;

/// No delay at first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delay(Option<Instant>);

impl Delay {
    /// Lasts until then, unless it lasts longer already.
    pub fn extend(&mut self, until: Option<Instant>) {
        self.0 = self.0.max(until);
    }

    /// When it ends, if it has not ended.
    pub fn until(self) -> Option<Instant> {
        self.0.filter(|until| *until > Instant::now())
    }

    /// Whether it has not ended.
    pub fn lasts(self) -> bool {
        self.until().is_some()
    }
}
