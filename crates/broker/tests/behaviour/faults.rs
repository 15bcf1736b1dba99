//! Faults on purpose: operations that fail as a rule says, and nothing else.

mod administration;
mod answers;
mod checks;
mod clients;
mod counts;
mod http;
mod messages;
mod rates;
mod receive;
mod transactions;

use broker::{
    Answer, BrokerSettings, Command, DisconnectTime, EntityError, FaultDescription, FaultEffect,
    FaultMatch, FaultOperation, FaultRule, Incoming, InjectedEnd, InjectedError, LockToken,
    NamespaceAnswer, NamespaceDefinition, NamespaceOrder, Order, Outcome, Output, QueueSettings,
    RequestError, Requester, SendError, SettleError, Subqueue, SubqueueId,
};
use bytes::Bytes;
use store::NamespaceId;

use crate::world::{QUEUE, World, attach, receiver, request};

const BUSY: FaultEffect = FaultEffect::Refuse(InjectedError::ServerBusy);
const PLACE: SubqueueId = SubqueueId {
    entity: QUEUE,
    subqueue: Subqueue::Main,
};

fn world() -> World {
    World::new(BrokerSettings::default(), QueueSettings::default())
}

fn about(world: &mut World, order: NamespaceOrder) -> Result<NamespaceAnswer, EntityError> {
    let said = world.turn(Command::Administer {
        request: request(1),
        namespace: NamespaceId(0),
        order: Box::new(Order::Namespaces(order)),
    });
    let answer = said.into_iter().find_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    });
    match answer.expect("an order is answered")? {
        Answer::Namespaces(answer) => Ok(answer),
        other => panic!("{other:?}"),
    }
}

fn replace(
    world: &mut World,
    name: &str,
    rules: Vec<FaultRule>,
) -> Result<Vec<FaultDescription>, EntityError> {
    let name = name.to_owned();
    match about(world, NamespaceOrder::ReplaceFaults { name, rules })? {
        NamespaceAnswer::Faults(faults) => Ok(faults),
        other => panic!("{other:?}"),
    }
}

/// The rules go. Returns all that is said then.
fn clear(world: &mut World) -> Vec<Output> {
    let clear = NamespaceOrder::ReplaceFaults {
        name: "default".to_owned(),
        rules: Vec::new(),
    };
    world.turn(Command::Administer {
        request: request(1),
        namespace: NamespaceId(0),
        order: Box::new(Order::Namespaces(clear)),
    })
}

fn rule(matches: FaultMatch, effect: FaultEffect) -> FaultRule {
    FaultRule {
        name: "a rule".to_owned(),
        matches,
        effect,
    }
}

/// A world in which one rule holds.
fn under(matches: FaultMatch, effect: FaultEffect) -> World {
    let mut world = world();
    replace(&mut world, "default", vec![rule(matches, effect)]).unwrap();
    world
}

/// What one rule has matched and injected.
fn counts(world: &mut World) -> (u64, u64) {
    match about(world, NamespaceOrder::ListFaults("default".to_owned())) {
        Ok(NamespaceAnswer::Faults(faults)) => (faults[0].matched, faults[0].injected),
        other => panic!("{other:?}"),
    }
}

fn sending(session: Option<&'static str>) -> Command {
    let message = Incoming {
        // Properties with this message id, and a body.
        payload: Bytes::from_static(b"\x00\x53\x73\xc0\x04\x01\xa1\x01m\x00\x53\x75\xa0\x01x"),
        session_id: session.map(|id| Bytes::from_static(id.as_bytes())),
        // As AMQP writes it: the string `m`.
        message_id: Some(Bytes::from_static(b"\xa1\x01m")),
        ..Incoming::default()
    };
    Command::Send {
        request: request(2),
        entity: QUEUE,
        messages: vec![message],
    }
}

/// Whether a send was answered, and how.
fn send(world: &mut World) -> Option<Result<(), SendError>> {
    let said = world.turn(sending(None));
    said.into_iter().find_map(|output| match output {
        Output::Sent { result, .. } => Some(result.map(drop)),
        _ => None,
    })
}

fn active(world: &World) -> u64 {
    world.shard.broker.queue(QUEUE).unwrap().active
}

