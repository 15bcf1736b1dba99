//! Fuel: the limit on the time that one evaluation may take.
//!
//! Every instruction and every character that is looked at costs a unit; reading on through a text
//! costs a sixteenth per byte. The full amount lasts for some milliseconds, which no sound
//! expression comes near.

/// The units of one evaluation.
const FULL: u32 = 1_000_000;
/// Bytes that are read through for one unit.
const BYTES: usize = 16;

/// The units left.
#[derive(Clone, Debug)]
pub(crate) struct Fuel(u32);

/// No units are left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OutOfFuel;

impl Fuel {
    pub(crate) const fn full() -> Self {
        Self(FULL)
    }

    /// The units that were spent.
    pub(crate) const fn spent(&self) -> u32 {
        FULL - self.0
    }

    /// Pays for `steps` steps.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), OutOfFuel> {
        let steps = u32::try_from(steps).map_err(|_| OutOfFuel)?;
        self.0 = self.0.checked_sub(steps).ok_or(OutOfFuel)?;
        Ok(())
    }

    /// Pays for reading through `bytes` bytes.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), OutOfFuel> {
        self.spend(1 + bytes / BYTES)
    }
}
