//! Names: allowed names of entities and rules, and the errors for the rest.
//! (docs/spec/entities.md#1.1)

use crate::world::{Answered, World, entry, queue};

const SENTENCE: &str = "contains character(s) that is not allowed by Service Bus. Entity segments can \
    contain only letters, numbers, periods (.), hyphens (-), and underscores (_).";

fn world() -> World {
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/s", "SubscriptionDescription", "");
    world
}

/// Puts what fits the address: a rule, a subscription or a queue.
fn put(world: &mut World, uri: &str) -> Answered {
    let kind = match uri.to_lowercase() {
        uri if uri.contains("/rules/") => "RuleDescription",
        uri if uri.contains("/subscriptions/") => "SubscriptionDescription",
        _ => "QueueDescription",
    };
    world.put(uri, &entry(kind, ""))
}

/// The name can be had, and is shown as it was given.
fn check_made(uri: &str, name: &str) {
    let mut world = world();
    let made = put(&mut world, uri);
    assert_eq!(made.status, 201, "{made:?}");
    world.restart();
    let shown = world.get(uri);
    let title = format!(r#"<title type="text">{name}</title>"#);
    assert!(shown.body.contains(&title), "{uri}: {shown:?}");
    assert_eq!(world.delete(uri).status, 200, "{uri}");
}

/// The name is refused, for a new entity or rule and for one that is there, and nothing changes.
fn check_refused(uri: &str, text: &str) {
    let mut world = world();
    let before = everything(&mut world);
    let made = put(&mut world, uri);
    assert_eq!(made.status, 400, "{uri}: {made:?}");
    let detail = made.value("Detail").unwrap();
    assert!(
        detail.starts_with(&format!("SubCode=40000. {text}")),
        "{uri}: {detail}"
    );
    assert_eq!(world.update(uri, &queue("")).status, 400, "{uri}");
    assert_eq!(everything(&mut world), before, "{uri}");
}

/// The sentence of the cloud's, with the address as it was asked for.
fn check_sentence(uri: &str) {
    let shown = uri.replace('&', "&amp;");
    check_refused(
        uri,
        &format!("'https://localhost:5300{shown}' {SENTENCE} TrackingId:"),
    );
}

fn everything(world: &mut World) -> Vec<String> {
    let lists = [
        "/$Resources/queues",
        "/$Resources/topics",
        "/t/Subscriptions",
        "/t/Subscriptions/s/Rules",
    ];
    lists.map(|list| world.get(list).body).into()
}

#[test]
fn a_tilde_may_stand_anywhere_in_a_queue_a_topic_or_a_subscription() {
    check_made("/~", "~");
    check_made("/~~?api-version=2021-05", "~~");
    check_made(
        "/area/MassTransit~Fault--Order--",
        "area/MassTransit~Fault--Order--",
    );
    check_made("/a%7Eb/~", "a~b/~");
    check_made("/t/Subscriptions/~s~", "~s~");
    check_sentence("/t/Subscriptions/s/Rules/a~b");
}

#[test]
fn names_may_begin_and_end_with_a_mark() {
    for name in ["-a-", "_a_", ".a.", "-", "_", "...", "-a/b-", "_/.x"] {
        check_made(&format!("/{name}"), name);
    }
    for name in ["-a-", "_a_", ".a.", "-", "_"] {
        check_made(&format!("/t/Subscriptions/{name}"), name);
        check_made(&format!("/t/Subscriptions/s/Rules/{name}"), name);
    }
}

#[test]
fn other_characters_are_refused_with_the_address_as_it_was_asked_for() {
    for uri in [
        "/a%20b",
        "/a!b",
        "/a%3Fb?api-version=2021-05",
        "/A%23?api-version=2021-05&enrich=True",
        "/%C3%A4",
        "/a%5Cb",
        "/a%00",
        "/$a",
        "/%24a",
        "/a$",
        "/a/$b",
        "/$a/b",
        "/t/Subscriptions/a!b",
        "/t/Subscriptions/$a",
        "/t/Subscriptions/s/Rules/a!b",
        "/t/Subscriptions/s/Rules/$other?api-version=2021-05",
    ] {
        check_sentence(uri);
    }
}

#[test]
fn segments_that_are_empty_or_mean_another_place_are_refused() {
    for uri in [
        "/a//b",
        "/a%2F%2Fb",
        "//a",
        "/%2Fa",
        "/a//",
        "/a/../b",
        "/a/%2E%2E/b",
        "/a%2F..%2Fb",
        "/a/./b",
        "/..",
        "/./a",
        "/a/..",
        "/t/Subscriptions/..",
        "/t/Subscriptions/s/Rules/.",
    ] {
        check_sentence(uri);
    }
}

#[test]
fn a_place_that_nothing_can_be_called_by_is_missing() {
    let mut world = world();
    world.make("/b", "QueueDescription", "");
    world.make("/a", "QueueDescription", "");
    for uri in [
        "//a", "/a//", "/a//b", "/a/../b", "/b/..", "/./a", "/$a", "/a%20b",
    ] {
        assert!(world.get(uri).is_missing(), "{uri}");
        assert_eq!(world.delete(uri).status, 404, "{uri}");
    }
    for uri in ["/a", "/b", "/a/", "/b/"] {
        assert_eq!(world.get(uri).status, 200, "{uri}");
        assert!(!world.get(uri).is_missing(), "{uri}");
    }
}

#[test]
fn names_that_are_too_long_are_refused_with_how_long_they_may_be() {
    let name = |length| "x".repeat(length);
    check_made(&format!("/{}", name(260)), &name(260));
    check_refused(
        &format!("/{}", name(261)),
        "Bad Request: the path of a queue or topic has 1 to 260 characters, and this one has 261.",
    );
    check_made(&format!("/t/Subscriptions/{}", name(50)), &name(50));
    check_refused(
        &format!("/t/Subscriptions/{}", name(51)),
        "Bad Request: the name of a subscription has 1 to 50 characters, and this one has 51.",
    );
    check_made(&format!("/t/Subscriptions/s/Rules/{}", name(50)), &name(50));
    check_refused(
        &format!("/t/Subscriptions/s/Rules/{}", name(51)),
        "Bad Request: the name of a rule has 1 to 50 characters, and this one has 51.",
    );
    let long = format!("/{}", name(261));
    assert!(world().get(&long).is_missing());
}

#[test]
fn reserved_paths_are_refused_with_the_reason() {
    for path in [
        "subscriptions",
        "messages",
        "a/messages",
        "a/Messages/head",
        "Railbus.Temporary.x",
    ] {
        check_refused(
            &format!("/{path}"),
            &format!("Bad Request: the path '{path}' is reserved: "),
        );
    }
}

#[test]
fn a_segment_that_is_not_the_last_may_be_called_messages() {
    check_made("/a/messages/b", "a/messages/b");
    check_made("/messages/b", "messages/b");
}

#[test]
fn a_default_rule_is_refused_with_the_address_of_the_request() {
    let mut world = world();
    let inner = "<DefaultRuleDescription><Name>a b</Name></DefaultRuleDescription>";
    let body = entry("SubscriptionDescription", inner);
    let refused = world.put("/t/Subscriptions/n?api-version=2024-05", &body);
    assert_eq!(refused.status, 400, "{refused:?}");
    let address = "https://localhost:5300/t/Subscriptions/n?api-version=2024-05";
    let expected = format!("SubCode=40000. '{address}' {SENTENCE}");
    assert!(
        refused.value("Detail").unwrap().starts_with(&expected),
        "{refused:?}"
    );
    assert_eq!(world.get("/t/Subscriptions/n").status, 404);
    let named = body.replace("a b", "-b.");
    assert_eq!(world.put("/t/Subscriptions/n", &named).status, 201);
    assert_eq!(world.get("/t/Subscriptions/n/Rules/-B.").status, 200);
}

#[test]
fn the_name_is_looked_at_before_the_description() {
    let mut world = world();
    let refused = world.put("/a!b", "no description");
    assert!(refused.body.contains(SENTENCE), "{refused:?}");
}
