//! Topics and subscriptions: made, shown, changed and deleted, with every property.

use broker::{
    Access, Command, ConnectionId, Incoming, ReceiveMode, ReceiverId, RequestId, Subqueue,
    SubqueueId, Wall,
};
use bytes::Bytes;
use store::{EntityId, SequenceNumber};

use crate::world::{START, World, entry};

fn topic(inner: &str) -> String {
    entry("TopicDescription", inner)
}

fn subscription(inner: &str) -> String {
    entry("SubscriptionDescription", inner)
}

/// What was said is shown, element by element.
fn shows(shown: &str, said: &str) {
    for element in said.split_inclusive('>').collect::<Vec<_>>().chunks(2) {
        let element = element.concat();
        assert!(shown.contains(&element), "{element} in {shown}");
    }
}

#[test]
fn every_property_of_a_topic_comes_back_in_the_canonical_order() {
    let mut world = World::new();
    let inner = "<DefaultMessageTimeToLive>PT1H</DefaultMessageTimeToLive>\
        <MaxSizeInMegabytes>5120</MaxSizeInMegabytes>\
        <RequiresDuplicateDetection>true</RequiresDuplicateDetection>\
        <DuplicateDetectionHistoryTimeWindow>PT1M</DuplicateDetectionHistoryTimeWindow>\
        <EnableBatchedOperations>false</EnableBatchedOperations>\
        <FilteringMessagesBeforePublishing>true</FilteringMessagesBeforePublishing>\
        <IsAnonymousAccessible>true</IsAnonymousAccessible>\
        <Status>SendDisabled</Status>\
        <UserMetadata>mine</UserMetadata>\
        <SupportOrdering>false</SupportOrdering>\
        <AutoDeleteOnIdle>PT10M</AutoDeleteOnIdle>\
        <EnablePartitioning>false</EnablePartitioning>\
        <EnableSubscriptionPartitioning>true</EnableSubscriptionPartitioning>\
        <EnableExpress>false</EnableExpress>";
    world.make("/Events", "TopicDescription", inner);
    world.restart();
    let shown = world.get("/events?api-version=2024-05");
    shows(&shown.body, inner);
    let order = [
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
    assert_eq!(shown.elements("TopicDescription"), order);
    let older = world.get("/events?api-version=2021-05");
    assert_eq!(older.value("SqlFilterCount"), None);
    assert_eq!(older.value("MaxMessageSizeInKilobytes"), Some("256"));
    let refused = world.update("/events", &topic(""));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("RequiresDuplicateDetection"));
    let inner = inner.replace("mine", "yours");
    assert_eq!(world.update("/events", &topic(&inner)).status, 200);
    assert_eq!(world.get("/events").value("UserMetadata"), Some("yours"));
}

#[test]
fn every_property_of_a_subscription_comes_back_in_the_canonical_order() {
    let mut world = World::new();
    world.make("/target", "QueueDescription", "");
    world.make("/Events", "TopicDescription", "");
    let inner = "<LockDuration>PT45S</LockDuration>\
        <RequiresSession>false</RequiresSession>\
        <DefaultMessageTimeToLive>PT2H</DefaultMessageTimeToLive>\
        <DeadLetteringOnMessageExpiration>true</DeadLetteringOnMessageExpiration>\
        <DeadLetteringOnFilterEvaluationExceptions>false</DeadLetteringOnFilterEvaluationExceptions>\
        <MaxDeliveryCount>2</MaxDeliveryCount>\
        <EnableBatchedOperations>false</EnableBatchedOperations>\
        <Status>ReceiveDisabled</Status>\
        <ForwardTo>https://host/target</ForwardTo>\
        <UserMetadata>mine</UserMetadata>\
        <ForwardDeadLetteredMessagesTo>sb://host/Target</ForwardDeadLetteredMessagesTo>";
    world.make(
        "/events/Subscriptions/Audit",
        "SubscriptionDescription",
        inner,
    );
    world.restart();
    let shown = world.get("/EVENTS/subscriptions/audit?api-version=2021-05");
    shows(&shown.body, inner);
    let order = [
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
    ];
    assert_eq!(shown.elements("SubscriptionDescription"), order);
    assert!(
        shown.body.contains("<CountDetails xmlns:d3p1="),
        "{}",
        shown.body
    );
    assert!(shown.body.contains("<title type=\"text\">Audit</title>"));
    assert!(!shown.body.contains("<author>"));
    let id = "<id>https://localhost:5300/EVENTS/subscriptions/audit?api-version=2021-05</id>";
    assert!(shown.body.contains(id), "the client's own casing");
    let changed = world.update("/events/subscriptions/audit", &subscription(""));
    assert_eq!(changed.status, 200, "{changed:?}");
    let expected =
        "<DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>";
    assert_eq!(changed.inner("SubscriptionDescription"), expected);
    let found = world.get("/events/subscriptions/audit");
    assert_eq!(
        found.value("DeadLetteringOnFilterEvaluationExceptions"),
        Some("true")
    );
    assert_eq!(found.value("ForwardTo"), None);
    let sessions = subscription("<RequiresSession>true</RequiresSession>");
    assert_eq!(
        world
            .update("/events/subscriptions/audit", &sessions)
            .status,
        400
    );
}

