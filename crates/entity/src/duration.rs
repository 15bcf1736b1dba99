//! Durations in ISO 8601, as Service Bus reads and writes them. (docs/spec/admin.md#5)
//!
//! They count ticks of 100 ns; settings count milliseconds. A year has 365 days and a month 30. A
//! duration within a few days of the longest .NET time span is "never", because clients write the
//! maximum in different ways.

use jiff::{SpanRelativeTo, SpanTotal, Unit};

/// Ticks of 100 ns.
const TICKS_PER_SECOND: i128 = 10_000_000;
/// In a millisecond.
pub const TICKS_PER_MS: i64 = 10_000;
const SECONDS_PER_DAY: i128 = 86_400;
/// From here on a duration is for ever.
const NEVER_DAYS: i128 = 10_675_198;
/// The longest .NET time span: how "never" is written.
pub const NEVER_TEXT: &str = "P10675199DT2H48M5.4775807S";
/// "Never" in milliseconds.
pub const NEVER: u64 = u64::MAX;

/// Milliseconds.
pub const SECOND: u64 = 1_000;
/// The same.
pub const MINUTE: u64 = 60 * SECOND;
/// The same.
pub const DAY: u64 = 24 * 60 * MINUTE;

/// Reads `text` as milliseconds.
///
/// # Errors
/// When it is no such duration; the error says so.
pub fn parse(text: &str) -> Result<u64, String> {
    millis(text).ok_or_else(|| wrong(text))
}

/// Reads `text` as ticks, which may be less than nothing.
///
/// # Errors
/// When it is no such duration; the error says so.
pub fn parse_ticks(text: &str) -> Result<i64, String> {
    ticks(text).ok_or_else(|| wrong(text))
}

fn wrong(text: &str) -> String {
    format!("`{text}` is not an ISO 8601 duration such as PT1M30S")
}

/// Reads what people type: `24h`, `1m 30s`, or ISO 8601.
///
/// # Errors
/// When it is no duration; the error says so.
pub fn parse_typed(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a duration such as 24h, 1m30s or PT24H");
    millis(text).or_else(|| friendly(text)).ok_or_else(wrong)
}

/// The milliseconds of a duration in words, such as `1h 30m`.
fn friendly(text: &str) -> Option<u64> {
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

/// The ticks of `text`; `None` if it is no duration, or none that a .NET time span can have.
#[must_use]
pub fn ticks(text: &str) -> Option<i64> {
    i64::try_from(unbounded_ticks(text)?).ok()
}

/// The ticks of `text`, however many they are; `None` if it is no duration.
fn unbounded_ticks(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let text = text.strip_prefix('P')?;
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    if time.is_some_and(str::is_empty) || (date.is_empty() && time.is_none()) {
        return None;
    }
    let day = SECONDS_PER_DAY * TICKS_PER_SECOND;
    let dates = [
        ('Y', 365 * day),
        ('M', 30 * day),
        ('W', 7 * day),
        ('D', day),
    ];
    let minute = 60 * TICKS_PER_SECOND;
    let times = [('H', 60 * minute), ('M', minute), ('S', TICKS_PER_SECOND)];
    let sum = fields(date, &dates)?.checked_add(fields(time.unwrap_or(""), &times)?)?;
    Some(if negative { -sum } else { sum })
}

/// Numbers with units that come in this order, each once at most.
fn fields(mut text: &str, units: &[(char, i128)]) -> Option<i128> {
    let mut sum = 0_i128;
    let mut rest = units.iter();
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = text.split_at(end);
        let letter = after.chars().next()?;
        let (_, size) = rest.find(|(unit, _)| *unit == letter)?;
        sum = sum.checked_add(scaled(number, *size, letter == 'S')?)?;
        text = &after[letter.len_utf8()..];
    }
    Some(sum)
}

/// A number times the size of its unit; only seconds have fractions.
fn scaled(number: &str, size: i128, fraction: bool) -> Option<i128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_whole = part.is_empty() && !number.contains('.');
    // Longer numbers could not be meant, and would not fit.
    if whole.is_empty() || whole.len() > 18 || part.contains('.') || !(fraction || is_whole) {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    // Digits beyond the ticks are dropped.
    let digits: String = part.chars().chain("0000000".chars()).take(7).collect();
    let part: i128 = digits.parse().ok()?;
    whole.checked_mul(size)?.checked_add(part)
}

/// The milliseconds of `text`, rounded down; `None` if it is none, or less than nothing.
#[must_use]
pub fn millis(text: &str) -> Option<u64> {
    let ticks = unbounded_ticks(text)?;
    // Longer than a time span is for ever too.
    if ticks / TICKS_PER_SECOND / SECONDS_PER_DAY >= NEVER_DAYS {
        return Some(NEVER);
    }
    u64::try_from(ticks / i128::from(TICKS_PER_MS))
        .ok()
        .filter(|_| ticks >= 0)
}

