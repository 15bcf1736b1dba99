//! Serial numbers: transfer-ids, delivery-ids and delivery-counts, which wrap. [AMQP 2.8.8-10]
//!
//! Two of them compare by their distance (RFC 1982), never as integers. A distance of 2^31 or
//! more means that the second comes before the first.

const HALF: u32 = 1 << 31;

/// How many steps lead from `from` up to `to`; `None` when `to` lies before `from`.
pub(crate) fn distance(from: u32, to: u32) -> Option<u32> {
    let steps = to.wrapping_sub(from);
    (steps < HALF).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_to_itself_is_zero() {
        assert_eq!(distance(7, 7), Some(0));
    }

    #[test]
    fn numbers_wrap() {
        assert_eq!(distance(u32::MAX, 2), Some(3));
        assert_eq!(distance(2, u32::MAX), None);
    }

    #[test]
    fn half_the_circle_away_is_before() {
        assert_eq!(distance(0, HALF - 1), Some(HALF - 1));
        assert_eq!(distance(0, HALF), None);
    }
}
