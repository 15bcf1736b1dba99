//! Rights: every operation of the table, tried by everyone there is, over AMQP and HTTP.
//!
//! What is expected of a cell comes from the table and the claims alone: an operation is refused
//! for want of a right exactly if the claims at its place do not meet the required right. What
//! becomes of an operation that is not refused is for other tests.

use std::time::{SystemTime, UNIX_EPOCH};

use access::{Operation, RequiredRight, Rights, Secret};
use amqp::message::{Properties, Sections, decode_map_section, descriptor, encode_map_section};
use amqp::sasl::Code;
use amqp::{Role, Value};
use broker::Wall;
use bytes::BytesMut;
use e2e::{Broker, Credentials, Peer, Setup, http, secrets};
use endpoint::LinkId;

const RULES: &str = "
[[auth.rules]]
name = 'owner'
primary-key = 'key-of-owner'
rights = ['send', 'listen', 'manage']

[[auth.rules]]
name = 'sender'
primary-key = 'key-of-sender'
rights = ['send']

[[auth.rules]]
name = 'listener'
primary-key = 'first-key-of-listener'
secondary-key = 'key-of-listener'
rights = ['listen']

[[auth.rules]]
name = 'both'
primary-key = 'key-of-both'
rights = ['send', 'listen']

[[auth.rules]]
name = 'elsewhere'
primary-key = 'key-of-elsewhere'
rights = ['send', 'listen', 'manage']
entity = 'others'

[[auth.rules]]
name = 'here'
primary-key = 'key-of-here'
rights = ['listen']
entity = 'orders'
";

/// Rules that are made over HTTP and live with `orders`.
const OF_ORDERS: &str = r#"<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">
<QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"><AuthorizationRules>
<AuthorizationRule><Rights><AccessRights>Send</AccessRights></Rights>
<KeyName>inner-sender</KeyName><PrimaryKey>key-of-inner-sender</PrimaryKey></AuthorizationRule>
<AuthorizationRule><Rights><AccessRights>Send</AccessRights><AccessRights>Listen</AccessRights>
<AccessRights>Manage</AccessRights></Rights>
<KeyName>inner-owner</KeyName><PrimaryKey>key-of-inner-owner</PrimaryKey></AuthorizationRule>
</AuthorizationRules></QueueDescription></content></entry>"#;

/// Where a message could be that is locked.
const LOCKED: &str = "/orders/messages/1/9c4d0b2e-8f3a-4c66-9a65-3a0d1a6a2b11";

/// A client, and what it may do.
#[derive(Clone, Copy, Debug)]
struct Claimant {
    /// `None` for a client that shows no credentials.
    shows: Option<Credentials>,
    rights: Rights,
    /// Where, and below it.
    place: &'static str,
}

impl Claimant {
    /// `rights` are the first letters of Send, Listen and Manage.
    fn new(rule: &'static str, key: &'static str, rights: &str, place: &'static str) -> Self {
        Self {
            shows: Some(Credentials { rule, key }),
            rights: Rights {
                send: rights.contains('s'),
                listen: rights.contains('l'),
                manage: rights.contains('m'),
            },
            place,
        }
    }

    /// Whether they may do what needs this at a path.
    fn may(&self, required_right: RequiredRight, path: &str) -> bool {
        // A right to an entity holds for it in the broker's own interface, of this namespace.
        let own = path.strip_prefix("/$railbus").unwrap_or_default();
        let own = own.strip_prefix("/namespaces/default").unwrap_or(own);
        let of_entity = own.strip_prefix("/entities");
        let of_entity = of_entity.filter(|path| path.starts_with('/'));
        let path = of_entity.unwrap_or(path);
        let reaches = match path.strip_prefix(self.place) {
            // What holds for an entity does not for another one below it.
            Some(rest) => !rest.starts_with("/nothing"),
            None => false,
        };
        let rights = if reaches { self.rights } else { Rights::NONE };
        rights.allow(required_right)
    }

    fn connect(&self, broker: &Broker) -> Peer {
        match self.shows {
            None => Peer::anonymous(broker.address()),
            Some(credentials) => {
                let mut peer = Peer::begin(broker.address(), credentials);
                assert!(peer.try_open(), "{self:?} knows a key");
                peer
            }
        }
    }

    /// The header of a request, if they have something to show.
    fn header(&self) -> Option<String> {
        let Credentials { rule, key } = self.shows?;
        let key = Secret::new(key.to_owned());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        let expires = Wall(u64::try_from(now.as_millis()).expect("before 500,000,000") + 600_000);
        let token = access::sign("http://localhost/", rule, &key, expires);
        Some(format!("authorization: {token}"))
    }
}

