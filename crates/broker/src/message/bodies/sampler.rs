//! Sampler: pseudo-random choice among several, the same sequence in each run.

/// Chooses evenly. Only speed depends on the choice, so a fixed sequence is enough.
#[derive(Debug, Default)]
pub(super) struct Sampler(u64);

impl Sampler {
    /// One of the first `count`, which is not 0. (Weyl sequence with a finaliser)
    pub fn draw(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let high = (mixed >> 32) * count as u64;
        // Below `count`, since the other factor is below 2^32.
        (high >> 32) as usize
    }
}
