//! Tier: what a namespace does without. (docs/spec/entities.md#2, #4)
//!
//! Standard and Premium have all that a broker does; they differ in sizes, which are settings of
//! their own. Basic has queues and scheduled messages only.

use crate::api::entity_error::EntityError;
use crate::api::kind::EntityKind;
use crate::api::settings::QueueSettings;

/// Default and limit of the time to live in the Basic tier: 14 days.
const BASIC_TIME_TO_LIVE: u64 = 14 * 24 * 60 * 60 * 1_000;

/// The tier of a namespace.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the variants are the contract's")]
pub enum Tier {
    Basic,
    #[default]
    Standard,
    Premium,
}

impl Tier {
    /// Its name, as Service Bus shows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "Basic",
            Self::Standard => "Standard",
            Self::Premium => "Premium",
        }
    }

    /// Whether it has topics, and what distributes messages as they do.
    #[must_use]
    pub fn has_topics(self) -> bool {
        self != Self::Basic
    }

    /// Whether messages can go on from the entity that they are sent to.
    #[must_use]
    pub fn has_forwarding(self) -> bool {
        self != Self::Basic
    }

    /// Whether it has transactions.
    #[must_use]
    pub fn has_transactions(self) -> bool {
        self != Self::Basic
    }

    /// What an entity has that the tier does not: its kind, or one of its properties.
    #[must_use]
    pub fn lacks(self, kind: EntityKind, settings: &QueueSettings) -> Option<&'static str> {
        if self != Self::Basic {
            return None;
        }
        let lacking = [
            ("topics", kind != EntityKind::Queue),
            ("RequiresSession", settings.requires_session),
            (
                "RequiresDuplicateDetection",
                settings.requires_duplicate_detection,
            ),
            ("ForwardTo", settings.forward_to.is_some()),
            (
                "ForwardDeadLetteredMessagesTo",
                settings.forward_dead_lettered_messages_to.is_some(),
            ),
            ("AutoDeleteOnIdle", settings.auto_delete_on_idle != u64::MAX),
            (
                "DefaultMessageTimeToLive above P14D",
                settings.default_message_time_to_live > BASIC_TIME_TO_LIVE,
            ),
        ];
        let found = lacking.into_iter().find(|(_, is_set)| *is_set);
        found.map(|(what, _)| what)
    }

    /// Whether a new or changed entity may have these settings. A time to live that is not limited
    /// becomes that of the tier.
    ///
    /// # Errors
    /// When the tier does not have that.
    pub fn admit(self, kind: EntityKind, settings: &mut QueueSettings) -> Result<(), EntityError> {
        let time_to_live = &mut settings.default_message_time_to_live;
        if self == Self::Basic && *time_to_live == u64::MAX {
            *time_to_live = BASIC_TIME_TO_LIVE;
        }
        let lacking = self.lacks(kind, settings);
        lacking.map_or(Ok(()), |what| Err(EntityError::NotInTier(what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut QueueSettings);

    fn check(tier: Tier, change: Change, expected: Result<u64, &'static str>) {
        let mut settings = QueueSettings::default();
        change(&mut settings);
        let admitted = tier.admit(EntityKind::Queue, &mut settings);
        let found = admitted.map(|()| settings.default_message_time_to_live);
        assert_eq!(found, expected.map_err(EntityError::NotInTier));
    }

    #[test]
    fn basic_has_queues_with_a_limited_time_to_live_alone() {
        let basic = |change, expected| check(Tier::Basic, change, expected);
        basic(|_| {}, Ok(1_209_600_000));
        basic(|it| it.default_message_time_to_live = 1_000, Ok(1_000));
        basic(
            |it| it.default_message_time_to_live = 1_209_600_001,
            Err("DefaultMessageTimeToLive above P14D"),
        );
        basic(|it| it.requires_session = true, Err("RequiresSession"));
        basic(
            |it| it.requires_duplicate_detection = true,
            Err("RequiresDuplicateDetection"),
        );
        basic(|it| it.forward_to = Some("a".to_owned()), Err("ForwardTo"));
        basic(
            |it| it.forward_dead_lettered_messages_to = Some("a".to_owned()),
            Err("ForwardDeadLetteredMessagesTo"),
        );
        basic(
            |it| it.auto_delete_on_idle = 300_000,
            Err("AutoDeleteOnIdle"),
        );
        for kind in [EntityKind::Topic, EntityKind::Subscription] {
            let admitted = Tier::Basic.admit(kind, &mut QueueSettings::default());
            assert_eq!(admitted, Err(EntityError::NotInTier("topics")));
        }
    }

    /// Of a store that was made in another tier.
    #[test]
    fn what_an_entity_has_and_basic_does_not_is_told() {
        let endless = QueueSettings::default();
        let told = Tier::Basic.lacks(EntityKind::Queue, &endless);
        assert_eq!(told, Some("DefaultMessageTimeToLive above P14D"));
        let told = Tier::Basic.lacks(EntityKind::Topic, &endless);
        assert_eq!(told, Some("topics"));
        let plain = QueueSettings {
            default_message_time_to_live: BASIC_TIME_TO_LIVE,
            ..QueueSettings::default()
        };
        assert_eq!(Tier::Basic.lacks(EntityKind::Queue, &plain), None);
        assert_eq!(Tier::Standard.lacks(EntityKind::Topic, &endless), None);
    }

    #[test]
    fn the_other_tiers_change_nothing() {
        for tier in [Tier::Standard, Tier::Premium] {
            check(tier, |_| {}, Ok(u64::MAX));
            check(tier, |it| it.requires_session = true, Ok(u64::MAX));
            let admitted = tier.admit(EntityKind::Topic, &mut QueueSettings::default());
            assert_eq!(admitted, Ok(()));
        }
    }
}
