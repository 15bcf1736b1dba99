//! Receivers of generic clients: selectors, and browsing with distribution mode "copy".

use amqp::message::{descriptor, encode_map_section};
use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Map, Source, Symbol, Value};
use broker::Command;
use bytes::{Bytes, BytesMut};
use endpoint::{Event, LinkId};

use crate::world::{World, receiver};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const SETTLED: SenderSettleMode = SenderSettleMode::Settled;
const NAME: &str = "apache.org:selector-filter:string";
const CODE: u64 = 0x0000_468C_0000_0004;

fn symbol(text: &'static str) -> Value {
    Value::Symbol(Symbol::new(text))
}

fn by_code(text: &str) -> Value {
    Value::described(CODE, Value::from(text))
}

/// An attach to `orders` with these filters, and a distribution mode.
fn choosing(filter: Map, mode: Option<&'static str>) -> Attach {
    choosing_at("orders", filter, mode)
}

fn choosing_at(address: &str, filter: Map, mode: Option<&'static str>) -> Attach {
    let source = Source {
        address: Some(Value::from(address)),
        filter: (!filter.is_empty()).then_some(filter),
        distribution_mode: mode.map(Symbol::new),
        ..Source::default()
    };
    Attach {
        source: Some(Box::new(source)),
        ..receiver(address, UNSETTLED)
    }
}

fn selecting(text: &str) -> Attach {
    choosing(vec![(symbol("jms-selector"), by_code(text))], None)
}

/// A message with the property `n`.
fn numbered(n: i32) -> Bytes {
    let mut out = BytesMut::new();
    let properties = [(Value::from("n"), Value::Int(n))];
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &properties);
    amqp::encode::descriptor(&mut out, 0x75);
    amqp::encode::binary(&mut out, format!("body {n}").as_bytes());
    out.freeze()
}

/// A world with messages 1 to 3 in `orders`.
fn stocked() -> World {
    let mut world = World::new();
    for n in 1..=3 {
        world.enqueue("orders", &numbered(n));
    }
    world
}

fn join(world: &mut World, attach: Attach, credit: u32) -> LinkId {
    let session = world.session();
    let link = world.attach(session, attach);
    assert!(world.client.is_attached(link), "the link is let in");
    world.credit(link, credit, false);
    link
}

/// The numbers of the messages that a link has received.
fn numbers(world: &mut World, link: LinkId) -> Vec<i64> {
    let received = world.received(link).into_iter();
    let number = |value| match value {
        Some(Value::Long(number)) => number,
        other => panic!("{other:?} is no number"),
    };
    received
        .map(|received| number(received.annotation("x-opt-sequence-number")))
        .collect()
}

fn filter_of_reply(world: &World, link: LinkId) -> Option<Map> {
    world.reply(link).source.clone().expect("let in").filter
}

#[test]
fn a_selector_is_known_in_every_form_and_echoed_as_it_came() {
    let by_symbol = Value::Described(Box::new((symbol(NAME), Value::from("n = 2"))));
    for (key, value) in [
        ("jms-selector", by_code("n = 2")),
        ("selector", by_code("n = 2")),
        ("whatever", by_symbol),
        (NAME, Value::from("n = 2")),
        ("jms-selector", Value::from("n = 2")),
    ] {
        let mut world = stocked();
        let filter = vec![(symbol(key), value)];
        let link = join(&mut world, choosing(filter.clone(), None), 5);
        assert_eq!(filter_of_reply(&world, link), Some(filter));
        assert_eq!(numbers(&mut world, link), [2]);
    }
}

#[test]
fn filters_that_are_not_in_force_are_left_out_beside_a_selector() {
    let mut world = stocked();
    let selector = (symbol("jms-selector"), by_code("n > 1"));
    let no_local = Value::described(0x0000_468C_0000_0003, Value::List(Vec::new()));
    let filter = vec![(symbol("no-local"), no_local), selector.clone()];
    let link = join(&mut world, choosing(filter, None), 5);
    assert_eq!(filter_of_reply(&world, link), Some(vec![selector]));
    assert_eq!(numbers(&mut world, link), [2, 3]);
}

#[test]
fn what_is_not_selected_is_for_others() {
    let mut world = stocked();
    let choosy = join(&mut world, selecting("n = 2"), 5);
    assert_eq!(world.received(choosy).len(), 1);
    let other = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(numbers(&mut world, other), [1, 3]);
}

#[test]
fn a_drain_is_answered_when_nothing_selected_is_left() {
    let mut world = stocked();
    let link = join(&mut world, selecting("n = 4"), 0);
    world.credit(link, 5, true);
    assert!(world.received(link).is_empty());
    let drained = |event: &Event| matches!(event, Event::Drained { link: of, .. } if *of == link);
    assert!(world.events.iter().any(drained), "{:?}", world.events);
}

#[test]
fn a_blank_selector_selects_everything() {
    let mut world = stocked();
    let link = join(&mut world, selecting("  "), 5);
    assert_eq!(numbers(&mut world, link), [1, 2, 3]);
    let plain = world.commands.iter();
    let mut plain =
        plain.filter(|command| matches!(command, Command::Attach { selector: None, .. }));
    assert!(plain.next().is_some());
}