/// Sends a message, and takes it with a lock.
fn lock(world: &mut World) -> LockToken {
    assert_eq!(send(world), Some(Ok(())));
    let mut said = world.turn_with(vec![
        attach(1),
        Command::Credit {
            receiver: receiver(1),
            limit: 1,
            drain: false,
        },
    ]);
    while let Some(answer) = world.answer(0) {
        said.append(&mut world.turn(answer));
    }
    let token = said.into_iter().find_map(|output| match output {
        Output::Deliver { delivery, .. } => Some(delivery.token),
        _ => None,
    });
    token.expect("it is delivered")
}

fn settle(world: &mut World, token: LockToken, outcome: Outcome) -> Result<(), SettleError> {
    let said = world.turn(Command::Settle {
        request: Some(request(3)),
        subqueue: PLACE,
        session: None,
        token,
        outcome,
    });
    let result = said.into_iter().find_map(|output| match output {
        Output::Settled { result, .. } => Some(result),
        _ => None,
    });
    result.expect("a settlement is answered")
}

#[test]
fn a_refused_operation_has_changed_nothing() {
    let mut world = under(FaultMatch::default(), BUSY);
    let refused = SendError::Injected(InjectedError::ServerBusy);
    assert_eq!(send(&mut world), Some(Err(refused)));
    assert_eq!(active(&world), 0);
    let said = world.turn(Command::Renew {
        request: request(4),
        subqueue: PLACE,
        tokens: vec![LockToken(1)],
    });
    let error = RequestError::Injected(InjectedError::ServerBusy);
    assert!(
        matches!(&said[..], [Output::Renewed { result: Err(found), .. }] if *found == error),
        "{said:?}"
    );
    assert_eq!(counts(&mut world), (2, 2));
    replace(&mut world, "default", Vec::new()).unwrap();
    assert_eq!(send(&mut world), Some(Ok(())));
}

#[test]
fn a_rule_counts_what_fits() {
    let matches = FaultMatch {
        operations: vec![FaultOperation::Send],
        skip: 1,
        every: 2,
        times: Some(2),
        ..FaultMatch::default()
    };
    let mut world = under(matches, BUSY);
    let failed: Vec<_> = (0..8).map(|_| send(&mut world).unwrap().is_err()).collect();
    assert_eq!(
        failed,
        [false, true, false, true, false, false, false, false]
    );
    assert_eq!(counts(&mut world), (8, 2));
}

#[test]
fn chance_is_the_same_each_time() {
    let failed = |seed| {
        let matches = FaultMatch {
            probability: 0.5,
            seed,
            ..FaultMatch::default()
        };
        let mut world = under(matches, BUSY);
        let failed = (0..64).map(|_| send(&mut world).unwrap().is_err());
        failed.collect::<Vec<_>>()
    };
    let first = failed(1);
    assert_eq!(failed(1), first);
    assert_ne!(failed(2), first);
    let count = first.iter().filter(|failed| **failed).count();
    assert!((16..=48).contains(&count), "{count} of 64");
}

#[test]
fn what_does_not_fit_goes_on_as_ever() {
    let other = || Some("other".to_owned());
    let now = world().now().wall.0;
    for matches in [
        FaultMatch {
            entity: other(),
            ..FaultMatch::default()
        },
        FaultMatch {
            operations: vec![FaultOperation::Complete],
            ..FaultMatch::default()
        },
        FaultMatch {
            session: other(),
            ..FaultMatch::default()
        },
        FaultMatch {
            message_id: other(),
            ..FaultMatch::default()
        },
        FaultMatch {
            from: Some(now + 1),
            ..FaultMatch::default()
        },
        FaultMatch {
            until: Some(now),
            ..FaultMatch::default()
        },
        FaultMatch {
            probability: 0.0,
            ..FaultMatch::default()
        },
    ] {
        let mut world = under(matches.clone(), BUSY);
        assert_eq!(send(&mut world), Some(Ok(())), "{matches:?}");
    }
    let matches = FaultMatch {
        entity: Some("Q".to_owned()),
        operations: vec![FaultOperation::Send],
        session: Some("s".to_owned()),
        message_id: Some("m".to_owned()),
        from: Some(now),
        until: Some(now + 1),
        ..FaultMatch::default()
    };
    let mut world = under(matches, BUSY);
    let said = world.turn(sending(Some("s")));
    assert!(
        matches!(&said[..], [Output::Sent { result: Err(_), .. }]),
        "{said:?}"
    );
}

