//! Durations of entities and settings: ISO 8601 within a range, in milliseconds.

use serde::de::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::duration::{parse, show, text};

/// A duration of at least `LEAST` and at most `MOST` milliseconds. A `MOST` of `u64::MAX` includes
/// "never".
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Millis<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> Millis<LEAST, MOST> {
    /// Reads and checks `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let millis = parse(text)?;
        if (LEAST..=MOST).contains(&millis) {
            Ok(Self(millis))
        } else {
            Err(format!(
                "`{text}` is not between {} and {}",
                show(LEAST),
                show(MOST)
            ))
        }
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Millis<LEAST, MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl<const LEAST: u64, const MOST: u64> Serialize for Millis<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_outside_its_range_is_refused_with_the_range() {
        let error = Millis::<5_000, 300_000>::parse("PT6M").unwrap_err();
        assert_eq!(error, "`PT6M` is not between PT5S and PT5M");
        assert!(Millis::<5_000, 300_000>::parse("PT4.999S").is_err());
        assert_eq!(Millis::<5_000, 300_000>::parse("PT5M"), Ok(Millis(300_000)));
    }
}
