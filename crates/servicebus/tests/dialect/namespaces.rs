//! Which namespace a connection belongs to: by its host, else by its key, else the default one.
//! (docs/spec/amqp.md#1.7)

use std::sync::Arc;

use access::{AccessRule, AccessRules, Directory, Rights, Secret};
use amqp::frame::ProtocolHeader;
use amqp::performative::SenderSettleMode;
use amqp::sasl::Code;
use bytes::Bytes;
use dialect::{Dialect as _, KeyOwner, Namespaces};
use endpoint::{Connection, Event, Mono, Side};
use store::NamespaceId;

use crate::before_login::{header, init, open, written};
use crate::client_frames::{Request, sender, token};
use crate::world::{KEY, Login, World, client_config};

const A: NamespaceId = NamespaceId(1);
const B: NamespaceId = NamespaceId(2);

/// Two namespaces, each with a key of its name, and one key name that both have.
struct Two;

impl Two {
    fn directory(namespace: NamespaceId, name: &str) -> Arc<Directory> {
        let rule = |name: &str| AccessRule {
            name: name.to_owned(),
            primary: Secret::new(format!("{name}-key")),
            secondary: None,
            rights: Rights::ALL,
            entity: None,
        };
        Arc::new(Directory::of(
            namespace,
            AccessRules {
                rules: vec![rule(name), rule("both")],
                ..AccessRules::default()
            },
        ))
    }
}

impl Namespaces for Two {
    fn of_host(&self, host: &str) -> Option<Arc<Directory>> {
        match host {
            "a.localhost" => Some(Self::directory(A, "a")),
            "b.localhost" => Some(Self::directory(B, "b")),
            _ => None,
        }
    }

    fn of_virtual_host(&self, name: &str) -> Option<Arc<Directory>> {
        self.of_host(&format!("{name}.localhost"))
    }

    fn of_key(&self, key_name: &str) -> KeyOwner {
        match key_name {
            "a" => KeyOwner::One(Self::directory(A, "a")),
            "b" => KeyOwner::One(Self::directory(B, "b")),
            "both" => KeyOwner::Several,
            _ => KeyOwner::Default,
        }
    }

    fn of_audience(&self, path: &str) -> Option<Arc<Directory>> {
        path.starts_with("b/").then(|| Self::directory(B, "b"))
    }
}

/// A connection whose client names these hosts in the handshake of TLS and in its open.
fn connect(login: Login, server_name: Option<&str>, host: &str) -> World {
    let mut world = World::offline(login, |_| {});
    world.server = world.server.in_namespaces(Arc::new(Two), server_name);
    let config = endpoint::Config {
        hostname: Some(host.to_owned()),
        ..client_config(login)
    };
    world.client = Connection::new(Side::Client, config, Mono(0));
    world.pump();
    world
}

fn namespace(world: &World) -> NamespaceId {
    world.server.directory().namespace()
}

/// The text with which the connection was closed, or that of its refused login.
fn refused(world: &World) -> Option<String> {
    world.events.iter().find_map(|event| match event {
        Event::SaslOutcome(Code::Auth) => Some("login".to_owned()),
        Event::Closed {
            error: Some(error), ..
        } => Some(error.condition.as_str().to_owned()),
        _ => None,
    })
}

fn check(login: Login, server_name: Option<&str>, host: &str, expected: Result<u32, &str>) {
    let world = connect(login, server_name, host);
    let found = match refused(&world) {
        None => Ok(namespace(&world).0),
        Some(refused) => Err(refused),
    };
    let shown = format!("{login:?} {server_name:?} {host}");
    assert_eq!(found, expected.map_err(str::to_owned), "{shown}");
}

const ANONYMOUS: Login = Login::Mechanism("ANONYMOUS");

#[test]
fn a_host_chooses_before_a_key_does() {
    check(ANONYMOUS, None, "a.localhost", Ok(1));
    check(ANONYMOUS, None, "B.Localhost:5672", Ok(2));
    check(ANONYMOUS, Some("a.localhost"), "localhost", Ok(1));
    check(ANONYMOUS, Some("a.localhost"), "a.localhost", Ok(1));
    check(ANONYMOUS, None, "localhost", Ok(0));
    check(ANONYMOUS, None, "c.localhost", Ok(0));
    check(
        Login::Plain("both", "both-key"),
        Some("b.localhost"),
        "x",
        Ok(2),
    );
}

#[test]
fn a_key_chooses_where_no_host_does() {
    check(Login::Plain("a", "a-key"), None, "localhost", Ok(1));
    check(Login::Plain("b", "b-key"), None, "localhost", Ok(2));
    check(Login::Plain("root", KEY), None, "localhost", Ok(0));
    check(Login::Plain("a", "b-key"), None, "localhost", Err("login"));
}

#[test]
fn a_virtual_host_is_the_namespace_of_its_name() {
    check(ANONYMOUS, None, "vhost:a", Ok(1));
    check(Login::Plain("both", "both-key"), None, "vhost:b", Ok(2));
    check(ANONYMOUS, None, "vhost:/", Ok(0));
    check(Login::Plain("a", "a-key"), None, "vhost:/", Ok(1));
    for unknown in ["vhost:A", "vhost:c", "vhost:", "vhost:%2F", "vhost:a:5672"] {
        check(ANONYMOUS, None, unknown, Err("amqp:not-allowed"));
    }
}

