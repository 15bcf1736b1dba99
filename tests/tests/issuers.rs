//! Issuers: JSON Web Tokens against the real program: keys from a file and from a discovery
//! document, grants, and the development issuer. (docs/spec/amqp.md#2.8; docs/spec/admin.md#2.4)

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use access::SigningKey;
use amqp::Role;
use amqp::sasl::Code;
use e2e::{Broker, Credentials, Peer, Setup, http, secrets};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value as Json, json};

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://servicebus.azure.net";
/// A path that management may read.
const PATH: &str = "/orders?api-version=2021-05";

fn key() -> SigningKey {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
        .expect("a key is generated");
    SigningKey::from_pkcs8(document.as_ref(), &random).expect("it was generated just now")
}

fn seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

fn claims(issuer: &str, role: &str) -> Json {
    json!({"iss": issuer, "aud": AUDIENCE, "roles": [role], "exp": seconds() + 3_600})
}

fn token(key: &SigningKey, claims: &Json) -> String {
    let token = key
        .sign(claims, &SystemRandom::new())
        .expect("claims are signed");
    secrets::note(&token);
    token
}

fn bearer(broker: &Broker, token: &str) -> (u16, String) {
    let header = format!("authorization: Bearer {token}");
    http::request(broker.address(), "GET", PATH, &[&header], "")
}

/// A client that shows a token as its password.
fn peer(broker: &Broker, token: &str) -> Peer {
    let password: &'static str = String::leak(token.to_owned());
    let credentials = Credentials {
        rule: "$jwt",
        key: password,
    };
    Peer::begin(broker.address(), credentials)
}

fn log_in(broker: &Broker, token: &str) -> Code {
    peer(broker, token).sasl_outcome()
}

fn write_keys(directory: &Path, key: &SigningKey) {
    let file = directory.join("keys.json");
    fs::write(file, key.jwk_set().to_string()).expect("the file is written");
}

/// A broker that trusts the keys in a file.
fn trusting_a_file(key: &SigningKey) -> (Setup, Broker) {
    let setup = Setup::new().configure(&format!(
        "[[auth.issuers]]\nissuer = '{ISSUER}'\njwks-file = 'keys.json'\n"
    ));
    write_keys(setup.directory(), key);
    let broker = setup.start();
    (setup, broker)
}

#[test]
fn a_token_lets_in_over_http_and_sasl_and_any_other_does_not() {
    let key = key();
    let (_setup, broker) = trusting_a_file(&key);
    let owner = token(&key, &claims(ISSUER, "Azure Service Bus Data Owner"));
    assert_eq!(bearer(&broker, &owner).0, 200);
    assert_eq!(log_in(&broker, &owner), Code::Ok);
    let sender = token(&key, &claims(ISSUER, "Send"));
    let (status, body) = bearer(&broker, &sender);
    assert_eq!(status, 401);
    assert!(body.contains("Manage"), "{body}");
    assert_eq!(log_in(&broker, &sender), Code::Ok);

    let late = json!({"iss": ISSUER, "aud": AUDIENCE, "roles": ["Manage"], "exp": seconds() - 600});
    let elsewhere = json!({
        "iss": ISSUER, "aud": "https://vault.azure.net", "roles": ["Manage"], "exp": seconds() + 600,
    });
    let table = [
        (
            token(&key, &claims("https://evil.example", "Manage")),
            "40109",
        ),
        (token(&self::key(), &claims(ISSUER, "Manage")), "40103"),
        (token(&key, &late), "40106"),
        (token(&key, &elsewhere), "40104"),
        ("abc.def.ghi".to_owned(), "40105"),
    ];
    for (token, sub_code) in table {
        let (status, body) = bearer(&broker, &token);
        assert_eq!(status, 401, "{body}");
        assert!(body.contains(&format!("SubCode={sub_code}")), "{body}");
        assert_eq!(log_in(&broker, &token), Code::Auth);
    }
    // The development key is not there beside an issuer.
    let known = Peer::begin(broker.address(), Credentials::DEVELOPMENT).sasl_outcome();
    assert_eq!(known, Code::Auth);
    // Each of them is counted, as a wrong key is; over HTTP so is the token without the right.
    let header = format!("authorization: Bearer {owner}");
    let (_, metrics) = http::request(broker.address(), "GET", "/metrics", &[&header], "");
    for protocol in ["amqp", "http"] {
        let expected = format!("railbus_credentials_refused_total{{protocol=\"{protocol}\"}} 6");
        assert!(metrics.lines().any(|it| it == expected), "{metrics}");
    }
}

