//! Rules for the operations of one client: by its container id and by the key that it has used.

use broker::{ClientNames, Command, FaultMatch};

use super::{BUSY, World, counts, replace, rule, send, under};
use crate::world::request;

fn of(client: Option<&str>, key: Option<&str>) -> FaultMatch {
    FaultMatch {
        client: client.map(str::to_owned),
        key: key.map(str::to_owned),
        ..FaultMatch::default()
    }
}

/// The connection that sends.
fn introduce(world: &mut World, container_id: &str, keys: &[&str]) {
    let client = Box::new(ClientNames {
        container_id: container_id.to_owned(),
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
    });
    let connection = request(2).connection;
    let said = world.turn(Command::Introduce { connection, client });
    assert_eq!(said, vec![]);
}

#[test]
fn a_rule_for_a_client_is_for_its_connections_alone() {
    for (matches, fits) in [
        (of(Some("shop"), None), true),
        (of(Some("Shop"), None), false),
        (of(None, Some("sender")), true),
        (of(None, Some("other")), false),
        (of(Some("shop"), Some("root")), true),
        (of(Some("shop"), Some("other")), false),
    ] {
        let mut world = under(matches.clone(), BUSY);
        assert!(world.shard.broker.faults_name_clients());
        assert_eq!(send(&mut world), Some(Ok(())), "not introduced");
        introduce(&mut world, "shop", &["root", "sender"]);
        assert_eq!(send(&mut world).unwrap().is_err(), fits, "{matches:?}");
        assert_eq!(counts(&mut world).0, u64::from(fits));
    }
}

#[test]
fn a_client_is_known_by_its_last_names_until_it_is_gone() {
    let mut world = under(of(Some("shop"), None), BUSY);
    introduce(&mut world, "shop", &[]);
    introduce(&mut world, "other", &[]);
    assert_eq!(send(&mut world), Some(Ok(())));
    introduce(&mut world, "shop", &[]);
    let connection = request(2).connection;
    world.turn(Command::Disconnect { connection });
    assert_eq!(send(&mut world), Some(Ok(())));
}

#[test]
fn names_are_asked_for_while_a_rule_compares_them() {
    let mut world = under(FaultMatch::default(), BUSY);
    assert!(!world.shard.broker.faults_name_clients());
    replace(&mut world, "default", vec![rule(of(None, Some("a")), BUSY)]).unwrap();
    assert!(world.shard.broker.faults_name_clients());
    replace(&mut world, "default", Vec::new()).unwrap();
    assert!(!world.shard.broker.faults_name_clients());
}
