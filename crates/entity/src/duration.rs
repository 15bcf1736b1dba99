//! Durations in ISO 8601, as Service Bus writes them (`PT1M30S`, `P14D`), in milliseconds.
//!
//! Years count 365 days and months 30, as .NET counts them. "Never" is
//! `P10675199DT2H48M5.4775807S`, the most that a .NET time span can be; whatever is as long is
//! never.

use jiff::{SpanRelativeTo, SpanTotal, Unit};

/// What "never" is in milliseconds.
const NEVER: u64 = u64::MAX;
/// A .NET time span's maximum: how "never" is written.
pub const NEVER_TEXT: &str = "P10675199DT2H48M5.4775807S";
/// Its whole days.
const NEVER_PREFIX: &str = "P10675199D";

const SECOND: u64 = 1_000;
const DAY: u64 = 24 * 60 * 60 * SECOND;

/// Reads `text`.
///
/// # Errors
/// When it is no such duration; the error says so.
pub fn parse(text: &str) -> Result<u64, String> {
    if text.starts_with(NEVER_PREFIX) {
        return Ok(NEVER);
    }
    let wrong = || format!("`{text}` is not an ISO 8601 duration such as PT1M30S");
    // jiff also reads a friendly format of its own, which other tools would not understand.
    if !text.starts_with(['P', 'p']) {
        return Err(wrong());
    }
    millis(text).ok_or_else(wrong)
}

/// Reads what people type: `24h`, `1m 30s`, or ISO 8601.
///
/// # Errors
/// When it is no duration; the error says so.
pub fn parse_typed(text: &str) -> Result<u64, String> {
    millis(text).ok_or_else(|| format!("`{text}` is not a duration such as 24h, 1m30s or PT24H"))
}

fn millis(text: &str) -> Option<u64> {
    let span: jiff::Span = text.parse().ok()?;
    let days = i64::from(span.get_years()) * 365
        + i64::from(span.get_months()) * 30
        + i64::from(span.get_weeks()) * 7
        + i64::from(span.get_days());
    let time = span.years(0).months(0).weeks(0).days(0);
    let options = SpanTotal::from(Unit::Millisecond).relative(SpanRelativeTo::days_are_24_hours());
    let millis = time.total(options).ok()?;
    let days = u64::try_from(days).ok()?;
    // Below 2^53, so the floating point number is exact.
    if !(0.0..9e15).contains(&millis) {
        return None;
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked just above"
    )]
    let millis = millis as u64;
    days.checked_mul(DAY)?.checked_add(millis)
}

/// Writes `millis` for people: days, hours, minutes and seconds.
#[must_use]
pub fn text(millis: u64) -> String {
    if millis == NEVER {
        return NEVER_TEXT.to_owned();
    }
    let (days, rest) = (millis / DAY, millis % DAY);
    let (hours, rest) = (rest / (60 * 60 * SECOND), rest % (60 * 60 * SECOND));
    let (minutes, rest) = (rest / (60 * SECOND), rest % (60 * SECOND));
    let (seconds, fraction) = (rest / SECOND, rest % SECOND);
    let whole = |number: u64, unit: &str| match number {
        0 => String::new(),
        _ => format!("{number}{unit}"),
    };
    let seconds = match fraction {
        0 => whole(seconds, "S"),
        _ => format!(
            "{seconds}.{}S",
            format!("{fraction:03}").trim_end_matches('0')
        ),
    };
    let time = whole(hours, "H") + &whole(minutes, "M") + &seconds;
    match (&*whole(days, "D"), &*time) {
        ("", "") => "PT0S".to_owned(),
        (days, "") => format!("P{days}"),
        (days, time) => format!("P{days}T{time}"),
    }
}

/// Writes `millis` for an error's text.
#[must_use]
pub fn show(millis: u64) -> String {
    match millis {
        NEVER => "never".to_owned(),
        _ if millis.is_multiple_of(DAY) && millis > 0 => format!("P{}D", millis / DAY),
        _ if millis.is_multiple_of(60 * SECOND) && millis > 0 => {
            format!("PT{}M", millis / (60 * SECOND))
        }
        _ if millis.is_multiple_of(SECOND) => format!("PT{}S", millis / SECOND),
        _ => format!("{millis} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: u64) {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }

    #[test]
    fn service_bus_durations_are_understood() {
        check("PT1M", 60_000);
        check("PT5S", 5_000);
        check("PT1H", 3_600_000);
        check("P14D", 14 * DAY);
        check("P1DT2H3M4S", DAY + 7_384_000);
        check("PT0.5S", 500);
        check("PT1.25S", 1_250);
        check("P2W", 14 * DAY);
        check("P1Y2M3D", (365 + 60 + 3) * DAY);
        check("PT90M", 5_400_000);
    }

    #[test]
    fn what_people_type_is_understood() {
        for (text, expected) in [
            ("24h", DAY),
            ("1d", DAY),
            ("5m", 300_000),
            ("1m30s", 90_000),
            ("1h 30m", 5_400_000),
            ("250ms", 250),
            ("PT1H", 3_600_000),
        ] {
            assert_eq!(parse_typed(text), Ok(expected), "{text}");
        }
        for text in ["", "24", "h", "-5m", "5m ago", "tomorrow"] {
            assert!(parse_typed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_longest_time_span_is_never() {
        check("P10675199DT2H48M5.4775807S", NEVER);
    }

    #[test]
    fn what_is_written_can_be_read() {
        for (millis, expected) in [
            (0, "PT0S"),
            (1_500, "PT1.5S"),
            (60_000, "PT1M"),
            (3_600_000, "PT1H"),
            (DAY, "P1D"),
            (14 * DAY + 7_384_007, "P14DT2H3M4.007S"),
            (NEVER, NEVER_TEXT),
        ] {
            assert_eq!(text(millis), expected);
            assert_eq!(parse(expected), Ok(millis));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "P",
            "PT",
            "1 minute",
            "60",
            "-PT1S",
            "PT-1S",
            "P1",
            "PT1X",
            "00:01:00",
            "P99999999999D",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
