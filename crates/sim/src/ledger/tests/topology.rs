//! Routers and bindings: what a crash may take of them, and where they lead.

use broker::{Binding, BindingDestination, RouterInfo, RouterKind, RouterOrder, RouterSettings};

use super::super::routing::Topology;
use super::fake_broker::check;
use crate::violation::Violation;

fn binding(source: &str, key: &str, queue: &str) -> Binding {
    Binding {
        source: source.to_owned(),
        destination: BindingDestination::Entity(queue.to_owned()),
        key: key.to_owned(),
        arguments: Vec::new(),
    }
}

fn bind(topology: &mut Topology, binding: &Binding) {
    let order = RouterOrder::Bind(Box::new(binding.clone()));
    topology.plan(&order, |_| true).unwrap();
}

fn declare(topology: &mut Topology, name: &str, kind: RouterKind) {
    let order = RouterOrder::Declare {
        name: name.to_owned(),
        settings: Box::new(RouterSettings::new(kind)),
    };
    topology.plan(&order, |_| true).unwrap();
}

fn info(name: &str, kind: RouterKind) -> RouterInfo {
    RouterInfo {
        name: name.to_owned(),
        settings: RouterSettings::new(kind),
        bindings: 0,
    }
}

fn is_sure(topology: &mut Topology) {
    topology.note_sure(topology.changes());
}

fn learn(topology: &mut Topology, bindings: &[Binding]) -> Result<(), Violation> {
    topology.learn(&[], bindings, |path| path != "gone")
}

#[test]
fn a_crash_may_take_what_was_not_answered() {
    let mut topology = Topology::default();
    bind(&mut topology, &binding("amq.direct", "a", "first"));
    assert_eq!(learn(&mut topology, &[]), Ok(()));
}

#[test]
fn a_crash_that_takes_an_answered_binding_or_router_is_found() {
    let mut topology = Topology::default();
    bind(&mut topology, &binding("amq.direct", "a", "first"));
    is_sure(&mut topology);
    check(learn(&mut topology, &[]), "I1");
    let mut topology = Topology::default();
    declare(&mut topology, "orders", RouterKind::Topic);
    is_sure(&mut topology);
    check(learn(&mut topology, &[]), "I1");
}

#[test]
fn a_crash_that_brings_back_a_binding_whose_end_was_answered_is_found() {
    let mut topology = Topology::default();
    let bound = binding("amq.direct", "a", "first");
    bind(&mut topology, &bound);
    topology.remove_queue("first");
    assert_eq!(
        topology
            .route("amq.direct", &["a".to_owned()])
            .unwrap()
            .len(),
        0
    );
    is_sure(&mut topology);
    check(learn(&mut topology, &[bound]), "I1");
}

#[test]
fn a_binding_to_nowhere_or_of_nobody_after_a_crash_is_found() {
    for queue in ["gone", "first"] {
        let mut topology = Topology::default();
        if queue == "gone" {
            bind(&mut topology, &binding("amq.direct", "a", queue));
        }
        check(
            learn(&mut topology, &[binding("amq.direct", "a", queue)]),
            "I13",
        );
    }
}

#[test]
fn what_a_crash_has_left_counts_from_then_on() {
    let mut topology = Topology::default();
    declare(&mut topology, "orders", RouterKind::Topic);
    let kept = [
        info("amq.topic", RouterKind::Topic),
        info("orders", RouterKind::Topic),
    ];
    assert_eq!(topology.learn(&kept, &[], |_| true), Ok(()));
    check(learn(&mut topology, &[]), "I1");
}

#[test]
fn messages_go_where_keys_and_patterns_lead_over_routers_too() {
    let mut topology = Topology::default();
    declare(&mut topology, "copies", RouterKind::Fanout);
    for (source, key, queue) in [
        ("amq.topic", "a.*", "one"),
        ("amq.topic", "a.#.c", "any"),
        ("amq.topic", "#", "all"),
        ("amq.direct", "a.*", "literal"),
        ("copies", "other", "copied"),
    ] {
        bind(&mut topology, &binding(source, key, queue));
    }
    for (source, to) in [("amq.direct", "copies"), ("copies", "amq.direct")] {
        let onward = Binding {
            destination: BindingDestination::Router(to.to_owned()),
            ..binding(source, "a", "")
        };
        bind(&mut topology, &onward);
    }
    let expected: [(&str, &str, &[&str]); 6] = [
        ("amq.topic", "a.b", &["all", "one"]),
        ("amq.topic", "a.b.c", &["all", "any"]),
        ("amq.topic", "a.c", &["all", "any", "one"]),
        ("amq.topic", "", &["all"]),
        ("amq.direct", "a.*", &["literal"]),
        ("amq.direct", "a", &["copied"]),
    ];
    for (router, key, queues) in expected {
        let found = topology.route(router, &[key.to_owned()]).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), queues, "{router} {key}");
    }
    assert_eq!(topology.route("missing", &[String::new()]), None);
}
