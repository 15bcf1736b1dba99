//! Sizes in files: a number of bytes, or text with a unit such as `"64MiB"`.

use bytesize::ByteSize;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

/// A size of at least `LEAST` and at most `MOST` bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Size<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> Size<LEAST, MOST> {
    /// Checks `size`.
    pub fn check(size: ByteSize) -> Result<Self, String> {
        if (LEAST..=MOST).contains(&size.as_u64()) {
            Ok(Self(size.as_u64()))
        } else {
            Err(format!(
                "{size} is not between {} and {}",
                ByteSize(LEAST),
                ByteSize(MOST)
            ))
        }
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Size<LEAST, MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::check(ByteSize::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A whole number of at least `LEAST` and at most `MOST`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Count<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> Count<LEAST, MOST> {
    /// Checks `number`.
    pub fn check(number: i128) -> Result<Self, String> {
        u64::try_from(number)
            .ok()
            .filter(|number| (LEAST..=MOST).contains(number))
            .map(Self)
            .ok_or_else(|| format!("{number} is not between {LEAST} and {MOST}"))
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Count<LEAST, MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::check(i64::deserialize(deserializer)?.into()).map_err(D::Error::custom)
    }
}