#[test]
fn keys_in_a_file_are_replaced_while_the_broker_runs_and_a_broken_file_changes_nothing() {
    let (first, second) = (key(), key());
    let (setup, broker) = trusting_a_file(&first);
    let claims = claims(ISSUER, "Manage");
    let (old, new) = (token(&first, &claims), token(&second, &claims));
    assert_eq!(bearer(&broker, &new).0, 401);
    fs::write(setup.directory().join("keys.json"), "<html>").unwrap();
    broker.wait_for_log("the issuer's keys are kept unchanged");
    assert_eq!(bearer(&broker, &old).0, 200);
    write_keys(setup.directory(), &second);
    broker.wait_for_log("the issuer's keys are replaced");
    assert_eq!(bearer(&broker, &new).0, 200);
    assert_eq!(bearer(&broker, &old).0, 401);
    fs::write(setup.directory().join("keys.json"), r#"{"keys":[]}"#).unwrap();
    broker.wait_for_log("the issuer has no key that can be used");
    assert_eq!(bearer(&broker, &new).0, 401);
}

#[test]
fn a_broker_does_not_start_with_a_file_that_has_no_keys() {
    let setup = Setup::new().configure(&format!(
        "[[auth.issuers]]\nissuer = '{ISSUER}'\njwks-file = 'keys.json'\n"
    ));
    let (code, said) = setup.refused();
    assert_eq!(code, 2);
    assert!(said.contains("keys.json cannot be read"), "{said}");
    fs::write(setup.directory().join("keys.json"), "<html>").unwrap();
    let (code, said) = setup.refused();
    assert_eq!(code, 2);
    assert!(
        said.contains("keys.json cannot be used: it is not a JWK set"),
        "{said}"
    );
}

/// Grants by each kind of claim, for the namespace and for an entity.
const GRANTS: &str = "
[[auth.issuers]]
issuer = 'https://issuer.example'
jwks-file = 'keys.json'
audiences = ['api://orders', 'https://servicebus.azure.net']

[[auth.issuers.grants]]
role = 'Clerk'
rights = ['send']

[[auth.issuers.grants]]
role = 'Reader'
rights = ['listen']
entity = 'Orders'

[[auth.issuers.grants]]
scope = 'bus.read'
rights = ['listen']

[[auth.issuers.grants]]
scope = 'orders.write'
rights = ['send']
entity = 'orders'

[[auth.issuers.grants]]
group = 'admins'
rights = ['manage']

[[auth.issuers.grants]]
group = 'packers'
rights = ['send', 'listen']
entity = 'others'

[[auth.issuers.grants]]
subject = 'robot'
rights = ['listen']

[[auth.issuers.grants]]
subject = 'shelf'
rights = ['send']
entity = 'others'
";

/// The rights of a token at `orders` and then at `others`, as their first letters.
fn rights(broker: &Broker, token: &str) -> [String; 2] {
    let header = format!("authorization: Bearer {token}");
    let mut peer = peer(broker, token);
    assert!(peer.try_open(), "the token is good");
    ["orders", "others"].map(|queue| {
        let mut found = String::new();
        for (letter, role) in [('s', Role::Sender), ('l', Role::Receiver)] {
            match peer.try_attach(role, queue) {
                Ok(_) => found.push(letter),
                Err(error) => {
                    assert_eq!(error.condition.as_str(), "amqp:unauthorized-access");
                }
            }
        }
        let path = format!("/{queue}?api-version=2021-05");
        let (status, body) = http::request(broker.address(), "GET", &path, &[&header], "");
        match status {
            200 => found.push('m'),
            _ => assert_eq!(status, 401, "{body}"),
        }
        found
    })
}

#[test]
fn the_grants_of_the_configuration_are_the_rights_of_a_token() {
    let key = key();
    let setup = Setup::new().configure(GRANTS);
    write_keys(setup.directory(), &key);
    let broker = setup.start();
    for (more, expected) in [
        (json!({"roles": ["Clerk"]}), ["s", "s"]),
        (json!({"roles": ["Reader"]}), ["l", ""]),
        (json!({"scp": "profile bus.read"}), ["l", "l"]),
        (json!({"scp": "orders.write"}), ["s", ""]),
        (json!({"groups": ["all", "admins"]}), ["slm", "slm"]),
        (json!({"groups": ["packers"]}), ["", "sl"]),
        (json!({"sub": "robot"}), ["l", "l"]),
        (json!({"sub": "shelf"}), ["", "s"]),
        // They add up.
        (
            json!({"roles": ["Reader"], "scp": "orders.write", "sub": "shelf"}),
            ["sl", "s"],
        ),
        // They replace the usual ones, and values are compared exactly.
        (
            json!({"roles": ["Azure Service Bus Data Owner", "clerk"], "scp": "Manage"}),
            ["", ""],
        ),
        // Each claim has its own values.
        (
            json!({"roles": ["admins"], "groups": ["Clerk"], "sub": "bus.read", "scp": "robot"}),
            ["", ""],
        ),
    ] {
        let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "exp": seconds() + 3_600});
        let more = more.as_object().unwrap().clone();
        claims.as_object_mut().unwrap().extend(more);
        let found = rights(&broker, &token(&key, &claims));
        assert_eq!(found, expected, "{claims}");
    }
}

