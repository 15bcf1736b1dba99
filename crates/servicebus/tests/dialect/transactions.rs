//! Transactions on the wire: the coordinator, and operations within a transaction on other links.

use amqp::performative::SenderSettleMode;
use amqp::{
    Attach, DeliveryState, Error, Performative, Symbol, TargetTerminus, Transfer, Value, frame,
};
use broker::{Command, QueueSettings, Tier};
use bytes::{Bytes, BytesMut};
use dialect::Dialect;
use endpoint::{Event, LinkId, Outgoing, SessionId};

use crate::world::{
    BROKER_START, LISTEN_KEY, Login, Pair, Received, Request, Response, SEND_KEY, World, message,
    sender,
};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
pub(crate) const DECLARE: u64 = 0x31;
pub(crate) const DISCHARGE: u64 = 0x32;
const PEEK: &str = "com.microsoft:peek-message";
const UPDATE: &str = "com.microsoft:update-disposition";

pub(crate) fn coordinator_attach(capabilities: Vec<Symbol>) -> Attach {
    Attach {
        name: "controller".to_owned(),
        target: Some(Box::new(TargetTerminus::Coordinator(capabilities))),
        ..sender("")
    }
}

pub(crate) fn coordinator(world: &mut World) -> LinkId {
    let session = world.session();
    coordinator_in(world, session)
}

pub(crate) fn coordinator_in(world: &mut World, session: SessionId) -> LinkId {
    let link = world.attach(session, coordinator_attach(Vec::new()));
    assert!(world.client.is_attached(link));
    link
}

/// An amqp-value section.
fn control(value: &Value) -> Bytes {
    let mut payload = BytesMut::new();
    amqp::encode::descriptor(&mut payload, 0x77);
    amqp::encode::value(&mut payload, value);
    payload.freeze()
}

pub(crate) fn described(code: u64, fields: Vec<Value>) -> Bytes {
    control(&Value::described(code, Value::List(fields)))
}

