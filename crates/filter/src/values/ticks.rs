//! Ticks: times and durations in steps of 100 ns, as .NET counts them.
//!
//! A time is kept as ticks since the Unix epoch. A time more than some 29,000 years from it becomes
//! the end of that range.

const PER_MS: i64 = 10_000;
const PER_SECOND: i64 = 1_000 * PER_MS;
/// Digits of a second's fraction, which count ticks.
const FRACTION_DIGITS: usize = 7;
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

/// The ticks of a duration that is written `hh:mm:ss[.fffffff]`, as .NET writes those under a day.
pub(crate) fn of_clock_text(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, fraction_of(fraction)?),
        None => (text, 0),
    };
    let mut parts = clock.split(':');
    let mut part = |limit| two_digits(parts.next()?).filter(|number| *number < limit);
    let (hours, minutes, seconds) = (part(24)?, part(60)?, part(60)?);
    if parts.next().is_some() {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * PER_SECOND + fraction)
}

fn two_digits(text: &str) -> Option<i64> {
    (text.len() == 2).then(|| digits(text)).flatten()
}

/// The ticks in the digits behind the point.
fn fraction_of(text: &str) -> Option<i64> {
    let missing = FRACTION_DIGITS.checked_sub(text.len())?;
    let missing = u32::try_from(missing).ok()?;
    Some(digits(text)? * 10_i64.pow(missing))
}

fn digits(text: &str) -> Option<i64> {
    // `parse` takes a sign too.
    let only_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_texts_are_read_to_the_tick() {
        assert_eq!(of_clock_text("00:00:10"), Some(10 * PER_SECOND));
        assert_eq!(of_clock_text("23:59:59"), Some(86_399 * PER_SECOND));
        assert_eq!(
            of_clock_text("01:00:00.5"),
            Some(3_600 * PER_SECOND + PER_SECOND / 2)
        );
        assert_eq!(of_clock_text("00:00:00.0000001"), Some(1));
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            "10",
            "00:10",
            "24:00:00",
            "00:60:00",
            "00:00:60",
            "0:00:10",
            "00:00:1",
            "+1:00:00",
            "-1:00:00",
            "-00:00:10",
            "1.00:00:00",
            "00:00:10.",
            "00:00:10.12345678",
            "00:00:10.+1",
            " 00:00:10",
            "00:00:10 ",
            "00:00:10:00",
            "00:00:1\u{661}",
            "PT10S",
        ] {
            assert_eq!(of_clock_text(text), None, "{text:?}");
        }
    }
}