#[test]
fn the_audiences_of_the_configuration_are_those_of_a_token() {
    let key = key();
    let setup = Setup::new().configure(GRANTS);
    write_keys(setup.directory(), &key);
    let broker = setup.start();
    let of = |audience: Json| {
        let claims =
            json!({"iss": ISSUER, "aud": audience, "groups": ["admins"], "exp": seconds() + 600});
        token(&key, &claims)
    };
    for audience in [
        json!("api://orders"),
        json!("api://orders/"),
        json!(["api://else", "https://servicebus.azure.net"]),
    ] {
        let good = of(audience.clone());
        assert_eq!(bearer(&broker, &good).0, 200, "{audience}");
        assert_eq!(log_in(&broker, &good), Code::Ok, "{audience}");
    }
    for audience in [json!("api://else"), json!("api://orders2"), json!([])] {
        let wrong = of(audience.clone());
        let (status, body) = bearer(&broker, &wrong);
        assert_eq!(status, 401, "{audience}");
        assert!(body.contains("SubCode=40104"), "{body}");
        assert_eq!(log_in(&broker, &wrong), Code::Auth, "{audience}");
    }
    // Audiences of the configuration replace the usual one.
    let only = GRANTS.replace(", 'https://servicebus.azure.net'", "");
    let setup = Setup::new().configure(&only);
    write_keys(setup.directory(), &key);
    let broker = setup.start();
    assert_eq!(bearer(&broker, &of(json!(AUDIENCE))).0, 401);
    assert_eq!(bearer(&broker, &of(json!("api://orders"))).0, 200);
}

#[test]
fn a_token_sends_and_receives_over_http_what_its_rights_allow() {
    let key = key();
    let (_setup, broker) = trusting_a_file(&key);
    let header = |role: &str| {
        let token = token(&key, &claims(ISSUER, role));
        format!("authorization: Bearer {token}")
    };
    let [sender, receiver, owner] = ["Send", "Listen", "Manage"].map(header);
    let ask = |method: &str, path: &str, who: &str, body: &str| {
        let path = format!("/orders/messages{path}");
        http::request(broker.address(), method, &path, &[who], body)
    };
    let head = "/head?timeout=0";
    let locked = "/1/9c4d0b2e-8f3a-4c66-9a65-3a0d1a6a2b11";
    // Nothing is sent and nothing is taken without the right.
    let (status, body) = ask("POST", "", &receiver, "refused");
    assert_eq!(status, 401, "{body}");
    assert_eq!(ask("POST", "", &sender, "first").0, 201);
    assert_eq!(ask("POST", "", &owner, "second").0, 201);
    for (method, path) in [
        ("POST", head),
        ("DELETE", head),
        ("DELETE", locked),
        ("PUT", locked),
        ("POST", locked),
    ] {
        let (status, body) = ask(method, path, &sender, "");
        assert_eq!(status, 401, "{method} {path}: {body}");
        assert!(!body.contains("first"), "{body}");
    }
    let got = ask("DELETE", head, &receiver, "");
    assert_eq!(got, (200, "first".to_owned()));
    let got = ask("POST", head, &owner, "");
    assert_eq!(got, (201, "second".to_owned()));
    assert_eq!(ask("DELETE", head, &receiver, "").0, 204);
    // The right is there, the lock is not.
    assert_eq!(ask("DELETE", locked, &receiver, "").0, 404);
}

