//! Ticks: times and durations in steps of 100 ns, as .NET counts them.
//!
//! A time is kept as ticks since the Unix epoch. A time more than some 29,000 years from it becomes
//! the end of that range.

const PER_MS: i64 = 10_000;
/// From the year 1, where .NET begins, to 1970.
const TO_1970: i64 = 621_355_968_000_000_000;

/// The ticks in `ms` milliseconds.
pub(crate) const fn of_ms(ms: i64) -> i64 {
    ms.saturating_mul(PER_MS)
}

/// The milliseconds in `ticks`, rounded down.
pub(crate) const fn to_ms(ticks: i64) -> i64 {
    ticks.div_euclid(PER_MS)
}

/// Ticks since the Unix epoch, from ticks since the year 1.
pub(crate) const fn since_1970(ticks: i64) -> i64 {
    ticks.saturating_sub(TO_1970)
}
