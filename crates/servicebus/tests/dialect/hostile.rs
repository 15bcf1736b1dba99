//! Hostile clients: whatever comes, nothing panics and nothing grows without bound.

use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use bytes::{Buf, BytesMut};
use dialect::Dialect;
use endpoint::Mono;
use proptest::prelude::*;

use crate::world::{Login, Request, World, message, receiver, sender};

/// A whole client's life, as the bytes it would write.
fn recorded() -> Vec<u8> {
    let mut world = World::offline(Login::Plain("root", crate::world::KEY), |_| {});
    let mut bytes = written(&mut world);
    world.pump();
    let session = world.client.begin();
    bytes.extend(written(&mut world));
    world.pump();
    for attach in [
        sender("orders"),
        receiver("orders", SenderSettleMode::Unsettled),
        sender("orders/$management"),
        receiver("orders/$management", SenderSettleMode::Settled),
        sender("$cbs"),
    ] {
        world.client.attach(session, attach);
    }
    bytes.extend(written(&mut world));
    bytes
}

/// What the client is about to write, which stays with it.
fn written(world: &mut World) -> Vec<u8> {
    let output = world.client.output(Mono(0));
    assert_eq!(
        output.chunk().len(),
        output.len(),
        "nothing of it is shared"
    );
    output.chunk().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_the_dialect_panic(
        flips in proptest::collection::vec((0usize..4_096, any::<u8>()), 0..8),
        noise in proptest::collection::vec(any::<u8>(), 0..64),
        cut in 1usize..512,
    ) {
        let mut bytes = recorded();
        for (at, byte) in flips {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.extend_from_slice(&noise);
        let mut world = World::offline(Login::Mechanism("ANONYMOUS"), |_| {});
        let mut input = BytesMut::new();
        for part in bytes.chunks(cut) {
            input.extend_from_slice(part);
            world.server.handle_input(world.clock_reading(), &mut input);
            let _ = world.server.output(world.clock_reading()).split();
            world.server.written();
        }
        world.server.handle_eof(world.clock_reading());
        let is_last = matches!(world.server.commands().last(), Some(broker::Command::Disconnect { .. }));
        prop_assert!(is_last);
    }

    #[test]
    fn no_request_makes_a_node_panic(
        operation in operation(),
        node in prop_oneof![Just("orders/$management"), Just("sessions/$management")],
        entries in proptest::collection::vec((key(), value()), 0..6),
    ) {
        let mut world = World::new();
        world.enqueue("orders", &message("x"));
        let pair = world.pair(node);
        let body = entries.iter().map(|(key, value)| (*key, value.clone())).collect();
        let answer = world.call(&pair, &Request::operation(operation, body));
        prop_assert!(answer.is_some_and(|answer| answer.code() >= 200));
    }

    #[test]
    fn no_disposition_makes_a_receiver_panic(
        condition in "[a-z:]{0,20}",
        info in proptest::collection::vec((key(), value()), 0..6),
        kind in 0..3,
        settled: bool,
    ) {
        let mut world = World::new();
        world.enqueue("orders", &message("x"));
        let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
        let received = world.received(link).pop().expect("a message");
        let info: amqp::Map = info.into_iter().map(|(key, value)| (Value::from(key), value)).collect();
        let state = match kind {
            0 => DeliveryState::Rejected(Some(amqp::Error {
                condition: condition.into(),
                description: None,
                info: Some(info),
            })),
            1 => DeliveryState::Modified {
                delivery_failed: false,
                undeliverable_here: settled,
                message_annotations: Some(info),
            },
            _ => DeliveryState::Received { section_number: 1, section_offset: 2 },
        };
        world.dispose(&received, state, settled);
    }
}

fn operation() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("com.microsoft:peek-message"),
        Just("com.microsoft:renew-lock"),
        Just("com.microsoft:update-disposition"),
        Just("com.microsoft:receive-by-sequence-number"),
        Just("com.microsoft:schedule-message"),
        Just("com.microsoft:cancel-scheduled-message"),
        Just("com.microsoft:renew-session-lock"),
        Just("com.microsoft:get-session-state"),
        Just("com.microsoft:set-session-state"),
        Just("com.microsoft:get-message-sessions"),
        Just("com.microsoft:batch-delete-messages"),
    ]
}

fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("lock-tokens"),
        Just("sequence-numbers"),
        Just("receiver-settle-mode"),
        Just("message-count"),
        Just("from-sequence-number"),
        Just("disposition-status"),
        Just("deadletter-reason"),
        Just("properties-to-modify"),
        Just("DeadLetterReason"),
        Just("messages"),
        Just("message"),
        Just("session-id"),
        Just("session-state"),
        Just("last-updated-time"),
        Just("skip"),
        Just("top"),
        Just("enqueued-time-utc"),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Long),
        any::<u64>().prop_map(Value::Ulong),
        any::<i32>().prop_map(Value::Int),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        ".{0,10}".prop_map(Value::String),
        Just(Value::from("completed")),
        Just(Value::from("suspended")),
    ];
    scalar.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            proptest::collection::vec((inner.clone(), inner), 0..4).prop_map(Value::Map),
        ]
    })
}

#[test]
fn answers_that_nobody_takes_do_not_pile_up_without_bound() {
    let mut world = World::new();
    let session = world.session();
    let response = world.attach(
        session,
        receiver("orders/$management", SenderSettleMode::Settled),
    );
    let request = world.attach(session, sender("orders/$management"));
    let payload = Request {
        reply_to: None,
        ..Request::operation("what", Vec::new())
    }
    .encode();
    let outgoing = endpoint::Outgoing {
        tag: b"t",
        settled: true,
        ..Default::default()
    };
    let mut sent = 0;
    while world.client.send(request, &outgoing, &[&payload]).is_ok() {
        sent += 1;
        world.pump();
        assert!(sent <= 100, "credit ends while answers wait");
    }
    world.credit(response, 1_000, false);
    assert_eq!(world.received(response).len(), sent);
    assert!(
        world.client.send(request, &outgoing, &[&payload]).is_ok(),
        "and comes back with them"
    );
}

#[test]
fn the_same_delivery_disposed_of_again_and_again_counts_against_the_client() {
    let mut world = World::new();
    world.enqueue("orders", &message("x"));
    let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let received = world.received(link).pop().expect("a message");
    world.broker_stalls = true;
    for _ in 0..10 {
        // Alternating, so that they are not joined.
        for state in [DeliveryState::Accepted, DeliveryState::Released] {
            world.dispose(&received, state, false);
        }
    }
    assert!(world.server.unanswered_bytes() >= 64);
    world.broker_stalls = false;
    world.pump();
    assert_eq!(world.outcomes(link).len(), 1);
    assert_eq!(world.server.unanswered_bytes(), 0);
}
