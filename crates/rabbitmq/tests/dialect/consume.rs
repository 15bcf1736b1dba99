//! What consumers get, and what becomes of what they settle. (docs/spec/rabbitmq.md#10)

use amqp::message::{Header, Sections, decode_map_section};
use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Map, Value};

use dialect::Dialect;
use endpoint::Event;

use crate::client_frames::{message, receiver};
use crate::received::Received;
use crate::world::{BROKER_START, World};

/// A consumer as clients attach it.
pub fn consumer(address: &str) -> Attach {
    Attach {
        rcv_settle_mode: Some(ReceiverSettleMode::First),
        ..receiver(address, SenderSettleMode::Unsettled)
    }
}

pub fn consume(world: &mut World, address: &str, credit: u32) -> endpoint::LinkId {
    let session = world.session();
    let name = format!("consumer in {session:?}");
    let link = world.attach(
        session,
        Attach {
            name,
            ..consumer(address)
        },
    );
    world.credit(link, credit, false);
    link
}

pub fn parts(received: &Received) -> (Header, Map) {
    let payload = &received.payload;
    let sections = Sections::scan(payload).expect("a message");
    let header = Header::decode(&payload[sections.header.clone()]).expect("a header");
    let annotations = payload.slice(sections.message_annotations);
    (
        header,
        decode_map_section(&annotations).expect("annotations"),
    )
}

fn modified(delivery_failed: bool, undeliverable_here: bool) -> DeliveryState {
    DeliveryState::Modified {
        delivery_failed,
        undeliverable_here,
        message_annotations: None,
    }
}

#[test]
fn rules_19_and_20_the_bare_message_is_forwarded_as_it_came() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume(&mut world, "/queues/orders", 5);
    let received = world.received(link).remove(0);
    assert!(!received.settled);
    assert_eq!(received.tag.len(), 16);
    assert!(received.payload.ends_with(&message("a")));
    let (header, annotations) = parts(&received);
    assert_eq!(header.first_acquirer, Some(true));
    assert_eq!(header.delivery_count, Some(0));
    let expected = [("x-exchange", ""), ("x-routing-key", "orders")];
    let expected = expected.map(|(key, value)| (Value::Symbol(key.into()), Value::from(value)));
    assert_eq!(annotations, expected);
}

#[test]
fn rule_15_only_failures_count_and_the_limit_dead_letters() {
    // The queue takes three deliveries.
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume(&mut world, "/queues/orders", 50);
    for (state, count) in [
        (DeliveryState::Released, 0),
        (modified(false, false), 0),
        (modified(true, false), 0),
        (modified(true, false), 1),
        (DeliveryState::Released, 2),
    ] {
        let received = world.received(link).remove(0);
        assert_eq!(parts(&received).0.delivery_count, Some(count), "{state:?}");
        world.dispose(&received, state, true);
    }
    let received = world.received(link).remove(0);
    world.dispose(&received, modified(true, false), true);
    assert_eq!(world.received(link).len(), 0);
    let dead = consume(&mut world, "/queues/orders%2F%24DeadLetterQueue", 5);
    assert_eq!(world.received(dead).len(), 1);
}

#[test]
fn a_returned_message_waits_until_its_delivery_time() {
    const IN_A_MINUTE: i64 = BROKER_START.cast_signed() + 60_000;
    for (delivery_failed, time) in [
        (true, Value::Timestamp(IN_A_MINUTE)),
        (false, Value::Long(IN_A_MINUTE)),
    ] {
        let mut world = World::new();
        world.enqueue("/queues/orders", &message("a"));
        let link = consume(&mut world, "/queues/orders", 5);
        let received = world.received(link).remove(0);
        let state = DeliveryState::Modified {
            delivery_failed,
            undeliverable_here: false,
            message_annotations: Some(vec![(Value::Symbol("x-opt-delivery-time".into()), time)]),
        };
        world.dispose(&received, state, true);
        world.advance(59_000);
        assert_eq!(world.received(link).len(), 0);
        world.advance(1_000);
        let again = world.received(link).remove(0);
        let count = parts(&again).0.delivery_count;
        assert_eq!(count, Some(u32::from(delivery_failed)));
    }
}