pub(crate) fn declare(world: &mut World, link: LinkId) -> Bytes {
    world.send(link, &described(DECLARE, vec![Value::Null]));
    match &world.outcomes(link)[..] {
        [DeliveryState::Declared { txn_id }] => txn_id.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_header_behind_the_body_declares_a_transaction_too() {
    let mut world = World::new();
    let link = coordinator(&mut world);
    let declare = described(DECLARE, vec![Value::Null]);
    world.send(link, &[&declare[..], b"\x00\x53\x70\x45"].concat());
    let outcomes = world.outcomes(link);
    assert!(matches!(outcomes[..], [DeliveryState::Declared { .. }]));
}

pub(crate) fn discharge(world: &mut World, link: LinkId, id: &Bytes, fail: bool) -> DeliveryState {
    let fields = vec![Value::Binary(id.clone()), Value::Bool(fail)];
    world.send(link, &described(DISCHARGE, fields));
    let mut outcomes = world.outcomes(link);
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

pub(crate) fn within(id: &Bytes, outcome: Option<DeliveryState>) -> DeliveryState {
    DeliveryState::Transactional {
        txn_id: id.clone(),
        outcome: outcome.map(Box::new),
    }
}

pub(crate) fn send_within(
    world: &mut World,
    link: LinkId,
    id: &Bytes,
    payload: &[u8],
    settled: bool,
) {
    let outgoing = Outgoing {
        tag: b"t",
        settled,
        state: Some(within(id, None)),
        ..Outgoing::default()
    };
    world
        .client
        .send(link, &outgoing, &[payload])
        .expect("there is credit");
    world.pump();
}

/// What the broker said of deliveries of a receiver: states, and whether it settled them.
pub(crate) fn answers(world: &mut World, link: LinkId) -> Vec<(DeliveryState, bool)> {
    let mut answers = Vec::new();
    world.events.retain(|event| match event {
        Event::Updated {
            link: of,
            settled,
            state,
            ..
        } if *of == link => {
            answers.push((state.clone().expect("a state"), *settled));
            false
        }
        _ => true,
    });
    answers
}

/// The bodies of all messages of a queue that can be seen.
pub(crate) fn seen(world: &mut World, queue: &str) -> usize {
    let pair = world.pair(&format!("{queue}/$management"));
    let body = vec![
        ("from-sequence-number", Value::Long(1)),
        ("message-count", Value::Int(100)),
    ];
    let answer = call(world, &pair, PEEK, body);
    if answer.code() == 204 {
        return 0;
    }
    match answer.entry("messages") {
        Value::List(messages) => messages.len(),
        other => panic!("{other:?}"),
    }
}

fn call(world: &mut World, pair: &Pair, operation: &str, body: Vec<(&str, Value)>) -> Response {
    let request = Request::operation(operation, body);
    world.call(pair, &request).expect("an answer")
}

/// A world with a coordinator, and a message of `orders` that is locked.
pub(crate) fn locked() -> (World, LinkId, LinkId, Received) {
    let mut world = World::new();
    world.enqueue("orders", &message("hello"));
    let coordinator = coordinator(&mut world);
    let receiver = world.receiver("orders", UNSETTLED, 1);
    let received = world.received(receiver).pop().expect("a message");
    (world, coordinator, receiver, received)
}

/// In steps, so that the connection lives.
pub(crate) fn two_minutes(world: &mut World) {
    for _ in 0..12 {
        world.advance(10_000);
    }
}

pub(crate) fn condition(state: &DeliveryState) -> &str {
    match state {
        DeliveryState::Rejected(Some(Error { condition, .. })) => condition.as_str(),
        DeliveryState::Transactional {
            outcome: Some(outcome),
            ..
        } => condition_inside(outcome),
        other => panic!("{other:?}"),
    }
}

fn condition_inside(outcome: &DeliveryState) -> &str {
    match outcome {
        DeliveryState::Rejected(Some(Error { condition, .. })) => condition.as_str(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_namespace_of_the_basic_tier_has_no_transactions() {
    let login = Login::Mechanism("ANONYMOUS");
    let mut world = World::with(login, |settings| settings.tier = Tier::Basic);
    let error = world.refusal(coordinator_attach(Vec::new()));
    assert_eq!(error.condition.as_str(), "amqp:not-allowed");
    let text = error.description.expect("a text");
    assert!(text.contains("Basic tier"), "{text}");
}

#[test]
fn a_coordinator_is_let_in_and_echoed() {
    let mut world = World::new();
    let session = world.session();
    for capabilities in [
        vec![],
        vec![
            Symbol::new("amqp:local-transactions"),
            Symbol::new("amqp:multi-txns-per-ssn"),
        ],
    ] {
        let attach = coordinator_attach(capabilities.clone());
        let link = world.attach(session, attach.clone());
        let reply = world.reply(link);
        assert_eq!(reply.target, attach.target);
        assert_eq!(reply.source, attach.source);
        let credit = world.events.iter().find_map(|event| match event {
            Event::Credit {
                link: of, limit, ..
            } if *of == link => Some(*limit),
            _ => None,
        });
        assert!(credit >= Some(100));
        world.client.detach(link, true, None);
        world.pump();
        world.events.clear();
    }
}

#[test]
fn a_coordinator_has_no_capability_that_is_not_served() {
    let mut world = World::new();
    let session = world.session();
    let wanted = [
        "amqp:distributed-transactions",
        "amqp:local-transactions",
        "amqp:promotable-transactions",
    ];
    let attach = coordinator_attach(wanted.map(Symbol::new).to_vec());
    let link = world.attach(session, attach);
    let local = vec![Symbol::new("amqp:local-transactions")];
    let target = Some(Box::new(TargetTerminus::Coordinator(local)));
    assert_eq!(world.reply(link).target, target);
}

#[test]
fn a_coordinator_needs_no_right() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let link = coordinator(&mut world);
    let id = declare(&mut world, link);
    assert_eq!(id.len(), 16);
    let state = discharge(&mut world, link, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
}

#[test]
fn a_commit_sends_and_completes_across_queues() {
    let (mut world, coordinator, receiver, received) = locked();
    let (_, sender) = world.sender("orders2");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, sender, &id, &message("x"), false);
    let accepted = within(&id, Some(DeliveryState::Accepted));
    assert_eq!(world.outcomes(sender), std::slice::from_ref(&accepted));
    world.dispose(&received, accepted.clone(), false);
    assert_eq!(answers(&mut world, receiver), [(accepted, false)]);
    assert_eq!(seen(&mut world, "orders"), 1);
    assert_eq!(seen(&mut world, "orders2"), 0);

    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
    assert_eq!(
        answers(&mut world, receiver),
        [(DeliveryState::Accepted, true)]
    );
    assert_eq!(seen(&mut world, "orders"), 0);
    assert_eq!(seen(&mut world, "orders2"), 1);
}

#[test]
fn a_settlement_that_comes_after_the_discharge_is_not_settled_by_the_commit() {
    let (mut world, coordinator, receiver, received) = locked();
    let id = declare(&mut world, coordinator);
    let fields = vec![Value::Binary(id.clone()), Value::Bool(false)];
    let outgoing = Outgoing {
        tag: b"d",
        ..Outgoing::default()
    };
    let payload = described(DISCHARGE, fields);
    world
        .client
        .send(coordinator, &outgoing, &[&payload])
        .expect("there is credit");
    // Both are on their way before the broker has answered either.
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), false);
    assert_eq!(world.outcomes(coordinator), [DeliveryState::Accepted]);
    let answers = answers(&mut world, receiver);
    let told: Vec<_> = answers.iter().map(|(state, _)| condition(state)).collect();
    assert_eq!(told, ["amqp:transaction:unknown-id"]);
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn after_a_roll_back_the_same_delivery_can_be_settled_again() {
    let (mut world, coordinator, receiver, received) = locked();
    let (_, sender) = world.sender("orders2");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, sender, &id, &message("x"), false);
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), false);
    answers(&mut world, receiver);
    let state = discharge(&mut world, coordinator, &id, true);
    assert_eq!(state, DeliveryState::Accepted);
    assert_eq!(answers(&mut world, receiver), []);
    assert_eq!(seen(&mut world, "orders2"), 0);
    assert_eq!(seen(&mut world, "orders"), 1);

    world.dispose(&received, DeliveryState::Accepted, false);
    assert_eq!(
        answers(&mut world, receiver),
        [(DeliveryState::Accepted, true)]
    );
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn every_outcome_is_answered_with_its_own_type() {
    let reason = Error {
        condition: Symbol::new("com.microsoft:dead-letter"),
        description: None,
        info: Some(vec![(
            Value::Symbol(Symbol::new("DeadLetterReason")),
            Value::from("bad"),
        )]),
    };
    let modified = |undeliverable_here| DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here,
        message_annotations: None,
    };
    let bare = DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here: false,
        message_annotations: None,
    };
    for (asked, answered) in [
        (modified(false), bare.clone()),
        (modified(true), bare),
        (
            DeliveryState::Rejected(Some(reason)),
            DeliveryState::Rejected(None),
        ),
        (DeliveryState::Released, DeliveryState::Released),
    ] {
        let (mut world, coordinator, receiver, received) = locked();
        let id = declare(&mut world, coordinator);
        world.dispose(&received, within(&id, Some(asked)), false);
        let provisional = within(&id, Some(answered.clone()));
        assert_eq!(answers(&mut world, receiver), [(provisional, false)]);
        discharge(&mut world, coordinator, &id, false);
        assert_eq!(answers(&mut world, receiver), [(answered, true)]);
    }
}

