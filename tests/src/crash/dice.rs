//! Dice: random numbers from a seed, the same ones every time.

/// A generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Begins at `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn roll_any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, which is not 0.
    pub fn roll(&mut self, end: u64) -> u64 {
        self.roll_any() % end
    }

    /// A number from 1 to `end`, each power of two as likely as the next.
    pub fn roll_scale(&mut self, end: u64) -> u64 {
        let bits = u64::from(end.ilog2()) + 1;
        let scale = 1 << self.roll(bits);
        (scale + self.roll(scale)).min(end)
    }
}