/// A provider of OpenID Connect on this machine, which answers until the test ends.
struct Provider {
    address: SocketAddr,
    keys: Arc<Mutex<Option<Json>>>,
}

impl Provider {
    /// One that has no keys yet.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let keys = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&keys);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a client connects");
                let mut request = Vec::new();
                let mut piece = [0; 1_024];
                while !request.ends_with(b"\r\n\r\n") {
                    let count = stream.read(&mut piece).unwrap_or_default();
                    if count == 0 {
                        break;
                    }
                    request.extend_from_slice(&piece[..count]);
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let keys = shared.lock().expect("no holder panics").clone();
                let answer = match (request.split(' ').nth(1), keys) {
                    (Some("/.well-known/openid-configuration"), _) => Some(json!({
                        "issuer": format!("http://{address}"),
                        "jwks_uri": format!("http://{address}/keys"),
                    })),
                    (Some("/keys"), keys) => keys,
                    _ => None,
                };
                let status = if answer.is_some() {
                    "200 OK"
                } else {
                    "500 Error"
                };
                let body = answer.unwrap_or_default().to_string();
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
                drop(stream.write_all((head + &body).as_bytes()));
            }
        });
        Self { address, keys }
    }

    fn name(&self) -> String {
        format!("http://{}", self.address)
    }
}

#[test]
fn keys_come_by_discovery_and_a_token_waits_for_them() {
    let provider = Provider::start();
    let name = provider.name();
    let broker = Setup::new()
        .configure(&format!("[[auth.issuers]]\nissuer = '{name}'\n"))
        .start();
    let key = key();
    let owner = token(&key, &claims(&name, "Manage"));
    broker.wait_for_log("the issuer's keys were not loaded");
    let (status, body) = bearer(&broker, &owner);
    assert_eq!(status, 503, "{body}");
    assert_eq!(log_in(&broker, &owner), Code::SysTemp);
    *provider.keys.lock().unwrap() = Some(key.jwk_set());
    broker.wait_for_log("the issuer's keys are loaded");
    assert_eq!(bearer(&broker, &owner).0, 200);
    assert_eq!(log_in(&broker, &owner), Code::Ok);
    let stranger = token(&self::key(), &claims(&name, "Manage"));
    assert_eq!(bearer(&broker, &stranger).0, 401);
}

#[test]
fn the_first_request_after_the_ready_line_finds_the_keys_of_the_issuer() {
    let provider = Provider::start();
    let key = key();
    *provider.keys.lock().unwrap() = Some(key.jwk_set());
    let name = provider.name();
    let broker = Setup::new()
        .configure(&format!("[[auth.issuers]]\nissuer = '{name}'\n"))
        .start();
    let owner = token(&key, &claims(&name, "Manage"));
    let (status, body) = bearer(&broker, &owner);
    assert_eq!(status, 200, "{body}");
    assert!(!broker.log().contains("started without the keys"));
}

