//! Topics, subscriptions and rules as clients see them. (docs/spec/amqp.md#3.6, #7.3, #7.4)

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use broker::{Command, Ensured, QueueSettings, SubscriptionSettings};

use crate::tracking::{text, untracked};
use crate::world::{Pair, Request, Response, World, message, receiver, sender};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const NODE: &str = "events/Subscriptions/audit";

/// A topic `events` with the subscriptions `audit` and `others`.
pub(crate) fn world() -> World {
    let mut world = World::new();
    world.ensure(Ensured::Topic {
        path: "events".to_owned(),
        settings: QueueSettings::default(),
    });
    for name in ["audit", "others"] {
        world.ensure(Ensured::Subscription {
            topic: "events".to_owned(),
            name: name.to_owned(),
            settings: Box::new(SubscriptionSettings::default()),
            rules: None,
        });
    }
    world
}

#[test]
fn a_copy_of_a_scheduled_message_says_so_and_tells_no_first_number() {
    let mut world = world();
    let due = i64::try_from(crate::world::BROKER_START + 5_000).expect("fits");
    world.enqueue(
        "events",
        &crate::schedule::scheduled("later", Value::Timestamp(due)),
    );
    world.enqueue("events", &message("now"));
    world.advance(5_000);
    let receiver = world.receiver(NODE, UNSETTLED, 5);
    let received = world.received(receiver);
    let states: Vec<_> = received
        .iter()
        .map(|copy| (copy.body(), copy.annotation("x-opt-message-state")))
        .collect();
    let expected = [
        (message("now"), None),
        (message("later"), Some(Value::Int(2))),
    ];
    assert_eq!(states, expected);
    for copy in &received {
        assert_eq!(copy.annotation("x-opt-enqueue-sequence-number"), None);
    }
}

fn call(world: &mut World, pair: &Pair, operation: &str, body: Vec<(&str, Value)>) -> Response {
    let operation = format!("com.microsoft:{operation}");
    let request = Request::operation(&operation, body);
    world.call(pair, &request).expect("an answer")
}

fn map(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::Map(
        entries
            .map(|(key, value)| (Value::from(key), value))
            .collect(),
    )
}

pub(crate) fn sql(text: &str) -> Value {
    map(vec![("expression", Value::from(text))])
}

pub(crate) fn add(
    world: &mut World,
    pair: &Pair,
    name: &str,
    rule: Vec<(&str, Value)>,
) -> Response {
    let body = vec![
        ("rule-name", Value::from(name)),
        ("rule-description", map(rule)),
    ];
    call(world, pair, "add-rule", body)
}

fn refused(response: &Response) -> (i32, String) {
    (response.code(), response.condition())
}

#[test]
fn what_is_sent_to_a_topic_is_received_from_its_subscriptions() {
    let mut world = world();
    world.enqueue("events", &message("hello"));
    for address in ["events/subscriptions/AUDIT", "Events/Subscriptions/others"] {
        let link = world.receiver(address, UNSETTLED, 10);
        let received = world.received(link);
        assert_eq!(received.len(), 1, "{address}");
        world.dispose(&received[0], DeliveryState::Accepted, false);
    }
}

#[test]
fn nobody_receives_from_a_topic_or_sends_to_a_subscription() {
    let mut world = world();
    let error = world.refusal(receiver("events", UNSETTLED));
    assert_eq!(error.condition.as_str(), "amqp:not-allowed");
    let error = world.refusal(sender(NODE));
    assert_eq!(error.condition.as_str(), "amqp:not-allowed");
}

#[test]
fn a_topic_that_is_full_is_named_as_one() {
    let mut world = world();
    let settings = QueueSettings {
        max_size: 1,
        ..QueueSettings::default()
    };
    world.ensure(Ensured::Topic {
        path: "events".to_owned(),
        settings,
    });
    let (_, link) = world.sender("events");
    world.send(link, &message("x"));
    let outcomes = world.outcomes(link);
    let [DeliveryState::Rejected(Some(error))] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(error.condition, "amqp:resource-limit-exceeded");
    let expected = "The maximum entity size has been reached or exceeded for Topic: \
        'railbus:Topic:events'. ";
    assert!(text(error).starts_with(expected), "{error:?}");
}