#[test]
fn a_condition_fits_messages_by_what_they_say() {
    let filter = |text: &str| FaultMatch {
        filter: Some(text.to_owned()),
        ..FaultMatch::default()
    };
    for (text, fits) in [
        ("sys.MessageId = 'm'", true),
        ("sys.MessageId LIKE 'n%'", false),
        ("color = 'red'", false),
    ] {
        let mut world = under(filter(text), BUSY);
        assert_eq!(send(&mut world).unwrap().is_err(), fits, "{text}");
    }
    let mut world = world();
    for wrong in ["color =", &"x".repeat(2_000)] {
        let refused = replace(&mut world, "default", vec![rule(filter(wrong), BUSY)]);
        let text = refused.unwrap_err().to_string();
        assert!(text.starts_with("fault 'a rule': filter"), "{text}");
    }
}

#[test]
fn a_dropped_connection_is_told_nothing() {
    for (time, stored) in [(DisconnectTime::Before, 0), (DisconnectTime::After, 1)] {
        let mut world = under(FaultMatch::default(), FaultEffect::Disconnect(time));
        let said = world.turn(sending(None));
        assert!(
            matches!(&said[..], [Output::Dropped { connection }] if *connection == request(2).connection),
            "{said:?}"
        );
        assert_eq!(active(&world), stored, "{time:?}");
        world.audit();
    }
}

#[test]
fn an_end_is_the_only_answer_of_an_operation_that_is_not_carried_out() {
    let error = InjectedError::Timeout;
    for (effect, expected) in [
        (FaultEffect::Detach(error), InjectedEnd::Link(error)),
        (FaultEffect::End(error), InjectedEnd::Session(error)),
        (FaultEffect::Close(error), InjectedEnd::Connection(error)),
        (FaultEffect::ExpireToken, InjectedEnd::Token),
    ] {
        let mut world = under(FaultMatch::default(), effect);
        let requester = Requester::Request(request(2));
        let end = expected;
        assert_eq!(
            world.turn(sending(None)),
            [Output::Ended { requester, end }],
            "{effect:?}"
        );
        assert_eq!(active(&world), 0);
        world.audit();
    }
}

#[test]
fn a_delayed_operation_is_carried_out_at_its_time() {
    let mut world = under(FaultMatch::default(), FaultEffect::DelayMs(500));
    assert_eq!(send(&mut world), None);
    let due = world.mono + 500;
    assert_eq!(world.shard.deadline().unwrap().mono.unwrap().0, due);
    world.mono = due - 1;
    assert_eq!(world.turn(Command::Tick), vec![]);
    world.mono = due;
    let said = world.turn(Command::Tick);
    assert!(
        matches!(&said[..], [Output::Sent { result: Ok(_), .. }]),
        "{said:?}"
    );
    assert_eq!(active(&world), 1);
}

#[test]
fn a_delayed_operation_goes_with_its_connection() {
    let mut world = under(FaultMatch::default(), FaultEffect::DelayMs(500));
    assert_eq!(send(&mut world), None);
    let connection = request(2).connection;
    world.turn(Command::Disconnect { connection });
    world.mono += 500;
    assert_eq!(world.turn(Command::Tick), vec![]);
    assert_eq!(active(&world), 0);
}

#[test]
fn a_delay_ends_with_its_rule() {
    let mut world = under(FaultMatch::default(), FaultEffect::DelayMs(500));
    assert_eq!(send(&mut world), None);
    replace(&mut world, "default", Vec::new()).unwrap();
    let said = world.turn(Command::Tick);
    assert!(said.is_empty() && active(&world) == 1, "{said:?}");
}

#[test]
fn a_lost_lock_is_that_of_a_failed_delivery() {
    let matches = FaultMatch {
        operations: vec![FaultOperation::Complete],
        ..FaultMatch::default()
    };
    let mut world = under(matches, FaultEffect::LoseLock);
    let token = lock(&mut world);
    let settled = settle(&mut world, token, Outcome::Complete);
    assert_eq!(settled, Err(SettleError::LockLost));
    assert_eq!(active(&world), 1);
    world.audit();
}

