//! Errors: the status, code and text of each. (docs/spec/admin.md#8.2)

use expect_test::expect;

use broker::Tier;

use crate::world::{World, entry, queue};

#[test]
fn an_error_looks_as_clients_expect() {
    let mut world = World::new();
    world.make("/orders", "QueueDescription", "");
    let refused = world.put("/Orders?api-version=2021-05", &queue(""));
    assert_eq!(
        (refused.status, &*refused.kind),
        (409, "application/xml; charset=utf-8")
    );
    expect![[r#"<Error><Code>409</Code><Detail>SubCode=40900. Conflict. The entity 'Orders' exists already. TrackingId:00000000-0000-0000-0000-000000000007_G2, SystemTracker:localhost:5300:Orders, Timestamp:2026-03-01T10:00:00</Detail></Error>"#]]
    .assert_eq(&refused.body);
}

/// One request after the other, with the status, the code and a part of the text of each answer.
#[test]
fn every_refusal_has_its_status_its_code_and_its_reason() {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/s", "SubscriptionDescription", "");
    let topic = entry("TopicDescription", "");
    let subscription = entry("SubscriptionDescription", "");
    let rule = entry("RuleDescription", "");
    let long = queue("<LockDuration>PT5M0.1S</LockDuration>");
    let long_below = entry(
        "SubscriptionDescription",
        "<LockDuration>PT6M</LockDuration>",
    );
    let cases = [
        ("PUT", "/t", &*queue(""), 409, "40900", "Conflict"),
        (
            "PUT",
            "/t/Subscriptions/S",
            &subscription,
            409,
            "",
            "The messaging entity 'railbus:Topic:t|S' already exists",
        ),
        (
            "PUT",
            "/t/Subscriptions/s/Rules/$default",
            &rule,
            409,
            "",
            "The messaging entity 'railbus:Topic:t|s|$default' already exists",
        ),
        (
            "PUT",
            "/x/Subscriptions/s",
            &subscription,
            404,
            "40400",
            "topic",
        ),
        (
            "PUT",
            "/x/Subscriptions/s/Rules/r",
            &rule,
            404,
            "40400",
            "topic",
        ),
        (
            "PUT",
            "/t/Subscriptions/x/Rules/r",
            &rule,
            404,
            "",
            "railbus:Topic:t|x|r' was not found",
        ),
        ("UPDATE", "/x", &queue(""), 404, "40400", "Not Found"),
        ("UPDATE", "/x", &topic, 404, "40400", "Not Found"),
        ("UPDATE", "/t", &queue(""), 400, "40000", "'t' is a topic"),
        (
            "UPDATE",
            "/t/Subscriptions/x",
            &subscription,
            404,
            "",
            "railbus:Topic:t|x' was not found",
        ),
        (
            "UPDATE",
            "/x/Subscriptions/x",
            &subscription,
            404,
            "40400",
            "topic",
        ),
        (
            "UPDATE",
            "/t/Subscriptions/s/Rules/x",
            &rule,
            404,
            "",
            "railbus:Topic:t|s|x' was not found",
        ),
        (
            "DELETE",
            "/x",
            "",
            404,
            "",
            "No service is hosted at the specified address",
        ),
        (
            "DELETE",
            "/t/Subscriptions/x",
            "",
            404,
            "",
            "No service is hosted",
        ),
        (
            "DELETE",
            "/t/Subscriptions/s/Rules/x",
            "",
            404,
            "",
            "No service is hosted",
        ),
        (
            "PUT",
            "/new",
            &long,
            400,
            "40000",
            "maximum of '5' minutes. Parameter name: LockDuration",
        ),
        (
            "PUT",
            "/t/Subscriptions/n",
            &long_below,
            400,
            "",
            "maximum of '5' minutes",
        ),
        (
            "GET",
            "/q/$DeadLetterQueue",
            "",
            400,
            "",
            "The specified HTTP verb (GET) is not valid.",
        ),
        (
            "PUT",
            "/q/$DeadLetterQueue",
            &queue(""),
            400,
            "",
            "The specified HTTP verb (PUT) is not valid.",
        ),
        (
            "DELETE",
            "/$nothing",
            "",
            404,
            "",
            "No service is hosted at the specified address",
        ),
        (
            "POST",
            "/q",
            "",
            400,
            "",
            "The specified HTTP verb (POST) is not valid.",
        ),
        (
            "DELETE",
            "/$Resources/queues",
            "",
            400,
            "",
            "HTTP verb (DELETE)",
        ),
        ("GET", "/$Resources/queues?$top=x", "", 400, "40000", "$top"),
        (
            "PUT",
            "/a%20b",
            &queue(""),
            400,
            "40000",
            "'https://localhost:5300/a%20b' contains character(s) that is not allowed",
        ),
        (
            "PUT",
            "/t/subscriptions",
            &topic,
            400,
            "",
            "HTTP verb (PUT)",
        ),
        (
            "PUT",
            "/q",
            &subscription,
            400,
            "40000",
            "SubscriptionDescription",
        ),
    ];
    for (method, uri, body, status, code, text) in cases {
        let answered = match method {
            "UPDATE" => world.update(uri, body),
            method => world.send(&crate::world::request(method, uri, body)),
        };
        let shown = format!("{method} {uri}: {answered:?}");
        assert_eq!(answered.status, status, "{shown}");
        let detail = answered.value("Detail").unwrap();
        match code {
            "" => assert!(!detail.starts_with("SubCode="), "{shown}"),
            code => assert!(detail.starts_with(&format!("SubCode={code}. ")), "{shown}"),
        }
        assert!(detail.contains(text), "{shown}");
    }
}

#[test]
fn values_out_of_range_are_refused_by_the_name_of_their_property() {
    let mut world = World::new();
    world.make("/target", "QueueDescription", "");
    for (name, values) in [
        ("LockDuration", &["PT4S", "PT5M1S", "1 minute", "P"][..]),
        ("MaxSizeInMegabytes", &["0", "1000", "10240", "-1", "x"]),
        ("DefaultMessageTimeToLive", &["PT0S", "PT0.5S", "-PT1M"]),
        ("DuplicateDetectionHistoryTimeWindow", &["PT19S", "P7DT1S"]),
        ("MaxDeliveryCount", &["0", "2147483648", "-1", "many"]),
        ("AutoDeleteOnIdle", &["PT4M59S"]),
        (
            "Status",
            &["Creating", "Renaming", "Unknown", "active", "Sleepy"],
        ),
        ("RequiresSession", &["yes", "2"]),
        ("EnableBatchedOperations", &["maybe"]),
        ("MaxMessageSizeInKilobytes", &["1024", "x"]),
        ("UserMetadata", &[&"ä".repeat(1_025)]),
    ] {
        for value in values {
            let refused = world.put("/q", &queue(&format!("<{name}>{value}</{name}>")));
            assert_eq!(refused.status, 400, "{name} {value}");
            assert!(
                refused.body.contains(&format!("Parameter name: {name}")),
                "{refused:?}"
            );
        }
    }
    let both = "<RequiresDuplicateDetection>true</RequiresDuplicateDetection><EnableExpress>true</EnableExpress>";
    assert!(world.put("/q", &queue(both)).body.contains("EnableExpress"));
    let itself = "<ForwardDeadLetteredMessagesTo>sb://h/q</ForwardDeadLetteredMessagesTo>";
    assert_eq!(world.put("/q", &queue(itself)).status, 404);
    let nowhere = world.put("/q", &queue("<ForwardTo>sb://h/nowhere</ForwardTo>"));
    assert_eq!(nowhere.status, 404);
    assert!(nowhere.body.contains("SubCode=40400.") && nowhere.body.contains("nowhere"));
    assert!(world.get("/q").is_missing(), "nothing was made");
    let most = "<MaxDeliveryCount>2147483647</MaxDeliveryCount><UserMetadata>";
    let most = format!("{most}{}</UserMetadata>", "ä".repeat(1_024));
    assert_eq!(world.put("/q", &queue(&most)).status, 201);
}

#[test]
fn a_refused_size_comes_with_the_sizes_that_there_are() {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    let standard = "1024, 2048, 3072, 4096, 5120";
    let premium = format!("{standard}, 10240, 20480, 40960, 81920");
    for (tier, wrong, sizes) in [
        (Tier::Standard, 10_240, standard),
        (Tier::Premium, 10_241, &premium),
    ] {
        world.settings.tier = tier;
        let size = format!("<MaxSizeInMegabytes>{wrong}</MaxSizeInMegabytes>");
        for (uri, kind) in [("/new", "QueueDescription"), ("/t", "TopicDescription")] {
            let refused = world.put(uri, &entry(kind, &size));
            let text = format!(
                "SubCode=40000. Bad Request. The value of MaxSizeInMegabytes is not possible: \
                 it can be {sizes}. Parameter name: MaxSizeInMegabytes TrackingId:"
            );
            assert_eq!(refused.status, 400);
            assert!(refused.body.contains(&text), "{refused:?}");
            assert!(world.get(uri).is_missing());
        }
        let refused = world.update("/q", &queue(&size));
        assert!(refused.body.contains(sizes), "{refused:?}");
        assert_eq!(world.get("/q").value("MaxSizeInMegabytes"), Some("1024"));
    }
}

#[test]
fn what_is_immutable_is_refused_in_the_clouds_words_and_nothing_changes() {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/s", "SubscriptionDescription", "");
    let entities = [
        (
            "/q",
            "Queue",
            &[
                "RequiresSession",
                "RequiresDuplicateDetection",
                "EnablePartitioning",
            ][..],
        ),
        (
            "/t",
            "Topic",
            &[
                "RequiresDuplicateDetection",
                "EnablePartitioning",
                "EnableSubscriptionPartitioning",
            ],
        ),
        ("/t/Subscriptions/s", "Subscription", &["RequiresSession"]),
    ];
    for (uri, kind, properties) in entities {
        for property in properties {
            let inner = format!("<{property}>true</{property}><UserMetadata>new</UserMetadata>");
            let refused = world.update(uri, &entry(&format!("{kind}Description"), &inner));
            assert_eq!(refused.status, 400, "{property}");
            let text = match *property {
                "EnablePartitioning" => format!("Partitioning cannot be changed for {kind}."),
                _ => format!(
                    "The value for the {property} property of an existing {kind} cannot be changed."
                ),
            };
            let detail = refused.value("Detail").unwrap();
            let expected = format!("SubCode=40000. {text} TrackingId:");
            assert!(detail.starts_with(&expected), "{detail}");
        }
        assert_eq!(world.get(uri).value("UserMetadata"), None);
    }
}

#[test]
fn a_namespace_of_the_basic_tier_has_plain_queues_that_forget_after_14_days() {
    let mut world = World::of(Tier::Basic);
    let shown = world.get("/$namespaceinfo");
    assert_eq!(shown.value("MessagingSKU"), Some("Basic"));
    let made = world.make("/q", "QueueDescription", "");
    assert_eq!(made.value("DefaultMessageTimeToLive"), Some("P14D"));
    let never = "<DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>";
    let changed = world.update("/q", &queue(never));
    assert_eq!(changed.value("DefaultMessageTimeToLive"), Some("P14D"));
    let short = "<DefaultMessageTimeToLive>PT1H</DefaultMessageTimeToLive>";
    assert_eq!(world.update("/q", &queue(short)).status, 200);
    world.restart();
    for (property, value) in [
        ("RequiresSession", "true"),
        ("RequiresDuplicateDetection", "true"),
        ("ForwardTo", "q"),
        ("ForwardDeadLetteredMessagesTo", "sb://host/q"),
        ("AutoDeleteOnIdle", "PT5M"),
        ("DefaultMessageTimeToLive", "P14DT1S"),
    ] {
        let body = queue(&format!("<{property}>{value}</{property}>"));
        for refused in [world.put("/r", &body), world.update("/q", &body)] {
            assert_eq!(refused.status, 400, "{property}");
            let detail = refused.value("Detail").unwrap();
            assert!(detail.starts_with("SubCode=40000. "), "{detail}");
            assert!(detail.contains(property), "{detail}");
        }
    }
    let refused = world.put("/t", &entry("TopicDescription", ""));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("SubCode=40000. "), "{refused:?}");
    assert!(world.get("/r").is_missing() && world.get("/t").is_missing());
    assert_eq!(
        world.get("/q").value("DefaultMessageTimeToLive"),
        Some("PT1H")
    );
}

#[test]
fn express_can_be_switched_on_and_off_but_not_beside_duplicate_detection() {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    for express in ["true", "false"] {
        let inner = format!("<EnableExpress>{express}</EnableExpress>");
        assert_eq!(world.update("/q", &queue(&inner)).status, 200, "{express}");
        assert_eq!(world.get("/q").value("EnableExpress"), Some(express));
    }
    let detection = "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>";
    world.make("/d", "QueueDescription", detection);
    let both = format!("{detection}<EnableExpress>true</EnableExpress>");
    assert_eq!(world.update("/d", &queue(&both)).status, 400);
}

#[test]
fn what_is_missing_is_an_empty_list_of_services() {
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/s", "SubscriptionDescription", "");
    for uri in [
        "/x",
        "/x/Subscriptions",
        "/t/Subscriptions/x/Rules",
        "/$nservicebus-verification-queue",
        "/%24x?api-version=2021-05",
        "/$",
        "/x/Subscriptions/x/Rules",
    ] {
        assert!(world.get(uri).is_missing(), "{uri}");
    }
    for (uri, text) in [
        (
            "/t/Subscriptions/x",
            "Entity 'railbus:Topic:t|x' was not found.",
        ),
        (
            "/t/Subscriptions/s/Rules/x",
            "Entity 'railbus:Topic:t|s|x' was not found.",
        ),
        (
            "/t/Subscriptions/x/Rules/r",
            "Entity 'railbus:Topic:t|x|r' was not found.",
        ),
        ("/x/Subscriptions/x", "SubCode=40400. "),
        ("/x/Subscriptions/x/Rules/r", "SubCode=40400. "),
    ] {
        let answered = world.get(uri);
        assert_eq!(answered.status, 404, "{uri}");
        let detail = answered.value("Detail").unwrap();
        assert!(detail.starts_with(text), "{uri}: {detail}");
    }
    expect![[r#"<feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Publicly Listed Services</title><subtitle type="text">This is the list of publicly-listed services currently available.</subtitle><id>uuid:00000000-0000-0000-0000-000000000007;id=1</id><updated>2026-03-01T10:00:00.123Z</updated><generator>Service Bus 1.1</generator></feed>"#]]
    .assert_eq(&world.get("/x?api-version=2021-05").body);
}
