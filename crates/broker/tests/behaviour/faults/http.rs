//! Rules for HTTP requests: by method and path, and for nothing else.

use broker::{
    DisconnectTime, FaultEffect, FaultMatch, FaultOperation, HttpFault, HttpRequest, InjectedError,
};
use store::NamespaceId;

use super::{BUSY, World, active, counts, replace, rule, send, under, world};

fn of(http: &str) -> FaultMatch {
    FaultMatch {
        http: Some(http.to_owned()),
        ..FaultMatch::default()
    }
}

fn ask(world: &mut World, namespace: u32, key: Option<&str>) -> Option<HttpFault> {
    let request = HttpRequest {
        namespace: NamespaceId(namespace),
        method: "POST".to_owned(),
        path: "/orders/messages".to_owned(),
        key: key.map(str::to_owned),
    };
    let now = world.now();
    world.shard.broker.http_fault(&request, now)
}

#[test]
fn a_rule_for_http_requests_counts_them_and_leaves_operations_alone() {
    let matches = FaultMatch {
        skip: 1,
        every: 2,
        times: Some(1),
        ..of("POST /{entity}/messages")
    };
    let mut world = under(matches, BUSY);
    assert!(world.shard.broker.faults_match_http());
    let refused = Some(HttpFault::Refuse(InjectedError::ServerBusy));
    let expected = [None, refused, None, None];
    for expected in expected {
        assert_eq!(ask(&mut world, 0, None), expected);
    }
    assert_eq!(send(&mut world), Some(Ok(())));
    assert_eq!(active(&world), 1);
    assert_eq!(counts(&mut world), (4, 1));
    assert_eq!(ask(&mut world, 1, None), None, "another namespace");
    assert_eq!(world.shard.broker.faults().1, 1);
    replace(&mut world, "default", Vec::new()).unwrap();
    assert!(!world.shard.broker.faults_match_http());
    assert_eq!(ask(&mut world, 0, None), None);
}

#[test]
fn a_rule_for_operations_leaves_http_requests_alone() {
    let mut world = under(FaultMatch::default(), BUSY);
    assert!(!world.shard.broker.faults_match_http());
    assert_eq!(ask(&mut world, 0, None), None);
    assert_eq!(counts(&mut world), (0, 0));
}

#[test]
fn a_rule_for_a_key_is_for_the_requests_that_show_it() {
    let matches = FaultMatch {
        key: Some("app".to_owned()),
        ..of("* /**")
    };
    let after = FaultEffect::Disconnect(DisconnectTime::After);
    let mut world = under(matches, after);
    assert!(world.shard.broker.faults_name_clients());
    assert_eq!(ask(&mut world, 0, None), None);
    assert_eq!(ask(&mut world, 0, Some("other")), None);
    let dropped = Some(HttpFault::Disconnect(DisconnectTime::After));
    assert_eq!(ask(&mut world, 0, Some("app")), dropped);
}

#[test]
fn what_requests_do_not_have_is_refused_in_a_rule_for_them() {
    let mut world = world();
    for (matches, effect, expected) in [
        (
            of("orders"),
            BUSY,
            "http: it is a method or *, a space and a path",
        ),
        (of("GET /**/a/**"), BUSY, "http: ** may come once"),
        (
            of("GET /"),
            FaultEffect::DelayMs(5),
            "the effect of a rule with http is refuse or disconnect",
        ),
        (
            FaultMatch {
                operations: vec![FaultOperation::Send],
                ..of("GET /")
            },
            BUSY,
            "operations: a rule with http has none",
        ),
        (
            FaultMatch {
                entity: Some("orders".to_owned()),
                ..of("GET /")
            },
            BUSY,
            "entity: a rule with http has none",
        ),
    ] {
        let error = replace(&mut world, "default", vec![rule(matches, effect)]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
