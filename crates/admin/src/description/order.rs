//! The canonical order of elements, on which some clients depend. (docs/spec/admin.md#5.1 to #5.3)
//!
//! An element that is no property of the table is read-only, and the writer knows its value.

use broker::EntityKind;

const QUEUE: &[&str] = &[
    "LockDuration",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DuplicateDetectionHistoryTimeWindow",
    "MaxDeliveryCount",
    "EnableBatchedOperations",
    "SizeInBytes",
    "MessageCount",
    "IsAnonymousAccessible",
    "AuthorizationRules",
    "Status",
    "ForwardTo",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "UserMetadata",
    "SupportOrdering",
    "CountDetails",
    "AutoDeleteOnIdle",
    "EnablePartitioning",
    "EntityAvailabilityStatus",
    "ForwardDeadLetteredMessagesTo",
    "EnableExpress",
    "MaxMessageSizeInKilobytes",
];

const TOPIC: &[&str] = &[
    "DefaultMessageTimeToLive",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "DuplicateDetectionHistoryTimeWindow",
    "EnableBatchedOperations",
    "SizeInBytes",
    "FilteringMessagesBeforePublishing",
    "IsAnonymousAccessible",
    "AuthorizationRules",
    "Status",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "UserMetadata",
    "SupportOrdering",
    "CountDetails",
    "SubscriptionCount",
    "SqlFilterCount",
    "CorrelationFilterCount",
    "AutoDeleteOnIdle",
    "EnablePartitioning",
    "EntityAvailabilityStatus",
    "EnableSubscriptionPartitioning",
    "EnableExpress",
    "MaxMessageSizeInKilobytes",
];

const SUBSCRIPTION: &[&str] = &[
    "LockDuration",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DeadLetteringOnFilterEvaluationExceptions",
    "MessageCount",
    "MaxDeliveryCount",
    "EnableBatchedOperations",
    "Status",
    "ForwardTo",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "CountDetails",
    "UserMetadata",
    "ForwardDeadLetteredMessagesTo",
    "AutoDeleteOnIdle",
    "EntityAvailabilityStatus",
    "IsClientAffine",
    "ClientAffineProperties",
];

/// The elements of a kind of entity.
pub(super) const fn of(kind: EntityKind) -> &'static [&'static str] {
    match kind {
        EntityKind::Queue => QUEUE,
        EntityKind::Topic => TOPIC,
        EntityKind::Subscription => SUBSCRIPTION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_property_has_its_place() {
        for kind in [
            EntityKind::Queue,
            EntityKind::Topic,
            EntityKind::Subscription,
        ] {
            for (name, _) in entity::elements(kind) {
                let places = of(kind).iter().filter(|element| **element == name);
                assert_eq!(places.count(), 1, "{name} of a {kind}");
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_contract() {
        let contract = include_str!("../../../../docs/spec/admin.md");
        let section = |anchor: &str| {
            let start = contract.find(&format!("<a id=\"{anchor}\">")).unwrap();
            let text = &contract[start..];
            &text[..text[1..].find("\n### ").unwrap()]
        };
        let check = |kind, anchor: &str| {
            let mut rest = section(anchor);
            for element in of(kind) {
                let place = rest.find(element);
                let place = place.unwrap_or_else(|| panic!("{element} is not next for {kind}"));
                rest = &rest[place + element.len()..];
            }
        };
        check(EntityKind::Queue, "5.1");
        check(EntityKind::Topic, "5.2");
        check(EntityKind::Subscription, "5.3");
    }
}