fn everyone() -> Vec<Claimant> {
    let nobody = Claimant {
        shows: None,
        rights: Rights::NONE,
        place: "/",
    };
    vec![
        nobody,
        Claimant::new("owner", "key-of-owner", "slm", "/"),
        Claimant::new("sender", "key-of-sender", "s", "/"),
        Claimant::new("listener", "key-of-listener", "l", "/"),
        Claimant::new("both", "key-of-both", "sl", "/"),
        Claimant::new("elsewhere", "key-of-elsewhere", "slm", "/others"),
        Claimant::new("here", "key-of-here", "l", "/orders"),
        Claimant::new("inner-sender", "key-of-inner-sender", "s", "/orders"),
        Claimant::new("inner-owner", "key-of-inner-owner", "slm", "/orders"),
    ]
}

fn start() -> Broker {
    let broker = Setup::new().configure(RULES).start();
    secrets::note("key-of-inner-sender");
    secrets::note("key-of-inner-owner");
    describe_orders(&broker, OF_ORDERS);
    broker
}

/// Gives `orders` another description.
fn describe_orders(broker: &Broker, description: &str) {
    let owner = everyone()[1].header().expect("it has a key");
    let headers = [&*owner, "if-match: *"];
    let (status, body) = http::request(broker.address(), "PUT", "/orders", &headers, description);
    assert_eq!(status, 200, "{body}");
}

/// One way to ask for an operation: where, and what comes of it: whether it was let in.
type Attempt = (&'static str, Box<dyn Fn(&Claimant, &Broker) -> bool>);

fn over_amqp(path: &'static str, attempt: fn(&mut Peer, &str) -> bool) -> Attempt {
    let node = path.trim_start_matches('/');
    (
        path,
        Box::new(move |claimant, broker| attempt(&mut claimant.connect(broker), node)),
    )
}

fn over_http(method: &'static str, path: &'static str, body: &'static str) -> Attempt {
    (
        path,
        Box::new(move |claimant, broker| {
            let header = claimant.header();
            let headers: Vec<&str> = header.iter().map(String::as_str).collect();
            let (status, _) = http::request(broker.address(), method, path, &headers, body);
            status != 401
        }),
    )
}

/// Every way to ask for an operation.
fn attempts(operation: Operation) -> Vec<Attempt> {
    match operation {
        Operation::PutToken => vec![over_amqp("/$cbs", |peer, node| {
            is_granted(peer.try_attach(Role::Sender, node))
        })],
        Operation::Transact => vec![over_amqp("/", |peer, _| peer.coordinates())],
        Operation::Send => vec![
            over_amqp("/orders", |peer, node| {
                is_granted(peer.try_attach(Role::Sender, node))
            }),
            over_amqp("/others", |peer, node| {
                is_granted(peer.try_attach(Role::Sender, node))
            }),
        ],
        Operation::Receive => vec![
            over_amqp("/orders", |peer, node| {
                is_granted(peer.try_attach(Role::Receiver, node))
            }),
            over_amqp("/orders/$DeadLetterQueue", |peer, node| {
                is_granted(peer.try_attach(Role::Receiver, node))
            }),
        ],
        Operation::AttachManagement => vec![
            over_amqp("/orders/$management", |peer, node| {
                is_granted(peer.try_attach(Role::Sender, node))
            }),
            over_amqp("/$management", |peer, node| {
                is_granted(peer.try_attach(Role::Receiver, node))
            }),
        ],
        Operation::PostMessages => vec![
            over_http("POST", "/orders/messages", "a message"),
            over_http("POST", "/others/messages", "a message"),
            over_http("POST", "/orders/nothing/messages", ""),
        ],
        Operation::TakeMessage => vec![
            over_http("POST", "/orders/messages/head?timeout=0", ""),
            over_http("DELETE", "/orders/messages/head?timeout=0", ""),
            over_http(
                "POST",
                "/orders/$DeadLetterQueue/messages/head?timeout=0",
                "",
            ),
            over_http("GET", "/orders/messages", ""),
            over_http("POST", "/nothing/messages/head", ""),
        ],
        Operation::SettleMessage => ["DELETE", "PUT", "POST"]
            .map(|method| over_http(method, LOCKED, ""))
            .into(),
        Operation::Administer => {
            let mut all = Vec::new();
            for path in [
                "/orders",
                "/others",
                "/$namespaceinfo",
                "/$nservicebus-verification-queue",
                "/$Resources/queues",
                "/orders/Subscriptions",
                "/orders/Subscriptions/a/Rules/b",
            ] {
                all.push(over_http("GET", path, ""));
            }
            for path in [
                "/orders/nothing",
                "/others/nothing",
                "/orders/Subscriptions/a",
                "/orders/Subscriptions/a/Rules/b",
            ] {
                all.push(over_http("PUT", path, "no description"));
                all.push(over_http("DELETE", path, ""));
            }
            all
        }
        Operation::Operate => vec![
            over_http("GET", "/$railbus/clock", ""),
            over_http("POST", "/$railbus/clock", "{}"),
            over_http("POST", "/$railbus/rules/test", "{}"),
            over_http("POST", "/$railbus/entities/orders/purge", "{}"),
            over_http("DELETE", "/$railbus/entities/nothing", ""),
            over_http("GET", "/$railbus/nothing", ""),
            over_http("GET", "/$railbus/namespaces/other/counts", ""),
            over_http(
                "GET",
                "/$railbus/namespaces/other/entities/orders/messages",
                "",
            ),
            over_http(
                "POST",
                "/$railbus/namespaces/other/entities/orders/messages",
                "{}",
            ),
        ],
        Operation::Observe => [
            "/$railbus/overview",
            "/$railbus/counts",
            "/$railbus/entities",
            "/$railbus/entities/orders",
            "/$railbus/entities/orders/messages",
            "/$railbus/entities/orders/reasons",
            "/$railbus/namespaces/default/counts",
            "/$railbus/namespaces/default/entities/orders/messages",
        ]
        .map(|path| over_http("GET", path, ""))
        .into(),
        Operation::Submit => vec![over_http(
            "POST",
            "/$railbus/entities/orders/messages",
            "{}",
        )],
        Operation::ReadMetrics => vec![over_http("GET", "/metrics", "")],
        Operation::CheckHealth => vec![over_http("GET", "/health", "")],
        request => {
            let name = request.name().expect("it is asked for by its name");
            let attempt = move |claimant: &Claimant, broker: &Broker| {
                may_request(&mut claimant.connect(broker), name)
            };
            vec![("/orders/$management", Box::new(attempt))]
        }
    }
}

/// Whether a link is granted. One that is not is refused for want of a right and nothing else.
fn is_granted(attached: Result<LinkId, amqp::Error>) -> bool {
    match attached {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.condition.as_str(), "amqp:unauthorized-access");
            false
        }
    }
}

