//! Times: UTC, as Atom and typed values write them, and as .NET counts them.

use broker::Wall;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Ticks of 100 ns from the year 1, where .NET begins, to 1970.
const TICKS_TO_1970: i64 = 621_355_968_000_000_000;
/// The time of an event that has never happened.
pub const NEVER: &str = "0001-01-01T00:00:00Z";

/// A time of the broker's wall clock as text.
#[must_use]
pub fn text(at: Wall) -> String {
    text_of_ms(written_ms(at)).unwrap_or_else(|| NEVER.to_owned())
}

/// A time of the broker's wall clock as text; `None` if it is outside the range of dates.
#[must_use]
pub fn checked_text(at: Wall) -> Option<String> {
    text_of_ms(i64::try_from(at.0).ok()?)
}

/// Milliseconds since 1970, up to the last that can be written, shortly before the year 10000.
fn written_ms(at: Wall) -> i64 {
    let last = Timestamp::MAX.as_second() * 1_000;
    i64::try_from(at.0).unwrap_or(last).min(last)
}

/// A number of milliseconds since 1970 as text; `None` if it is outside the range of dates.
#[must_use]
pub fn text_of_ms(ms: i64) -> Option<String> {
    let timestamp = Timestamp::from_millisecond(ms).ok()?;
    Some(timestamp.to_string())
}

/// The text of the time that is this number of ticks after the beginning of the year 1.
#[must_use]
pub fn text_of_ticks(ticks: i64) -> Option<String> {
    let since = i128::from(ticks) - i128::from(TICKS_TO_1970);
    let timestamp = Timestamp::from_nanosecond(since * 100).ok()?;
    Some(timestamp.to_string())
}

/// An entity tag: .NET's ticks of a time. (docs/spec/admin.md#4.4)
#[must_use]
pub fn tag(at: Wall) -> String {
    (written_ms(at) * 10_000 + TICKS_TO_1970).to_string()
}

/// Ticks since the year 1 of a text, which is UTC unless it says otherwise.
#[must_use]
pub fn ticks(text: &str) -> Option<i64> {
    ticks_with_zone(text).or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        ticks_of(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })
}

/// Ticks since the year 1 of a text in RFC 3339, which names its zone.
#[must_use]
pub fn ticks_with_zone(text: &str) -> Option<i64> {
    ticks_of(text.parse().ok()?)
}

fn ticks_of(timestamp: Timestamp) -> Option<i64> {
    let since = timestamp.as_nanosecond().div_euclid(100);
    i64::try_from(since + i128::from(TICKS_TO_1970)).ok()
}

/// Milliseconds since 1970 of a text in RFC 3339, rounded down.
#[must_use]
pub fn ms(text: &str) -> Option<i64> {
    ticks_with_zone(text).map(|ticks| ms_of_ticks(ticks).0)
}

/// Milliseconds since 1970 of ticks, and whether that is all of them.
#[must_use]
pub fn ms_of_ticks(ticks: i64) -> (i64, bool) {
    let since = ticks.saturating_sub(TICKS_TO_1970);
    (since.div_euclid(10_000), since.rem_euclid(10_000) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        assert_eq!(text(Wall(1_772_359_200_123)), "2026-03-01T10:00:00.123Z");
        assert_eq!(text(Wall(0)), "1970-01-01T00:00:00Z");
        assert_eq!(&text(Wall(u64::MAX))[..9], "9999-12-3");
        assert_eq!(checked_text(Wall(0)), Some(text(Wall(0))));
        assert_eq!(checked_text(Wall(u64::MAX)), None);
        assert_eq!(tag(Wall(0)), "621355968000000000");
    }

    #[test]
    fn moments_are_read_in_any_zone() {
        let noon = ticks("2020-07-05T12:00:00Z").unwrap();
        assert_eq!(ticks("2020-07-05T14:00:00+02:00"), Some(noon));
        assert_eq!(ticks("2020-07-05T12:00:00"), Some(noon));
        assert_eq!(ticks("2020-07-05T12:00:00.0000001Z"), Some(noon + 1));
        assert_eq!(
            text_of_ticks(noon + 1).unwrap(),
            "2020-07-05T12:00:00.0000001Z"
        );
        assert_eq!(ms_of_ticks(noon), (1_593_950_400_000, true));
        for wrong in [
            "",
            "yesterday",
            "2020-13-01T00:00:00Z",
            "2020-07-05T25:00:00Z",
        ] {
            assert_eq!(ticks(wrong), None, "{wrong}");
        }
    }
}
