//! Credit and drain, races included.

use amqp::performative::SenderSettleMode;
use broker::{Command, Outcome, Output};
use dialect::Dialect;
use endpoint::{Event, LinkId};

use crate::world::{World, message};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const SETTLED: SenderSettleMode = SenderSettleMode::Settled;

fn fill(world: &mut World, count: usize) {
    let (_, sender) = world.sender("orders");
    for number in 0..count {
        world.send(sender, &message(&number.to_string()));
    }
}

fn drained(world: &mut World, link: LinkId) -> usize {
    let before = world.events.len();
    world
        .events
        .retain(|event| !matches!(event, Event::Drained { link: of } if *of == link));
    before - world.events.len()
}

fn given_back(world: &World) -> usize {
    let is_given_back = |command: &&Command| {
        matches!(
            command,
            Command::Settle {
                outcome: Outcome::Undelivered,
                request: None,
                ..
            }
        )
    };
    world.commands.iter().filter(is_given_back).count()
}

#[test]
fn rule_17_a_drain_is_answered_after_what_there_is() {
    let mut world = World::new();
    fill(&mut world, 2);
    let receiver = world.receiver("orders", UNSETTLED, 0);
    world.credit(receiver, 10, true);
    assert_eq!(world.received(receiver).len(), 2);
    assert_eq!(drained(&mut world, receiver), 1);
    assert_eq!(world.client.credit_left(receiver), 0);
    fill(&mut world, 1);
    assert!(
        world.received(receiver).is_empty(),
        "a drain leaves no credit"
    );
    world.credit(receiver, 1, false);
    assert_eq!(world.received(receiver).len(), 1);
}

#[test]
fn rule_17_a_drain_without_messages_is_answered() {
    let mut world = World::new();
    for address in ["orders", "orders/$DeadLetterQueue"] {
        for mode in [UNSETTLED, SETTLED] {
            let receiver = world.receiver(address, mode, 0);
            world.credit(receiver, 3, true);
            assert_eq!(drained(&mut world, receiver), 1);
            world.credit(receiver, 3, true);
            assert_eq!(drained(&mut world, receiver), 1);
        }
    }
    let pair = world.pair("orders/$management");
    world.credit(pair.response, 3, true);
    assert_eq!(drained(&mut world, pair.response), 1);
}

#[test]
fn rule_18_there_are_never_more_deliveries_than_credit() {
    let mut world = World::new();
    fill(&mut world, 20);
    let receiver = world.receiver("orders", UNSETTLED, 3);
    assert_eq!(world.received(receiver).len(), 3);
    world.credit(receiver, 0, false);
    world.credit(receiver, 4, false);
    assert_eq!(world.received(receiver).len(), 4);
}

#[test]
fn deliveries_that_meet_no_credit_are_given_back_and_come_when_there_is_some() {
    let mut world = World::new();
    fill(&mut world, 5);
    let receiver = world.receiver("orders", UNSETTLED, 0);
    // The broker has delivered against credit that the client takes back meanwhile.
    world.broker_stalls = true;
    world.credit(receiver, 5, false);
    world.broker_stalls = false;
    world.client_stalls = true;
    world.client.set_credit(receiver, 0, false);
    let flow = world.client.output(endpoint::Mono(0)).split();
    let outputs = world.deliveries_for_credit();
    world
        .server
        .handle_input(world.clock_reading(), &mut { flow });
    for output in outputs {
        world.server.handle_output(world.clock_reading(), output);
    }
    world.client_stalls = false;
    world.pump();
    assert!(world.received(receiver).is_empty());
    assert_eq!(given_back(&world), 5);
    world.credit(receiver, 5, false);
    let again = world.received(receiver);
    assert_eq!(again.len(), 5);
    assert!(
        again
            .iter()
            .all(|message| message.header().delivery_count == Some(0))
    );
}

#[test]
fn received_and_deleted_messages_wait_for_credit_rather_than_get_lost() {
    let mut world = World::new();
    fill(&mut world, 5);
    let receiver = world.receiver("orders", SETTLED, 0);
    world.broker_stalls = true;
    world.credit(receiver, 5, false);
    world.broker_stalls = false;
    world.client.set_credit(receiver, 0, false);
    let flow = world.client.output(endpoint::Mono(0)).split();
    let outputs = world.deliveries_for_credit();
    world
        .server
        .handle_input(world.clock_reading(), &mut { flow });
    for output in outputs {
        world.server.handle_output(world.clock_reading(), output);
    }
    world.pump();
    assert!(world.received(receiver).is_empty());
    world.credit(receiver, 2, false);
    assert_eq!(world.received(receiver).len(), 2);
    world.credit(receiver, 10, false);
    assert_eq!(world.received(receiver).len(), 3);
    fill(&mut world, 8);
    assert_eq!(
        world.received(receiver).len(),
        7,
        "ten were granted, three used"
    );
}

