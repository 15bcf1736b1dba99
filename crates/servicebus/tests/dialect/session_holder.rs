//! Requests about a session that name the link which holds it. (docs/spec/amqp.md#5.2, #7.1)

use amqp::{DeliveryState, Value};
use endpoint::LinkId;

use crate::management::embedded;
use crate::sessions::{hold, of_session};
use crate::world::{Pair, Received, Request, Response, World};

const MESSAGE_LOST: &str = "com.microsoft:message-lock-lost";
const SESSION_LOST: &str = "com.microsoft:session-lock-lost";

/// Asks for something by a request that names a link.
fn call(
    world: &mut World,
    pair: &Pair,
    link_name: &str,
    operation: &str,
    body: Vec<(&str, Value)>,
) -> Response {
    let mut request = Request::operation(&format!("com.microsoft:{operation}"), body);
    let name = (Value::from("associated-link-name"), Value::from(link_name));
    request.properties.push(name);
    world.call(pair, &request).expect("an answer")
}

fn name(world: &World, link: LinkId) -> String {
    world.reply(link).name.clone()
}

fn completed(received: &Received) -> Vec<(&'static str, Value)> {
    let token = received.delivery_annotation("x-opt-lock-token");
    let tokens = Value::Array(vec![token.expect("a token")]);
    vec![
        ("disposition-status", Value::from("completed")),
        ("lock-tokens", tokens),
    ]
}

#[test]
fn a_token_is_lost_alone_while_the_named_link_holds_its_session() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let holder = hold(&mut world, "a", 1);
    let received = world.received(holder).pop().expect("a message");
    let holder = name(&world, holder);
    let pair = world.pair("sessions/$management");
    let mut update = |link_name: &str| {
        let body = completed(&received);
        call(&mut world, &pair, link_name, "update-disposition", body)
    };
    assert_eq!(update(&holder).code(), 200);
    for (link_name, condition) in [(&*holder, MESSAGE_LOST), ("no such link", SESSION_LOST)] {
        let again = update(link_name);
        assert_eq!((again.code(), &*again.condition()), (410, condition));
    }
}

#[test]
fn a_named_link_that_is_gone_has_lost_its_session() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let first = hold(&mut world, "a", 1);
    let gone = name(&world, first);
    world.client.detach(first, true, None);
    world.pump();
    let second = hold(&mut world, "a", 1);
    let received = world.received(second).pop().expect("a message");
    let other = hold(&mut world, "b", 1);
    let (holder, other) = (name(&world, second), name(&world, other));
    let pair = world.pair("sessions/$management");
    let numbers = Value::Array(vec![Value::Long(1)]);
    let operations = [
        ("renew-session-lock", Vec::new()),
        ("get-session-state", Vec::new()),
        ("set-session-state", Vec::new()),
        (
            "receive-by-sequence-number",
            vec![("sequence-numbers", numbers)],
        ),
        ("update-disposition", completed(&received)),
    ];
    for (operation, mut body) in operations {
        body.push(("session-id", Value::from("A")));
        for link_name in [&gone, &other] {
            let refused = call(&mut world, &pair, link_name, operation, body.clone());
            let told = (refused.code(), &*refused.condition());
            assert_eq!(told, (410, SESSION_LOST), "{operation}");
        }
        let answered = call(&mut world, &pair, &holder, operation, body);
        let expected = match operation {
            // It is not deferred.
            "receive-by-sequence-number" => 404,
            _ => 200,
        };
        assert_eq!(answered.code(), expected, "{operation}");
    }
}

/// As the SDK for Go does, which names no session in these requests.
#[test]
fn a_deferred_message_is_received_and_settled_by_the_name_of_the_link_alone() {
    let mut world = World::new();
    world.enqueue("sessions", &of_session("a", "1"));
    let holder = hold(&mut world, "a", 1);
    let received = world.received(holder).pop().expect("a message");
    let defer = DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: true,
        message_annotations: None,
    };
    world.dispose(&received, defer, false);
    let holder = name(&world, holder);
    let pair = world.pair("sessions/$management");
    let body = vec![("sequence-numbers", Value::Array(vec![Value::Long(1)]))];
    let response = call(
        &mut world,
        &pair,
        &holder,
        "receive-by-sequence-number",
        body,
    );
    let (_, deferred) = embedded(&response).pop().expect("a message");
    // As long as its session is held, whatever the session's deadline. (docs/spec/entities.md#18)
    let until = deferred.annotation("x-opt-locked-until");
    assert_eq!(until, Some(Value::Timestamp(253_402_300_799_999)));
    for (code, condition) in [(200, None), (410, Some(MESSAGE_LOST))] {
        let body = completed(&deferred);
        let settled = call(&mut world, &pair, &holder, "update-disposition", body);
        assert_eq!(settled.code(), code);
        let told = condition.map(|_| settled.condition());
        assert_eq!(told.as_deref(), condition);
    }
}

#[test]
fn the_name_of_a_link_means_nothing_where_there_are_no_sessions() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    let body = vec![("message-count", Value::Int(1))];
    let response = call(&mut world, &pair, "no such link", "peek-message", body);
    assert_eq!(response.code(), 204);
    let body = vec![
        ("disposition-status", Value::from("completed")),
        ("lock-tokens", Value::Array(vec![Value::Uuid([1; 16])])),
    ];
    let response = call(
        &mut world,
        &pair,
        "no such link",
        "update-disposition",
        body,
    );
    assert_eq!(response.condition(), MESSAGE_LOST);
}
