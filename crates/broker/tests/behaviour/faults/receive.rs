//! Rules for the handing out of messages.

use broker::{
    Command, DisconnectTime, FaultEffect, FaultMatch, FaultOperation, InjectedEnd, InjectedError,
    Outcome, Output, QueueSettings, Requester,
};
use store::NamespaceId;

use super::{World, active, clear, counts, lock, send, sending, settle, under};
use crate::world::{attach, receiver};

/// The index of a receiver that takes messages and deletes them.
const DELETING: u64 = 4;

fn receives() -> FaultMatch {
    FaultMatch {
        operations: vec![FaultOperation::Receive],
        ..FaultMatch::default()
    }
}

fn once() -> FaultMatch {
    FaultMatch {
        times: Some(1),
        ..receives()
    }
}

fn credit(index: u64, limit: u32, drain: bool) -> Command {
    Command::Credit {
        receiver: receiver(index),
        limit,
        drain,
    }
}

/// One turn, and those with all that it asks of the store.
fn turn(world: &mut World, commands: Vec<Command>) -> Vec<Output> {
    let mut said = world.turn_with(commands);
    while let Some(answer) = world.answer(0) {
        said.append(&mut world.turn(answer));
    }
    said
}

/// Some time passes.
fn wait(world: &mut World, ms: u64) -> Vec<Output> {
    world.mono += ms;
    turn(world, vec![Command::Tick])
}

/// A receiver comes, and may have that many messages.
fn receive(world: &mut World, index: u64, limit: u32) -> Vec<Output> {
    turn(world, vec![attach(index), credit(index, limit, false)])
}

/// To which receivers messages are delivered, with their numbers and failed deliveries.
fn delivered(said: &[Output]) -> Vec<(u64, u64, u32)> {
    let found = said.iter().filter_map(|output| match output {
        Output::Deliver { receiver, delivery } => {
            let message = &delivery.message;
            let to = receiver.connection.0;
            Some((to, message.number.0, message.delivery_count))
        }
        _ => None,
    });
    found.collect()
}

#[test]
fn a_message_that_is_not_handed_out_stays_for_the_next_receiver() {
    let error = InjectedError::ServerBusy;
    let requester = Requester::Receiver(receiver(1));
    let connection = requester.connection();
    let ended = |end| Output::Ended { requester, end };
    for (effect, expected) in [
        (FaultEffect::Detach(error), ended(InjectedEnd::Link(error))),
        (FaultEffect::End(error), ended(InjectedEnd::Session(error))),
        (
            FaultEffect::Close(error),
            ended(InjectedEnd::Connection(error)),
        ),
        (FaultEffect::ExpireToken, ended(InjectedEnd::Token)),
        (
            FaultEffect::Disconnect(DisconnectTime::Before),
            Output::Dropped { connection },
        ),
    ] {
        let mut world = under(once(), effect);
        for _ in 0..3 {
            send(&mut world);
        }
        assert_eq!(receive(&mut world, 1, 2), [expected], "{effect:?}");
        let to_next = delivered(&receive(&mut world, 3, 3));
        assert_eq!(to_next, [(3, 1, 0), (3, 2, 0), (3, 3, 0)]);
        assert_eq!(counts(&mut world), (4, 1));
        world.audit();
    }
}

#[test]
fn a_dead_letter_that_is_not_handed_out_stays_for_the_next_receiver() {
    let second = FaultMatch { skip: 1, ..once() };
    let mut world = under(second, FaultEffect::Detach(InjectedError::ServerBusy));
    let token = lock(&mut world);
    let changes = Vec::new();
    settle(&mut world, token, Outcome::DeadLetter { changes }).expect("it is locked");
    // Receivers with these indexes take dead letters.
    assert_eq!(delivered(&receive(&mut world, 2, 1)), []);
    assert_eq!(delivered(&receive(&mut world, 5, 1)), [(5, 1, 0)]);
    world.audit();
}

#[test]
fn a_message_goes_to_a_receiver_that_waits_instead() {
    let mut world = under(once(), FaultEffect::Detach(InjectedError::Timeout));
    receive(&mut world, 1, 1);
    receive(&mut world, 3, 1);
    let said = turn(&mut world, vec![sending(None)]);
    assert_eq!(delivered(&said), [(3, 1, 0)]);
    let ended = |output: &&Output| matches!(output, Output::Ended { .. });
    assert_eq!(said.iter().filter(ended).count(), 1);
}