#[test]
fn what_is_ambiguous_is_refused_as_a_login() {
    let refused = || Err("login");
    check(ANONYMOUS, Some("a.localhost"), "b.localhost", refused());
    check(
        Login::Plain("both", "both-key"),
        None,
        "localhost",
        refused(),
    );
    let of_b = Login::Plain("b", "b-key");
    check(of_b, Some("a.localhost"), "x", refused());
    for (name, key) in [("a", "a-key"), ("root", KEY)] {
        check(Login::Plain(name, key), None, "b.localhost", refused());
    }
}

/// What a server answers to a client that names no host in SASL, and this one in its open.
fn answer_to_open(login: (&str, &str), server_name: Option<&str>, host: &str) -> Bytes {
    let mut world = World::offline(ANONYMOUS, |_| {});
    world.server = world.server.in_namespaces(Arc::new(Two), server_name);
    for part in [
        header(ProtocolHeader::Sasl),
        init("PLAIN", &format!("\0{}\0{}", login.0, login.1)),
        header(ProtocolHeader::Amqp),
        written(0, &open(Some(host))),
    ] {
        let mut input = part;
        world.server.handle_input(world.clock_reading(), &mut input);
    }
    world.server.output(world.clock_reading()).split().freeze()
}

#[test]
fn an_open_that_names_another_namespace_is_refused() {
    let (a, root) = (("a", "a-key"), ("root", KEY));
    for (login, server_name, host, is_refused) in [
        (a, None, "a.localhost", false),
        (a, None, "localhost", false),
        (a, None, "b.localhost", true),
        (a, Some("a.localhost"), "b.localhost", true),
        (root, None, "b.localhost", true),
        (root, None, "localhost", false),
        (a, None, "vhost:a", false),
        (a, None, "vhost:b", true),
        (root, None, "vhost:b", true),
        (root, None, "vhost:/", false),
        (root, None, "vhost:c", true),
    ] {
        let answer = answer_to_open(login, server_name, host);
        let found = answer.windows(16).any(|part| part == b"amqp:not-allowed");
        assert_eq!(found, is_refused, "{login:?} {server_name:?} {host}");
    }
}

/// The code and the namespace after a token for `orders` by this key.
fn put(world: &mut World, name: &str) -> (i32, u32) {
    let pair = world.pair("$cbs");
    let audience = "amqp://host/missing/$management";
    let token = token(audience, name, &format!("{name}-key"), 3_600);
    let request = Request::put_token(audience, &token);
    let response = world.call(&pair, &request).expect("an answer");
    (response.code(), namespace(world).0)
}

#[test]
fn a_token_chooses_by_the_name_of_its_key() {
    // The entity of the audience is in no namespace, which is told after the key has counted.
    let mut world = connect(ANONYMOUS, None, "localhost");
    assert_eq!(put(&mut world, "b"), (404, 2));
    let mut world = connect(ANONYMOUS, None, "localhost");
    assert_eq!(put(&mut world, "both"), (401, 0));
    let mut world = connect(ANONYMOUS, None, "a.localhost");
    assert_eq!(put(&mut world, "b"), (401, 1));
    assert_eq!(namespace(&world), A, "the host has chosen");
}

#[test]
fn an_audience_chooses_where_no_host_and_no_key_does() {
    let put = |world: &mut World, audience: &str, name: &str, key: &str| {
        let pair = world.pair("$cbs");
        let token = token(audience, name, key, 3_600);
        let response = world.call(&pair, &Request::put_token(audience, &token));
        (response.expect("an answer").code(), namespace(world).0)
    };
    let (of_b, other) = ("amqp://host/b/orders", "amqp://host/c/orders");
    for (audience, name, key, expected) in [
        // A key that both have: the audience says which.
        (of_b, "both", "both-key", (404, 2)),
        (other, "both", "both-key", (401, 0)),
        // One of the default namespace alone stays there.
        (of_b, "root", KEY, (404, 0)),
        (other, "root", KEY, (404, 0)),
        // A key comes first.
        (of_b, "a", "a-key", (404, 1)),
    ] {
        let mut world = connect(ANONYMOUS, None, "localhost");
        let found = put(&mut world, audience, name, key);
        assert_eq!(found, expected, "{audience} {name}");
    }
    let mut world = connect(ANONYMOUS, None, "a.localhost");
    assert_eq!(put(&mut world, of_b, "a", "a-key"), (404, 1), "a host too");
}

#[test]
fn a_connection_that_has_begun_keeps_its_namespace() {
    let mut world = connect(Login::Plain("root", KEY), None, "localhost");
    world.sender("orders");
    assert_eq!(put(&mut world, "a"), (401, 0));
}

#[test]
fn the_entities_of_another_namespace_are_not_there() {
    let mut world = connect(Login::Plain("a", "a-key"), None, "localhost");
    let error = world.refusal(sender("orders"));
    assert_eq!(error.condition.as_str(), "amqp:not-found");
}

#[test]
fn the_end_of_its_namespace_closes_a_connection() {
    let mut world = connect(Login::Plain("root", KEY), None, "localhost");
    let link = world.receiver("orders", SenderSettleMode::Unsettled, 1);
    let deleted = Arc::new(Directory::deleted(NamespaceId(0)));
    world.server.set_directory(world.clock_reading(), deleted);
    world.pump();
    assert!(world.detach_error(link).is_some());
    assert_eq!(refused(&world).as_deref(), Some("amqp:connection:forced"));
}