#[test]
fn a_client_that_forgets_its_delivery_at_once_settles_it_only_once() {
    let (mut world, coordinator, receiver, received) = locked();
    let id = declare(&mut world, coordinator);
    let accepted = within(&id, Some(DeliveryState::Accepted));
    world.dispose(&received, accepted.clone(), false);
    world.dispose(&received, accepted, true);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(state, DeliveryState::Accepted);
    answers(&mut world, receiver);
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn a_disposition_that_comes_settled_takes_part_without_an_answer() {
    let (mut world, coordinator, receiver, received) = locked();
    let id = declare(&mut world, coordinator);
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), true);
    assert_eq!(answers(&mut world, receiver), []);
    discharge(&mut world, coordinator, &id, false);
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn a_settled_disposition_that_is_refused_fails_the_transaction() {
    let (mut world, coordinator, _, received) = locked();
    let id = declare(&mut world, coordinator);
    world.advance(31_000);
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), true);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(condition(&state), "amqp:transaction:rollback");
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn a_delivery_of_an_open_transaction_can_not_be_settled_outside_of_it() {
    let (mut world, coordinator, receiver, received) = locked();
    let id = declare(&mut world, coordinator);
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), false);
    answers(&mut world, receiver);
    world.dispose(&received, DeliveryState::Accepted, false);
    let [(state, false)] = &answers(&mut world, receiver)[..] else {
        panic!("it is refused and stays unsettled");
    };
    assert_eq!(condition(state), "amqp:resource-locked");
    discharge(&mut world, coordinator, &id, false);
    assert_eq!(
        answers(&mut world, receiver),
        [(DeliveryState::Accepted, true)]
    );
}

