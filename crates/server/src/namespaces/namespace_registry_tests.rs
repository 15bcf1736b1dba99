//! Namespaces that come and go, and how a connection finds its own.

use access::{AccessRule, Rights, Secret};
use broker::AuthorizationRule;

use super::*;

fn key(name: &str) -> AuthorizationRule {
    AuthorizationRule::of_key(name.to_owned(), format!("{name}-key"))
}

fn rules(name: &str, is_development: bool) -> AccessRules {
    AccessRules {
        rules: vec![AccessRule {
            name: name.to_owned(),
            primary: Secret::new(format!("{name}-key")),
            secondary: None,
            rights: Rights::ALL,
            entity: None,
        }],
        is_development,
        ..AccessRules::default()
    }
}

fn registry(is_development: bool) -> NamespaceRegistry {
    let registry = NamespaceRegistry::default();
    registry.set_access_rules(rules("root", is_development));
    registry
}

fn put(registry: &NamespaceRegistry, id: u32, name: &str, hosts: &[&str], keys: &[&str]) {
    let definition = NamespaceDefinition {
        name: name.to_owned(),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        keys: keys.iter().map(|name| key(name)).collect(),
        ..NamespaceDefinition::default()
    };
    registry.apply([DirectoryChange::Namespace(NamespaceChange {
        id: NamespaceId(id),
        definition: Some(Arc::new(definition)),
    })]);
}

/// The queue `orders` of the default namespace has a key.
fn put_key_at_queue(registry: &NamespaceRegistry, name: &str) {
    registry.apply([DirectoryChange::Entity(Box::new(EntityChange {
        id: store::EntityId(7),
        namespace: NamespaceId(0),
        path: "orders".to_owned(),
        kind: broker::EntityKind::Queue,
        settings: Some(broker::QueueSettings::default()),
        authorization_rules: vec![key(name)],
        replaces: None,
    }))]);
}

#[test]
fn keys_of_entities_of_the_default_namespace_come_first_too() {
    let registry = registry(false);
    put(&registry, 1, "a", &[], &["app"]);
    assert!(matches!(registry.of_key("app"), KeyOwner::One(_)));
    put_key_at_queue(&registry, "app");
    assert!(matches!(registry.of_key("app"), KeyOwner::Default));
}

fn remove(registry: &NamespaceRegistry, id: u32) {
    registry.apply([DirectoryChange::Namespace(NamespaceChange {
        id: NamespaceId(id),
        definition: None,
    })]);
}

fn of_host(registry: &NamespaceRegistry, host: &str) -> Option<u32> {
    registry.of_host(host).map(|found| found.namespace().0)
}

fn of_key(registry: &NamespaceRegistry, name: &str) -> String {
    match registry.of_key(name) {
        KeyOwner::Default => "default".to_owned(),
        KeyOwner::One(directory) => directory.namespace().0.to_string(),
        KeyOwner::Several => "several".to_owned(),
    }
}

#[test]
fn a_host_is_that_of_one_namespace() {
    let registry = registry(true);
    put(&registry, 1, "a", &["shop.example.com"], &[]);
    put(&registry, 2, "b", &[], &[]);
    for (host, expected) in [
        ("a.localhost", Some(1)),
        ("b.servicebus.windows.net", Some(2)),
        ("shop.example.com", Some(1)),
        ("default.localhost", Some(0)),
        ("localhost", None),
        ("c.localhost", None),
    ] {
        assert_eq!(of_host(&registry, host), expected, "{host}");
    }
    for (name, expected) in [
        ("a", Some(1)),
        ("default", Some(0)),
        ("A", None),
        ("shop.example.com", None),
        ("/", None),
    ] {
        let found = registry.of_virtual_host(name);
        let found = found.map(|found| found.namespace().0);
        assert_eq!(found, expected, "virtual host {name}");
    }
    put(&registry, 1, "a", &["other.example.com"], &[]);
    assert_eq!(of_host(&registry, "shop.example.com"), None);
    assert_eq!(of_host(&registry, "other.example.com"), Some(1));
    remove(&registry, 1);
    assert_eq!(of_host(&registry, "other.example.com"), None);
    assert_eq!(of_host(&registry, "a.localhost"), None);
}

