//! The log: each refusal is one line, with what the broker knows of it and without secrets.

use amqp::{DeliveryState, Role, Value};
use e2e::{Broker, Credentials, Peer, Setup, http, request_node, secrets};

const RULES: &str = "
[[auth.rules]]
name = 'owner'
primary-key = 'key-of-owner'
rights = ['send', 'listen', 'manage']

[[auth.rules]]
name = 'sender'
primary-key = 'key-of-sender'
rights = ['send']
";

const OWNER: Credentials = Credentials {
    rule: "owner",
    key: "key-of-owner",
};
/// The same, as HTTP shows them.
const BASIC: &str = "authorization: Basic b3duZXI6a2V5LW9mLW93bmVy";

fn connect(broker: &Broker, credentials: Credentials) -> Peer {
    let mut peer = Peer::begin(broker.address(), credentials);
    assert!(peer.try_open(), "the key is right");
    peer
}

/// Where a peer comes from, as a line says it.
fn from(peer: &mut Peer) -> String {
    let address = peer.stream().local_addr().expect("the socket is open");
    format!("peer={address} ")
}

/// The line of the log that has all these words, and is the only one.
fn line(broker: &Broker, words: &[&str]) -> String {
    let log = broker.log();
    let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
    let found: Vec<_> = log.lines().filter(has_all).collect();
    let [line] = found[..] else {
        panic!("{words:?} in {} lines of {log}", found.len());
    };
    assert!(line.contains(" WARN "), "{line}");
    line.to_owned()
}

#[test]
fn each_refusal_over_amqp_is_one_line_and_holds_no_secret() {
    let broker = Setup::new().configure(RULES).start();
    let wrong = Credentials {
        rule: "owner",
        key: "not-the-key",
    };
    let mut stranger = Peer::begin(broker.address(), wrong);
    assert!(!stranger.try_open(), "the key is wrong");
    let stranger = from(&mut stranger);
    line(&broker, &["a login is refused: ", &stranger]);

    let mut sender = connect(
        &broker,
        Credentials {
            rule: "sender",
            key: "key-of-sender",
        },
    );
    drop(sender.refused(Role::Receiver, "orders"));
    let sender = from(&mut sender);
    let words = [
        "an attach is refused: Unauthorized access. 'Listen' claim(s) are required",
        &sender,
        "link=\"link-1\" entity=\"orders\" condition=amqp:unauthorized-access",
    ];
    line(&broker, &words);

    let mut owner = connect(&broker, OWNER);
    let peer = from(&mut owner);
    drop(owner.refused(Role::Sender, "nowhere"));
    let words = [
        "an attach is refused: ",
        &peer,
        "connection=",
        "link=\"link-1\" entity=\"nowhere\" condition=amqp:not-found",
    ];
    line(&broker, &words);

    let orders = owner.sender("orders");
    let large = owner.send(orders, &vec![0; 300 * 1024]);
    let DeliveryState::Rejected(Some(error)) = large else {
        panic!("{large:?}");
    };
    let text = error.description.expect("it says why");
    let expected = format!("a message is rejected: {text} ");
    let words = [
        expected.as_str(),
        &peer,
        "entity=\"orders\" condition=amqp:link:message-size-exceeded",
    ];
    line(&broker, &words);

    let signature = "bm90LXRoZS1zaWduYXR1cmU";
    secrets::note(signature);
    let token =
        format!("SharedAccessSignature sr=localhost&sig={signature}&se=4000000000&skn=owner");
    let put = [
        ("operation", "put-token"),
        ("type", "servicebus.windows.net:sastoken"),
        ("name", "amqps://localhost/orders"),
    ];
    request_node(&mut owner, "$cbs", &put, &Value::from(token.as_str()));
    let words = [
        "a token is refused: InvalidSignature",
        &peer,
        "entity=\"orders\" condition=amqp:unauthorized-access",
    ];
    line(&broker, &words);

    let operation = "com.microsoft:renew-lock";
    let nothing = Value::Map(Vec::new());
    let renew = [("operation", operation)];
    request_node(&mut owner, "orders/$management", &renew, &nothing);
    let words = [
        "a request is refused: ",
        &peer,
        "entity=\"orders\" operation=\"com.microsoft:renew-lock\"",
        "condition=com.microsoft:argument-error",
    ];
    line(&broker, &words);
}

#[test]
fn each_error_over_http_is_one_line_and_holds_no_secret() {
    let broker = Setup::new().configure(RULES).start();
    let address = broker.address();
    let query = "/metrics?token=in-the-query-alone";
    assert_eq!(http::get(address, query).0, 401);
    let words = [
        "an HTTP request is refused: MissingToken",
        "peer=127.0.0.1:",
        "method=GET path=\"/metrics\" status=401",
    ];
    let line_of_metrics = line(&broker, &words);
    assert!(!line_of_metrics.contains("in-the-query-alone"));

    let path = "/nowhere?api-version=2021-05";
    let (status, _) = http::request(address, "DELETE", path, &[BASIC], "");
    assert_eq!(status, 404);
    let words = [
        "an HTTP request is refused: ",
        "peer=127.0.0.1:",
        "method=DELETE path=\"/nowhere\" status=404",
    ];
    line(&broker, &words);

    // What a client reports leads to the line.
    let (status, answer) = http::request(address, "GET", "/orders/messages", &[BASIC], "");
    assert_eq!(status, 400, "{answer}");
    let (_, behind) = answer.split_once("TrackingId:").expect("a tracking id");
    let (id, _) = behind.split_once(',').expect("more behind it");
    line(&broker, &["status=400", &format!("tracking_id=\"{id}\"")]);

    assert_eq!(
        http::request(address, "GET", "/metrics", &[BASIC], "").0,
        200
    );
    let refused = "an HTTP request is refused: ";
    assert_eq!(broker.log().matches(refused).count(), 3);
}

#[test]
fn a_peer_that_is_refused_again_and_again_fills_no_log() {
    let broker = Setup::new().configure(RULES).start();
    for _ in 0..200 {
        assert_eq!(http::get(broker.address(), "/metrics").0, 401);
    }
    let refused = "an HTTP request is refused: ";
    let lines = broker.log().matches(refused).count();
    // It may have taken two windows.
    assert!((20..=60).contains(&lines), "{lines} lines");
}