#[test]
fn a_drain_that_is_taken_back_leaves_the_credit_that_came_instead() {
    let mut world = World::new();
    let receiver = world.receiver("orders", UNSETTLED, 0);
    world.broker_stalls = true;
    world.credit(receiver, 10, true);
    world.credit(receiver, 4, false);
    world.broker_stalls = false;
    world.pump();
    fill(&mut world, 6);
    assert_eq!(world.received(receiver).len(), 4);
}

#[test]
fn a_receiver_that_is_gone_gives_back_what_was_on_its_way() {
    let mut world = World::new();
    fill(&mut world, 2);
    let receiver = world.receiver("orders", UNSETTLED, 0);
    world.broker_stalls = true;
    world.credit(receiver, 2, false);
    let outputs = world.deliveries_for_credit();
    world.client.detach(receiver, true, None);
    world.pump();
    for output in outputs {
        world.server.handle_output(world.clock_reading(), output);
    }
    world.broker_stalls = false;
    world.pump();
    assert_eq!(given_back(&world), 2);
    let other = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(world.received(other).len(), 2, "available at once");
}

#[test]
fn a_late_drain_answer_of_the_broker_for_a_link_that_is_gone_means_nothing() {
    let mut world = World::new();
    let receiver = world.receiver("orders", UNSETTLED, 1);
    let id = world.commands.iter().find_map(|command| match command {
        Command::Attach { receiver, .. } => Some(*receiver),
        _ => None,
    });
    world.client.detach(receiver, true, None);
    world.pump();
    world.server.handle_output(
        world.clock_reading(),
        Output::Drained {
            receiver: id.expect("attached"),
        },
    );
    world.pump();
}

#[test]
fn the_broker_hears_that_there_is_no_credit_before_it_gets_a_delivery_back() {
    let mut world = World::new();
    fill(&mut world, 1);
    world.receiver("orders", UNSETTLED, 1);
    let receiver = world.commands.iter().find_map(|command| match command {
        Command::Attach { receiver, .. } => Some(*receiver),
        _ => None,
    });
    let message = broker::Browsed {
        entity: store::EntityId(0),
        number: store::SequenceNumber(9),
        enqueued_number: store::SequenceNumber(9),
        was_forwarded: false,
        was_scheduled: false,
        lock: Some(broker::LockTime::Own(1_000)),
        enqueued: broker::Wall(0),
        ttl_ms: None,
        expires: None,
        delivery_count: 0,
        acquired_count: 0,
        state: broker::MessageState::Active,
        payload: message("beyond the credit"),
        additions: None,
    };
    let token = broker::LockToken(5);
    let delivery = Box::new(broker::Delivery {
        message,
        token,
        rests_on: store::CommitId::default(),
    });
    let receiver = receiver.expect("attached");
    world.server.handle_output(
        world.clock_reading(),
        Output::Deliver { receiver, delivery },
    );
    let commands: Vec<String> = world
        .server
        .commands()
        .iter()
        .map(|command| format!("{command:?}"))
        .collect();
    assert!(
        commands[0].starts_with("Credit") && commands[0].contains("limit: 1, drain: false"),
        "{commands:?}"
    );
    assert!(
        commands[1].starts_with("Settle") && commands[1].contains("Undelivered"),
        "{commands:?}"
    );
    assert!(commands[2].starts_with("Written"), "{commands:?}");
}

#[test]
fn several_receivers_that_are_gone_give_back_what_was_on_its_way() {
    let mut world = World::new();
    fill(&mut world, 4);
    let receivers = [0; 3].map(|_| world.receiver("orders", UNSETTLED, 0));
    world.broker_stalls = true;
    for receiver in receivers {
        world.credit(receiver, 1, false);
    }
    let outputs = world.deliveries_for_credit();
    for receiver in receivers {
        world.client.detach(receiver, true, None);
    }
    world.pump();
    for output in outputs {
        world.server.handle_output(world.clock_reading(), output);
    }
    world.broker_stalls = false;
    world.pump();
    assert_eq!(given_back(&world), 3);
}
