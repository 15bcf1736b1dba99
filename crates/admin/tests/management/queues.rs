//! Queues: made, shown, changed and deleted, with every property.

use broker::{Command, ConnectionId, Incoming, Output, RequestId, Tier};
use bytes::Bytes;
use expect_test::expect;
use store::EntityId;

use crate::world::{World, entry, queue};

const EVERYTHING: &str = "<LockDuration>PT30S</LockDuration>\
    <MaxSizeInMegabytes>2048</MaxSizeInMegabytes>\
    <RequiresDuplicateDetection>true</RequiresDuplicateDetection>\
    <RequiresSession>true</RequiresSession>\
    <DefaultMessageTimeToLive>P1D</DefaultMessageTimeToLive>\
    <DeadLetteringOnMessageExpiration>true</DeadLetteringOnMessageExpiration>\
    <DuplicateDetectionHistoryTimeWindow>PT5M</DuplicateDetectionHistoryTimeWindow>\
    <MaxDeliveryCount>7</MaxDeliveryCount>\
    <EnableBatchedOperations>false</EnableBatchedOperations>\
    <IsAnonymousAccessible>true</IsAnonymousAccessible>\
    <Status>ReceiveDisabled</Status>\
    <UserMetadata> 1 &lt; 2 </UserMetadata>\
    <SupportOrdering>false</SupportOrdering>\
    <AutoDeleteOnIdle>PT10M</AutoDeleteOnIdle>\
    <EnablePartitioning>false</EnablePartitioning>";