#[test]
fn an_issuer_that_does_not_answer_keeps_no_broker_from_starting() {
    // The system takes connections for it, and nothing answers them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("http://{}", silent.local_addr().unwrap());
    let provider = Provider::start();
    let key = key();
    *provider.keys.lock().unwrap() = Some(key.jwk_set());
    let other = provider.name();
    let broker = Setup::new()
        .configure(&format!(
            "[[auth.issuers]]\nissuer = '{name}'\n[[auth.issuers]]\nissuer = '{other}'\n"
        ))
        .start();
    let log = broker.log();
    assert!(!log.contains("the issuer's keys were not loaded"), "{log}");
    let lines = log.lines();
    let said: Vec<_> = lines
        .filter(|line| line.contains("started without the keys"))
        .collect();
    assert_eq!(said.len(), 1, "{log}");
    assert!(said[0].contains(&name) && !said[0].contains(&other));
    let owner = token(&key, &claims(&name, "Manage"));
    assert_eq!(bearer(&broker, &owner).0, 503);
    let owner = token(&key, &claims(&other, "Manage"));
    assert_eq!(bearer(&broker, &owner).0, 200);
    drop(silent);
    broker.wait_for_log("the issuer's keys were not loaded");
}

#[test]
fn a_discovery_document_of_another_issuer_gives_no_keys() {
    let provider = Provider::start();
    let key = key();
    *provider.keys.lock().unwrap() = Some(key.jwk_set());
    let name = provider.name();
    let discovery = format!("{name}/.well-known/openid-configuration");
    let broker = Setup::new()
        .configure(&format!(
            "[[auth.issuers]]\nissuer = '{ISSUER}'\ndiscovery = '{discovery}'\n"
        ))
        .start();
    broker.wait_for_log(&format!("{discovery} is of the issuer {name}"));
    let owner = token(&key, &claims(ISSUER, "Manage"));
    assert_eq!(bearer(&broker, &owner).0, 503);
    assert_eq!(log_in(&broker, &owner), Code::SysTemp);
    // The issuer that the document names is not trusted either.
    let other = token(&key, &claims(&name, "Manage"));
    let (status, body) = bearer(&broker, &other);
    assert_eq!(status, 401);
    assert!(body.contains("SubCode=40109"), "{body}");
}

#[test]
fn keys_come_from_a_url_of_their_own_once_they_are_a_set() {
    let provider = Provider::start();
    *provider.keys.lock().unwrap() = Some(json!("no set of keys"));
    let broker = Setup::new()
        .configure(&format!(
            "[[auth.issuers]]\nissuer = '{ISSUER}'\njwks-url = '{}/keys'\n",
            provider.name()
        ))
        .start();
    let key = key();
    let owner = token(&key, &claims(ISSUER, "Manage"));
    broker.wait_for_log("the issuer's keys were not loaded");
    assert_eq!(bearer(&broker, &owner).0, 503);
    *provider.keys.lock().unwrap() = Some(key.jwk_set());
    broker.wait_for_log("the issuer's keys are loaded");
    assert_eq!(bearer(&broker, &owner).0, 200);
    assert_eq!(log_in(&broker, &owner), Code::Ok);
}

const MANAGED: &str =
    "/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fservicebus.azure.net";

fn managed(broker: &Broker, headers: &[&str]) -> (u16, Json) {
    let (status, body) = http::request(broker.address(), "GET", MANAGED, headers, "");
    (status, serde_json::from_str(&body).unwrap_or_default())
}

