//! Metrics: what a scraper of Prometheus sees, and which clients may see it.

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

/// The names in the first column of the tables, and those of a page.
fn names_of<'a>(
    text: &'a str,
    before: &str,
    after: &[char],
) -> std::collections::BTreeSet<&'a str> {
    let names = text.lines().filter_map(|line| line.strip_prefix(before));
    names
        .filter_map(|rest| rest.split(after).next())
        .filter(|name| name.starts_with("railbus_"))
        .collect()
}

#[test]
fn what_is_shown_is_what_the_documentation_explains() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let (_, page) = http::get(broker.address(), "/metrics");
    let explained = include_str!("../../docs/metrics.md");
    let explained = names_of(explained, "| `", &['`']);
    let mut shown = std::collections::BTreeSet::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a name and a type");
        let suffix = if kind == "counter" { "_total" } else { "" };
        shown.insert(format!("{name}{suffix}"));
    }
    let shown = shown.iter().map(String::as_str).collect();
    assert_eq!(explained, shown);
}

#[test]
fn the_dashboard_and_the_alerts_use_metrics_that_are_explained() {
    let explained = include_str!("../../docs/metrics.md");
    let explained = names_of(explained, "| `", &['`']);
    let dashboard = include_str!("../../deploy/grafana/railbus.json");
    let alerts = include_str!("../../deploy/prometheus/alerts.yaml");
    let tested = include_str!("../../deploy/prometheus/alerts_test.yaml");
    for text in [dashboard, alerts, tested] {
        let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        let used: Vec<_> = words.filter(|word| word.starts_with("railbus_")).collect();
        assert!(!used.is_empty(), "{text}");
        for name in used {
            let name = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(explained.contains(name), "{name} is not in docs/metrics.md");
        }
    }
}

#[test]
fn every_alert_is_tested() {
    let alerts = include_str!("../../deploy/prometheus/alerts.yaml");
    let tested = include_str!("../../deploy/prometheus/alerts_test.yaml");
    let alerts = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        let tests = tested.matches(&format!("alertname: {alert}\n")).count();
        assert!(
            tests >= 2,
            "{alert} needs a test that fires and one that does not"
        );
    }
}

#[test]
fn every_limit_is_shown_and_documented_with_its_value() {
    let broker = Setup::new()
        .configure("[limits]\nconnections = 77\nauthentication-time-out = 'PT90S'")
        .start();
    let (_, page) = http::get(broker.address(), "/metrics");
    let value = |limit: &str| {
        let before = format!("railbus_limit{{limit=\"{limit}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&before))
    };
    assert_eq!(value("connections"), Some("77.0"));
    assert_eq!(value("authentication-time-out"), Some("90.0"));
    let shown = page
        .lines()
        .filter(|line| line.starts_with("railbus_limit{"));
    let (_, documented) = include_str!("../../docs/metrics.md")
        .split_once("## Limits")
        .expect("it has them");
    let rows = documented.lines().filter(|line| line.starts_with("| `"));
    let names: Vec<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(names.len(), shown.count());
    assert!(names.iter().all(|name| value(name).is_some()), "{names:?}");
}

#[test]
fn what_happens_is_counted() {
    let broker = Setup::new()
        .configure("[limits]\nconnections-per-address = 3")
        .start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    let receiver = peer.receiver("orders", 1);
    let received = peer.receive(receiver);
    let settled = peer.settle(&received, DeliveryState::Accepted);
    assert_eq!(settled, Some(DeliveryState::Accepted));
    let wrong = e2e::Credentials {
        rule: "RootManageSharedAccessKey",
        key: "none-of-them",
    };
    let mut stranger = Peer::begin(broker.address(), wrong);
    assert_eq!(stranger.sasl_outcome(), amqp::sasl::Code::Auth);
    let _third = Peer::connect(broker.address());
    let mut fourth = Peer::begin(broker.address(), e2e::Credentials::DEVELOPMENT);
    assert!(fourth.closed().is_none(), "it is just closed");
    drop((stranger, fourth));
    // The places of the dropped connections are free once the broker has seen that they are closed.
    let page = loop {
        let answer = http::exchange(
            broker.address(),
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        );
        if answer.starts_with("HTTP/1.1 200") {
            break answer;
        }
    };
    let has = |wanted: &str| {
        assert!(
            page.lines().any(|line| line == wanted),
            "{wanted} in\n{page}"
        );
    };
    has("railbus_entity_arrivals_total{entity=\"orders\",state=\"active\"} 1");
    has("railbus_entity_departures_total{entity=\"orders\",state=\"active\"} 1");
    has("railbus_entity_deliveries_total{entity=\"orders\"} 1");
    has("railbus_entity_completions_total{entity=\"orders\"} 1");
    has("railbus_credentials_refused_total{protocol=\"amqp\"} 1");
    has("railbus_disk_nearly_full 0");
    let refused = "railbus_connections_refused_total{reason=\"connections-per-address\"} ";
    let refused = page.lines().find_map(|line| line.strip_prefix(refused));
    let refused: u64 = refused.expect("it is counted").parse().expect("a number");
    assert!(refused >= 1);
    let count = page
        .lines()
        .find_map(|line| line.strip_prefix("railbus_commit_duration_seconds_count "));
    let count: u64 = count.expect("it is counted").parse().expect("a number");
    assert!(count >= 2, "{count} commits");
}
