//! Tests of the arguments of queues.

use super::*;

fn map(entries: &[(&str, Value)]) -> Map {
    let entries = entries.iter();
    entries
        .map(|(key, value)| (Value::from(*key), value.clone()))
        .collect()
}

fn read(entries: &[(&str, Value)]) -> Result<Arguments, String> {
    Arguments::read(&map(entries), "q")
}

#[test]
fn every_known_argument_is_refused_or_has_its_effect() {
    let quorum = (TYPE, Value::from("quorum"));
    let settings = |entries: &[(&str, Value)]| read(entries).unwrap().settings();
    assert_eq!(settings(&[]).max_delivery_count, u32::MAX);
    assert_eq!(
        settings(std::slice::from_ref(&quorum)).max_delivery_count,
        21
    );
    let limit = settings(&[quorum.clone(), (LIMIT, Value::Byte(2))]);
    assert_eq!(limit.max_delivery_count, 3);
    let none = settings(&[quorum, (LIMIT, Value::Long(-1))]);
    assert_eq!(none.max_delivery_count, u32::MAX);
    let ttl = settings(&[(TTL, Value::Uint(500))]);
    assert_eq!(ttl.default_message_time_to_live, 500);
    assert!(!ttl.dead_lettering_on_message_expiration);
    let dead = settings(&[
        (DEAD_LETTER_EXCHANGE, Value::from("")),
        (DEAD_LETTER_KEY, Value::from("dead")),
    ]);
    assert_eq!(
        dead.forward_dead_lettered_messages_to.as_deref(),
        Some("dead")
    );
    assert!(dead.dead_lettering_on_message_expiration);
    for (key, effect) in EFFECTS {
        if effect == Effect::Missing {
            let text = read(&[(key, Value::Int(1))]).unwrap_err();
            assert!(text.ends_with("it has no effect here"), "{text}");
        }
    }
}

#[test]
fn invalid_values_have_rabbitmqs_texts() {
    let cases: [(&[(&str, Value)], &str); 8] = [
        (
            &[(TTL, Value::Int(-1))],
            "x-message-ttl' for queue 'q' in vhost '/': {value_negative,-1}",
        ),
        (
            &[(TTL, Value::Long(MAX_TTL + 1))],
            "{value_too_large,315360000001}",
        ),
        (
            &[(TTL, Value::from("1"))],
            "\"expected integer, got longstr\"",
        ),
        (
            &[(TYPE, Value::from("stream"))],
            "\"unsupported queue type 'stream'\"",
        ),
        (&[(TYPE, Value::Int(1))], "{unacceptable_type,long}"),
        (
            &[(LIMIT, Value::Int(1))],
            "in vhost '/' of queue type rabbit_classic_queue",
        ),
        (
            &[(DEAD_LETTER_KEY, Value::from("k"))],
            "routing_key_but_no_dlx_defined",
        ),
        (
            &[(DEAD_LETTER_EXCHANGE, Value::from("x"))],
            "only the default exchange takes dead letters here",
        ),
    ];
    for (entries, expected) in cases {
        let text = read(entries).unwrap_err();
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn what_was_declared_comes_back_and_is_compared() {
    let declared = read(&[(TTL, Value::Int(5)), ("x-own", Value::Bool(true))]).unwrap();
    let properties = StoreOnlyProperties {
        user_metadata: Some(declared.metadata()),
        ..StoreOnlyProperties::default()
    };
    let kept = Arguments::of_queue(&declared.settings(), &properties);
    assert_eq!(kept, declared);
    let again = |entries: &[(&str, Value)]| read(entries).unwrap().difference(&kept, true, "q");
    assert_eq!(again(&[(TTL, Value::Ulong(5))]), None);
    assert_eq!(
        again(&[(TTL, Value::Int(6))]).unwrap(),
        "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '6' but current is \
         '5'"
    );
    assert_eq!(
        again(&[]).unwrap(),
        "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none but current is \
         the value '5' of type 'long'"
    );
}

#[test]
fn a_queue_of_another_client_is_compared_by_what_is_given() {
    let settings = QueueSettings::default();
    let current = Arguments::of_queue(&settings, &StoreOnlyProperties::default());
    let quorum = (TYPE, Value::from("quorum"));
    let given = read(&[quorum.clone(), (LIMIT, Value::Int(9))]).unwrap();
    assert_eq!(given.difference(&current, false, "q"), None);
    let other = read(&[quorum, (LIMIT, Value::Int(3))]).unwrap();
    assert!(other.difference(&current, false, "q").is_some());
}