/// Whether a request to the management node of `orders` is looked at.
fn may_request(peer: &mut Peer, operation: &str) -> bool {
    let node = "orders/$management";
    let Ok(answers) = peer.try_attach(Role::Receiver, node) else {
        return false;
    };
    peer.credit(answers, 1);
    let requests = peer.sender(node);
    peer.send_encoded(requests, &request(operation));
    status(&peer.receive(answers).payload) != 401
}

fn request(operation: &str) -> Vec<u8> {
    let mut out = BytesMut::new();
    let properties = Properties {
        message_id: Some(Value::Ulong(1)),
        ..Properties::default()
    };
    properties.encode(&mut out);
    let named = [(Value::from("operation"), Value::from(operation))];
    encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &named);
    amqp::encode::descriptor(&mut out, 0x77);
    amqp::encode::value(&mut out, &Value::Map(Vec::new()));
    out.to_vec()
}

fn status(answer: &bytes::Bytes) -> i64 {
    let sections = Sections::scan(answer).expect("a message");
    let properties = answer.slice(sections.application_properties);
    let properties = decode_map_section(&properties).expect("a map");
    let status = amqp::value::lookup(&properties, "statusCode");
    let status = status.or_else(|| amqp::value::lookup(&properties, "status-code"));
    status.and_then(Value::as_integer).expect("a number")
}