#[test]
fn a_completed_message_can_come_again() {
    let mut world = under(FaultMatch::default(), FaultEffect::DeliverAgain);
    let token = lock(&mut world);
    assert_eq!(settle(&mut world, token, Outcome::Complete), Ok(()));
    assert_eq!(active(&world), 1);
    world.audit();
}

#[test]
fn rules_are_those_of_one_namespace_until_it_is_reset() {
    let mut world = world();
    let definition = Box::new(NamespaceDefinition {
        name: "other".to_owned(),
        ..NamespaceDefinition::default()
    });
    let like = None;
    about(&mut world, NamespaceOrder::Create { definition, like }).unwrap();
    let rules = || vec![rule(FaultMatch::default(), BUSY)];
    replace(&mut world, "other", rules()).unwrap();
    assert_eq!(send(&mut world), Some(Ok(())));
    let list = || NamespaceOrder::ListFaults("other".to_owned());
    let count = |answer| match answer {
        Ok(NamespaceAnswer::Faults(faults)) => faults.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(count(about(&mut world, list())), 1);
    about(&mut world, NamespaceOrder::Reset("other".to_owned())).unwrap();
    assert_eq!(count(about(&mut world, list())), 0);
}

#[test]
fn a_wrong_rule_changes_nothing() {
    let mut world = under(FaultMatch::default(), BUSY);
    let every = |every| FaultMatch {
        every,
        ..FaultMatch::default()
    };
    let probability = |probability| FaultMatch {
        probability,
        ..FaultMatch::default()
    };
    let sends = FaultMatch {
        operations: vec![FaultOperation::Send],
        ..FaultMatch::default()
    };
    for wrong in [
        vec![rule(every(0), BUSY)],
        vec![rule(probability(1.5), BUSY)],
        vec![rule(probability(f64::NAN), BUSY)],
        vec![rule(sends, FaultEffect::LoseLock)],
        vec![rule(every(1), FaultEffect::DelayMs(3_600_001))],
        vec![rule(every(1), BUSY), rule(every(2), BUSY)],
        (0..=broker::MAX_FAULTS)
            .map(|number| FaultRule {
                name: number.to_string(),
                ..rule(every(1), BUSY)
            })
            .collect(),
    ] {
        assert!(replace(&mut world, "default", wrong).is_err());
    }
    assert!(replace(&mut world, "missing", Vec::new()).is_err());
    assert!(send(&mut world).unwrap().is_err());
    assert_eq!(counts(&mut world), (1, 1));
}

/// A settlement whose client wants no answer.
fn settle_unanswered(world: &mut World, token: LockToken) -> Vec<Output> {
    world.turn(Command::Settle {
        request: None,
        subqueue: PLACE,
        session: None,
        token,
        outcome: Outcome::Complete,
    })
}

#[test]
fn a_settlement_that_wants_no_answer_is_its_receivers() {
    let busy = InjectedError::ServerBusy;
    let requester = Requester::Receiver(receiver(1));
    let connection = requester.connection();
    let completions = || FaultMatch {
        operations: vec![FaultOperation::Complete],
        ..FaultMatch::default()
    };
    for (effect, expected, left) in [
        (
            FaultEffect::Detach(busy),
            Output::Ended {
                requester,
                end: InjectedEnd::Link(busy),
            },
            1,
        ),
        (
            FaultEffect::Disconnect(DisconnectTime::Before),
            Output::Dropped { connection },
            1,
        ),
        (
            FaultEffect::Disconnect(DisconnectTime::After),
            Output::Dropped { connection },
            0,
        ),
    ] {
        let mut world = world();
        let token = lock(&mut world);
        replace(&mut world, "default", vec![rule(completions(), effect)]).unwrap();
        assert_eq!(settle_unanswered(&mut world, token), [expected]);
        assert_eq!(active(&world), left, "{effect:?}");
    }
    // A rule for another client leaves it alone.
    let mut world = world();
    let token = lock(&mut world);
    let matches = FaultMatch {
        client: Some("another".to_owned()),
        ..completions()
    };
    let rules = vec![rule(matches, FaultEffect::Detach(busy))];
    replace(&mut world, "default", rules).unwrap();
    assert_eq!(settle_unanswered(&mut world, token), []);
    assert_eq!(active(&world), 0);
}