#[test]
fn nothing_is_decided_by_a_transactional_state_without_an_outcome() {
    let (mut world, coordinator, receiver, received) = locked();
    let id = declare(&mut world, coordinator);
    world.dispose(&received, within(&id, None), false);
    assert_eq!(answers(&mut world, receiver), []);
    discharge(&mut world, coordinator, &id, false);
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn a_lost_lock_is_told_outside_of_the_transaction() {
    let (mut world, coordinator, receiver, received) = locked();
    let id = declare(&mut world, coordinator);
    world.advance(31_000);
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), false);
    let [(state, true)] = &answers(&mut world, receiver)[..] else {
        panic!("it is refused");
    };
    assert_eq!(condition(state), "com.microsoft:message-lock-lost");
}

#[test]
fn a_lock_that_is_lost_before_the_commit_rolls_back() {
    let (mut world, coordinator, receiver, received) = locked();
    let (_, sender) = world.sender("orders2");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, sender, &id, &message("x"), false);
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), false);
    answers(&mut world, receiver);
    world.advance(31_000);
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(condition(&state), "amqp:transaction:rollback");
    assert_eq!(seen(&mut world, "orders2"), 0);
    assert_eq!(answers(&mut world, receiver), []);
}

#[test]
fn an_unknown_transaction_is_told_plainly_and_changes_nothing() {
    for id in ["", "1", "0123456789abcdef", "more than sixteen bytes"] {
        let id = Bytes::from_static(id.as_bytes());
        let (mut world, coordinator, receiver, received) = locked();
        let (_, sender) = world.sender("orders2");
        send_within(&mut world, sender, &id, &message("x"), false);
        let [DeliveryState::Rejected(Some(error))] = &world.outcomes(sender)[..] else {
            panic!("it is refused");
        };
        assert_eq!(error.condition, "amqp:transaction:unknown-id");

        world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), false);
        let [(state, true)] = &answers(&mut world, receiver)[..] else {
            panic!("it is refused and settled");
        };
        assert_eq!(condition(state), "amqp:transaction:unknown-id");
        let state = discharge(&mut world, coordinator, &id, false);
        assert_eq!(condition(&state), "amqp:transaction:unknown-id");

        assert_eq!(seen(&mut world, "orders2"), 0);
        assert_eq!(seen(&mut world, "orders"), 1);
        // The lock is kept.
        let pair = world.pair("orders/$management");
        let answer = world.call(&pair, &update(&received, "completed"));
        assert_eq!(answer.expect("an answer").code(), 200);
        assert_eq!(seen(&mut world, "orders"), 0);
    }
}

#[test]
fn a_transaction_takes_two_minutes_at_most() {
    let mut world = World::new();
    let coordinator = coordinator(&mut world);
    let (_, sender) = world.sender("orders");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, sender, &id, &message("x"), false);
    world.outcomes(sender);
    two_minutes(&mut world);
    send_within(&mut world, sender, &id, &message("y"), false);
    let [DeliveryState::Rejected(Some(error))] = &world.outcomes(sender)[..] else {
        panic!("it is refused");
    };
    assert_eq!(error.condition, "amqp:transaction:timeout");
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(condition(&state), "amqp:transaction:timeout");
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(condition(&state), "amqp:transaction:unknown-id");
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn what_timed_out_can_be_settled_again() {
    let mut world = World::new();
    world.create(
        "slow",
        QueueSettings {
            lock_duration: 300_000,
            ..QueueSettings::default()
        },
    );
    world.enqueue("slow", &message("hello"));
    let coordinator = coordinator(&mut world);
    let receiver = world.receiver("slow", UNSETTLED, 1);
    let received = world.received(receiver).pop().expect("a message");
    let id = declare(&mut world, coordinator);
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), false);
    answers(&mut world, receiver);
    two_minutes(&mut world);
    world.dispose(&received, DeliveryState::Accepted, true);
    assert_eq!(seen(&mut world, "slow"), 0);
}