#[test]
fn every_operation_is_open_to_those_who_have_its_right_and_to_nobody_else() {
    let broker = start();
    let mut wrong = Vec::new();
    for &operation in Operation::ALL {
        for claimant in everyone() {
            for (path, attempt) in attempts(operation) {
                let expected = claimant.may(operation.required_right(), path);
                if attempt(&claimant, &broker) != expected {
                    wrong.push(format!("{operation:?} at {path} by {:?}", claimant.shows));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_token_may_name_the_host_of_the_broker_alone() {
    let broker = start();
    let status = |resource: &str, host: &str| {
        let key = Secret::new("key-of-owner".to_owned());
        let token = access::sign(resource, "owner", &key, Wall(4_000_000_000_000));
        let request = format!(
            "GET /orders?api-version=2021-05 HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
             authorization: {token}\r\n\r\n"
        );
        let answer = http::exchange(broker.address(), &request);
        answer.split(' ').nth(1).map(str::to_owned)
    };
    for resource in [
        "localhost",
        "LocalHost",
        "localhost:5672",
        "127.0.0.1/",
        "orders",
    ] {
        assert_eq!(
            status(resource, "localhost").as_deref(),
            Some("200"),
            "{resource}"
        );
    }
    // The name in the request is not taken for the broker's.
    for resource in ["others", "orders2", "other.example", "orders:1"] {
        for host in ["localhost", resource] {
            assert_eq!(status(resource, host).as_deref(), Some("401"), "{resource}");
        }
    }
}

#[test]
fn a_token_that_has_expired_is_refused_over_http_with_the_time_of_its_end() {
    let broker = start();
    let key = Secret::new("key-of-owner".to_owned());
    let wrong = Secret::new("key-of-sender".to_owned());
    // 2019-04-11 21:12:56Z.
    let past = Wall(1_555_017_176_000);
    let expired = "SubCode=40106. ExpiredToken: The token is expired. \
                   Expiration time: '2019-04-11 21:12:56Z'.";
    for (key, expires, expected) in [
        (&key, past, expired),
        // The signature is looked at first.
        (&wrong, past, "SubCode=40103. InvalidSignature: "),
    ] {
        let token = access::sign("http://localhost/", "owner", key, expires);
        let header = format!("authorization: {token}");
        for (method, path) in [
            ("GET", "/orders?api-version=2021-05"),
            ("GET", "/$Resources/queues"),
            ("POST", "/orders/messages"),
            ("DELETE", "/orders/messages/head?timeout=0"),
        ] {
            let (status, body) = http::request(broker.address(), method, path, &[&header], "");
            assert_eq!(status, 401, "{method} {path}: {body}");
            assert!(body.contains(expected), "{method} {path}: {body}");
            assert!(body.contains("<Code>401</Code>"), "{body}");
        }
    }
    let token = access::sign("http://localhost/", "owner", &key, Wall(4_000_000_000_000));
    let header = format!("authorization: {token}");
    let head = "/orders/messages/head?timeout=0";
    let (status, _) = http::request(broker.address(), "DELETE", head, &[&header], "");
    assert_eq!(status, 204, "nothing was sent");
}

#[test]
fn a_key_that_is_replaced_ends_what_rests_on_it_and_the_new_one_lasts() {
    let setup = Setup::new().configure(RULES);
    let broker = setup.start();
    describe_orders(&broker, OF_ORDERS);
    let of = |key| Claimant::new("inner-sender", key, "s", "/orders");
    let (old, new) = (of("key-of-inner-sender"), of("another-key-of-inner-sender"));
    let mut peer = old.connect(&broker);
    let sender = peer.sender("orders");
    let replaced = OF_ORDERS.replace("key-of-inner-sender", "another-key-of-inner-sender");
    describe_orders(&broker, &replaced);
    let error = peer.detached(sender).expect("the broker says why");
    assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
    let mut late = Peer::begin(broker.address(), old.shows.expect("a key"));
    assert_eq!(late.sasl_outcome(), Code::Auth);
    assert!(
        new.connect(&broker)
            .try_attach(Role::Sender, "orders")
            .is_ok()
    );
    assert!(broker.stop().success());
    let broker = setup.start();
    let mut late = Peer::begin(broker.address(), old.shows.expect("a key"));
    assert_eq!(late.sasl_outcome(), Code::Auth);
    assert!(
        new.connect(&broker)
            .try_attach(Role::Sender, "orders")
            .is_ok()
    );
}

#[test]
fn without_manage_names_are_told_and_subscriptions_refused_in_the_status_line() {
    let broker = Setup::new().configure(RULES).start();
    let listener = Claimant::new("listener", "key-of-listener", "l", "/").header();
    let listener = listener.expect("it has a key");
    let ask = |path: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{listener}\r\n\r\n"
        );
        http::exchange(broker.address(), &request)
    };
    let missing = ask("/nothing");
    assert!(missing.starts_with("HTTP/1.1 200 OK\r\n"), "{missing}");
    assert!(missing.contains("Publicly Listed Services"), "{missing}");
    let read = ask("/$namespaceinfo");
    assert!(read.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{read}");
    let below = ask("/t/Subscriptions/s?api-version=2021-05");
    let expected = "HTTP/1.1 401 SubCode=40100: Unauthorized : Unauthorized access for \
        'GetSubscription' operation on endpoint 'sb://localhost/t/Subscriptions/s?api-version=2021-05'. \
        Tracking Id: ";
    assert!(below.starts_with(expected), "{below}");
    let head = below.split("\r\n\r\n").next().unwrap_or_default();
    assert!(!head.to_lowercase().contains("www-authenticate"), "{head}");
}

#[test]
fn the_root_is_an_empty_list_of_services_for_everyone() {
    let broker = Setup::new().configure(RULES).start();
    let (status, body) = http::get(broker.address(), "/");
    assert_eq!(status, 200);
    assert!(body.contains("Publicly Listed Services"), "{body}");
    let (status, body) = http::request(broker.address(), "PUT", "/", &[], "");
    assert_eq!(status, 400);
    assert!(
        body.contains("The specified HTTP verb (PUT) is not valid."),
        "{body}"
    );
}