#[test]
fn the_development_issuer_gives_tokens_that_outlive_a_restart() {
    let setup = Setup::new();
    let broker = setup.start();
    let shown = "x-identity-header: SAS_KEY_VALUE";
    let (status, answer) = managed(&broker, &[shown]);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["token_type"], "Bearer");
    assert_eq!(answer["resource"], AUDIENCE);
    assert_eq!(answer.get("expires_in"), None);
    let expires: u64 = answer["expires_on"].as_str().unwrap().parse().unwrap();
    assert!(expires > seconds() + 80_000);
    let token = answer["access_token"].as_str().unwrap().to_owned();
    secrets::note(&token);
    assert_eq!(bearer(&broker, &token).0, 200);
    assert_eq!(log_in(&broker, &token), Code::Ok);
    assert_eq!(managed(&broker, &["x-identity-header: wrong"]).0, 401);
    assert!(broker.stop().success());

    let broker = setup.start();
    assert_eq!(bearer(&broker, &token).0, 200);
    let discovery = "/any/v2.0/.well-known/openid-configuration";
    let (status, body) = http::get(broker.address(), discovery);
    assert_eq!(status, 200, "{body}");
    let document: Json = serde_json::from_str(&body).unwrap();
    assert_eq!(document["issuer"], "http://localhost/any/v2.0");
    let endpoint = document["token_endpoint"].as_str().unwrap();
    let path = endpoint.strip_prefix("http://localhost").unwrap();
    let form = "grant_type=client_credentials&client_id=me&client_secret=SAS_KEY_VALUE\
                &scope=openid+https%3A%2F%2Fservicebus.azure.net%2F.default+profile";
    let (status, body) = http::request(broker.address(), "POST", path, &[], form);
    assert_eq!(status, 200, "{body}");
    let answer: Json = serde_json::from_str(&body).unwrap();
    let token = answer["access_token"].as_str().unwrap();
    secrets::note(token);
    assert_eq!(bearer(&broker, token).0, 200);
    let (status, body) = http::get(broker.address(), "/any/discovery/v2.0/keys");
    assert_eq!(status, 200);
    assert!(body.contains("ES256") && !body.contains("\"d\""), "{body}");
}

const METADATA: &str = "/metadata/identity/oauth2/token?api-version=2018-02-01\
                        &resource=https%3A%2F%2Fservicebus.azure.net";

#[test]
fn the_identity_of_a_virtual_machine_is_there_for_who_names_its_service() {
    let broker = Setup::new().start();
    let ask = |path: &str, headers: &[&str]| {
        let (status, body) = http::request(broker.address(), "GET", path, headers, "");
        let answer: Json = serde_json::from_str(&body).unwrap_or_default();
        (status, answer, body)
    };
    let metadata = "metadata: true";
    let before = seconds();
    // One library doubles the slash.
    for path in [METADATA.to_owned(), format!("/{METADATA}")] {
        let (status, answer, body) = ask(&path, &[metadata]);
        assert_eq!(status, 200, "{body}");
        let token = answer["access_token"].as_str().unwrap().to_owned();
        secrets::note(&token);
        let time = |name: &str| -> u64 { answer[name].as_str().unwrap().parse().unwrap() };
        assert_eq!(
            (time("expires_in"), time("ext_expires_in")),
            (86_400, 86_400)
        );
        assert!(time("not_before") >= before);
        assert_eq!(time("expires_on"), time("not_before") + 86_400);
        assert_eq!(answer["resource"], AUDIENCE);
        assert_eq!(answer["token_type"], "Bearer");
        assert_eq!(answer["client_id"], "7a11b05e-0000-4000-8000-000000000001");
        // One library lets the later of these two win.
        assert!(
            body.find("\"expires_in\"") < body.find("\"expires_on\""),
            "{body}"
        );
        assert_eq!(bearer(&broker, &token).0, 200);
        assert_eq!(log_in(&broker, &token), Code::Ok);
    }
    let (status, answer, _) = ask(&format!("{METADATA}&client_id=mine"), &["metadata: TRUE"]);
    secrets::note(answer["access_token"].as_str().unwrap());
    assert_eq!((status, &answer["client_id"]), (200, &json!("mine")));

    let missing = "Required metadata header not specified";
    let without_resource = METADATA.split('&').next().unwrap();
    for (path, headers, error, text) in [
        (METADATA, &[][..], "bad_request_102", missing),
        (METADATA, &["metadata: false"], "bad_request_102", missing),
        (
            METADATA,
            &[metadata, "x-forwarded-for: 192.0.2.1"],
            "bad_request",
            "The request was forwarded",
        ),
        (
            without_resource,
            &[metadata],
            "invalid_request",
            "The resource is missing",
        ),
    ] {
        let (status, answer, body) = ask(path, headers);
        assert_eq!(status, 400, "{body}");
        assert_eq!(answer, json!({"error": error, "error_description": text}));
    }
    let (status, _, body) = ask(METADATA, &[metadata, "origin: http://localhost"]);
    assert_eq!(status, 400);
    assert!(!body.contains("access_token"), "{body}");
}