#[test]
fn a_topic_counts_what_is_below_it_and_takes_it_along() {
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/a", "SubscriptionDescription", "");
    let red = r#"<DefaultRuleDescription><Filter i:type="CorrelationFilter"><Label>red</Label></Filter>
        <Name>red-only</Name></DefaultRuleDescription>"#;
    world.make("/t/Subscriptions/b", "SubscriptionDescription", red);
    let shown = world.get("/t");
    assert_eq!(shown.value("SubscriptionCount"), Some("2"));
    assert_eq!(shown.value("SqlFilterCount"), Some("1"));
    assert_eq!(shown.value("CorrelationFilterCount"), Some("1"));
    assert_eq!(world.delete("/t/Subscriptions/a").status, 200);
    assert_eq!(world.get("/t").value("SubscriptionCount"), Some("1"));
    assert_eq!(world.delete("/t").status, 200);
    assert_eq!(world.get("/t/Subscriptions/b").status, 404);
    world.make("/t", "TopicDescription", "");
    assert_eq!(world.get("/t/Subscriptions/b").status, 404);
}

/// When an entity was used last, as it is shown and as its list shows it.
fn accessed(world: &mut World, uri: &str) -> String {
    let shown = world.get(uri);
    let at = shown.value("AccessedAt").unwrap().to_owned();
    let list = match uri.rsplit_once('/') {
        Some(("", _)) => "/$Resources/topics",
        Some((list, _)) => list,
        None => panic!("{uri} is absolute"),
    };
    assert_eq!(world.get(list).value("AccessedAt"), Some(&*at));
    at
}

#[test]
fn a_topic_is_used_by_the_creation_and_the_use_of_its_subscriptions_and_by_no_update() {
    const NEVER: &str = "0001-01-01T00:00:00Z";
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    assert_eq!(accessed(&mut world, "/t"), NEVER);
    world.mono = 1_000;
    assert_eq!(world.update("/t", &topic("")).status, 200);
    assert_eq!(accessed(&mut world, "/t"), NEVER);
    world.mono = 2_000;
    let uri = "/t/Subscriptions/s";
    world.make(uri, "SubscriptionDescription", "");
    let made = "2026-03-01T10:00:02.123Z";
    assert_eq!(accessed(&mut world, "/t"), made);
    assert_eq!(accessed(&mut world, uri), made);
    world.mono = 3_000;
    assert_eq!(world.update(uri, &subscription("")).status, 200);
    world.restart();
    assert_eq!(accessed(&mut world, "/t"), made);
    assert_eq!(accessed(&mut world, uri), made);
    world.mono = 4_000;
    world.turn(Command::Peek {
        request: RequestId {
            connection: ConnectionId(2),
            token: 1,
        },
        subqueue: SubqueueId {
            entity: EntityId(2),
            subqueue: Subqueue::Main,
        },
        state: None,
        from: SequenceNumber(1),
        count: 1,
        max_bytes: 1,
    });
    let used = "2026-03-01T10:00:04.123Z";
    assert_eq!(accessed(&mut world, "/t"), used);
    assert_eq!(accessed(&mut world, uri), used);
    assert_eq!(world.delete(uri).status, 200);
    assert_eq!(accessed(&mut world, "/t"), used, "it was used all the same");
}

#[test]
fn the_entity_tag_of_a_subscription_is_its_topics() {
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    let of_topic = world.get("/t").etag;
    assert!(of_topic.is_some());
    world.mono = 1;
    let made = world.make("/t/subscriptions/s", "SubscriptionDescription", "");
    assert_eq!((made.status, &made.etag), (201, &of_topic));
    assert_eq!(world.get("/t/subscriptions/s").etag, of_topic);
    world.update("/t", &topic(""));
    let changed = world.get("/t/subscriptions/s").etag;
    assert_ne!(changed, of_topic);
    assert_eq!(changed, world.get("/t").etag);
}

