//! A virtual host is the namespace of its name, for the user `guest` too, who logs in before the
//! open names it. (docs/spec/rabbitmq.md#1, #2)

use std::sync::Arc;

use access::{AccessRule, AccessRules, Directory, Locality, Rights, Secret};
use amqp::frame::{self, FrameType, ProtocolHeader};
use amqp::sasl::SaslFrame;
use amqp::{Open, Performative, Symbol};
use bytes::{Bytes, BytesMut};
use dialect::{Dialect as _, KeyOwner, Namespaces};
use store::NamespaceId;

use crate::world::{Login, World};

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

/// One namespace besides the default one, `shop`.
struct Shop {
    is_development: bool,
}

impl Namespaces for Shop {
    fn of_host(&self, _host: &str) -> Option<Arc<Directory>> {
        None
    }

    fn of_virtual_host(&self, name: &str) -> Option<Arc<Directory>> {
        let directory = Directory::of(NamespaceId(1), rules(self.is_development));
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
    let namespaces = Arc::new(Shop { is_development });
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