#[test]
fn a_message_whose_delivery_is_lost_is_locked() {
    let after = FaultEffect::Disconnect(DisconnectTime::After);
    let mut world = under(once(), after);
    send(&mut world);
    send(&mut world);
    let connection = receiver(1).connection;
    let dropped = Output::Dropped { connection };
    assert_eq!(receive(&mut world, 1, 2), [dropped]);
    world.turn(Command::Disconnect { connection });
    assert_eq!(receive(&mut world, 3, 2), []);
    let said = wait(&mut world, QueueSettings::default().lock_duration);
    assert_eq!(delivered(&said), [(3, 1, 1), (3, 2, 1)]);
    world.audit();
}

#[test]
fn a_message_that_was_received_and_deleted_is_gone() {
    for time in [DisconnectTime::Before, DisconnectTime::After] {
        let mut world = under(once(), FaultEffect::Disconnect(time));
        send(&mut world);
        let connection = receiver(DELETING).connection;
        let said = receive(&mut world, DELETING, 1);
        assert_eq!(said, [Output::Dropped { connection }]);
        assert_eq!(active(&world), 0);
        world.audit();
    }
}

#[test]
fn deliveries_are_late_in_their_order_and_before_the_end_of_a_drain() {
    let late = FaultEffect::DelayMs(500);
    let mut world = under(once(), late);
    send(&mut world);
    send(&mut world);
    let said = turn(&mut world, vec![attach(1), credit(1, 3, true)]);
    assert_eq!(said, []);
    assert_eq!(wait(&mut world, 499), []);
    let said = wait(&mut world, 1);
    assert_eq!(delivered(&said), [(1, 1, 0), (1, 2, 0)]);
    assert!(
        matches!(said.last(), Some(Output::Drained { .. })),
        "{said:?}"
    );
    // It is over.
    turn(&mut world, vec![credit(1, 4, false)]);
    let said = turn(&mut world, vec![sending(None)]);
    assert_eq!(delivered(&said), [(1, 3, 0)]);
    world.audit();
}

#[test]
fn a_late_delivery_has_the_rest_of_its_lock() {
    let mut world = under(receives(), FaultEffect::DelayMs(500));
    send(&mut world);
    assert_eq!(receive(&mut world, 1, 1), []);
    let said = wait(&mut world, 500);
    let token = said.iter().find_map(|output| match output {
        Output::Deliver { delivery, .. } => Some(delivery.token),
        _ => None,
    });
    let settled = settle(&mut world, token.unwrap(), Outcome::Complete);
    assert_eq!((settled, active(&world)), (Ok(()), 0));
}

#[test]
fn a_delay_of_deliveries_ends_with_its_rule_and_goes_by_its_clock() {
    let ends: [fn(&mut World) -> Vec<Output>; 2] = [clear, |world| {
        let (namespace, ms) = (NamespaceId(0), 500);
        world.turn(Command::AdvanceClock { namespace, ms })
    }];
    for end in ends {
        let mut world = under(receives(), FaultEffect::DelayMs(500));
        send(&mut world);
        assert_eq!(receive(&mut world, 1, 1), []);
        assert_eq!(delivered(&end(&mut world)), [(1, 1, 0)]);
    }
}

#[test]
fn a_throttle_hands_out_messages_at_its_rate() {
    let mut world = under(receives(), FaultEffect::ThrottlePerSecond(4));
    for _ in 0..3 {
        send(&mut world);
    }
    assert_eq!(delivered(&receive(&mut world, 1, 3)).len(), 1);
    for _ in 0..2 {
        assert_eq!(wait(&mut world, 249), []);
        assert_eq!(delivered(&wait(&mut world, 1)).len(), 1);
    }
}

#[test]
fn the_delivery_of_one_message_fails() {
    for (matches, fails) in [
        (
            FaultMatch {
                message_id: Some("m".to_owned()),
                ..receives()
            },
            true,
        ),
        (
            FaultMatch {
                message_id: Some("other".to_owned()),
                ..receives()
            },
            false,
        ),
        (
            FaultMatch {
                filter: Some("sys.MessageId LIKE 'm%'".to_owned()),
                ..receives()
            },
            true,
        ),
        (
            FaultMatch {
                session: Some("s".to_owned()),
                ..receives()
            },
            false,
        ),
    ] {
        let effect = FaultEffect::Detach(InjectedError::ServerBusy);
        let mut world = under(matches.clone(), effect);
        send(&mut world);
        let said = receive(&mut world, 1, 1);
        assert_eq!(delivered(&said).is_empty(), fails, "{matches:?}");
    }
}