/// The shortest text of a number of milliseconds.
#[must_use]
pub fn text(millis: u64) -> String {
    match i64::try_from(millis) {
        Ok(millis) if millis <= i64::MAX / TICKS_PER_MS => text_of_ticks(millis * TICKS_PER_MS),
        _ => NEVER_TEXT.to_owned(),
    }
}

/// Writes `millis` for an error's text.
#[must_use]
pub fn show(millis: u64) -> String {
    match millis {
        NEVER => "never".to_owned(),
        _ => text(millis),
    }
}

/// The shortest text of a number of ticks.
#[must_use]
pub fn text_of_ticks(ticks: i64) -> String {
    use std::fmt::Write as _;
    let sign = if ticks < 0 { "-" } else { "" };
    let ticks = ticks.unsigned_abs();
    let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    let mut text = format!("{sign}P");
    // Writing to a string cannot fail.
    let mut put = |number: u64, unit: char| {
        if number > 0 {
            let _ = write!(text, "{number}{unit}");
        }
    };
    put(days, 'D');
    let is_whole_days = hours + minutes + seconds + fraction == 0;
    if is_whole_days && days > 0 {
        return text;
    }
    text.push('T');
    let mut put = |number: u64, unit: char| {
        if number > 0 {
            let _ = write!(text, "{number}{unit}");
        }
    };
    put(hours, 'H');
    put(minutes, 'M');
    if fraction > 0 {
        let digits = format!("{fraction:07}");
        let _ = write!(text, "{seconds}.{}S", digits.trim_end_matches('0'));
    } else if seconds > 0 || is_whole_days {
        let _ = write!(text, "{seconds}S");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let cases = [
            ("PT1M", Some(60_000)),
            ("PT0.5S", Some(500)),
            ("PT13S", Some(13_000)),
            ("P1DT2H", Some(93_600_000)),
            ("P1Y1M1W", Some((365 + 30 + 7) * 86_400_000)),
            ("PT0.0000001S", Some(0)),
            ("PT0S", Some(0)),
            ("P10675199DT2H48M5.4775807S", Some(NEVER)),
            ("P10675199DT2H48M5.477539S", Some(NEVER)),
            ("P10675199DT2H48M5.477S", Some(NEVER)),
            ("P10675199DT2H48M6S", Some(NEVER)),
            ("P10675198DT2H48M5.477S", Some(NEVER)),
            ("-PT1S", None),
            ("P", None),
            ("PT", None),
            ("P1DT", None),
            ("PT1", None),
            ("PT.5S", None),
            ("PT1.5M", None),
            ("PT1S1M", None),
            ("PT1M1M", None),
            ("P1H", None),
            ("1M", None),
            ("PT99999999999999999999S", None),
            ("PT1ä", None),
            ("", None),
            ("P2W", Some(14 * DAY)),
            ("PT90M", Some(90 * MINUTE)),
            ("1 minute", None),
            ("60", None),
            ("PT-1S", None),
            ("P1", None),
            ("PT1X", None),
            ("00:01:00", None),
            ("P99999999999D", Some(NEVER)),
            ("P10675200D", Some(NEVER)),
            ("-P99999999999D", None),
            ("P10675199DTnonsense", None),
            ("P10675199DT", None),
            ("P10675199DT25", None),
        ];
        for (text, expected) in cases {
            assert_eq!(millis(text), expected, "{text}");
        }
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
    fn durations_are_written_as_short_as_they_can_be() {
        let cases = [
            (0, "PT0S"),
            (60_000, "PT1M"),
            (90_500, "PT1M30.5S"),
            (93_600_000, "P1DT2H"),
            (86_400_000, "P1D"),
            (14 * DAY + 7_384_007, "P14DT2H3M4.007S"),
            (NEVER, NEVER_TEXT),
        ];
        for (millis, expected) in cases {
            assert_eq!(text(millis), expected);
            assert_eq!(parse(expected), Ok(millis));
        }
        assert_eq!(text_of_ticks(-1), "-PT0.0000001S");
        assert_eq!(text_of_ticks(i64::MAX), NEVER_TEXT);
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_the_same(value: i64) {
            proptest::prop_assume!(value != i64::MIN);
            proptest::prop_assert_eq!(ticks(&text_of_ticks(value)), Some(value));
        }

        #[test]
        fn no_text_is_too_odd(text in "-?P?[0-9YMWDTHS.]{0,40}") {
            let _ = millis(&text);
        }
    }
}
