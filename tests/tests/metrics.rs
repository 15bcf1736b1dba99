//! Metrics: what a scraper of Prometheus sees, and who may see it.

use amqp::DeliveryState;
use e2e::{Peer, Setup, http};

#[test]
fn the_counters_of_every_entity_are_shown() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let (status, text) = http::get(broker.address(), "/metrics");
    assert_eq!(status, 200);
    let line = "railbus_entity_messages{entity=\"orders\",state=\"active\"} 1";
    assert!(text.lines().any(|found| found == line), "{text}");
    let line = "railbus_entity_schedule_lag_seconds{entity=\"orders\"} 0.0";
    assert!(text.lines().any(|found| found == line), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn with_keys_of_ones_own_only_manage_may_see_them() {
    let rules = "
[[auth.rules]]
name = 'owner'
primary-key = 'hush-hush'
rights = ['manage']
";
    let broker = Setup::new().configure(rules).start();
    assert_eq!(http::get(broker.address(), "/metrics").0, 401);
}