#[test]
fn the_end_of_the_coordinator_rolls_back() {
    let (mut world, coordinator, receiver, received) = locked();
    let (_, sender) = world.sender("orders2");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, sender, &id, &message("x"), false);
    world.outcomes(sender);
    world.dispose(&received, within(&id, Some(DeliveryState::Accepted)), false);
    answers(&mut world, receiver);
    world.client.detach(coordinator, true, None);
    world.pump();
    send_within(&mut world, sender, &id, &message("y"), false);
    let [DeliveryState::Rejected(Some(error))] = &world.outcomes(sender)[..] else {
        panic!("it is refused");
    };
    assert_eq!(error.condition, "amqp:transaction:unknown-id");
    world.dispose(&received, DeliveryState::Accepted, false);
    assert_eq!(
        answers(&mut world, receiver),
        [(DeliveryState::Accepted, true)]
    );
    assert_eq!(seen(&mut world, "orders2"), 0);
}

#[test]
fn the_end_of_the_connection_rolls_back() {
    let (mut world, coordinator, _, _) = locked();
    let (_, sender) = world.sender("orders2");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, sender, &id, &message("x"), false);
    world.server.handle_eof(world.clock_reading());
    world.pump();
    let last = world.commands.last();
    assert!(matches!(last, Some(Command::Disconnect { .. })));
    let info = world.shard.broker.queues().find(|q| q.path == "orders2");
    assert_eq!(info.map(|info| info.active), Some(0));
}

#[test]
fn a_coordinator_may_share_a_session_with_other_links() {
    let mut world = World::new();
    let session = world.session();
    let coordinator = coordinator_in(&mut world, session);
    let link = world.attach(session, sender("orders"));
    let (one, two) = (
        declare(&mut world, coordinator),
        declare(&mut world, coordinator),
    );
    send_within(&mut world, link, &one, &message("x"), false);
    send_within(&mut world, link, &two, &message("y"), false);
    discharge(&mut world, coordinator, &one, true);
    discharge(&mut world, coordinator, &two, false);
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn what_is_no_declare_and_no_discharge_is_rejected() {
    let id = || Value::Binary(Bytes::from_static(b"0123456789abcdef"));
    let wrong = [
        (message("x"), "amqp:decode-error"),
        (Bytes::from_static(b"\x07"), "amqp:decode-error"),
        (control(&Value::Null), "amqp:decode-error"),
        (control(&Value::List(vec![])), "amqp:decode-error"),
        (described(0x24, vec![]), "amqp:decode-error"),
        (described(DISCHARGE, vec![]), "amqp:decode-error"),
        (
            described(DISCHARGE, vec![Value::Int(1), Value::Bool(true)]),
            "amqp:decode-error",
        ),
        (
            described(DISCHARGE, vec![id(), Value::from("yes")]),
            "amqp:decode-error",
        ),
        (
            control(&Value::described(DECLARE, Value::from("x"))),
            "amqp:decode-error",
        ),
        (described(DECLARE, vec![id()]), "amqp:not-implemented"),
    ];
    let mut world = World::new();
    let link = coordinator(&mut world);
    for (payload, expected) in wrong {
        world.send(link, &payload);
        let [state] = &world.outcomes(link)[..] else {
            panic!("it is answered");
        };
        assert_eq!(condition(state), expected, "{payload:?}");
    }
    let id = declare(&mut world, link);
    let state = discharge(&mut world, link, &id, false);
    assert_eq!(state, DeliveryState::Accepted, "the link goes on");
}

#[test]
fn a_declare_that_comes_settled_begins_nothing() {
    let mut world = World::new();
    let link = coordinator(&mut world);
    world.send_as(link, 0, true, &described(DECLARE, vec![]));
    assert_eq!(world.outcomes(link), []);
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition, "amqp:not-allowed");
    let declared = |command: &Command| matches!(command, Command::Declare { .. });
    assert!(!world.commands.iter().any(declared));
}

