//! Sending: accepted messages, refused messages, and credit.

use amqp::message::{Header, Properties};
use amqp::performative::SenderSettleMode;
use amqp::{DeliveryState, Value};
use broker::{Command, Output, SendError};
use bytes::{Bytes, BytesMut};
use dialect::Dialect;
use endpoint::{Event, Outgoing};

use crate::tracking::text;
use crate::world::{World, message};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
pub(crate) const BATCH: u32 = 0x8001_3700;

fn rejection(world: &mut World, link: endpoint::LinkId) -> String {
    match &world.outcomes(link)[..] {
        [DeliveryState::Rejected(Some(error))] => {
            assert!(
                error.description.is_some(),
                "a client library takes all three fields"
            );
            error.condition.to_string()
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn batch(parts: &[Bytes]) -> Bytes {
    let mut out = BytesMut::new();
    for part in parts {
        amqp::encode::descriptor(&mut out, 0x75);
        amqp::encode::binary(&mut out, part);
    }
    out.freeze()
}

fn with_properties(properties: &Properties) -> Bytes {
    let mut out = BytesMut::new();
    properties.encode(&mut out);
    out.extend_from_slice(&message("x"));
    out.freeze()
}

#[test]
fn a_message_is_accepted_and_delivered() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.send(sender, &message("hello"));
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    let receiver = world.receiver("orders", UNSETTLED, 5);
    let received = world.received(receiver);
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].body(), message("hello"));
}

#[test]
fn a_settled_message_is_not_answered() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.send_as(sender, 0, true, &message("hello"));
    assert_eq!(world.outcomes(sender), []);
    let receiver = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(world.received(receiver).len(), 1);
}

#[test]
fn a_settled_message_that_is_refused_is_dropped_silently() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.send_as(sender, 0, true, b"\x07");
    assert_eq!(world.outcomes(sender), []);
}

#[test]
fn a_batch_is_taken_whole_in_order_with_one_answer() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.send_as(
        sender,
        BATCH,
        false,
        &batch(&[message("a"), message("b"), message("c")]),
    );
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    let receiver = world.receiver("orders", UNSETTLED, 5);
    let received = world.received(receiver);
    let bodies: Vec<Bytes> = received.iter().map(crate::world::Received::body).collect();
    assert_eq!(bodies, [message("a"), message("b"), message("c")]);
    let numbers: Vec<_> = received
        .iter()
        .map(|message| message.annotation("x-opt-sequence-number"))
        .collect();
    assert_eq!(numbers, [1, 2, 3].map(|number| Some(Value::Long(number))));
}

#[test]
fn a_batch_of_tens_of_thousands_of_small_messages_is_taken() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.send_as(sender, BATCH, false, &batch(&vec![message(""); 20_000]));
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
}

#[test]
fn a_batch_with_one_bad_message_leaves_nothing() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.send_as(
        sender,
        BATCH,
        false,
        &batch(&[message("a"), Bytes::from_static(b"\x07")]),
    );
    assert_eq!(rejection(&mut world, sender), "amqp:decode-error");
    let receiver = world.receiver("orders", UNSETTLED, 5);
    assert!(world.received(receiver).is_empty());
}

#[test]
fn an_empty_batch_is_accepted_without_effect() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.send_as(sender, BATCH, false, &[]);
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    assert!(
        !world
            .commands
            .iter()
            .any(|command| matches!(command, Command::Send { .. }))
    );
}

