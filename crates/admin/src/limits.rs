//! Limits: the allowed values of properties. (docs/spec/entities.md#2.1)

use entity::duration::NEVER;
use std::ops::RangeInclusive;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 24 * 60 * MINUTE;

pub(crate) const LOCK_DURATION: RangeInclusive<u64> = 5 * SECOND..=5 * MINUTE;
pub(crate) const TIME_TO_LIVE: RangeInclusive<u64> = SECOND..=NEVER;
pub(crate) const HISTORY: RangeInclusive<u64> = 20 * SECOND..=7 * DAY;
pub(crate) const IDLE: RangeInclusive<u64> = 5 * MINUTE..=NEVER;
pub(crate) const DELIVERIES: RangeInclusive<u64> = 1..=i32::MAX as u64;
/// In kilobytes, of the Premium tier.
pub(crate) const MESSAGE_KILOBYTES: RangeInclusive<u64> = 1_024..=102_400;
/// In characters.
pub(crate) const USER_METADATA: usize = 1_024;
/// The factor by which a partitioned entity is larger.
pub(crate) const PARTITIONS: u64 = 16;

const MEGABYTES: [u64; 5] = [1_024, 2_048, 3_072, 4_096, 5_120];
const PREMIUM_MEGABYTES: [u64; 9] = [
    1_024, 2_048, 3_072, 4_096, 5_120, 10_240, 20_480, 40_960, 81_920,
];

/// How large an entity can be, in megabytes.
pub(crate) fn megabytes(premium: bool) -> &'static [u64] {
    if premium {
        &PREMIUM_MEGABYTES
    } else {
        &MEGABYTES
    }
}