#[test]
fn rules_are_added_listed_and_removed() {
    let mut world = world();
    let pair = world.pair(&format!("{NODE}/$management"));
    assert_eq!(
        call(
            &mut world,
            &pair,
            "remove-rule",
            vec![("rule-name", Value::from("$default"))]
        )
        .code(),
        200
    );
    let none = call(&mut world, &pair, "enumerate-rules", Vec::new());
    assert_eq!(none.code(), 204);
    let rule = vec![
        ("sql-filter", sql("n > 5")),
        ("sql-rule-action", sql("SET big = TRUE")),
        ("rule-name", Value::from("big")),
    ];
    assert_eq!(add(&mut world, &pair, "big", rule).code(), 200);
    let fields = map(vec![
        ("label", Value::from("red")),
        ("to", Value::Null),
        ("properties", map(vec![("a", Value::Int(1))])),
    ]);
    let rule = vec![
        ("correlation-filter", fields),
        ("sql-rule-action", Value::Null),
    ];
    assert_eq!(add(&mut world, &pair, "red", rule).code(), 200);
    let rule = vec![("sql-filter", sql("1=1"))];
    assert_eq!(add(&mut world, &pair, "all", rule).code(), 200);

    let page = vec![("skip", Value::Int(0)), ("top", Value::Int(100))];
    let listed = call(&mut world, &pair, "enumerate-rules", page);
    let shown: Vec<_> = shown(&listed.entry("rules"));
    let text = |text: &str| Value::from(text);
    let big = (
        (0x0000_0013_7000_0006, vec![text("n > 5"), Value::Int(20)]),
        (
            0x0000_0137_0000_0006,
            vec![text("SET big = TRUE"), Value::Int(20)],
        ),
        text("big"),
    );
    let mut fields = vec![Value::Null; 8];
    fields[4] = text("red");
    fields.push(map(vec![("a", Value::Int(1))]));
    let no_action = (0x0000_0137_0000_0005, Vec::new());
    let red = (
        (0x0000_0013_7000_0009, fields),
        no_action.clone(),
        text("red"),
    );
    let all = ((0x0000_0013_7000_0007, Vec::new()), no_action, text("all"));
    assert_eq!(shown, [all, big, red], "in the order of their names");

    let page = vec![("skip", Value::Int(1)), ("top", Value::Int(1))];
    let listed = call(&mut world, &pair, "enumerate-rules", page);
    let Value::List(rules) = listed.entry("rules") else {
        panic!("a list");
    };
    assert_eq!(rules.len(), 1);
}

type Described = (u64, Vec<Value>);

fn described(value: &Value) -> Described {
    let Value::Described(parts) = value else {
        panic!("described: {value:?}");
    };
    match (&parts.0, &parts.1) {
        (Value::Ulong(code), Value::List(fields)) => (*code, fields.clone()),
        other => panic!("a described list: {other:?}"),
    }
}

/// Of each rule its filter, its action and its name.
fn shown(rules: &Value) -> Vec<(Described, Described, Value)> {
    let Value::List(rules) = rules else {
        panic!("a list: {rules:?}");
    };
    let one = |rule: &Value| {
        let Value::Map(entries) = rule else {
            panic!("a map: {rule:?}");
        };
        let (code, fields) = described(&entries[0].1);
        assert_eq!(code, 0x0000_0137_0000_0004);
        assert!(matches!(fields[3], Value::Timestamp(_)));
        (
            described(&fields[0]),
            described(&fields[1]),
            fields[2].clone(),
        )
    };
    rules.iter().map(one).collect()
}

#[test]
fn a_rule_whose_action_has_no_expression_has_none() {
    let mut world = world();
    let pair = world.pair(&format!("{NODE}/$management"));
    let actions = [map(vec![]), map(vec![("expression", Value::Null)]), sql("")];
    for (index, action) in actions.into_iter().enumerate() {
        let rule = vec![("sql-filter", sql("n > 5")), ("sql-rule-action", action)];
        let response = add(&mut world, &pair, &format!("rule{index}"), rule);
        assert_eq!(response.code(), 200);
    }
    let listed = call(&mut world, &pair, "enumerate-rules", Vec::new());
    let shown = shown(&listed.entry("rules"));
    assert_eq!(shown.len(), 4);
    for (_, action, name) in shown {
        assert_eq!(action, (0x0000_0137_0000_0005, Vec::new()), "{name:?}");
    }
}