/// A new entity has not been used; a message that is scheduled uses it, and so does a receiver.
#[test]
fn a_schedule_and_a_receive_are_uses() {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/s", "SubscriptionDescription", "");
    for (step, (entity, uris)) in [
        (EntityId(1), &["/q"][..]),
        (EntityId(2), &["/t"]),
        (EntityId(3), &["/t", "/t/Subscriptions/s"]),
    ]
    .into_iter()
    .enumerate()
    {
        let connection = ConnectionId(2);
        world.mono += 1_000;
        if entity != EntityId(3) {
            let message = Incoming {
                payload: Bytes::from_static(&[0x00, 0x53, 0x75, 0xa0, 0x00]),
                scheduled: Some(Wall(START + world.mono + 60_000)),
                ..Incoming::default()
            };
            world.turn(Command::Send {
                request: RequestId {
                    connection,
                    token: 1,
                },
                entity,
                messages: vec![message],
            });
            let at = format!("2026-03-01T10:00:{:02}.123Z", world.mono / 1_000);
            assert_eq!(world.get(uris[0]).value("AccessedAt"), Some(&*at));
        }
        if entity == EntityId(2) {
            continue;
        }
        world.mono += 1_000;
        let receiver = ReceiverId {
            connection,
            link: u32::try_from(step).unwrap(),
        };
        world.turn(Command::Attach {
            receiver,
            subqueue: SubqueueId {
                entity,
                subqueue: Subqueue::Main,
            },
            access: Access::Consume(ReceiveMode::PeekLock),
            selector: None,
        });
        world.turn(Command::Credit {
            receiver,
            limit: 1,
            drain: false,
        });
        for uri in uris {
            let at = format!("2026-03-01T10:00:{:02}.123Z", world.mono / 1_000);
            assert_eq!(world.get(uri).value("AccessedAt"), Some(&*at), "{uri}");
        }
    }
}

#[test]
fn express_of_a_topic_is_switched_by_updates() {
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    for express in ["true", "false", "true"] {
        let inner = format!("<EnableExpress>{express}</EnableExpress>");
        let changed = world.update("/t", &topic(&inner));
        assert_eq!(changed.value("EnableExpress"), Some(express), "{changed:?}");
        world.restart();
        assert_eq!(world.get("/t").value("EnableExpress"), Some(express));
    }
    let detection = "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>";
    world.make("/d", "TopicDescription", detection);
    let both = format!("{detection}<EnableExpress>true</EnableExpress>");
    let refused = world.update("/d", &topic(&both));
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("EnableExpress"), "{refused:?}");
    assert_eq!(world.get("/d").value("EnableExpress"), Some("false"));
}

#[test]
fn a_subscription_with_sessions_forwards_and_keeps_its_idle_time() {
    let mut world = World::new();
    world.make("/target", "QueueDescription", "");
    world.make("/t", "TopicDescription", "");
    let sessions = "<RequiresSession>true</RequiresSession>";
    let forward = "<ForwardTo>target</ForwardTo>";
    let idle = "<AutoDeleteOnIdle>PT10M</AutoDeleteOnIdle>";
    let uri = "/t/Subscriptions/made";
    let made = world.make(
        uri,
        "SubscriptionDescription",
        &format!("{sessions}{forward}{idle}"),
    );
    assert_eq!(made.value("AutoDeleteOnIdle"), Some("PT10M"));
    let uri = "/t/Subscriptions/changed";
    world.make(uri, "SubscriptionDescription", sessions);
    let changed = world.update(uri, &subscription(&format!("{sessions}{forward}{idle}")));
    assert_eq!(changed.status, 200, "{changed:?}");
    world.restart();
    for name in ["made", "changed"] {
        let shown = world.get(&format!("/t/Subscriptions/{name}"));
        for (property, value) in [
            ("RequiresSession", "true"),
            ("ForwardTo", "target"),
            ("AutoDeleteOnIdle", "PT10M"),
        ] {
            assert_eq!(shown.value(property), Some(value), "{name}");
        }
    }
}

#[test]
fn a_subscription_takes_every_status() {
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    for status in ["Active", "Disabled", "SendDisabled", "ReceiveDisabled"] {
        let uri = format!("/t/Subscriptions/{status}");
        let said = format!("<Status>{status}</Status>");
        let made = world.make(&uri, "SubscriptionDescription", &said);
        assert_eq!(made.value("Status"), Some(status));
    }
}
