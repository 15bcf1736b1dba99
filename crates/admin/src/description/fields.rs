//! Fields: the values of a description's elements, each checked.

use std::ops::RangeInclusive;

use broker::{EntityInfo, OriginalTexts, QueueSettings, Status};
use entity::duration;

use crate::error::Error;
use crate::settings::Settings;
use crate::xml::Element;
use crate::{limits, typed};

/// A description, and what its values are measured by.
pub(super) struct Fields<'a> {
    pub element: &'a Element,
    pub settings: &'a Settings,
    /// The entity's present state.
    pub current: Option<&'a EntityInfo>,
}

/// A duration, and how it was written if it was written otherwise than it would be here.
pub(super) type Duration = (u64, Option<String>);

impl Fields<'_> {
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Error> {
        let Some(text) = self.element.value(name) else {
            return Ok(default);
        };
        typed::boolean(text).ok_or_else(|| Error::value(name, "it is neither true nor false"))
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Error> {
        let Some(text) = self.element.value(name) else {
            return Ok(None);
        };
        let number = text.parse();
        number
            .map(Some)
            .map_err(|_| Error::value(name, "it is no number from 0 on"))
    }

    /// A duration within a range, in milliseconds.
    pub(super) fn duration(
        &self,
        name: &str,
        range: &RangeInclusive<u64>,
        of: fn(&QueueSettings) -> u64,
    ) -> Result<Duration, Error> {
        let Some(text) = self.element.value(name) else {
            return Ok((of(&QueueSettings::default()), None));
        };
        let millis = duration::millis(text);
        let millis = millis.ok_or_else(|| Error::value(name, "it is no ISO 8601 duration"))?;
        let is_known = self.is_current(|current| of(current) == millis);
        if !range.contains(&millis) && !is_known {
            return Err(out_of_range(name, range));
        }
        let kept = (duration::text(millis) != text).then(|| text.to_owned());
        Ok((millis, kept))
    }

    pub(super) fn lock_duration(&self) -> Result<Duration, Error> {
        let name = "LockDuration";
        let found = self.duration(name, &limits::LOCK_DURATION, |s| s.lock_duration);
        let is_subscription = self.element.name == "SubscriptionDescription";
        found.map_err(
            |error| match self.element.value(name).and_then(duration::millis) {
                Some(millis) if millis > *limits::LOCK_DURATION.end() => Error {
                    text: format!(
                        "Bad Request. The lock duration is longer than the maximum of '5' minutes. \
                     Parameter name: {name}"
                    ),
                    sub_code: error.sub_code.filter(|_| !is_subscription),
                    ..error
                },
                _ => error,
            },
        )
    }

    pub(super) fn time_to_live(&self) -> Result<Duration, Error> {
        self.duration("DefaultMessageTimeToLive", &limits::TIME_TO_LIVE, |s| {
            s.default_message_time_to_live
        })
    }

    pub(super) fn history(&self) -> Result<Duration, Error> {
        let name = "DuplicateDetectionHistoryTimeWindow";
        self.duration(name, &limits::HISTORY, |s| {
            s.duplicate_detection_history_time_window
        })
    }

    pub(super) fn idle(&self) -> Result<Duration, Error> {
        self.duration("AutoDeleteOnIdle", &limits::IDLE, |s| s.auto_delete_on_idle)
    }

    pub(super) fn max_delivery_count(&self) -> Result<u32, Error> {
        let name = "MaxDeliveryCount";
        let default = QueueSettings::default().max_delivery_count;
        let Some(number) = self.number(name)? else {
            return Ok(default);
        };
        let range = limits::DELIVERIES;
        let wrong = || Error::value(name, format!("it is not from 1 to {}", range.end()));
        let number = u32::try_from(number).map_err(|_| wrong())?;
        if range.contains(&u64::from(number)) {
            Ok(number)
        } else {
            Err(wrong())
        }
    }

    /// Bytes of the entity. A partitioned one is shown, and may be named, with all its partitions.
    pub(super) fn max_size(&self, is_partitioned: bool) -> Result<u64, Error> {
        let name = "MaxSizeInMegabytes";
        let factor = if is_partitioned {
            limits::PARTITIONS
        } else {
            1
        };
        let Some(megabytes) = self.number(name)? else {
            return Ok(QueueSettings::default().max_size * factor);
        };
        if let Some(current) = self.current
            && current.queue.settings.max_size >> 20 == megabytes
        {
            return Ok(current.queue.settings.max_size);
        }
        let allowed = limits::megabytes(self.settings.premium);
        let found = allowed
            .iter()
            .find(|allowed| **allowed == megabytes || **allowed * factor == megabytes);
        let texts: Vec<_> = allowed.iter().map(u64::to_string).collect();
        let wrong = || Error::value(name, format!("it can be {}", texts.join(", ")));
        found
            .map(|megabytes| (megabytes << 20) * factor)
            .ok_or_else(wrong)
    }

    /// Bytes of one message, if the entity is to have its own limit.
    pub(super) fn max_message_size(&self) -> Result<Option<u64>, Error> {
        let name = "MaxMessageSizeInKilobytes";
        let Some(kilobytes) = self.number(name)? else {
            return Ok(None);
        };
        let default = self.settings.max_message_size;
        let current = self
            .current
            .map(|current| current.queue.settings.max_message_size);
        if let Some(current) = current
            && current.unwrap_or(default) >> 10 == kilobytes
        {
            return Ok(current);
        } else if default >> 10 == kilobytes {
            return Ok(None);
        } else if !self.settings.premium {
            let why = "only entities of the Premium tier have a limit of their own";
            return Err(Error::value(name, why));
        }
        let range = limits::MESSAGE_KILOBYTES;
        if !range.contains(&kilobytes) {
            let why = format!("it is not from {} to {}", range.start(), range.end());
            return Err(Error::value(name, why));
        }
        Ok(Some(kilobytes << 10))
    }

    pub(super) fn status(&self, allowed: &[Status]) -> Result<Status, Error> {
        let name = "Status";
        let Some(text) = self.element.value(name) else {
            return Ok(Status::Active);
        };
        let known = [
            Status::Active,
            Status::Disabled,
            Status::SendDisabled,
            Status::ReceiveDisabled,
        ];
        let found = known
            .into_iter()
            .find(|status| status_text(*status) == text);
        let is_known = |status: &Status| self.is_current(|current| current.status == *status);
        found
            .filter(|status| allowed.contains(status) || is_known(status))
            .ok_or_else(|| Error::value(name, format!("'{text}' can not be set here")))
    }

    pub(super) fn user_metadata(&self) -> Result<Option<String>, Error> {
        let name = "UserMetadata";
        let text = self.element.child(name).map(|child| child.text.clone());
        let text = text.filter(|text| !text.is_empty());
        if text
            .as_ref()
            .is_some_and(|text| text.chars().count() > limits::USER_METADATA)
        {
            let why = format!("it has more than {} characters", limits::USER_METADATA);
            return Err(Error::value(name, why));
        }
        Ok(text)
    }

    /// Where messages go on to. What is empty is none.
    pub(super) fn target(&self, name: &str) -> Option<String> {
        self.element.value(name).map(str::to_owned)
    }

    fn is_current(&self, test: impl FnOnce(&QueueSettings) -> bool) -> bool {
        self.current
            .is_some_and(|current| test(&current.queue.settings))
    }

    /// Settings that only a configuration file can set keep their value.
    pub(super) fn unsaid(&self) -> QueueSettings {
        let expiry = self
            .current
            .and_then(|current| current.queue.settings.expiry);
        QueueSettings {
            expiry,
            ..QueueSettings::default()
        }
    }
}

/// The texts of what queues and subscriptions have both.
pub(super) fn kept_targets(settings: &QueueSettings) -> OriginalTexts {
    OriginalTexts {
        forward_to: settings.forward_to.clone(),
        forward_dead_lettered_messages_to: settings.forward_dead_lettered_messages_to.clone(),
        ..OriginalTexts::default()
    }
}

pub(super) const fn status_text(status: Status) -> &'static str {
    match status {
        Status::Active => "Active",
        Status::Disabled => "Disabled",
        Status::SendDisabled => "SendDisabled",
        Status::ReceiveDisabled => "ReceiveDisabled",
    }
}

fn out_of_range(name: &str, range: &RangeInclusive<u64>) -> Error {
    let (least, most) = (duration::text(*range.start()), duration::text(*range.end()));
    Error::value(name, format!("it is not from {least} to {most}"))
}
