//! A session's state as part of a transaction. (docs/spec/amqp.md#8)

use amqp::{DeliveryState, Value};
use bytes::Bytes;

use crate::sessions::hold;
use crate::transactions::{condition, coordinator, declare, discharge, request_within};
use crate::world::{Pair, Request, World};

fn set(session: &str, state: &'static [u8]) -> Request {
    let body = vec![
        ("session-id", Value::from(session)),
        ("session-state", Value::Binary(Bytes::from_static(state))),
    ];
    Request::operation("com.microsoft:set-session-state", body)
}

fn state(world: &mut World, pair: &Pair) -> Value {
    let body = vec![("session-id", Value::from("a"))];
    let get = Request::operation("com.microsoft:get-session-state", body);
    let response = world.call(pair, &get).expect("an answer");
    assert_eq!(response.code(), 200);
    response.entry("session-state")
}

#[test]
fn a_state_is_set_by_the_commit_and_not_by_a_roll_back() {
    let mut world = World::new();
    hold(&mut world, "a", 0);
    let coordinator = coordinator(&mut world);
    let pair = world.pair("sessions/$management");
    for (fail, after) in [
        (true, Value::Null),
        (false, Value::Binary(Bytes::from_static(b"new"))),
    ] {
        let id = declare(&mut world, coordinator);
        let answer = request_within(&mut world, &pair, &id, &set("a", b"new"));
        assert_eq!(answer.code(), 200);
        assert_eq!(state(&mut world, &pair), Value::Null);
        let discharged = discharge(&mut world, coordinator, &id, fail);
        assert_eq!(discharged, DeliveryState::Accepted);
        assert_eq!(state(&mut world, &pair), after);
    }
}

#[test]
fn a_session_that_is_not_held_is_refused_at_once_and_the_rest_is_committed() {
    let mut world = World::new();
    hold(&mut world, "a", 0);
    let coordinator = coordinator(&mut world);
    let pair = world.pair("sessions/$management");
    let id = declare(&mut world, coordinator);
    let refused = request_within(&mut world, &pair, &id, &set("b", b"no"));
    assert_eq!(refused.code(), 410);
    assert_eq!(refused.condition(), "com.microsoft:session-lock-lost");
    request_within(&mut world, &pair, &id, &set("a", b"yes"));
    let discharged = discharge(&mut world, coordinator, &id, false);
    assert_eq!(discharged, DeliveryState::Accepted);
    let yes = Value::Binary(Bytes::from_static(b"yes"));
    assert_eq!(state(&mut world, &pair), yes);
}

#[test]
fn a_session_that_is_lost_before_the_commit_rolls_back() {
    let mut world = World::new();
    hold(&mut world, "a", 0);
    let coordinator = coordinator(&mut world);
    let pair = world.pair("sessions/$management");
    let id = declare(&mut world, coordinator);
    request_within(&mut world, &pair, &id, &set("a", b"late"));
    world.advance(60_000);
    let discharged = discharge(&mut world, coordinator, &id, false);
    assert_eq!(condition(&discharged), "amqp:transaction:rollback");
    // Its holder is told half a second later.
    world.advance(500);
    hold(&mut world, "a", 0);
    assert_eq!(state(&mut world, &pair), Value::Null);
}
