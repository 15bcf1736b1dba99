//! Throttles, and credit that is withheld.

use broker::{Command, ConnectionId, FaultEffect, FaultMatch, FaultOperation, Output};
use store::NamespaceId;

use super::{World, active, clear, replace, rule, sending, under};
use crate::world::request;

fn throttled(rate: u32) -> World {
    under(FaultMatch::default(), FaultEffect::ThrottlePerSecond(rate))
}

/// How many sends are answered now.
fn answered(said: &[Output]) -> usize {
    let sent = |output: &&Output| matches!(output, Output::Sent { result: Ok(_), .. });
    said.iter().filter(sent).count()
}

#[test]
fn a_throttle_lets_operations_through_at_its_rate() {
    let mut world = throttled(4);
    let said = world.turn_with((0..5).map(|_| sending(None)).collect());
    assert_eq!(answered(&said), 1, "{said:?}");
    for count in 2..=5 {
        world.mono += 249;
        assert_eq!(world.turn(Command::Tick), vec![]);
        world.mono += 1;
        assert_eq!(answered(&world.turn(Command::Tick)), 1);
        assert_eq!(active(&world), count);
    }
    // The time in which there were none is not made up for.
    world.mono += 10_000;
    let said = world.turn_with((0..2).map(|_| sending(None)).collect());
    assert_eq!(answered(&said), 1);
    world.audit();
}

#[test]
fn a_throttle_goes_by_the_clock_of_its_namespace() {
    let mut world = throttled(1);
    let said = world.turn_with((0..3).map(|_| sending(None)).collect());
    assert_eq!(answered(&said), 1);
    let (namespace, ms) = (NamespaceId(0), 1_000);
    for _ in 0..2 {
        let said = world.turn(Command::AdvanceClock { namespace, ms });
        assert_eq!(answered(&said), 1, "{said:?}");
    }
    assert_eq!(answered(&world.turn(sending(None))), 0);
    world.turn(Command::AdvanceClock { namespace, ms });
    world.turn(Command::AdvanceClock { namespace, ms });
    assert_eq!(answered(&world.turn(sending(None))), 1);
}

#[test]
fn a_throttle_above_a_thousand_a_second_counts_parts_of_milliseconds() {
    let mut world = throttled(4_000);
    let mut said = world.turn_with((0..9).map(|_| sending(None)).collect());
    assert_eq!(answered(&said), 1);
    for _ in 0..2 {
        world.mono += 1;
        said = world.turn(Command::Tick);
        assert_eq!(answered(&said), 4, "{said:?}");
    }
}

fn withheld(said: &[Output]) -> Vec<(ConnectionId, bool)> {
    let found = said.iter().filter_map(|output| match output {
        Output::CreditWithheld {
            connection,
            withheld,
        } => Some((*connection, *withheld)),
        _ => None,
    });
    found.collect()
}

#[test]
fn credit_comes_back_once_the_last_of_its_times_is_over() {
    let mut world = under(FaultMatch::default(), FaultEffect::WithholdCreditMs(500));
    let connection = request(2).connection;
    for _ in 0..2 {
        let said = world.turn(sending(None));
        assert_eq!(
            (answered(&said), withheld(&said)),
            (1, vec![(connection, true)])
        );
        world.mono += 300;
    }
    assert_eq!(world.turn(Command::Tick), vec![]);
    world.mono += 200;
    let said = world.turn(Command::Tick);
    assert_eq!(withheld(&said), [(connection, false)]);
}

#[test]
fn credit_comes_back_with_the_end_of_its_rule() {
    let mut world = under(FaultMatch::default(), FaultEffect::WithholdCreditMs(500));
    world.turn(sending(None));
    let said = clear(&mut world);
    assert_eq!(withheld(&said), [(request(2).connection, false)]);
}

#[test]
fn rates_and_times_out_of_range_are_refused_with_the_range() {
    let mut world = super::world();
    let attaches = FaultMatch {
        operations: vec![FaultOperation::Attach],
        ..FaultMatch::default()
    };
    let all = FaultMatch::default;
    for (matches, effect, text) in [
        (
            all(),
            FaultEffect::ThrottlePerSecond(0),
            "throttle-per-second: 0 is below the minimum of 1",
        ),
        (
            all(),
            FaultEffect::ThrottlePerSecond(1_000_001),
            "1000001 is above the maximum of 1000000",
        ),
        (
            all(),
            FaultEffect::WithholdCreditMs(0),
            "withhold-credit-ms: 0 is below the minimum of 1",
        ),
        (
            all(),
            FaultEffect::DelayAnswerMs(0),
            "delay-answer-ms: 0 is below the minimum of 1",
        ),
        (
            all(),
            FaultEffect::DelayAnswerMs(3_600_001),
            "delay-answer-ms: 3600001 is above the maximum of 3600000",
        ),
        (
            attaches,
            FaultEffect::ThrottlePerSecond(1),
            "operations: attach is not possible; the effect is possible for all but attach, \
             attach-receiver, accept-session, declare, commit, rollback",
        ),
    ] {
        let refused = replace(&mut world, "default", vec![rule(matches, effect)]);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