#[test]
fn a_web_page_gets_no_token() {
    let broker = Setup::new().start();
    let shown = "x-identity-header: SAS_KEY_VALUE";
    assert_eq!(
        managed(&broker, &[shown, "origin: http://localhost"]).0,
        400
    );
    // A name that a stranger has made to lead here.
    let request = format!(
        "GET {MANAGED} HTTP/1.1\r\nhost: evil.example\r\n{shown}\r\nconnection: close\r\n\r\n"
    );
    let answer = http::exchange(broker.address(), &request);
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(!answer.contains("access_token"), "{answer}");
}

#[test]
fn with_keys_of_its_own_a_broker_is_no_development_issuer() {
    let setup = Setup::new();
    let development = setup.start();
    let (_, answer) = managed(&development, &["x-identity-header: SAS_KEY_VALUE"]);
    let token = answer["access_token"].as_str().unwrap().to_owned();
    secrets::note(&token);
    assert!(development.stop().success());
    let broker = setup
        .configure(
            "[[auth.rules]]\nname = 'own'\nprimary-key = 'key-of-own'\nrights = ['manage']\n",
        )
        .start();
    for call in DEVELOPMENT_CALLS {
        check_ordinary(broker.address(), call);
    }
    let (status, body) = bearer(&broker, &token);
    assert_eq!(status, 401);
    assert!(body.contains("SubCode=40109"), "{body}");
}

/// Method, path, header and form of a request.
type Call = (&'static str, &'static str, &'static str, &'static str);

/// One request of each kind that the development issuer answers.
const DEVELOPMENT_CALLS: [Call; 5] = [
    ("GET", MANAGED, "x-identity-header: SAS_KEY_VALUE", ""),
    ("GET", METADATA, "metadata: true", ""),
    ("POST", "/any/oauth2/v2.0/token", ACCEPT, CLIENT_CREDENTIALS),
    (
        "GET",
        "/any/v2.0/.well-known/openid-configuration",
        ACCEPT,
        "",
    ),
    ("GET", "/any/discovery/v2.0/keys", ACCEPT, ""),
];
const ACCEPT: &str = "accept: */*";
const CLIENT_CREDENTIALS: &str = "grant_type=client_credentials&client_id=me\
    &client_secret=SAS_KEY_VALUE&scope=https%3A%2F%2Fservicebus.azure.net%2F.default";

fn ask(address: SocketAddr, (method, path, header, form): Call) -> (u16, String) {
    http::request(address, method, path, &[header], form)
}

/// Where there is no development issuer, its paths are like any other.
fn check_ordinary(address: SocketAddr, call: Call) {
    let (status, body) = ask(address, call);
    assert_eq!(status, 401, "{call:?} is an ordinary path: {body}");
    for part in ["access_token", "token_endpoint", "\"keys\""] {
        assert!(!body.contains(part), "{body}");
    }
}

#[test]
fn on_an_address_of_the_network_the_development_issuer_is_not_there() {
    let setup = Setup::new().only_arguments(&[
        "--listen",
        "0.0.0.0:0",
        "--listen",
        "127.0.0.1:0",
        "--allow-development-key",
    ]);
    let broker = setup.start();
    let listen = broker.ready_line();
    let listen = listen
        .strip_prefix("railbus ready listen=0.0.0.0:")
        .unwrap();
    let (network, rest) = listen.split_once(",127.0.0.1:").unwrap();
    let (local, _) = rest.split_once(' ').unwrap();
    let at = |port: &str| SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
    let mut tokens = Vec::new();
    for call in DEVELOPMENT_CALLS {
        let (status, body) = ask(at(local), call);
        assert_eq!(status, 200, "{body}");
        let answer: Json = serde_json::from_str(&body).unwrap();
        if let Some(token) = answer["access_token"].as_str() {
            secrets::note(token);
            tokens.push(token.to_owned());
        }
        check_ordinary(at(network), call);
    }
    assert_eq!(tokens.len(), 3);
    let token = &tokens[0];
    let header = format!("authorization: Bearer {token}");
    let read = |address: SocketAddr| http::request(address, "GET", PATH, &[&header], "").0;
    assert_eq!(read(at(local)), 200);
    assert_eq!(read(at(network)), 401);
}
