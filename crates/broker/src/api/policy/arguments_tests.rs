//! Tests of the arguments of queues.

use serde_json::json;

use crate::api::delayed_retry::{DelayedRetry, RetriedMessages};

use super::*;

fn read(arguments: &Json) -> Result<QueueArguments, String> {
    let queue = Resource::queue("q", "/");
    QueueArguments::read(arguments.as_object().unwrap().clone(), queue)
}

fn settings(arguments: &Json) -> QueueSettings {
    read(arguments).unwrap().settings()
}

/// What a queue that is declared so shows of its settings.
fn check(arguments: &Json, expected: &Json) {
    assert_eq!(&Json::Object(of_settings(&settings(arguments))), expected);
}

fn check_refusal(name: &str, value: &Json, expected: &str) {
    let text = read(&json!({ name: value })).unwrap_err();
    let start = format!("invalid arg '{name}' for queue 'q' in vhost '/'");
    assert_eq!(text.strip_prefix(&start), Some(expected), "{text}");
}

#[test]
fn what_was_declared_is_what_the_queue_has() {
    let acting = json!({
        "x-message-ttl": 0, "x-expires": 1, "x-max-length": 0, "x-max-length-bytes": 9,
        "x-delivery-limit": 3, "x-overflow": "reject-publish",
    });
    let mut all = acting.clone();
    all["x-queue-type"] = "quorum".into();
    check(&all, &acting);
    let quorum = json!({"x-queue-type": "quorum"});
    check(&quorum, &json!({"x-delivery-limit": 20}));
    let unlimited = json!({"x-queue-type": "quorum", "x-delivery-limit": -1});
    check(&unlimited, &json!({}));
    check(
        &json!({"x-queue-type": "classic", "x-nosuch": 1}),
        &json!({}),
    );
    check(&json!({"x-overflow": "drop-head"}), &json!({}));
    let word = json!({"x-queue-type": "quorum", "x-overflow": "reject-publish-dlx"});
    check(
        &word,
        &json!({"x-overflow": "reject-publish", "x-delivery-limit": 20}),
    );
    assert_eq!(
        settings(&json!({})),
        QueueSettings {
            max_delivery_count: u32::MAX,
            declared: Some(Declared {
                queue_type: QueueType::Classic,
                has_overflow: false,
            }),
            ..QueueSettings::default()
        }
    );
}

#[test]
fn dead_letters_go_to_an_exchange_that_need_not_be_there() {
    let dead = settings(&json!({
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
    }));
    assert_eq!(dead.dead_letter_router.as_deref(), Some(""));
    assert_eq!(dead.dead_letter_key.as_deref(), Some("dead"));
    assert!(dead.dead_lettering_on_message_expiration);
    let kept = settings(&json!({"x-dead-letter-exchange": "x"}));
    assert_eq!(kept.dead_letter_router.as_deref(), Some("x"));
    assert_eq!(kept.dead_letter_key, None);
    check_refusal(
        DEAD_LETTER_KEY,
        &json!("k"),
        ": routing_key_but_no_dlx_defined",
    );
}

#[test]
fn invalid_values_have_rabbitmqs_texts() {
    for (name, value, expected) in [
        ("x-message-ttl", json!(-1), ": {value_negative,-1}"),
        (
            "x-message-ttl",
            json!(MAX_SPAN + 1),
            ": {value_too_large,315360000001}",
        ),
        (
            "x-expires",
            json!(u64::MAX),
            ": {value_too_large,18446744073709551615}",
        ),
        ("x-expires", json!(0), ": {value_zero,0}"),
        ("x-max-length", json!(-2), ": {value_negative,-2}"),
        (
            "x-max-length",
            json!("1"),
            ": \"expected integer, got longstr\"",
        ),
        (
            "x-max-length-bytes",
            json!(0.5),
            ": \"expected integer, got double\"",
        ),
        (LIMIT, json!(true), ": \"expected integer, got bool\""),
        ("x-overflow", json!("x"), ": invalid_overflow"),
        ("x-overflow", json!(1), ": {unacceptable_type,long}"),
        (
            TYPE,
            json!("stream"),
            ": \"unsupported queue type 'stream'\"",
        ),
        (TYPE, json!(1), ": {unacceptable_type,long}"),
        (LIMIT, json!(1), " of queue type rabbit_classic_queue"),
    ] {
        check_refusal(name, &value, expected);
    }
    assert!(read(&json!({"x-message-ttl": MAX_SPAN, "x-expires": MAX_SPAN})).is_ok());
    let long = read(&json!({"x-nosuch": "a".repeat(MAX_METADATA)}));
    assert_eq!(
        long.unwrap_err(),
        "the arguments of queue 'q' in vhost '/' are too long"
    );
}

#[test]
fn delayed_retry_is_for_quorum_queues_and_its_arguments_go_together() {
    let retry = |more: &Json| {
        let mut arguments = json!({"x-queue-type": "quorum"});
        let more = more.as_object().unwrap().clone();
        arguments.as_object_mut().unwrap().extend(more);
        read(&arguments).map(|it| it.settings().delayed_retry)
    };
    let all = json!({
        "x-delayed-retry-type": "all", "x-delayed-retry-min": 5, "x-delayed-retry-max": 9,
    });
    let expected = DelayedRetry {
        messages: RetriedMessages::All,
        min: Some(5),
        max: Some(9),
    };
    assert_eq!(retry(&all), Ok(expected));
    assert_eq!(retry(&json!({})), Ok(DelayedRetry::default()));
    for (given, expected) in [
        (
            json!({"x-delayed-retry-type": "failed"}),
            "x-delayed-retry-type: x-delayed-retry-min is missing",
        ),
        (
            json!({"x-delayed-retry-min": 5, "x-delayed-retry-max": 4}),
            "x-delayed-retry-max: 4 is below x-delayed-retry-min, 5",
        ),
        (
            json!({"x-delayed-retry-type": "some"}),
            "invalid_delayed_retry_type",
        ),
        (json!({"x-delayed-retry-min": 0}), "{value_zero,0}"),
        (
            json!({"x-queue-type": "classic", "x-delayed-retry-min": 1}),
            "of queue type rabbit_classic_queue",
        ),
    ] {
        let text = retry(&given).unwrap_err();
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn arguments_without_a_meaning_here_are_kept() {
    assert!(read(&json!({"x-single-active-consumer": false})).is_ok());
    let own = json!({"x-railbus-lock-duration": 1, "x-nosuch": {"a": []}});
    check(&own, &json!({}));
}

#[test]
fn the_type_is_kept_though_it_was_left_out() {
    let declared = read(&json!({"x-message-ttl": 5})).unwrap();
    let expected = r#"rabbitmq:{"x-message-ttl":5,"x-queue-type":"classic"}"#;
    assert_eq!(declared.metadata(), expected);
    assert_eq!(declared.kind(), "classic");
}

#[test]
fn the_types_of_integers_are_kept_beside_the_arguments() {
    let integers = BTreeMap::from([("x-expires".to_owned(), IntegerType::Ushort)]);
    let declared = read(&json!({"x-expires": 5})).unwrap();
    let queue = Resource::queue("q", "/");
    let declared = declared.with_integers(integers, queue).unwrap();
    let metadata = declared.metadata();
    let found = of_metadata(&metadata).unwrap();
    assert_eq!(found.integer_type("x-expires"), Some(IntegerType::Ushort));
    assert_eq!(found.entries(), declared.with_type().entries());
    check_refusal(INTEGERS, &json!({}), ": the name is not accepted");
}