#[test]
fn returned_messages_wait_as_the_arguments_of_their_queue_say() {
    let mut world = World::new();
    let management = crate::management_client::open(&mut world);
    let arguments = [
        ("x-queue-type", Value::from("quorum")),
        ("x-delayed-retry-type", Value::from("returned")),
        ("x-delayed-retry-min", Value::Long(1_000)),
        ("x-delayed-retry-max", Value::Long(5_000)),
    ];
    let (status, queue) = management.declare(&mut world, "q", &arguments);
    assert_eq!(status, "201", "{queue:?}");
    world.enqueue("/queues/q", &message("a"));
    let link = consume(&mut world, "/queues/q", 9);
    let received = world.received(link).remove(0);
    world.dispose(&received, DeliveryState::Released, true);
    world.advance(999);
    assert_eq!(world.received(link).len(), 0);
    world.advance(1);
    let received = world.received(link).remove(0);
    world.dispose(&received, modified(true, false), true);
    assert_eq!(world.received(link).len(), 1);
}

/// The states that the broker has told of its own accord, and whether they were settled.
fn told(world: &mut World, link: endpoint::LinkId) -> Vec<(DeliveryState, bool)> {
    let mut told = Vec::new();
    world.events.retain(|event| match event {
        Event::Updated {
            link: of,
            settled,
            state: Some(state),
            ..
        } if *of == link => {
            told.push((state.clone(), *settled));
            false
        }
        _ => true,
    });
    told
}

/// A consumer of `orders` that may hold a message for a second, with credit for ten.
fn consume_for_a_second(world: &mut World) -> endpoint::LinkId {
    let session = world.session();
    let timeout = (
        Value::Symbol("rabbitmq:consumer-timeout".into()),
        Value::Uint(1_000),
    );
    let attach = Attach {
        properties: Some(vec![timeout]),
        ..consumer("/queues/orders")
    };
    let link = world.attach(session, attach);
    world.credit(link, 10, false);
    link
}

#[test]
fn a_consumer_that_holds_a_message_for_too_long_is_told_and_settles_before_it_gets_more() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume_for_a_second(&mut world);
    let held = world.received(link).remove(0);
    world.advance(999);
    assert_eq!(told(&mut world, link), []);
    world.advance(1);
    assert_eq!(told(&mut world, link), [(DeliveryState::Released, false)]);
    // Another consumer gets it, with no delivery counted.
    let other = consume(&mut world, "/queues/orders", 1);
    let again = world.received(other).remove(0);
    assert_eq!(parts(&again).0.delivery_count, Some(0));
    world.enqueue("/queues/orders", &message("b"));
    world.credit(link, 10, false);
    assert_eq!(world.received(link).len(), 0);
    // A late word settles the delivery and nothing else.
    world.dispose(&held, DeliveryState::Accepted, true);
    assert_eq!(world.received(link).len(), 1);
    world.dispose(&again, DeliveryState::Accepted, true);
    let left = world
        .shard
        .broker
        .queue(world.id("orders"))
        .expect("a queue");
    assert_eq!((left.active, left.locked), (1, 1));
}

#[test]
fn rule_14_what_is_rejected_or_undeliverable_is_a_dead_letter() {
    for state in [
        DeliveryState::Rejected(None),
        modified(false, true),
        modified(true, true),
    ] {
        let mut world = World::new();
        world.enqueue("/queues/orders", &message("a"));
        let link = consume(&mut world, "/queues/orders", 5);
        let received = world.received(link).remove(0);
        world.dispose(&received, state, true);
        let dead = consume(&mut world, "/queues/orders%2F$DeadLetterQueue", 5);
        let received = world.received(dead).remove(0);
        let (_, annotations) = parts(&received);
        let reason = amqp::value::lookup(&annotations, "x-opt-dead-letter-reason");
        assert_eq!(reason, Some(&Value::from("rejected")));
        assert!(received.payload.ends_with(&message("a")));
    }
}

