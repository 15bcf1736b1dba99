//! Lots: which of many is to go, drawn in the same way each time.

/// Draws lots, the same ones each time: nothing rests on them but how fast it goes.
#[derive(Debug, Default)]
pub(super) struct Lots(u64);

impl Lots {
    /// One of the first `count`, which is not 0. (Weyl sequence with a finaliser)
    pub fn draw(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let high = (mixed >> 32) * count as u64;
        // Below `count`, since the other factor is below 2^32.
        (high >> 32) as usize
    }
}
