//! Topology: the names of the queues, exchanges and keys that clients bind and publish to.
//!
//! Exchanges and some of the queues come and go; any of them may be missing when it is named.

use broker::{BindingDestination, QueueArguments, QueueSettings, Resource, RouterKind};
use serde_json::{Map, Value as Json};

use crate::rng::Rng;

/// Queues that clients of RabbitMQ's dialect declare.
pub const DECLARED: [&str; 2] = ["declared", "declared-too"];
/// The queues that bindings lead to besides. None of them is ever disabled. None hands a message
/// out and forgets it in the step in which it comes, since its other copies would look like it.
const BOUND: [&str; 2] = ["plain", "forwards-dead-letters"];
/// Exchanges that are declared and deleted, and mostly as what.
const EXCHANGES: [(&str, RouterKind); 2] = [
    ("copies", RouterKind::Fanout),
    ("orders", RouterKind::Topic),
];
/// Exchanges that are always there.
const PREDECLARED: [&str; 3] = ["amq.fanout", "amq.direct", "amq.topic"];
const KEYS: [&str; 5] = ["a", "b", "", "a.b", "a.b.c"];
const PATTERNS: [&str; 4] = ["#", "a.*", "a.#.c", "*"];
/// Failed deliveries that a declared queue allows.
pub const DELIVERY_LIMIT: u32 = 4;

/// The settings of a queue that is declared by clients, whichever dialect they speak.
#[must_use]
pub fn declared_settings() -> QueueSettings {
    let arguments = [
        ("x-queue-type".to_owned(), Json::from("quorum")),
        ("x-delivery-limit".to_owned(), Json::from(DELIVERY_LIMIT)),
    ];
    let arguments = Map::from_iter(arguments);
    let queue = Resource::queue(DECLARED[0], "/");
    let arguments = QueueArguments::read(arguments, queue).expect("they are valid");
    arguments.settings()
}

/// The name of an exchange that comes and goes, and what it is to be declared as.
pub fn any_declared_exchange(rng: &mut Rng) -> (&'static str, RouterKind) {
    let (name, usual) = EXCHANGES[rng.below(EXCHANGES.len())];
    let kinds = [RouterKind::Direct, RouterKind::Fanout, RouterKind::Topic];
    match rng.chance(200) {
        true => (name, kinds[rng.below(kinds.len())]),
        false => (name, usual),
    }
}

/// The name of any exchange.
pub fn any_exchange(rng: &mut Rng) -> &'static str {
    match rng.below(EXCHANGES.len() + PREDECLARED.len()) {
        index if index < EXCHANGES.len() => EXCHANGES[index].0,
        index => PREDECLARED[index - EXCHANGES.len()],
    }
}

/// The key of a message.
pub fn any_key(rng: &mut Rng) -> &'static str {
    KEYS[rng.below(KEYS.len())]
}

/// The key of a binding.
pub fn any_binding_key(rng: &mut Rng) -> &'static str {
    match rng.chance(400) {
        true => PATTERNS[rng.below(PATTERNS.len())],
        false => any_key(rng),
    }
}

/// A queue that comes and goes.
pub fn any_declared_queue(rng: &mut Rng) -> &'static str {
    DECLARED[rng.below(DECLARED.len())]
}

/// Where a binding leads: to a queue, or to another exchange.
pub fn any_destination(rng: &mut Rng) -> BindingDestination {
    match rng.below(10) {
        0 => BindingDestination::Router(any_exchange(rng).to_owned()),
        1..=5 => BindingDestination::Entity(any_declared_queue(rng).to_owned()),
        _ => BindingDestination::Entity(BOUND[rng.below(BOUND.len())].to_owned()),
    }
}