#[test]
fn each_fault_of_a_message_has_its_condition() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    let mut no_time = BytesMut::new();
    Header {
        ttl: Some(0),
        ..Header::default()
    }
    .encode(&mut no_time);
    let long = |field: fn(&mut Properties, String)| {
        let mut properties = Properties::default();
        field(&mut properties, "i".repeat(129));
        with_properties(&properties)
    };
    let table = [
        (
            Bytes::from_static(b"\x00\x53\x75\xa0\x09x"),
            "amqp:decode-error",
        ),
        (no_time.freeze(), "amqp:invalid-field"),
        (
            long(|properties, id| properties.message_id = Some(Value::String(id))),
            "com.microsoft:argument-out-of-range",
        ),
        (
            long(|properties, id| properties.group_id = Some(id)),
            "com.microsoft:argument-out-of-range",
        ),
    ];
    for (payload, condition) in table {
        world.send(sender, &payload);
        assert_eq!(rejection(&mut world, sender), condition);
    }
    world.send_as(sender, 5, false, &message("x"));
    assert_eq!(rejection(&mut world, sender), "amqp:not-implemented");
    world.send(sender, &message("still in use"));
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
}

#[test]
fn a_session_id_is_only_a_property_where_there_are_no_sessions() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    let properties = Properties {
        group_id: Some("session".to_owned()),
        ..Properties::default()
    };
    world.send(sender, &with_properties(&properties));
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
}

#[test]
fn a_transaction_that_nobody_declared_is_refused() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    let state = Some(DeliveryState::Transactional {
        txn_id: Bytes::from_static(b"1"),
        outcome: None,
    });
    let outgoing = Outgoing {
        tag: b"t",
        state,
        ..Outgoing::default()
    };
    world
        .client
        .send(sender, &outgoing, &[&message("x")])
        .expect("there is credit");
    world.pump();
    assert_eq!(rejection(&mut world, sender), "amqp:transaction:unknown-id");
}