#[test]
fn a_bad_rule_is_refused_and_changes_nothing() {
    let mut world = world();
    let pair = world.pair(&format!("{NODE}/$management"));
    let argument = (400, "com.microsoft:argument-error".to_owned());
    let long = "x".repeat(1_025);
    let huge = map(vec![("label", Value::from(&*"x".repeat(65_537)))]);
    let bad: [Vec<(&str, Value)>; 9] = [
        vec![("correlation-filter", huge)],
        vec![],
        vec![("sql-filter", sql("n >"))],
        vec![("sql-filter", sql(&long))],
        vec![("sql-filter", Value::from("n > 5"))],
        vec![("correlation-filter", map(vec![]))],
        vec![("correlation-filter", map(vec![("label", Value::Int(1))]))],
        vec![
            ("sql-filter", sql("1=1")),
            ("sql-rule-action", sql("SET sys.SequenceNumber = 1")),
        ],
        vec![
            ("sql-filter", sql("1=1")),
            ("sql-rule-action", map(vec![("expression", Value::Int(1))])),
        ],
    ];
    for rule in bad {
        let response = add(&mut world, &pair, "bad", rule.clone());
        assert_eq!(refused(&response), argument, "{rule:?}");
    }
    let again = add(
        &mut world,
        &pair,
        "$DEFAULT",
        vec![("sql-filter", sql("1=1"))],
    );
    let exists = (409, "com.microsoft:entity-already-exists".to_owned());
    assert_eq!(refused(&again), exists);
    let text = again.field("statusDescription").expect("a text");
    assert_eq!(
        untracked(text.as_text().expect("a text")),
        "The messaging entity 'railbus:Topic:events|audit|$DEFAULT' already exists.",
    );
    let none = call(
        &mut world,
        &pair,
        "remove-rule",
        vec![("rule-name", Value::from("none"))],
    );
    assert_eq!(refused(&none), (404, "amqp:not-found".to_owned()));
    let listed = call(&mut world, &pair, "enumerate-rules", Vec::new());
    assert_eq!(shown(&listed.entry("rules")).len(), 1);

    let pair = world.pair("orders/$management");
    let response = add(&mut world, &pair, "r", vec![("sql-filter", sql("1=1"))]);
    assert_eq!(refused(&response), (400, "amqp:not-allowed".to_owned()));
}

#[test]
fn a_rule_has_a_name_that_is_allowed_and_is_quoted_otherwise() {
    let mut world = world();
    let pair = world.pair(&format!("{NODE}/$management"));
    let all = || vec![("sql-filter", sql("1=1"))];
    for name in ["-a-", "_b.", &"x".repeat(50)] {
        assert_eq!(add(&mut world, &pair, name, all()).code(), 200, "{name}");
    }
    let argument = (400, "com.microsoft:argument-error".to_owned());
    for name in [
        "a b",
        "a~b",
        "a!b",
        "a/b",
        "$a",
        ".",
        "..",
        "",
        &"x".repeat(51),
    ] {
        let response = add(&mut world, &pair, name, all());
        assert_eq!(refused(&response), argument, "{name}");
    }
    let response = add(&mut world, &pair, "a b", all());
    let text = match response.field("statusDescription") {
        Some(Value::String(text)) => text.to_string(),
        other => panic!("a description is text, not {other:?}"),
    };
    assert!(
        text.starts_with("'a b' contains character(s) that is not allowed"),
        "{text}"
    );
    let listed = call(&mut world, &pair, "enumerate-rules", Vec::new());
    assert_eq!(shown(&listed.entry("rules")).len(), 4);
}

/// What the broker was told of the messages that were sent to the topic, oldest first.
fn told(world: &World) -> Vec<bool> {
    let sends = world.commands.iter().filter_map(|command| match command {
        Command::Send { messages, .. } => Some(messages),
        _ => None,
    });
    let told = sends
        .flatten()
        .map(|message| message.distribution.is_some());
    told.collect()
}

#[test]
fn rules_that_take_time_look_at_a_message_in_its_senders_connection() {
    let mut world = world();
    world.enqueue("events", &message("everything is selected as it is"));
    let pair = world.pair(&format!("{NODE}/$management"));
    let rule = || vec![("sql-filter", sql("sys.Label IS NULL"))];
    assert_eq!(add(&mut world, &pair, "label", rule()).code(), 200);
    world.enqueue("events", &message("somebody looks"));
    world.enqueue("orders2", &message("a queue has no rules"));
    let body = vec![("rule-name", Value::from("label"))];
    assert_eq!(call(&mut world, &pair, "remove-rule", body).code(), 200);
    world.enqueue("events", &message("nobody looks any more"));
    assert_eq!(told(&world), [false, true, false, false]);
    // One copy each: a rule without an action adds none to that of another.
    let link = world.receiver(NODE, UNSETTLED, 10);
    assert_eq!(world.received(link).len(), 3);
}

#[test]
fn rules_look_at_a_message_for_later_when_its_time_has_come() {
    let mut world = world();
    let pair = world.pair(&format!("{NODE}/$management"));
    let rule = vec![("sql-filter", sql("sys.Label = 'x'"))];
    assert_eq!(add(&mut world, &pair, "label", rule).code(), 200);
    let due = Value::Timestamp(i64::MAX);
    let key = Value::Symbol("x-opt-scheduled-enqueue-time".into());
    let mut payload = bytes::BytesMut::new();
    amqp::message::encode_map_section(&mut payload, 0x72, &[(key, due)]);
    payload.extend_from_slice(&message("later"));
    world.enqueue("events", &payload);
    assert_eq!(told(&world), [false]);
}
