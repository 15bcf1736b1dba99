//! BrokerProperties: the system properties of a message as one JSON object. (docs/spec/admin.md#11)

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The properties in a request that sends. Unknown names are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct SenderProperties {
    pub message_id: Option<String>,
    pub correlation_id: Option<String>,
    pub label: Option<String>,
    pub to: Option<String>,
    pub reply_to: Option<String>,
    pub session_id: Option<String>,
    pub reply_to_session_id: Option<String>,
    pub partition_key: Option<String>,
    pub via_partition_key: Option<String>,
    /// Seconds.
    time_to_live: Option<f64>,
    /// `d.hh:mm:ss`, in a batch.
    time_to_live_time_span: Option<String>,
    scheduled_enqueue_time_utc: Option<String>,
}

impl SenderProperties {
    /// Parses the header.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let bad = || Error::bad("Bad Request. The header BrokerProperties is not understood");
        // serde would take a list of the values as well.
        match text.trim_start().starts_with('[') {
            true => Err(bad().quoting("a list, expected an object")),
            false => serde_json::from_str(text).map_err(|error| bad().quoting(error)),
        }
    }

    /// In milliseconds; `None` is for ever.
    pub(super) fn time_to_live(&self) -> Result<Option<u64>, Error> {
        let wrong = |name| Error::value(name, "it is no time to live");
        let seconds = match (self.time_to_live, &self.time_to_live_time_span) {
            (Some(seconds), _) => seconds,
            (None, Some(text)) => time_span(text).ok_or_else(|| wrong("TimeToLiveTimeSpan"))?,
            (None, None) => return Ok(None),
        };
        if seconds <= 0.0 {
            return Err(wrong("TimeToLive"));
        }
        if seconds >= FOR_EVER {
            return Ok(None);
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 1 to 10^15, looked at above"
        )]
        Ok(Some((seconds * 1_000.0).max(1.0) as u64))
    }

    /// In milliseconds since 1970.
    pub(super) fn scheduled(&self) -> Result<Option<i64>, Error> {
        let Some(text) = &self.scheduled_enqueue_time_utc else {
            return Ok(None);
        };
        let name = "ScheduledEnqueueTimeUtc";
        let time = parse_time(text).ok_or_else(|| Error::value(name, "it is no time"))?;
        Ok(Some(time.as_millisecond()))
    }
}

/// The seconds of the longest time span that .NET knows, nearly.
pub(super) const FOR_EVER: f64 = 922_337_203_685.0;

/// A time as HTTP writes it, or ISO 8601.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let zoned = rfc2822::parse(text).ok();
    zoned
        .map(|zoned| zoned.timestamp())
        .or_else(|| text.parse().ok())
}

/// Seconds of `d.hh:mm:ss.fraction`, days and fraction being optional.
fn time_span(text: &str) -> Option<f64> {
    let (days, rest) = match text.split_once('.') {
        Some((days, rest)) if rest.contains(':') => (days.parse::<u32>().ok()?, rest),
        _ => (0, text),
    };
    let mut parts = rest.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    let seconds: f64 = seconds.parse().ok()?;
    let is_sound = hours < 24 && minutes < 60 && (0.0..60.0).contains(&seconds);
    let whole = f64::from(days) * 86_400.0 + f64::from(hours) * 3_600.0 + f64::from(minutes) * 60.0;
    (is_sound && parts.next().is_none()).then_some(whole + seconds)
}

/// The properties in the response to a receive.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReceiverProperties {
    pub delivery_count: u32,
    pub enqueued_sequence_number: u64,
    pub enqueued_time_utc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_until_utc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via_partition_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_enqueue_time_utc: Option<String>,
    pub sequence_number: u64,
    pub state: &'static str,
    pub time_to_live: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> SenderProperties {
        SenderProperties::parse(text).unwrap()
    }

    #[test]
    fn a_time_to_live_is_seconds_or_a_time_span() {
        for (text, expected) in [
            (r#"{"TimeToLive": 10}"#, Some(10_000)),
            (r#"{"TimeToLive": 0.5}"#, Some(500)),
            (r#"{"TimeToLive": 922337203685.47754}"#, None),
            (r#"{"TimeToLiveTimeSpan": "0.00:00:40"}"#, Some(40_000)),
            (r#"{"TimeToLiveTimeSpan": "00:01:00.5"}"#, Some(60_500)),
            (r#"{"TimeToLiveTimeSpan": "2.03:04:05"}"#, Some(183_845_000)),
            ("{}", None),
        ] {
            assert_eq!(parse(text).time_to_live().unwrap(), expected, "{text}");
        }
        for text in [
            r#"{"TimeToLive": 0}"#,
            r#"{"TimeToLive": -1}"#,
            r#"{"TimeToLiveTimeSpan": "soon"}"#,
            r#"{"TimeToLiveTimeSpan": "1.25:00:00"}"#,
        ] {
            assert!(parse(text).time_to_live().is_err(), "{text}");
        }
    }

    #[test]
    fn a_schedule_is_a_time_as_http_writes_it() {
        for text in ["Wed, 01 Jul 2026 12:00:00 GMT", "2026-07-01T12:00:00Z"] {
            let given = parse(&format!(r#"{{"ScheduledEnqueueTimeUtc": "{text}"}}"#));
            assert_eq!(
                given.scheduled().unwrap(),
                Some(1_782_907_200_000),
                "{text}"
            );
        }
        let given = parse(r#"{"ScheduledEnqueueTimeUtc": "tomorrow"}"#);
        assert!(given.scheduled().is_err());
    }

    #[test]
    fn names_that_are_not_known_are_passed_over() {
        let given = parse(r#"{"ForcePersistence": true, "Label": "a", "MessageId": null}"#);
        assert_eq!(
            (given.label.as_deref(), given.message_id),
            (Some("a"), None)
        );
        assert!(SenderProperties::parse("Label: a").is_err());
        assert!(SenderProperties::parse(r#"{"Label": 1}"#).is_err());
    }
}
