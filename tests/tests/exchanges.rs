//! Exchanges and bindings over RabbitMQ's HTTP interface, alone and in definitions.

use e2e::http::rabbitmq as api;
use e2e::{Broker, Setup};
use serde_json::{Value, json};

const NONE: Value = Value::Null;

fn check(broker: &Broker, method: &str, path: &str, body: &Value, status: u16) -> Value {
    let (answered, answer) = api(broker, method, path, body);
    assert_eq!(answered, status, "{method} {path}: {answer}");
    answer
}

#[test]
fn exchanges_and_bindings_are_made_shown_and_deleted() {
    let broker = Setup::new().start();
    check(&broker, "PUT", "queues/%2F/q", &json!({}), 201);
    let topic = json!({"type": "topic", "durable": true, "arguments": {"alternate-exchange": "x"}});
    check(&broker, "PUT", "exchanges/%2F/orders", &topic, 201);
    check(&broker, "PUT", "exchanges/%2F/orders", &topic, 204);
    let shown = check(&broker, "GET", "exchanges/%2F/orders", &NONE, 200);
    let expected = json!({
        "name": "orders", "vhost": "/", "type": "topic", "durable": true, "auto_delete": false,
        "internal": false, "arguments": {"alternate-exchange": "x"},
    });
    assert_eq!(shown, expected);
    let all = check(&broker, "GET", "exchanges", &NONE, 200);
    let names: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert!(
        names.contains(&&json!("")) && names.contains(&&json!("amq.topic")),
        "{names:?}"
    );

    let between = "bindings/%2F/e/orders/q/q";
    let key = json!({"routing_key": "a/b"});
    check(&broker, "POST", between, &key, 201);
    check(
        &broker,
        "POST",
        between,
        &json!({"arguments": {"n": 1}}),
        201,
    );
    let listed = check(&broker, "GET", between, &NONE, 200);
    let first = json!({
        "source": "orders", "vhost": "/", "destination": "q", "destination_type": "queue",
        "routing_key": "a/b", "arguments": {}, "properties_key": "a%2Fb",
    });
    assert_eq!(listed[0], first);
    let of_queue = check(&broker, "GET", "queues/%2F/q/bindings", &NONE, 200);
    assert!(of_queue.as_array().unwrap().contains(&first), "{of_queue}");
    let of_source = check(
        &broker,
        "GET",
        "exchanges/%2F/orders/bindings/source",
        &NONE,
        200,
    );
    assert_eq!(of_source, listed);
    let one = format!("{between}/a%252Fb");
    assert_eq!(check(&broker, "GET", &one, &NONE, 200), first);
    check(
        &broker,
        "DELETE",
        "exchanges/%2F/orders?if-unused=true",
        &NONE,
        400,
    );
    check(&broker, "DELETE", &one, &NONE, 204);
    check(&broker, "DELETE", &one, &NONE, 404);
    let hash = listed[1]["properties_key"].as_str().unwrap();
    check(&broker, "DELETE", &format!("{between}/{hash}"), &NONE, 204);
    check(
        &broker,
        "DELETE",
        "exchanges/%2F/orders?if-unused=true",
        &NONE,
        204,
    );
    check(&broker, "GET", "exchanges/%2F/orders", &NONE, 404);
}

#[test]
fn what_cannot_be_is_refused_with_rabbitmqs_words() {
    let broker = Setup::new().start();
    check(&broker, "PUT", "queues/%2F/q", &json!({}), 201);
    check(
        &broker,
        "PUT",
        "exchanges/%2F/x",
        &json!({"type": "fanout"}),
        201,
    );
    for (method, path, body, status, reason) in [
        (
            "PUT",
            "exchanges/%2F/x",
            json!({"type": "direct"}),
            400,
            "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'direct' but current \
             is 'fanout'",
        ),
        (
            "PUT",
            "exchanges/%2F/y",
            json!({"type": "no"}),
            400,
            "invalid exchange type 'no'",
        ),
        (
            "PUT",
            "exchanges/%2F/amq.default",
            json!({}),
            401,
            "operation not permitted on the default exchange",
        ),
        (
            "POST",
            "bindings/%2F/e/x/q/none",
            json!({}),
            404,
            "no queue 'none' in vhost '/'",
        ),
        (
            "POST",
            "bindings/%2F/e/none/q/q",
            json!({}),
            404,
            "no exchange 'none' in vhost '/'",
        ),
        (
            "GET",
            "bindings/other/e/x/q/q",
            NONE,
            404,
            "vhost_not_found",
        ),
        ("PATCH", "exchanges/%2F/x", NONE, 405, "Method Not Allowed"),
    ] {
        let answer = check(&broker, method, path, &body, status);
        assert_eq!(answer["reason"], reason, "{method} {path}");
    }
}

#[test]
fn definitions_carry_exchanges_and_bindings_to_another_broker() {
    let broker = Setup::new().start();
    check(&broker, "PUT", "queues/%2F/q", &json!({}), 201);
    check(
        &broker,
        "PUT",
        "exchanges/%2F/x",
        &json!({"type": "headers"}),
        201,
    );
    check(
        &broker,
        "PUT",
        "exchanges/%2F/y",
        &json!({"type": "fanout"}),
        201,
    );
    check(
        &broker,
        "POST",
        "bindings/%2F/e/x/e/y",
        &json!({"arguments": {"n": 5}}),
        201,
    );
    check(&broker, "POST", "bindings/%2F/e/y/q/q", &json!({}), 201);
    let definitions = check(&broker, "GET", "definitions", &NONE, 200);
    assert_eq!(definitions["exchanges"].as_array().unwrap().len(), 2);
    assert_eq!(definitions["bindings"].as_array().unwrap().len(), 2);
    let other = Setup::new().start();
    check(&other, "POST", "definitions", &definitions, 204);
    let copied = check(&other, "GET", "definitions", &NONE, 200);
    assert_eq!(copied, definitions);
    // An import that names what cannot be does nothing at all.
    let bad = json!({
        "exchanges": [{"name": "z"}],
        "bindings": [{"source": "z", "destination": "q", "destination_type": "no"}],
    });
    check(&other, "POST", "definitions", &bad, 400);
    check(&other, "GET", "exchanges/%2F/z", &NONE, 404);
}
