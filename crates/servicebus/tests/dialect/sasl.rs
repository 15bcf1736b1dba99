//! SASL: the accepted mechanisms, and the rights of a connection after each.

use access::{AccessRules, CertificateRule, Rights};
use amqp::performative::SenderSettleMode;
use amqp::sasl::Code;
use endpoint::Event;

use crate::world::{KEY, LISTEN_KEY, Login, World, receiver, rules, sender};

fn code(world: &World) -> Code {
    let outcome = world.events.iter().find_map(|event| match event {
        Event::SaslOutcome(code) => Some(*code),
        _ => None,
    });
    outcome.expect("SASL ends")
}

fn is_open(world: &World) -> bool {
    world
        .events
        .iter()
        .any(|event| matches!(event, Event::Opened(_)))
}

#[test]
fn rule_01_the_mechanisms_that_sdks_choose_are_offered_and_let_them_in() {
    let offered = endpoint::Config::default().sasl_mechanisms;
    for mechanism in ["MSSBCBS", "ANONYMOUS", "PLAIN"] {
        assert!(
            offered.iter().any(|offer| *offer == mechanism),
            "{mechanism}"
        );
    }
    for mechanism in ["MSSBCBS", "ANONYMOUS"] {
        let world = World::with(Login::Mechanism(mechanism), |_| {});
        assert_eq!(code(&world), Code::Ok, "{mechanism}");
        assert!(is_open(&world));
    }
}

#[test]
fn a_key_lets_in_and_anything_else_does_not() {
    let table = [
        ("root", KEY, Code::Ok),
        ("listener", LISTEN_KEY, Code::Ok),
        ("root", LISTEN_KEY, Code::Auth),
        ("root", "", Code::Auth),
        ("", "", Code::Auth),
        ("", KEY, Code::Auth),
        ("ROOT", KEY, Code::Auth),
        ("nobody", KEY, Code::Auth),
    ];
    for (name, key, expected) in table {
        let world = World::with(Login::Plain(name, key), |_| {});
        assert_eq!(code(&world), expected, "{name}");
        assert_eq!(is_open(&world), expected == Code::Ok, "{name}");
    }
}

#[test]
fn a_mechanism_that_was_not_offered_does_not_let_in() {
    for mechanism in ["SCRAM-SHA-256", "EXTERNAL"] {
        let world = World::with(Login::Mechanism(mechanism), |_| {});
        assert!(!is_open(&world), "{mechanism}");
    }
}

/// A client whose verified certificate has these names, where one rule is for `worker`.
fn with_certificate(names: &[&str], login: Login) -> World {
    let mut world = World::offline(login, |_| {});
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    world.server = world.server.with_certificate(names);
    let listen = Rights {
        listen: true,
        ..Rights::NONE
    };
    let certificates = vec![CertificateRule {
        name: "worker".to_owned(),
        rights: listen,
        entity: Some("orders".to_owned()),
    }];
    world.replace_rules(AccessRules {
        certificates,
        ..rules()
    });
    world
}

#[test]
fn external_gives_the_rights_of_a_name_in_the_certificate_while_its_rule_is_there() {
    let mut world = with_certificate(&["a.example", "worker"], Login::Mechanism("EXTERNAL"));
    assert_eq!(code(&world), Code::Ok);
    let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    for attach in [
        sender("orders"),
        receiver("orders2", SenderSettleMode::Unsettled),
    ] {
        assert_eq!(world.refusal(attach).condition, "amqp:unauthorized-access");
    }
    world.replace_rules(rules());
    assert!(!world.client.is_attached(link));
}

#[test]
fn external_without_a_rule_for_the_certificate_gives_no_right_and_neither_does_another_mechanism() {
    let table: [(&[&str], _); 3] = [
        (&["other"], "EXTERNAL"),
        (&[], "EXTERNAL"),
        (&["worker"], "ANONYMOUS"),
    ];
    for (names, mechanism) in table {
        let mut world = with_certificate(names, Login::Mechanism(mechanism));
        assert_eq!(code(&world), Code::Ok);
        let refusal = world.refusal(receiver("orders", SenderSettleMode::Unsettled));
        assert_eq!(refusal.condition, "amqp:unauthorized-access");
        world.pair("$cbs");
    }
}

#[test]
fn rights_by_plain_hold_for_the_whole_connection() {
    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    for address in ["orders", "orders2/$DeadLetterQueue"] {
        world.receiver(address, SenderSettleMode::Unsettled, 1);
        assert_eq!(
            world.refusal(sender("orders")).condition,
            "amqp:unauthorized-access"
        );
    }
}

#[test]
fn without_a_token_only_cbs_can_be_attached() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    world.pair("$cbs");
    for attach in [
        sender("orders"),
        receiver("orders", SenderSettleMode::Unsettled),
        sender("orders/$management"),
        receiver("orders/$management", SenderSettleMode::Unsettled),
        sender("$management"),
        sender("nowhere"),
    ] {
        assert_eq!(world.refusal(attach).condition, "amqp:unauthorized-access");
    }
}

#[test]
fn the_configuration_can_grant_rights_to_everyone() {
    let listen = Rights {
        listen: true,
        ..Rights::NONE
    };
    let rules = AccessRules {
        anonymous: listen,
        ..rules()
    };
    let mut world = World::under(rules, Login::Mechanism("ANONYMOUS"));
    world.receiver("orders", SenderSettleMode::Unsettled, 1);
    assert_eq!(
        world.refusal(sender("orders")).condition,
        "amqp:unauthorized-access"
    );
}