#[test]
fn a_discharge_that_comes_settled_rolls_back() {
    let mut world = World::new();
    let link = coordinator(&mut world);
    let (_, sender) = world.sender("orders");
    let id = declare(&mut world, link);
    send_within(&mut world, sender, &id, &message("x"), false);
    let fields = vec![Value::Binary(id.clone()), Value::Bool(false)];
    world.send_as(link, 0, true, &described(DISCHARGE, fields));
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition, "amqp:not-allowed");
    assert_eq!(seen(&mut world, "orders"), 0);
}

/// A coordinator whose source lists these outcomes.
fn coordinator_that_knows(world: &mut World, outcomes: &[&'static str]) -> LinkId {
    let session = world.session();
    let mut attach = coordinator_attach(Vec::new());
    let source = attach.source.get_or_insert_default();
    source.outcomes = outcomes.iter().copied().map(Symbol::new).collect();
    world.attach(session, attach)
}

#[test]
fn a_coordinator_that_does_not_know_rejected_is_detached_instead() {
    for (outcomes, detached) in [
        (&[][..], false),
        (&["amqp:accepted:list", "amqp:rejected:list"][..], false),
        (&["amqp:accepted:list"][..], true),
    ] {
        let mut world = World::new();
        let link = coordinator_that_knows(&mut world, outcomes);
        let id = Bytes::from_static(b"0123456789abcdef");
        let fields = vec![Value::Binary(id), Value::Bool(false)];
        world.send(link, &described(DISCHARGE, fields));
        let error = world
            .detach_error(link)
            .map(|error| error.condition.clone());
        let unknown = Symbol::new("amqp:transaction:unknown-id");
        assert_eq!(error, detached.then_some(unknown), "{outcomes:?}");
        assert_eq!(world.outcomes(link).is_empty(), detached, "{outcomes:?}");
    }
}

#[test]
fn a_discharge_before_the_end_of_a_delivery_rolls_back() {
    let mut world = World::new();
    let link = coordinator(&mut world);
    let (_, sender) = world.sender("orders");
    let id = declare(&mut world, link);
    send_within(&mut world, sender, &id, &message("x"), false);
    // Past the client's endpoint, which would send all of it: the sender's session is the second.
    let mut bytes = BytesMut::new();
    let start = frame::begin(&mut bytes, frame::FrameType::Amqp, 1);
    let transfer = Transfer {
        delivery_id: Some(1_000),
        delivery_tag: Some(Bytes::from_static(b"long")),
        message_format: Some(0),
        state: Some(within(&id, None)),
        more: true,
        ..Transfer::default()
    };
    Performative::Transfer(transfer).encode(&mut bytes);
    bytes.extend_from_slice(&message("y"));
    frame::finish(&mut bytes, start);
    world.server.handle_input(world.clock_reading(), &mut bytes);
    let fields = vec![Value::Binary(id.clone()), Value::Bool(false)];
    world.send(link, &described(DISCHARGE, fields));
    let error = world.detach_error(link).expect("it is detached");
    assert_eq!(error.condition, "amqp:transaction:rollback");
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn a_connection_can_have_so_many_open_transactions() {
    let mut world = World::new();
    let link = coordinator(&mut world);
    let ids: Vec<_> = (0..64).map(|_| declare(&mut world, link)).collect();
    world.send(link, &described(DECLARE, vec![]));
    let [state] = &world.outcomes(link)[..] else {
        panic!("it is answered");
    };
    assert_eq!(condition(state), "amqp:resource-limit-exceeded");
    discharge(&mut world, link, &ids[0], false);
    declare(&mut world, link);
}

#[test]
fn a_coordinator_gets_credit_for_what_was_answered() {
    let mut world = World::new();
    let link = coordinator(&mut world);
    // Sending without credit would fail.
    for _ in 0..500 {
        let id = declare(&mut world, link);
        discharge(&mut world, link, &id, false);
    }
}

#[test]
fn a_refused_send_is_told_within_the_state_and_fails_the_transaction() {
    let mut world = World::new();
    world.create(
        "little",
        QueueSettings {
            max_size: 10,
            ..QueueSettings::default()
        },
    );
    let coordinator = coordinator(&mut world);
    let (_, little) = world.sender("little");
    let (_, sender) = world.sender("orders");
    let too_large = message("0123456789");
    let refused: [(LinkId, &[u8], &str); 2] = [
        (little, &too_large, "amqp:resource-limit-exceeded"),
        (sender, b"\x07", "amqp:decode-error"),
    ];
    for (link, payload, expected) in refused {
        let id = declare(&mut world, coordinator);
        send_within(&mut world, sender, &id, &message("x"), false);
        send_within(&mut world, link, &id, payload, false);
        let outcomes: Vec<_> = [sender, link]
            .into_iter()
            .flat_map(|link| world.outcomes(link))
            .collect();
        let Some(DeliveryState::Transactional { txn_id, outcome }) = outcomes.last() else {
            panic!("{outcomes:?}");
        };
        assert_eq!(*txn_id, id);
        assert_eq!(condition(outcome.as_deref().expect("an outcome")), expected);
        let state = discharge(&mut world, coordinator, &id, false);
        assert_eq!(condition(&state), "amqp:transaction:rollback");
    }
    assert_eq!(seen(&mut world, "orders"), 0);
}

#[test]
fn a_send_that_comes_settled_takes_part_without_an_answer() {
    let mut world = World::new();
    let coordinator = coordinator(&mut world);
    let (_, sender) = world.sender("orders");
    let id = declare(&mut world, coordinator);
    send_within(&mut world, sender, &id, &message("x"), true);
    assert_eq!(world.outcomes(sender), []);
    assert_eq!(seen(&mut world, "orders"), 0);
    discharge(&mut world, coordinator, &id, false);
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn a_transaction_gives_no_rights() {
    for (key, name, queue) in [
        (SEND_KEY, "sender", "orders"),
        (LISTEN_KEY, "listener", "orders"),
    ] {
        let mut world = World::with(Login::Plain(name, key), |_| {});
        let link = coordinator(&mut world);
        declare(&mut world, link);
        let attach = if name == "sender" {
            crate::world::receiver(queue, UNSETTLED)
        } else {
            sender(queue)
        };
        assert_eq!(world.refusal(attach).condition, "amqp:unauthorized-access");
    }
}

pub(crate) fn request_within(
    world: &mut World,
    pair: &Pair,
    id: &Bytes,
    request: &Request,
) -> Response {
    let outgoing = Outgoing {
        tag: b"t",
        settled: true,
        state: Some(within(id, None)),
        ..Outgoing::default()
    };
    world
        .client
        .send(pair.request, &outgoing, &[&request.encode()])
        .expect("there is credit");
    world.pump();
    let mut answers = world.received(pair.response);
    assert_eq!(answers.len(), 1);
    Response(answers.remove(0))
}

pub(crate) fn update(received: &Received, status: &str) -> Request {
    let token = received.delivery_annotation("x-opt-lock-token");
    let body = vec![
        ("disposition-status", Value::from(status)),
        ("lock-tokens", Value::Array(vec![token.expect("a token")])),
    ];
    Request::operation(UPDATE, body)
}

#[test]
fn an_update_of_dispositions_takes_part_by_request() {
    for (fail, left) in [(false, 0), (true, 1)] {
        let (mut world, coordinator, _, received) = locked();
        let pair = world.pair("orders/$management");
        let id = declare(&mut world, coordinator);
        let answer = request_within(&mut world, &pair, &id, &update(&received, "completed"));
        assert_eq!(answer.code(), 200);
        let outside = world.call(&pair, &update(&received, "abandoned"));
        let outside = outside.expect("an answer");
        assert_eq!(
            (outside.code(), outside.condition().as_str()),
            (400, "amqp:resource-locked")
        );
        assert_eq!(seen(&mut world, "orders"), 1);
        discharge(&mut world, coordinator, &id, fail);
        assert_eq!(seen(&mut world, "orders"), left);
    }
}

pub(crate) fn schedule(text: &str) -> Request {
    let mut payload = BytesMut::new();
    let later = i64::try_from(BROKER_START + 3_600_000).expect("fits");
    let annotation = [(
        Value::Symbol(Symbol::new("x-opt-scheduled-enqueue-time")),
        Value::Timestamp(later),
    )];
    amqp::message::encode_map_section(&mut payload, 0x72, &annotation);
    payload.extend_from_slice(&message(text));
    let entry = vec![(Value::from("message"), Value::Binary(payload.freeze()))];
    let body = vec![("messages", Value::List(vec![Value::Map(entry)]))];
    Request::operation("com.microsoft:schedule-message", body)
}

pub(crate) fn cancel(number: i64) -> Request {
    let numbers = Value::Array(vec![Value::Long(number)]);
    let body = vec![("sequence-numbers", numbers)];
    Request::operation("com.microsoft:cancel-scheduled-message", body)
}

#[test]
fn messages_are_scheduled_and_cancelled_by_request() {
    let mut world = World::new();
    let coordinator = coordinator(&mut world);
    let pair = world.pair("orders/$management");
    let id = declare(&mut world, coordinator);
    let answer = request_within(&mut world, &pair, &id, &schedule("x"));
    let numbers = Value::Array(vec![Value::Long(1)]);
    assert_eq!(answer.entry("sequence-numbers"), numbers);
    assert_eq!(seen(&mut world, "orders"), 0);
    discharge(&mut world, coordinator, &id, false);
    assert_eq!(seen(&mut world, "orders"), 1);

    let id = declare(&mut world, coordinator);
    let answer = request_within(&mut world, &pair, &id, &cancel(1));
    assert_eq!(answer.code(), 200);
    assert_eq!(seen(&mut world, "orders"), 1);
    discharge(&mut world, coordinator, &id, false);
    assert_eq!(seen(&mut world, "orders"), 0);

    let id = declare(&mut world, coordinator);
    let answer = request_within(&mut world, &pair, &id, &cancel(1));
    assert_eq!(answer.code(), 200, "it is looked at when it is committed");
    let state = discharge(&mut world, coordinator, &id, false);
    assert_eq!(condition(&state), "amqp:transaction:rollback");
}

#[test]
fn nothing_is_scheduled_or_cancelled_within_an_unknown_transaction() {
    let mut world = World::new();
    let pair = world.pair("orders/$management");
    world.call(&pair, &schedule("x"));
    let id = Bytes::from_static(b"0123456789abcdef");
    for request in [schedule("y"), cancel(1)] {
        let answer = request_within(&mut world, &pair, &id, &request);
        assert_eq!(answer.code(), 400);
        assert_eq!(answer.condition(), "amqp:transaction:unknown-id");
    }
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn a_request_that_only_reads_or_renews_is_done_at_once_whatever_the_transaction() {
    let (mut world, coordinator, _, received) = locked();
    let pair = world.pair("orders/$management");
    let unknown = Bytes::from_static(b"?");
    let known = declare(&mut world, coordinator);
    let token = received.delivery_annotation("x-opt-lock-token");
    let tokens = Value::Array(vec![token.expect("a token")]);
    let renew = Request::operation("com.microsoft:renew-lock", vec![("lock-tokens", tokens)]);
    for id in [unknown, known] {
        assert_eq!(request_within(&mut world, &pair, &id, &renew).code(), 200);
    }
}

#[test]
fn a_request_within_an_unknown_transaction_changes_nothing() {
    let (mut world, _, _, received) = locked();
    let pair = world.pair("orders/$management");
    let id = Bytes::from_static(b"0123456789abcdef");
    let answer = request_within(&mut world, &pair, &id, &update(&received, "completed"));
    assert_eq!(answer.code(), 400);
    assert_eq!(answer.condition(), "amqp:transaction:unknown-id");
    assert_eq!(seen(&mut world, "orders"), 1);
}

#[test]
fn a_batch_takes_part_as_a_whole() {
    let mut world = World::new();
    let coordinator = coordinator(&mut world);
    let (_, sender) = world.sender("orders");
    let id = declare(&mut world, coordinator);
    let mut batch = BytesMut::new();
    for text in ["a", "b", "c"] {
        amqp::encode::descriptor(&mut batch, 0x75);
        amqp::encode::binary(&mut batch, &message(text));
    }
    let outgoing = Outgoing {
        tag: b"t",
        message_format: 0x8001_3700,
        state: Some(within(&id, None)),
        ..Outgoing::default()
    };
    world
        .client
        .send(sender, &outgoing, &[&batch])
        .expect("there is credit");
    world.pump();
    let accepted = within(&id, Some(DeliveryState::Accepted));
    assert_eq!(world.outcomes(sender), [accepted]);
    discharge(&mut world, coordinator, &id, false);
    assert_eq!(seen(&mut world, "orders"), 3);
}