#[test]
fn rule_13_an_unsettled_disposition_is_answered_with_its_own_state() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume(&mut world, "/queues/orders", 5);
    let received = world.received(link).remove(0);
    world.dispose(&received, DeliveryState::Accepted, false);
    assert_eq!(world.outcomes(link), [DeliveryState::Accepted]);
    world.enqueue("/queues/orders", &message("b"));
    let received = world.received(link).remove(0);
    world.dispose(&received, DeliveryState::Accepted, true);
    assert_eq!(world.outcomes(link), []);
}

#[test]
fn a_lock_lasts_until_its_link_goes() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let first = consume(&mut world, "/queues/orders", 5);
    let second = consume(&mut world, "/queues/orders", 5);
    assert_eq!(world.received(first).len(), 1);
    // Thirty seconds are the lock duration of the queue.
    for _ in 0..3 {
        world.advance(40_000);
    }
    assert_eq!(world.received(second).len(), 0);
    world.client.detach(first, true, None);
    world.pump();
    let again = world.received(second).remove(0);
    assert_eq!(parts(&again).0.delivery_count, Some(0));
}

#[test]
fn a_pre_settled_message_is_gone_with_its_delivery() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let session = world.session();
    let link = world.attach(
        session,
        receiver("/queues/orders", SenderSettleMode::Settled),
    );
    world.credit(link, 5, false);
    assert!(world.received(link).remove(0).settled);
    world.client.detach(link, true, None);
    world.pump();
    let other = consume(&mut world, "/queues/orders", 5);
    assert_eq!(world.received(other).len(), 0);
}

#[test]
fn a_drain_ends_with_what_there_is() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume(&mut world, "/queues/orders", 0);
    world.credit(link, 5, true);
    assert_eq!(world.received(link).len(), 1);
    let is_drained = |event: &endpoint::Event| matches!(event, endpoint::Event::Drained { link: of } if *of == link);
    assert!(world.events.iter().any(is_drained));
    world.enqueue("/queues/orders", &message("b"));
    assert_eq!(world.received(link).len(), 0);
}

#[test]
fn a_word_that_comes_with_the_end_of_its_time_does_not_hold_up_the_consumer() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume_for_a_second(&mut world);
    let held = world.received(link).remove(0);
    // The broker sees the end of the time and the disposition in one turn.
    world.pass(1_000);
    world.dispose(&held, DeliveryState::Accepted, false);
    let again = world.received(link);
    assert_eq!(again.len(), 1, "the lock was lost");
    world.dispose(&again[0], DeliveryState::Accepted, false);
    world.enqueue("/queues/orders", &message("b"));
    assert_eq!(world.received(link).len(), 1);
}

#[test]
fn a_message_tells_how_often_it_was_handed_out_before() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume(&mut world, "/queues/orders", 50);
    for (state, acquired, failed) in [
        (DeliveryState::Released, 0, 0),
        (modified(false, false), 1, 0),
        (modified(true, false), 2, 0),
        (DeliveryState::Released, 3, 1),
        (DeliveryState::Rejected(None), 4, 1),
    ] {
        let received = world.received(link).remove(0);
        check_counts(&received, acquired, failed);
        world.dispose(&received, state, true);
    }
    let dead = consume(&mut world, "/queues/orders%2F$DeadLetterQueue", 5);
    check_counts(&world.received(dead).remove(0), 5, 1);
    // The next message begins anew.
    world.enqueue("/queues/orders", &message("b"));
    check_counts(&world.received(link).remove(0), 0, 0);
}

