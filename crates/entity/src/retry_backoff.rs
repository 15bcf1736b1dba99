//! Retry backoff: the table of `retry-backoff` in files and JSON.
//!
//! All three keys are required: `{ min = "PT1S", max = "PT1M", factor = 2 }`.

use broker::RetryBackoff;
use serde::{Deserialize, Serialize};

use crate::bounded::{Count, Millis};
use crate::duration::DAY;

type Wait = Millis<1, { 7 * DAY }>;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    min: Wait,
    max: Wait,
    factor: Count<1, 100>,
}

impl Table {
    /// The setting that it describes.
    pub(crate) fn read(&self) -> Result<RetryBackoff, String> {
        let (min, max) = (self.min.0, self.max.0);
        if min > max {
            return Err("its min is longer than its max".to_owned());
        }
        let factor = self.factor.0;
        Ok(RetryBackoff { min, max, factor })
    }
}

impl From<RetryBackoff> for Table {
    fn from(setting: RetryBackoff) -> Self {
        Self {
            min: Millis(setting.min),
            max: Millis(setting.max),
            factor: Count(setting.factor),
        }
    }
}