#[test]
fn a_key_chooses_a_namespace_unless_the_default_one_or_several_have_it() {
    let registry = registry(false);
    put(&registry, 1, "a", &[], &["a", "root", "both"]);
    put(&registry, 2, "b", &[], &["both"]);
    assert_eq!(of_key(&registry, "a"), "1");
    assert_eq!(of_key(&registry, "root"), "default");
    assert_eq!(of_key(&registry, "both"), "several");
    assert_eq!(of_key(&registry, "nobody"), "default");
    remove(&registry, 2);
    assert_eq!(of_key(&registry, "both"), "1");
    remove(&registry, 1);
    assert_eq!(of_key(&registry, "both"), "default");
}

#[test]
fn the_beginning_of_an_audience_chooses_a_namespace_unless_the_default_one_has_it() {
    let registry = registry(false);
    put(&registry, 1, "a", &[], &[]);
    put(&registry, 2, "orders", &[], &[]);
    let of_audience = |path: &str| {
        let found = registry.of_audience(path);
        found.map(|directory| directory.namespace().0)
    };
    for (path, expected) in [
        ("a/orders", Some(1)),
        ("a/orders/subscriptions/s", Some(1)),
        ("orders/subscriptions/s", Some(2)),
        ("a", None),
        ("b/orders", None),
        ("default/orders", None),
        ("", None),
    ] {
        assert_eq!(of_audience(path), expected, "{path}");
    }
    // The default namespace has a queue of the name of the second one.
    put_key_at_queue(&registry, "app");
    assert_eq!(of_audience("orders/subscriptions/s"), None);
    assert_eq!(of_audience("a/orders"), Some(1));
    remove(&registry, 1);
    assert_eq!(of_audience("a/orders"), None);
}

#[test]
fn a_token_is_for_a_namespace_that_has_its_key() {
    let registry = registry(false);
    put(&registry, 1, "a", &[], &["app"]);
    for (key, expected) in [
        (None, Some(1)),
        (Some("app"), Some(1)),
        (Some("root"), None),
    ] {
        let found = registry.of_token(key, "a/orders");
        let found = found.map(|directory| directory.namespace().0);
        assert_eq!(found, expected, "{key:?}");
    }
    assert!(registry.of_token(Some("app"), "orders").is_none());
}

#[test]
fn a_namespace_accepts_its_own_keys_and_no_other() {
    for is_development in [false, true] {
        let registry = registry(is_development);
        put(&registry, 1, "a", &[], &["a"]);
        put(&registry, 2, "b", &[], &["b"]);
        let accepts = |id, name: &str| {
            let directory = registry.directory(NamespaceId(id)).unwrap();
            let access = directory.access();
            access
                .log_in(name, format!("{name}-key").as_bytes())
                .is_some()
        };
        assert!(accepts(1, "a") && accepts(2, "b") && accepts(0, "root"));
        for (id, name) in [(1, "b"), (2, "a"), (0, "a"), (0, "b")] {
            assert!(!accepts(id, name), "{id} {name}");
        }
        assert_eq!(accepts(1, "root"), is_development, "that key is public");
    }
}

#[test]
fn rules_of_the_configuration_that_change_reach_all_namespaces() {
    let registry = registry(true);
    put(&registry, 1, "a", &[], &["a"]);
    registry.set_access_rules(rules("other", false));
    let directory = registry.directory(NamespaceId(1)).unwrap();
    let access = directory.access();
    assert!(access.log_in("root", b"root-key").is_none());
    assert!(access.log_in("a", b"a-key").is_some());
    assert!(!access.is_development());
}

#[test]
fn connections_are_told_of_their_own_namespace_alone() {
    let registry = registry(true);
    put(&registry, 1, "a", &[], &["a"]);
    put(&registry, 2, "b", &[], &["b"]);
    let mut watching = [1, 2].map(|id| registry.subscribe(NamespaceId(id)).unwrap());
    let change = |namespace, path: &str| {
        DirectoryChange::Entity(Box::new(EntityChange {
            id: store::EntityId(9),
            namespace: NamespaceId(namespace),
            path: path.to_owned(),
            kind: broker::EntityKind::Queue,
            settings: Some(broker::QueueSettings::default()),
            authorization_rules: Vec::new(),
            replaces: None,
        }))
    };
    registry.apply([change(1, "orders"), change(7, "lost")]);
    assert!(watching[0].has_changed().unwrap());
    assert!(!watching[1].has_changed().unwrap());
    assert!(watching[0].borrow_and_update().get("Orders").is_some());
    assert!(watching[1].borrow().get("orders").is_none());
    remove(&registry, 1);
    assert!(watching[0].borrow().is_deleted());
    assert!(registry.subscribe(NamespaceId(1)).is_none());
    assert!(!watching[1].borrow().is_deleted());
}