/// What a client is told when the broker refuses a send.
fn refused_by_broker(error: SendError) -> amqp::Error {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.broker_stalls = true;
    world.send(sender, &message("x"));
    let request = world.commands.iter().find_map(|command| match command {
        Command::Send { request, .. } => Some(*request),
        _ => None,
    });
    let output = Output::Sent {
        request: request.expect("sent"),
        result: Err(error),
        duplicates: Vec::new(),
    };
    world.server.handle_output(world.clock_reading(), output);
    world.pump();
    match world.outcomes(sender).pop() {
        Some(DeliveryState::Rejected(Some(error))) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_refusal_of_the_broker_has_its_condition() {
    let table = [
        (SendError::NotFound, "amqp:not-found"),
        (
            SendError::QuotaExceeded { size: 2, limit: 1 },
            "amqp:resource-limit-exceeded",
        ),
        (
            SendError::TooLarge { size: 2, limit: 1 },
            "amqp:link:message-size-exceeded",
        ),
        (SendError::DiskNearlyFull, "com.microsoft:server-busy"),
    ];
    for (error, condition) in table {
        assert_eq!(refused_by_broker(error).condition, condition);
    }
    let error = refused_by_broker(SendError::QuotaExceeded {
        size: 20,
        limit: 10,
    });
    let text = error.description.expect("a description");
    assert!(
        text.starts_with(
            "The maximum entity size has been reached or exceeded for Queue: 'railbus:Queue:orders'. \
             Size of entity in bytes:20, Max entity size in bytes:10."
        ),
        "{text}"
    );
}

#[test]
fn a_message_beyond_the_links_limit_is_rejected_and_the_link_stays() {
    let mut world = World::with(
        crate::world::Login::Plain("root", crate::world::KEY),
        |settings| {
            settings.max_message_size = 1_000;
        },
    );
    let (_, sender) = world.sender("orders");
    let outgoing = Outgoing {
        tag: b"t",
        ..Outgoing::default()
    };
    // The last of them takes many frames.
    for size in [1_000, 2_000, 400_000] {
        world
            .client
            .send(sender, &outgoing, &[&message(&"x".repeat(size))])
            .expect("there is credit");
        world.pump();
        let rejected = rejection(&mut world, sender);
        assert_eq!(rejected, "amqp:link:message-size-exceeded");
    }
    world.send(sender, &message("fits"));
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    assert_eq!(world.detach_error(sender), None);
}

#[test]
fn a_settled_message_beyond_the_links_limit_ends_the_link() {
    let mut world = World::with(
        crate::world::Login::Plain("root", crate::world::KEY),
        |settings| {
            settings.max_message_size = 1_000;
        },
    );
    let (_, sender) = world.sender("orders");
    let outgoing = Outgoing {
        tag: b"t",
        settled: true,
        ..Outgoing::default()
    };
    world
        .client
        .send(sender, &outgoing, &[&message(&"x".repeat(2_000))])
        .expect("there is credit");
    world.pump();
    let error = world.detach_error(sender).cloned().expect("a detach");
    assert_eq!(error.condition, "amqp:link:message-size-exceeded");
    assert_eq!(
        text(&error),
        "The message is larger than the 1000 bytes that the link takes."
    );
    let refusals = world.server.take_refusals().expect("a refusal");
    let logged: Vec<_> = refusals.first.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(logged, [error.description.as_deref().expect("a text")]);
    world.sender("orders");
}

#[test]
fn credit_is_given_back_for_messages_beyond_the_limit() {
    let mut world = World::with(
        crate::world::Login::Plain("root", crate::world::KEY),
        |settings| {
            settings.max_message_size = 1_000;
            settings.sender_credit = 4;
        },
    );
    let (_, sender) = world.sender("orders");
    let outgoing = Outgoing {
        tag: b"t",
        ..Outgoing::default()
    };
    for _ in 0..20 {
        world
            .client
            .send(sender, &outgoing, &[&message(&"x".repeat(2_000))])
            .expect("there is credit");
        world.pump();
    }
    assert_eq!(world.outcomes(sender).len(), 20);
}

#[test]
fn a_message_as_large_as_its_queue_takes_is_taken_without_an_id_and_forwarded() {
    let mut world = World::new();
    let small = |forward_to: Option<&str>| broker::QueueSettings {
        max_message_size: Some(1_000),
        forward_to: forward_to.map(str::to_owned),
        ..broker::QueueSettings::default()
    };
    world.create("last", small(None));
    world.create("first", small(Some("last")));
    let (_, sender) = world.sender("first");
    let largest = message(&"x".repeat(1_000 - message(&"x".repeat(300)).len() + 300));
    assert_eq!(largest.len(), 1_000);
    world.send(sender, &largest);
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    let receiver = world.receiver("last", SenderSettleMode::Unsettled, 1);
    let received = world.received(receiver).pop().expect("it was forwarded");
    assert_eq!(received.body(), largest);
    // Only what was forwarded tells its first number.
    assert_eq!(
        received.annotation("x-opt-enqueue-sequence-number"),
        Some(Value::Long(1))
    );
}

#[test]
fn credit_is_topped_up_as_answers_go_out() {
    let mut world = World::with(
        crate::world::Login::Plain("root", crate::world::KEY),
        |settings| {
            settings.sender_credit = 10;
        },
    );
    let (_, sender) = world.sender("orders");
    world.broker_stalls = true;
    for _ in 0..10 {
        world.send(sender, &message("x"));
    }
    let outgoing = Outgoing {
        tag: b"t",
        ..Outgoing::default()
    };
    assert!(
        world
            .client
            .send(sender, &outgoing, &[&message("x")])
            .is_err(),
        "unanswered sends use credit"
    );
    assert!(world.server.unanswered_bytes() > 0);
    world.broker_stalls = false;
    world.pump();
    assert_eq!(world.outcomes(sender).len(), 10);
    assert_eq!(world.server.unanswered_bytes(), 0);
    for _ in 0..100 {
        world.send(sender, &message("x"));
    }
    assert_eq!(world.outcomes(sender).len(), 100);
}

#[test]
fn refused_messages_give_their_credit_back_too() {
    let mut world = World::with(
        crate::world::Login::Plain("root", crate::world::KEY),
        |settings| {
            settings.sender_credit = 1;
        },
    );
    let (_, sender) = world.sender("orders");
    for _ in 0..5 {
        world.send(sender, b"\x07");
        assert_eq!(rejection(&mut world, sender), "amqp:decode-error");
    }
}

#[test]
fn rule_19_a_sender_that_overruns_its_credit_is_served() {
    // A client endpoint does not overrun, so frames are written past the server's own view of it.
    let mut world = World::with(
        crate::world::Login::Plain("root", crate::world::KEY),
        |settings| {
            settings.sender_credit = 2;
        },
    );
    let (_, sender) = world.sender("orders");
    world.broker_stalls = true;
    world.send(sender, &message("1"));
    world.send(sender, &message("2"));
    let transfer = |id: u32| {
        let mut frame = BytesMut::from(&[0; 8][..]);
        let transfer = amqp::Transfer {
            handle: 0,
            delivery_id: Some(id),
            delivery_tag: Some(Bytes::from_static(b"t")),
            message_format: Some(0),
            ..amqp::Transfer::default()
        };
        amqp::Performative::Transfer(transfer).encode(&mut frame);
        frame.extend_from_slice(&message("over"));
        let size = u32::try_from(frame.len()).expect("short");
        frame[..4].copy_from_slice(&size.to_be_bytes());
        frame[4] = 2;
        frame
    };
    for id in 2..7 {
        world
            .server
            .handle_input(world.clock_reading(), &mut transfer(id));
    }
    world.broker_stalls = false;
    world.pump();
    let sends = world
        .commands
        .iter()
        .filter(|command| matches!(command, Command::Send { .. }))
        .count();
    assert_eq!(sends, 7);
    let receiver = world.receiver("orders", SenderSettleMode::Settled, 10);
    assert_eq!(world.received(receiver).len(), 7);
}

#[test]
fn a_send_is_answered_before_its_link_is_closed() {
    // docs/spec/amqp.md#3.3
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.broker_stalls = true;
    world.send(sender, &message("x"));
    world.client.detach(sender, true, None);
    world.pump();
    let is_over = |event: &Event| matches!(event, Event::Detached { .. });
    assert!(!world.events.iter().any(is_over));
    world.broker_stalls = false;
    world.pump();
    assert_eq!(world.outcomes(sender), [DeliveryState::Accepted]);
    assert!(world.events.iter().any(is_over));
    let receiver = world.receiver("orders", UNSETTLED, 1);
    assert_eq!(
        world.received(receiver).len(),
        1,
        "it was sent all the same"
    );
}

/// (docs/spec/amqp.md#3.3)
#[test]
fn answers_that_take_too_long_go_nowhere() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    world.broker_stalls = true;
    world.send(sender, &message("x"));
    world.client.detach(sender, true, None);
    world.pump();
    world.advance(2_000);
    world.broker_stalls = false;
    world.pump();
    assert_eq!(world.outcomes(sender), []);
    let receiver = world.receiver("orders", UNSETTLED, 1);
    assert_eq!(
        world.received(receiver).len(),
        1,
        "it was sent all the same"
    );
}

/// (docs/spec/amqp.md#3.8)
#[test]
fn a_send_is_answered_after_a_detach_that_does_not_close_the_link() {
    let mut world = World::new();
    let (_, link) = world.sender("orders");
    world.broker_stalls = true;
    world.send(link, &message("hello"));
    world.client.detach(link, false, None);
    world.pump();
    world.broker_stalls = false;
    world.pump();
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
}

#[test]
fn settled_messages_are_kept_when_the_connection_closes_in_the_same_read() {
    let mut world = World::new();
    let (_, link) = world.sender("orders");
    for _ in 0..3 {
        let outgoing = Outgoing {
            tag: b"t",
            settled: true,
            ..Outgoing::default()
        };
        let payload = message("hello");
        let sent = world.client.send(link, &outgoing, &[&payload]);
        sent.expect("there is credit");
    }
    world.client.close(None);
    world.pump();
    let queue = world
        .shard
        .broker
        .queues()
        .find(|queue| queue.path == "orders");
    assert_eq!(queue.map(|queue| queue.active), Some(3));
}