#[test]
fn a_bad_selector_is_refused_and_says_where() {
    let mut world = World::new();
    for (text, reason) in [
        ("n =", "at character 4"),
        ("n LIKE 5", "at character 8"),
        ("JMSReplyTo = 'a'", "JMSReplyTo"),
    ] {
        let error = world.refusal(selecting(text));
        assert_eq!(error.condition, Symbol::new("amqp:invalid-field"));
        let description = error.description.expect("says why");
        assert!(description.starts_with("The message selector is not valid: "));
        assert!(description.contains(reason), "{description}");
    }
    for value in [
        Value::described(CODE, Value::Int(5)),
        by_code(&" ".repeat(1_025)),
        by_code(&format!("n = '{}'", "é".repeat(1_020))),
    ] {
        let filter = vec![(symbol("jms-selector"), value)];
        let error = world.refusal(choosing(filter, None));
        assert_eq!(error.condition, Symbol::new("amqp:invalid-field"));
    }
    let two = vec![
        (symbol("a"), by_code("n = 1")),
        (symbol("b"), by_code("n = 2")),
    ];
    let error = world.refusal(choosing(two, None));
    assert_eq!(error.condition, Symbol::new("amqp:invalid-field"));
}

#[test]
fn a_browser_is_shown_copies_and_what_it_makes_of_them_concerns_nobody() {
    let outcomes = [
        DeliveryState::Accepted,
        DeliveryState::Released,
        DeliveryState::Rejected(None),
        DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: true,
            message_annotations: None,
        },
    ];
    for outcome in outcomes {
        for settled in [false, true] {
            let mut world = stocked();
            let link = join(&mut world, choosing(Vec::new(), Some("copy")), 5);
            let mode = &world
                .reply(link)
                .source
                .as_ref()
                .expect("let in")
                .distribution_mode;
            assert_eq!(*mode, Some(Symbol::new("copy")));
            let shown = world.received(link);
            assert_eq!(shown.len(), 3);
            for copy in &shown {
                assert!(copy.settled && copy.tag.is_empty());
                assert_eq!(copy.delivery_annotation("x-opt-lock-token"), None);
                assert_eq!(copy.annotation("x-opt-locked-until"), None);
                world.dispose(copy, outcome.clone(), settled);
            }
            assert_eq!(world.outcomes(link), []);
            let other = world.receiver("orders", UNSETTLED, 5);
            let received = world.received(other);
            assert_eq!(received.len(), 3);
            assert_eq!(received[0].header().delivery_count, Some(0));
        }
    }
}

#[test]
fn a_browser_may_want_its_copies_settled() {
    let mut world = stocked();
    let attach = Attach {
        snd_settle_mode: Some(SETTLED),
        ..choosing(Vec::new(), Some("copy"))
    };
    let link = join(&mut world, attach, 2);
    let shown = world.received(link);
    assert_eq!(shown.len(), 2);
    assert!(shown.iter().all(|copy| copy.settled));
    let other = world.receiver("orders", UNSETTLED, 5);
    assert_eq!(numbers(&mut world, other), [1, 2, 3]);
}

#[test]
fn a_browser_may_have_a_selector() {
    let mut world = stocked();
    let filter = vec![(symbol("jms-selector"), by_code("n <> 2"))];
    let link = join(&mut world, choosing(filter.clone(), Some("copy")), 5);
    assert_eq!(filter_of_reply(&world, link), Some(filter));
    assert_eq!(numbers(&mut world, link), [1, 3]);
    world.enqueue("orders", &numbered(2));
    world.enqueue("orders", &numbered(7));
    assert_eq!(numbers(&mut world, link), [5]);
}

#[test]
fn a_queue_with_sessions_can_be_browsed_but_its_receivers_can_not_choose() {
    let mut world = World::new();
    join(
        &mut world,
        choosing_at("sessions", Vec::new(), Some("copy")),
        5,
    );
    let session = (symbol("com.microsoft:session-filter"), Value::from("s"));
    let selector = (symbol("jms-selector"), by_code("n = 1"));
    for (filter, mode) in [
        (vec![session.clone(), selector.clone()], None),
        (vec![session], Some("copy")),
    ] {
        let error = world.refusal(choosing_at("sessions", filter, mode));
        assert_eq!(error.condition, Symbol::new("amqp:not-implemented"));
    }
    let error = world.refusal(choosing_at("sessions", vec![selector], None));
    assert_eq!(error.condition, Symbol::new("amqp:not-allowed"));
}

#[test]
fn a_distribution_mode_is_move_or_copy() {
    let mut world = stocked();
    let link = join(&mut world, choosing(Vec::new(), Some("move")), 5);
    assert_eq!(numbers(&mut world, link), [1, 2, 3]);
    let error = world.refusal(choosing(Vec::new(), Some("share")));
    assert_eq!(error.condition, Symbol::new("amqp:invalid-field"));
}