fn check_counts(received: &Received, acquired: i64, failed: i64) {
    let (header, annotations) = parts(received);
    let told = |key| amqp::value::lookup(&annotations, key).cloned();
    let counted = |count| (count > 0).then_some(Value::Long(count));
    assert_eq!(told("x-acquired-count"), counted(acquired));
    assert_eq!(told("x-delivery-count"), counted(failed));
    assert_eq!(header.first_acquirer, Some(acquired == 0));
    assert_eq!(header.delivery_count.map(i64::from), Some(failed));
}

#[test]
fn a_message_that_its_sender_says_was_handed_out_before_was_not() {
    let mut world = World::new();
    let mut payload = bytes::BytesMut::new();
    let annotations = vec![(Value::Symbol("x-acquired-count".into()), Value::Long(7))];
    amqp::message::encode_map_section(
        &mut payload,
        amqp::message::descriptor::MESSAGE_ANNOTATIONS,
        &annotations,
    );
    payload.extend_from_slice(&message("a"));
    world.enqueue("/queues/orders", &payload.freeze());
    let link = consume(&mut world, "/queues/orders", 5);
    check_counts(&world.received(link).remove(0), 0, 0);
}

#[test]
fn a_delivery_that_times_out_on_its_way_back_costs_no_credit() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume_for_a_second(&mut world);
    let first = world.received(link).remove(0);
    world.dispose(&first, DeliveryState::Accepted, true);
    // The broker delivers against credit that the client takes back meanwhile.
    world.credit(link, 0, false);
    world.enqueue("/queues/orders", &message("b"));
    world.broker_stalls = true;
    world.credit(link, 1, false);
    world.broker_stalls = false;
    world.client.set_credit(link, 0, false);
    let mut flow = world.client.output(endpoint::Mono(0)).split();
    let outputs = world.deliveries_for_credit();
    let now = world.clock_reading();
    world.server.handle_input(now, &mut flow);
    for output in outputs {
        world.server.handle_output(now, output);
    }
    // Its time ends before the broker hears that it is given back.
    world.pass(1_000);
    world.pump();
    assert_eq!(world.received(link).len(), 0);
    world.credit(link, 1, false);
    assert_eq!(world.received(link).len(), 1);
}

#[test]
fn the_end_of_a_session_counts_as_a_failed_delivery_and_that_of_a_link_does_not() {
    let mut world = World::new();
    world.enqueue("/queues/orders", &message("a"));
    let link = consume(&mut world, "/queues/orders", 5);
    assert_eq!(world.received(link).len(), 1);
    world.client.detach(link, true, None);
    world.pump();
    let session = world.session();
    let link = world.attach(session, consumer("/queues/orders"));
    world.credit(link, 5, false);
    let received = world.received(link).remove(0);
    assert_eq!(parts(&received).0.delivery_count, Some(0));
    world.client.end(session, None);
    world.pump();
    let link = consume(&mut world, "/queues/orders", 5);
    let received = world.received(link).remove(0);
    assert_eq!(parts(&received).0.delivery_count, Some(1));
}

#[test]
fn the_consumer_of_the_highest_priority_comes_first() {
    let mut world = World::new();
    let priorities = [Some(Value::Int(-1)), None, Some(Value::Int(7))];
    let consumers = priorities.map(|priority| {
        let session = world.session();
        let priority = priority.map(|it| (Value::Symbol("rabbitmq:priority".into()), it));
        let link = world.attach(
            session,
            Attach {
                name: format!("consumer in {session:?}"),
                properties: Some(priority.into_iter().collect()),
                ..consumer("/queues/orders")
            },
        );
        world.credit(link, 1, false);
        link
    });
    for chosen in consumers.into_iter().rev() {
        world.enqueue("/queues/orders", &message("a"));
        let counts = consumers.map(|link| world.received(link).len());
        let expected = consumers.map(|link| usize::from(link == chosen));
        assert_eq!(counts, expected);
    }
}
