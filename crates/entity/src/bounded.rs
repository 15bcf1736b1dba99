//! Bounded values: durations, sizes and counts within a range.
//!
//! A duration is ISO 8601 and kept in milliseconds; a range that ends at `u64::MAX` includes
//! "never". A size is a number of bytes or a text with a unit such as `"64MiB"`.

use std::fmt::Display;
use std::ops::RangeInclusive;

use bytesize::ByteSize;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::duration::{self, show};

/// Reads a duration and checks it.
pub(crate) fn duration(text: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let millis = duration::parse(text)?;
    if range.contains(&millis) {
        return Ok(millis);
    }
    let (least, most) = (show(*range.start()), show(*range.end()));
    Err(outside(text, millis < *range.start(), least, most))
}

/// Says which end of its range a value is beyond.
fn outside(value: impl Display, is_below: bool, least: impl Display, most: impl Display) -> String {
    match is_below {
        true => format!("{value} is below the minimum of {least}"),
        false => format!("{value} is above the maximum of {most}"),
    }
}

/// Checks a number.
pub(crate) fn count(number: i128, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let (least, most) = (range.start(), range.end());
    let count = u64::try_from(number).ok();
    count
        .filter(|count| range.contains(count))
        .ok_or_else(|| outside(number, number < i128::from(*least), least, most))
}

/// Checks a size; the result is bytes.
pub(crate) fn size(size: ByteSize, range: &RangeInclusive<u64>) -> Result<u64, String> {
    if range.contains(&size.as_u64()) {
        return Ok(size.as_u64());
    }
    let (least, most) = (ByteSize(*range.start()), ByteSize(*range.end()));
    Err(outside(size, size < least, least, most))
}

/// A duration of at least `LEAST` and at most `MOST` milliseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Millis<const LEAST: u64, const MOST: u64>(pub u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Millis<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let millis = duration(&text, &(LEAST..=MOST));
        millis.map(Self).map_err(D::Error::custom)
    }
}

impl<const LEAST: u64, const MOST: u64> Serialize for Millis<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration::text(self.0))
    }
}

/// A size of at least `LEAST` and at most `MOST` bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Size<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> Size<LEAST, MOST> {
    /// Checks `bytes`.
    ///
    /// # Errors
    /// When it is out of the range; the error says so.
    pub fn check(bytes: ByteSize) -> Result<Self, String> {
        size(bytes, &(LEAST..=MOST)).map(Self)
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Size<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::check(ByteSize::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A whole number of at least `LEAST` and at most `MOST`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Count<const LEAST: u64, const MOST: u64>(pub u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Count<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?.into();
        let count = count(number, &(LEAST..=MOST));
        count.map(Self).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_outside_its_range_is_refused_with_the_range() {
        let range = 5_000..=300_000;
        let error = duration("PT6M", &range).unwrap_err();
        assert_eq!(error, "PT6M is above the maximum of PT5M");
        let error = duration("PT4.999S", &range).unwrap_err();
        assert_eq!(error, "PT4.999S is below the minimum of PT5S");
        assert_eq!(duration("PT5M", &range), Ok(300_000));
    }
}
