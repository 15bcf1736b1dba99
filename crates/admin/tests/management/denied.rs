//! Requests whose caller may not manage. (docs/spec/admin.md#2.5)

use crate::world::{World, queue, request};

fn world() -> World {
    let mut world = World::new();
    world.make("/q", "QueueDescription", "");
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/s", "SubscriptionDescription", "");
    world
}

#[test]
fn queues_topics_and_the_namespace_have_a_text_for_each_kind_of_operation() {
    let mut world = world();
    let read = "Manage,EntityRead claims required for this operation.";
    let write = "Authorization failed for specified action: Manage,EntityWrite.";
    let delete = "Authorization failed for specified action: Manage,EntityDelete.";
    for (method, uri, text) in [
        ("GET", "/q", read),
        ("GET", "/T/?api-version=2021-05", read),
        ("GET", "/$Resources/queues", read),
        ("GET", "/$Resources/topics", read),
        ("GET", "/$namespaceinfo", read),
        ("GET", "/$nservicebus-verification-queue", read),
        ("GET", "/$", read),
        ("GET", "/q/$DeadLetterQueue", read),
        ("PUT", "/q", write),
        ("PUT", "/new", write),
        ("PUT", "/$new", write),
        ("DELETE", "/q", delete),
        ("DELETE", "/new", delete),
    ] {
        let (answered, phrase) = world.deny(&request(method, uri, &queue("")));
        assert_eq!(answered.status, 401, "{method} {uri}");
        let detail = answered.value("Detail").unwrap();
        let expected = format!("{text} TrackingId:00000000-0000-0000-0000-000000000007_G2");
        assert!(detail.starts_with(&expected), "{method} {uri}: {detail}");
        assert_eq!(phrase, None);
    }
    assert!(world.get("/new").is_missing());
    assert!(!world.get("/q").is_missing());
}

#[test]
fn a_queue_or_topic_that_is_not_there_is_missing_for_everyone() {
    let mut world = world();
    for uri in ["/x", "/a/b?api-version=2021-05", "/q2"] {
        let (answered, _) = world.deny(&request("GET", uri, ""));
        assert!(answered.is_missing(), "{uri}: {answered:?}");
    }
}

#[test]
fn for_subscriptions_and_rules_the_status_line_has_the_text() {
    let mut world = world();
    for (method, uri, operation) in [
        ("GET", "/t/Subscriptions/s", "GetSubscription"),
        ("GET", "/t/Subscriptions/x?a=b", "GetSubscription"),
        ("GET", "/x/Subscriptions", "EnumerateSubscriptions"),
        ("PUT", "/t/Subscriptions/s", "CreateOrUpdateSubscription"),
        ("DELETE", "/t/Subscriptions/s", "DeleteSubscription"),
        ("GET", "/t/Subscriptions/s/Rules/r", "GetRule"),
        ("GET", "/t/Subscriptions/s/Rules/", "EnumerateRules"),
        ("PUT", "/t/Subscriptions/s/Rules/r", "CreateOrUpdateRule"),
        ("DELETE", "/t/Subscriptions/s/Rules/$Default", "DeleteRule"),
    ] {
        let (answered, phrase) = world.deny(&request(method, uri, ""));
        assert_eq!(answered.status, 401, "{method} {uri}");
        let expected = format!(
            "SubCode=40100: Unauthorized : Unauthorized access for '{operation}' operation on \
             endpoint 'sb://localhost:5300{uri}'. Tracking Id: 00000000-0000-0000-0000-000000000007_G2"
        );
        let detail = answered.value("Detail").unwrap();
        assert!(detail.starts_with(&expected), "{method} {uri}: {detail}");
        assert_eq!(phrase, Some(expected));
    }
    assert_eq!(world.get("/t/Subscriptions/s").status, 200);
    assert!(!world.get("/t/Subscriptions/s/Rules/$Default").is_missing());
}

#[test]
fn no_line_ends_within_a_status_line() {
    let mut world = world();
    let uri = "/t%0d%0aX:y/Subscriptions/\u{e4}?a=\u{e4}";
    let (_, phrase) = world.deny(&request("GET", uri, ""));
    let phrase = phrase.unwrap();
    assert!(phrase.chars().all(|it| matches!(it, ' '..='~')), "{phrase}");
    assert!(
        phrase.contains("'sb://localhost:5300/t%0d%0aX:y/Subscriptions/?a='"),
        "{phrase}"
    );
}
