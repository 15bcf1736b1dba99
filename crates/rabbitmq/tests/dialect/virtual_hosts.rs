//! A virtual host is the namespace of its name, for the user `guest` too, which logs in before the
//! open names it. (docs/spec/rabbitmq.md#1, #2)

use std::sync::Arc;

use access::{AccessRule, AccessRules, Directory, Locality, Rights, Secret};
use amqp::frame::{self, FrameType, ProtocolHeader};
use amqp::sasl::SaslFrame;
use amqp::{Open, Performative, Symbol, Value};
use bytes::{Bytes, BytesMut};
use dialect::{Dialect as _, KeyOwner, Namespaces};
use store::NamespaceId;

use crate::client_frames::sender;
use crate::management_client::{map, open as open_management};
use crate::world::{KEY, Login, World};

const GUEST: &str = "\0guest\0guest";
const ROOT: &str = "\0root\0root-key";

/// The rules of all namespaces: one that counts everywhere, as a key for development does.
fn rules(is_development: bool) -> AccessRules {
    AccessRules {
        rules: vec![AccessRule {
            name: "root".to_owned(),
            primary: Secret::new("root-key".to_owned()),
            secondary: None,
            rights: Rights::ALL,
            entity: None,
        }],
        is_development,
        ..AccessRules::default()
    }
}

/// A virtual host besides the default one, `shop`.
struct Shop {
    is_development: bool,
    namespace: NamespaceId,
}

impl Namespaces for Shop {
    fn of_host(&self, _host: &str) -> Option<Arc<Directory>> {
        None
    }

    fn of_virtual_host(&self, name: &str) -> Option<Arc<Directory>> {
        let directory = Directory::of(self.namespace, rules(self.is_development));
        (name == "shop").then(|| Arc::new(directory))
    }

    fn of_key(&self, _key_name: &str) -> KeyOwner {
        KeyOwner::Default
    }

    fn of_audience(&self, _path: &str) -> Option<Arc<Directory>> {
        None
    }
}

fn sasl_init(response: &str) -> BytesMut {
    let mut bytes = BytesMut::new();
    let start = frame::begin(&mut bytes, FrameType::Sasl, 0);
    let init = SaslFrame::Init {
        mechanism: Symbol::from("PLAIN".to_owned()),
        initial_response: Some(Bytes::copy_from_slice(response.as_bytes())),
        hostname: None,
    };
    init.encode(&mut bytes);
    frame::finish(&mut bytes, start);
    bytes
}

fn open(host: &str) -> BytesMut {
    let open = Open {
        container_id: "c".to_owned(),
        hostname: Some(host.to_owned()),
        max_frame_size: 65_536,
        channel_max: 9,
        idle_time_out: None,
        outgoing_locales: Vec::new(),
        incoming_locales: Vec::new(),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    };
    let mut bytes = BytesMut::new();
    let start = frame::begin(&mut bytes, FrameType::Amqp, 0);
    Performative::Open(Box::new(open)).encode(&mut bytes);
    frame::finish(&mut bytes, start);
    bytes
}

/// A client logs in without a host and opens with this one: its namespace, if it is in one.
fn check(is_development: bool, login: &str, host: &str, expected: Option<u32>) {
    let unused = Login::Mechanism("ANONYMOUS");
    let mut world = World::offline_under(rules(is_development), unused, |_| {});
    let namespaces = Arc::new(Shop {
        is_development,
        namespace: NamespaceId(1),
    });
    let server = world.server.located(Locality::Loopback);
    world.server = server.in_namespaces(namespaces, None);
    for mut input in [
        BytesMut::from(&ProtocolHeader::Sasl.bytes()[..]),
        sasl_init(login),
        BytesMut::from(&ProtocolHeader::Amqp.bytes()[..]),
        open(host),
    ] {
        world.server.handle_input(world.clock_reading(), &mut input);
    }
    let now = world.clock_reading();
    let answer = world.server.output(now).split().freeze();
    let is_refused = answer.windows(16).any(|part| part == b"amqp:not-allowed");
    let is_in = !is_refused && !world.server.is_unauthenticated();
    let found = is_in.then(|| world.server.directory().namespace().0);
    assert_eq!(found, expected, "{is_development} {login:?} {host}");
}

#[test]
fn guest_follows_the_virtual_host_of_its_open() {
    check(true, GUEST, "vhost:shop", Some(1));
    check(true, ROOT, "vhost:shop", Some(1));
    check(true, GUEST, "vhost:/", Some(0));
    check(true, GUEST, "127.0.0.1", Some(0));
    check(true, GUEST, "vhost:none", None);
    check(true, GUEST, "vhost:Shop", None);
}

#[test]
fn a_key_of_the_default_namespace_does_not_follow() {
    check(false, ROOT, "vhost:/", Some(0));
    check(false, ROOT, "vhost:shop", None);
}

#[test]
fn texts_and_descriptions_repeat_the_virtual_host_that_the_client_has_named() {
    let login = Login::Plain("root", KEY);
    let mut world = World::offline(login, |_| {});
    let namespaces = Arc::new(Shop {
        is_development: false,
        namespace: NamespaceId::default(),
    });
    world.server = world.server.in_namespaces(namespaces, None);
    world.open_with(login, |config| {
        config.hostname = Some("vhost:shop".to_owned());
    });
    world.pump();
    let management = open_management(&mut world);
    let (status, queue) = management.declare(&mut world, "q", &[]);
    assert_eq!(status, "201", "{queue:?}");
    let Value::Map(queue) = queue else {
        panic!("a map");
    };
    let vhost = amqp::value::lookup(&queue, "vhost");
    assert_eq!(vhost, Some(&Value::from("shop")));
    let exchange = map(&[("type", Value::from("direct"))]);
    for (method, path, body, expected) in [
        (
            "GET",
            "/queues/x",
            None,
            "queue 'x' in vhost 'shop' not found",
        ),
        (
            "DELETE",
            "/queues/x/messages",
            None,
            "no queue 'x' in vhost 'shop'",
        ),
        (
            "PUT",
            "/exchanges/amq.x",
            Some(&exchange),
            "exchange 'amq.x' in vhost 'shop' starts with reserved prefix 'amq.'",
        ),
    ] {
        let (_, text) = management.call(&mut world, method, path, body);
        assert_eq!(text, Value::from(expected), "{method} {path}");
    }
    let expires = [("x-expires", Value::Int(0))];
    let (_, text) = management.declare(&mut world, "x", &expires);
    let expected = "invalid arg 'x-expires' for queue 'x' in vhost 'shop': {value_zero,0}";
    assert_eq!(text, Value::from(expected));
    let session = world.session();
    let link = world.attach(session, sender("/queues/x"));
    let error = world.detach_error(link).expect("it is refused");
    let text = error.description.as_deref();
    assert_eq!(text, Some("no queue 'x' in vhost 'shop'"));
}