#[test]
fn the_contracts_worked_exchange() {
    let mut world = World::new();
    let body = r#"<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">
        <QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">
        <LockDuration>PT30S</LockDuration><MaxDeliveryCount>5</MaxDeliveryCount>
        </QueueDescription></content></entry>"#;
    let made = world.put("/orders?api-version=2021-05", body);
    assert_eq!(made.status, 201);
    assert_eq!(made.etag, None);
    assert_eq!(made.kind, "application/atom+xml;type=entry;charset=utf-8");
    let shown = made.body.replace("><", ">\n<");
    expect![[r#"
        <entry xmlns="http://www.w3.org/2005/Atom">
        <id>https://localhost:5300/orders?api-version=2021-05</id>
        <title type="text">orders</title>
        <published>2026-03-01T10:00:00.123Z</published>
        <updated>2026-03-01T10:00:00.123Z</updated>
        <author>
        <name>railbus</name>
        </author>
        <link rel="self" href="https://localhost:5300/orders?api-version=2021-05"/>
        <content type="application/xml">
        <QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" xmlns:i="http://www.w3.org/2001/XMLSchema-instance">
        <LockDuration>PT30S</LockDuration>
        <MaxSizeInMegabytes>1024</MaxSizeInMegabytes>
        <RequiresDuplicateDetection>false</RequiresDuplicateDetection>
        <RequiresSession>false</RequiresSession>
        <DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>
        <DeadLetteringOnMessageExpiration>false</DeadLetteringOnMessageExpiration>
        <DuplicateDetectionHistoryTimeWindow>PT10M</DuplicateDetectionHistoryTimeWindow>
        <MaxDeliveryCount>5</MaxDeliveryCount>
        <EnableBatchedOperations>true</EnableBatchedOperations>
        <SizeInBytes>0</SizeInBytes>
        <MessageCount>0</MessageCount>
        <IsAnonymousAccessible>false</IsAnonymousAccessible>
        <AuthorizationRules/>
        <Status>Active</Status>
        <CreatedAt>2026-03-01T10:00:00.123Z</CreatedAt>
        <UpdatedAt>2026-03-01T10:00:00.123Z</UpdatedAt>
        <SupportOrdering>true</SupportOrdering>
        <AutoDeleteOnIdle>P10675199DT2H48M5.4775807S</AutoDeleteOnIdle>
        <EnablePartitioning>false</EnablePartitioning>
        <EntityAvailabilityStatus>Available</EntityAvailabilityStatus>
        <EnableExpress>false</EnableExpress>
        <MaxMessageSizeInKilobytes>256</MaxMessageSizeInKilobytes>
        </QueueDescription>
        </content>
        </entry>"#]]
    .assert_eq(&shown);
}

#[test]
fn every_property_comes_back_in_the_canonical_order_after_a_restart_too() {
    let mut world = World::new();
    world.make("/target", "QueueDescription", "");
    let more =
        "<ForwardDeadLetteredMessagesTo>https://elsewhere/target</ForwardDeadLetteredMessagesTo>";
    let expected = format!("{EVERYTHING}{more}");
    let made = world.put("/Orders", &queue(&format!("{EVERYTHING}{more}")));
    assert_eq!(made.status, 201, "{made:?}");
    world.restart();
    let shown = world.get("/orders");
    for element in expected.split_inclusive('>').collect::<Vec<_>>().chunks(2) {
        let element = element.concat();
        assert!(shown.body.contains(&element), "{element} in {}", shown.body);
    }
    let order = [
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
    assert_eq!(shown.elements("QueueDescription"), order);
    assert!(
        shown.body.contains("<title type=\"text\">Orders</title>"),
        "its own case"
    );
}

#[test]
fn an_update_is_the_whole_description_and_says_when() {
    let mut world = World::new();
    world.make(
        "/q",
        "QueueDescription",
        "<UserMetadata>a</UserMetadata><MaxDeliveryCount>3</MaxDeliveryCount>",
    );
    world.mono = 60_000;
    let changed = world.update(
        "/Q?api-version=2021-05",
        &queue("<LockDuration>PT10S</LockDuration>"),
    );
    assert_eq!(changed.status, 200, "{changed:?}");
    let expected = "<LockDuration>PT10S</LockDuration>\
        <DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>";
    assert_eq!(changed.inner("QueueDescription"), expected);
    let found = world.get("/q");
    assert_eq!(found.value("LockDuration"), Some("PT10S"));
    assert_eq!(found.value("MaxDeliveryCount"), Some("10"));
    assert_eq!(found.value("UserMetadata"), None);
    assert_eq!(found.value("CreatedAt"), Some("2026-03-01T10:00:00.123Z"));
    assert_eq!(found.value("UpdatedAt"), Some("2026-03-01T10:01:00.123Z"));
    // What was shown may be sent back as it is.
    let shown = world.get("/q");
    let inner = shown
        .inner("QueueDescription")
        .replace("<d2p1:", "<")
        .replace("</d2p1:", "</");
    let changed = world.update("/q", &queue(&inner));
    assert_eq!(changed.status, 200);
    assert_eq!(changed.value("EntityAvailabilityStatus"), Some("Available"));
    for element in ["CreatedAt", "SizeInBytes", "CountDetails"] {
        assert!(!changed.body.contains(element), "{element} in {changed:?}");
    }
    assert!(
        changed.body.contains("<AuthorizationRules/>"),
        "{changed:?}"
    );
    assert_eq!(world.get("/q").value("LockDuration"), Some("PT10S"));
}

#[test]
fn an_entity_tag_is_when_it_was_changed_in_ticks() {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    let shown = world.get("/q");
    assert_eq!(shown.etag.as_deref(), Some("639079560001230000"));
    world.mono = 1;
    let changed = world.update("/q", &queue(""));
    assert_eq!(changed.etag.as_deref(), Some("639079560001240000"));
}

#[test]
fn durations_come_back_as_they_were_written() {
    let mut world = World::new();
    let inner = "<LockDuration>PT0H1M0.0000001S</LockDuration>\
        <DefaultMessageTimeToLive>P10675199DT2H48M5.477S</DefaultMessageTimeToLive>\
        <AutoDeleteOnIdle>PT300S</AutoDeleteOnIdle>";
    world.make("/q", "QueueDescription", inner);
    world.restart();
    let shown = world.get("/q");
    assert_eq!(shown.value("LockDuration"), Some("PT0H1M0.0000001S"));
    assert_eq!(
        shown.value("DefaultMessageTimeToLive"),
        Some("P10675199DT2H48M5.477S")
    );
    assert_eq!(shown.value("AutoDeleteOnIdle"), Some("PT300S"));
}

#[test]
fn elements_come_in_any_order_and_unknown_ones_are_passed_over() {
    let mut world = World::new();
    let inner = "<Unknown><LockDuration>PT1S</LockDuration></Unknown><EnableExpress>TRUE</EnableExpress>\
        <MaxDeliveryCount/><LockDuration>PT5S</LockDuration><MessageCount>99</MessageCount>\
        <LockDuration>PT6S</LockDuration><UserMetadata></UserMetadata><RequiresSession>1</RequiresSession>";
    let made = world.make("/q", "QueueDescription", inner);
    assert_eq!(made.value("LockDuration"), Some("PT6S"));
    assert_eq!(made.value("MaxDeliveryCount"), Some("10"));
    assert_eq!(made.value("EnableExpress"), Some("true"));
    assert_eq!(made.value("RequiresSession"), Some("true"));
    assert_eq!(made.value("MessageCount"), Some("0"));
    assert_eq!(made.value("UserMetadata"), None);
}

#[test]
fn partitioned_queues_are_sixteen_times_as_large() {
    let mut world = World::new();
    let inner = "<MaxSizeInMegabytes>2048</MaxSizeInMegabytes><EnablePartitioning>true</EnablePartitioning>";
    let made = world.make("/q", "QueueDescription", inner);
    assert_eq!(made.value("MaxSizeInMegabytes"), Some("32768"));
    assert_eq!(made.value("SupportOrdering"), Some("false"));
    let again = inner.replace("2048", "32768");
    let changed = world.update("/q", &queue(&again));
    assert_eq!(changed.value("MaxSizeInMegabytes"), Some("32768"));
}

#[test]
fn only_premium_queues_have_a_limit_of_their_own_for_messages() {
    let mut world = World::new();
    let body = |kilobytes: u32| {
        queue(&format!(
            "<MaxMessageSizeInKilobytes>{kilobytes}</MaxMessageSizeInKilobytes>"
        ))
    };
    assert_eq!(world.put("/same", &body(256)).status, 201);
    assert_eq!(world.put("/q", &body(2_048)).status, 400);
    world.settings.tier = Tier::Premium;
    let made = world.put("/q", &body(2_048));
    assert_eq!(made.value("MaxMessageSizeInKilobytes"), Some("2048"));
    assert_eq!(world.put("/r", &body(1_023)).status, 400);
    let refused = world.put("/r", &body(102_401));
    assert_eq!(refused.status, 400);
    let text = "value for 'MaxMessageSizeInKilobytes' must be between 1024 and 102400";
    assert!(refused.body.contains(text), "{refused:?}");
    let large = queue("<MaxSizeInMegabytes>81920</MaxSizeInMegabytes>");
    assert_eq!(world.put("/r", &large).status, 201);
    world.settings.tier = Tier::Standard;
    assert_eq!(
        world.update("/q", &body(2_048)).status,
        200,
        "it has it already"
    );
}

#[test]
fn counts_are_those_of_the_moment() {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    let message = |scheduled| Incoming {
        payload: Bytes::from_static(&[0x00, 0x53, 0x75, 0xa0, 0x00]),
        scheduled,
        ..Incoming::default()
    };
    let later = Some(broker::Wall(crate::world::START + 60_000));
    world.turn(Command::Send {
        request: RequestId {
            connection: ConnectionId(2),
            token: 1,
        },
        entity: EntityId(1),
        messages: vec![message(None), message(None), message(later)],
    });
    let shown = world.get("/q?api-version=2017-04&enrich=false");
    let counts = "<CountDetails xmlns:d2p1=\"http://schemas.microsoft.com/netservices/2011/06/servicebus\">\
        <d2p1:ActiveMessageCount>2</d2p1:ActiveMessageCount>\
        <d2p1:DeadLetterMessageCount>0</d2p1:DeadLetterMessageCount>\
        <d2p1:ScheduledMessageCount>1</d2p1:ScheduledMessageCount>\
        <d2p1:TransferMessageCount>0</d2p1:TransferMessageCount>\
        <d2p1:TransferDeadLetterMessageCount>0</d2p1:TransferDeadLetterMessageCount></CountDetails>";
    assert!(shown.body.contains(counts), "{}", shown.body);
    assert_eq!(shown.value("MessageCount"), Some("3"));
    assert_eq!(shown.value("SizeInBytes"), Some("15"));
    assert_eq!(shown.value("AccessedAt"), Some("2026-03-01T10:00:00.123Z"));
    assert_eq!(
        shown.value("MaxMessageSizeInKilobytes"),
        None,
        "an old version"
    );
}

/// What the counts of a queue say: active, in transfer, all of them, and the size.
fn counts(world: &mut World, uri: &str) -> [String; 4] {
    let shown = world.get(uri);
    let names = [
        "d2p1:ActiveMessageCount",
        "d2p1:TransferMessageCount",
        "MessageCount",
        "SizeInBytes",
    ];
    // A topic has no MessageCount.
    names.map(|name| shown.value(name).unwrap_or("none").to_owned())
}

#[test]
fn messages_that_are_sent_via_an_entity_count_beside_its_own() {
    let mut world = World::new();
    let disabled = "<Status>Disabled</Status>";
    world.make("/q", "QueueDescription", "");
    world.make("/t", "TopicDescription", "");
    world.make("/to", "QueueDescription", disabled);
    let mut send = |entity: u64, messages: usize, to: Option<&str>| {
        let message = Incoming {
            payload: Bytes::from_static(&[0x00, 0x53, 0x75, 0xa0, 0x00]),
            transfer_to: to.map(Into::into),
            ..Incoming::default()
        };
        let said = world.turn(Command::Send {
            request: RequestId {
                connection: ConnectionId(2),
                token: 1,
            },
            entity: EntityId(entity),
            messages: vec![message; messages],
        });
        let is_sent = |output: &Output| matches!(output, Output::Sent { result: Ok(_), .. });
        assert!(said.iter().any(is_sent), "{said:?}");
    };
    send(1, 3, None);
    send(1, 2, Some("to"));
    send(2, 4, Some("to"));
    assert_eq!(counts(&mut world, "/q"), ["3", "2", "5", "25"]);
    assert_eq!(counts(&mut world, "/t"), ["0", "4", "none", "20"]);
}

#[test]
fn a_duration_near_the_maximum_has_to_be_one() {
    let mut world = World::new();
    let body = queue("<AutoDeleteOnIdle>P10675199DTnonsense</AutoDeleteOnIdle>");
    assert_eq!(world.put("/q", &body).status, 400);
}

#[test]
fn a_deleted_queue_is_gone_and_its_name_is_free() {
    let mut world = World::new();
    world.make(
        "/a/b",
        "QueueDescription",
        "<RequiresSession>true</RequiresSession>",
    );
    let gone = world.delete("/A%2FB");
    assert_eq!((gone.status, &*gone.body), (200, ""));
    assert!(world.get("/a/b").is_missing());
    assert_eq!(world.delete("/a/b").status, 404);
    world.make("/a/b", "TopicDescription", "");
}

#[test]
fn targets_of_a_configuration_are_shown_as_addresses_and_others_as_they_were_written() {
    let mut world = World::new();
    world.make("/target", "QueueDescription", "");
    world.make(
        "/plain",
        "QueueDescription",
        "<ForwardTo>target</ForwardTo>",
    );
    assert_eq!(world.get("/plain").value("ForwardTo"), Some("target"));
    for (given, shown) in [
        ("SB://Some.Host:5672/Target/", "sb://some.host:5672/Target/"),
        ("HTTPS://HOST/TARGET", "https://host/TARGET"),
        ("http://host/target", "http://host/target"),
        ("Target", "Target"),
    ] {
        let body = queue(&format!(
            "<ForwardTo>{given}</ForwardTo>\
             <ForwardDeadLetteredMessagesTo>{given}</ForwardDeadLetteredMessagesTo>"
        ));
        let changed = world.update("/plain", &body);
        assert_eq!(changed.value("ForwardTo"), Some(shown), "{changed:?}");
        let found = world.get("/plain");
        for property in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
            assert_eq!(found.value(property), Some(shown));
        }
    }
    let ensured = broker::Ensured::Queue {
        path: "configured".to_owned(),
        settings: broker::QueueSettings {
            forward_to: Some("target".to_owned()),
            lock_duration: 1_500,
            ..broker::QueueSettings::default()
        },
    };
    world.turn(Command::Administer {
        request: RequestId {
            connection: ConnectionId(2),
            token: 1,
        },
        namespace: store::NamespaceId(0),
        order: Box::new(broker::Order::ensure(vec![ensured])),
    });
    let shown = world.get("/configured");
    assert_eq!(shown.value("ForwardTo"), Some("sb://localhost:5300/target"));
    assert_eq!(shown.value("LockDuration"), Some("PT1.5S"));
    // Out of the range of what can be said here, but it has it already.
    let inner = "<LockDuration>PT1.5S</LockDuration><MaxDeliveryCount>4</MaxDeliveryCount>";
    assert_eq!(world.update("/configured", &queue(inner)).status, 200);
}

#[test]
fn a_queue_with_sessions_forwards_to_itself_by_an_update_and_keeps_its_idle_time() {
    let mut world = World::new();
    world.make("/target", "QueueDescription", "");
    let sessions = "<RequiresSession>true</RequiresSession>";
    let idle = "<AutoDeleteOnIdle>PT10M</AutoDeleteOnIdle>";
    let forward = "<ForwardTo>target</ForwardTo>";
    let made = world.make(
        "/q",
        "QueueDescription",
        &format!("{sessions}{forward}{idle}"),
    );
    assert_eq!(made.value("ForwardTo"), Some("target"));
    assert_eq!(made.value("AutoDeleteOnIdle"), Some("PT10M"));
    for itself in ["Q", "sb://host/q", "https://host:5300/q"] {
        let forwards = format!(
            "<ForwardTo>{itself}</ForwardTo>\
             <ForwardDeadLetteredMessagesTo>{itself}</ForwardDeadLetteredMessagesTo>"
        );
        let changed = world.update("/q", &queue(&format!("{sessions}{idle}{forwards}")));
        assert_eq!(changed.status, 200, "{itself}: {changed:?}");
        world.restart();
        let shown = world.get("/q");
        for property in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
            assert_eq!(shown.value(property), Some(itself));
        }
        assert_eq!(shown.value("AutoDeleteOnIdle"), Some("PT10M"));
    }
}

#[test]
fn authorization_rules_come_back_with_their_keys() {
    let mut world = World::new();
    let rules = r#"<AuthorizationRules><AuthorizationRule i:type="SharedAccessAuthorizationRule">
        <ClaimType>SharedAccessKey</ClaimType><ClaimValue>None</ClaimValue>
        <Rights><AccessRights>Listen</AccessRights><AccessRights>Send</AccessRights></Rights>
        <KeyName>app</KeyName><PrimaryKey>first</PrimaryKey></AuthorizationRule></AuthorizationRules>"#;
    world.make("/q", "QueueDescription", rules);
    world.mono = 1_000;
    let shown = world.get("/q");
    expect![[r#"<AuthorizationRule i:type="SharedAccessAuthorizationRule"><ClaimType>SharedAccessKey</ClaimType><ClaimValue>None</ClaimValue><Rights><AccessRights>Send</AccessRights><AccessRights>Listen</AccessRights></Rights><KeyName>app</KeyName><PrimaryKey>first</PrimaryKey><SecondaryKey>AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=</SecondaryKey></AuthorizationRule>"#]]
    .assert_eq(shown.value("AuthorizationRules").unwrap());
    let rule = |inner: &str| {
        queue(&format!(
            "<AuthorizationRules>{}</AuthorizationRules>",
            inner
                .replace('[', "<AuthorizationRule>")
                .replace(']', "</AuthorizationRule>")
        ))
    };
    let named = |name: u32| format!("[<KeyName>{name}</KeyName>]");
    let twelve: String = (0..12).map(named).collect();
    assert_eq!(world.update("/q", &rule(&twelve)).status, 200);
    for wrong in [
        format!("{twelve}{}", named(12)),
        format!("{}{}", named(1), named(1)),
        "[]".to_owned(),
        "[<KeyName>a</KeyName><Rights><AccessRights>Manage</AccessRights></Rights>]".to_owned(),
        "[<KeyName>a</KeyName><Rights><AccessRights>Fly</AccessRights></Rights>]".to_owned(),
    ] {
        let refused = world.update("/q", &rule(&wrong));
        assert_eq!(refused.status, 400, "{wrong}");
        assert!(refused.body.contains("AuthorizationRules"), "{refused:?}");
    }
}

#[test]
fn times_of_authorization_rules_are_those_that_the_client_sends() {
    let mut world = World::new();
    let rules = |times: &str| {
        format!(
            "<AuthorizationRules><AuthorizationRule>{times}<KeyName>app</KeyName></AuthorizationRule></AuthorizationRules>"
        )
    };
    let times = "<CreatedTime>2020-07-05T11:12:13</CreatedTime><ModifiedTime>2020-07-05T11:12:13.1234567Z</ModifiedTime>";
    for kind in ["QueueDescription", "TopicDescription"] {
        let uri = &format!("/{kind}");
        let made = world.make(uri, kind, &rules(""));
        assert!(!made.body.contains("Time><KeyName>"), "{made:?}");
        let changed = world.update(uri, &entry(kind, &rules(times)));
        assert!(changed.body.contains(times), "{changed:?}");
        world.restart();
        assert!(world.get(uri).body.contains(times));
        let wrong = "<CreatedTime>yesterday</CreatedTime>";
        let refused = world.update(uri, &entry(kind, &rules(wrong)));
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(world.get(uri).body.contains(times));
        let without = world.update(uri, &entry(kind, &rules("")));
        assert!(!without.body.contains("CreatedTime"), "{without:?}");
    }
}

#[test]
fn a_key_that_an_update_leaves_out_stays_what_it_is() {
    let mut world = World::new();
    let rule = |inner: &str| {
        let rule = format!("<AuthorizationRule><KeyName>app</KeyName>{inner}</AuthorizationRule>");
        format!("<AuthorizationRules>{rule}</AuthorizationRules>")
    };
    let keys = "<PrimaryKey>first</PrimaryKey><SecondaryKey>second</SecondaryKey>";
    world.make("/q", "QueueDescription", &rule(keys));
    // Some clients are shown keys as empty texts and send those back.
    for (given, expected) in [
        ("<PrimaryKey/><SecondaryKey/>", keys),
        (
            "<PrimaryKey>third</PrimaryKey>",
            "<PrimaryKey>third</PrimaryKey><SecondaryKey>second</SecondaryKey>",
        ),
    ] {
        let updated = world.update("/q", &queue(&rule(given)));
        assert!(updated.body.contains(expected), "{updated:?}");
    }
}

#[test]
fn the_namespace_says_what_it_is() {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    let shown = world.get("/$namespaceinfo?api-version=2024-05");
    assert_eq!(shown.status, 200);
    let order = [
        "CreatedTime",
        "MessagingSKU",
        "ModifiedTime",
        "Name",
        "NamespaceType",
    ];
    assert_eq!(shown.elements("NamespaceInfo"), order);
    assert_eq!(shown.value("MessagingSKU"), Some("Standard"));
    assert_eq!(shown.value("Name"), Some("railbus"));
    assert_eq!(shown.value("published"), None);
    assert_eq!(
        world
            .put("/$namespaceinfo", &entry("NamespaceInfo", ""))
            .status,
        400
    );
}
