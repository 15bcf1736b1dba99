//! The broker's certificate: by its own authority or from files, and replaced while it runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use access::Secret;
use amqp::{DeliveryState, Role};
use broker::Wall;
use e2e::tls::{Secured, Trust};
use e2e::{Broker, Credentials, Peer, Setup, http};
use rcgen::{CertificateParams, KeyPair};

fn ca(setup: &Setup, arguments: &[&str]) -> Output {
    let mut command = Command::new(e2e::broker::program());
    command.current_dir(setup.directory()).arg("ca");
    let output = command
        .args(arguments)
        .arg("--data-dir")
        .arg(setup.data())
        .output();
    output.expect("the program is there")
}

/// What `railbus ca export` prints.
fn exported(setup: &Setup) -> String {
    let output = ca(setup, &["export"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("PEM is text")
}

fn try_connect(broker: &Broker, trust: &Trust, name: &str) -> Option<Peer<Secured>> {
    let mut stream = trust.connect(broker.address(), name);
    let (client, socket) = (&mut stream.conn, &mut stream.sock);
    while client.is_handshaking() {
        client.complete_io(socket).ok()?;
    }
    Some(Peer::over(stream, Credentials::DEVELOPMENT))
}

fn check(broker: &Broker, trust: &Trust) {
    for name in ["localhost", "127.0.0.1", "::1"] {
        let mut peer = try_connect(broker, trust, name).expect(name);
        let sender = peer.sender("orders");
        assert_eq!(peer.send(sender, b"hello"), DeliveryState::Accepted);
    }
}

#[test]
fn a_broker_makes_its_own_authority_and_keeps_it() {
    let setup = Setup::new();
    let broker = setup.start();
    let pem = exported(&setup);
    let trust = Trust::new(&pem);
    check(&broker, &trust);
    assert_eq!(broker.stop().code(), Some(0));
    let broker = setup.start();
    check(&broker, &trust);
    assert_eq!(exported(&setup), pem);
    for key in ["ca.key", "server.key"] {
        let file = fs::metadata(setup.data().join("tls").join(key)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{key}");
    }
}

#[test]
fn an_authority_can_be_exported_before_the_first_start_and_shown() {
    let setup = Setup::new();
    let file = setup.directory().join("trusted.pem");
    let output = ca(&setup, &["export", "--out", "trusted.pem"]);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    let broker = setup.start();
    check(&broker, &Trust::new(&fs::read_to_string(file).unwrap()));
    let shown = String::from_utf8(ca(&setup, &["show"]).stdout).unwrap();
    let authority = setup.data().join("tls").join("ca.pem");
    assert!(
        shown.contains(&format!("{}\n", authority.display())),
        "{shown}"
    );
    assert!(shown.contains("Railbus local authority"), "{shown}");
    assert!(shown.contains("localhost, 127.0.0.1, ::1"), "{shown}");
}

#[test]
fn ephemeral_brokers_may_share_an_authority_that_lasts() {
    let setup = Setup::new().only_arguments(&[
        "--ephemeral",
        "--listen",
        "127.0.0.1:0",
        "--tls-dir",
        "shared",
    ]);
    let broker = setup.start();
    let pem = fs::read_to_string(setup.directory().join("shared/ca.pem")).unwrap();
    check(&broker, &Trust::new(&pem));
}

/// A certificate and its key, written beside each other.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn of(setup: &Setup) -> Self {
        Self {
            certificate: setup.directory().join("own.pem"),
            key: setup.directory().join("own.key"),
        }
    }

    /// Replaces both as a renewal does, and returns what to trust from then on.
    fn renew(&self) -> Trust {
        self.renew_for(&["localhost", "127.0.0.1", "::1"])
    }

    fn renew_for(&self, names: &[&str]) -> Trust {
        let key = KeyPair::generate().expect("chance");
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).expect("names");
        let certificate = certificate.self_signed(&key).expect("a certificate").pem();
        replace(&self.key, &key.serialize_pem());
        replace(&self.certificate, &certificate);
        Trust::new(&certificate)
    }
}

fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).expect("the directory is ours");
    fs::rename(beside, path).expect("the directory is ours");
}

fn with_files() -> (Setup, Files) {
    let setup = Setup::new();
    let files = Files::of(&setup);
    let setup = setup.configure("tls-certificate = 'own.pem'\ntls-key = 'own.key'\n");
    (setup, files)
}

#[test]
fn a_certificate_from_files_is_read_again_when_it_changes() {
    let (setup, files) = with_files();
    let first = files.renew();
    let broker = setup.start();
    check(&broker, &first);
    let mut before = try_connect(&broker, &first, "localhost").expect("it is trusted");
    assert!(before.try_open());
    replace(&files.key, "no key");
    while !broker.log().contains("the current TLS certificate is kept") {
        check(&broker, &first);
    }
    let second = files.renew();
    while try_connect(&broker, &second, "localhost").is_none() {}
    check(&broker, &second);
    let sender = before.sender("orders");
    assert_eq!(before.send(sender, b"still here"), DeliveryState::Accepted);
}

/// Neither SASL nor the open of this client names a host that chooses one.
#[test]
fn the_server_name_of_tls_chooses_a_namespace() {
    let (setup, files) = with_files();
    let setup =
        setup.configure("[[namespaces]]\nname = 'team'\n[[namespaces.queues]]\nname = 'inbox'\n");
    let trust = files.renew_for(&["localhost", "team.localhost"]);
    let broker = setup.start();
    for (name, queue, other) in [
        ("team.localhost", "inbox", "orders"),
        ("localhost", "orders", "inbox"),
    ] {
        let mut peer = try_connect(&broker, &trust, name).expect("it is trusted");
        let sender = peer.sender(queue);
        assert_eq!(
            peer.send(sender, b"hello"),
            DeliveryState::Accepted,
            "{name}"
        );
        let error = peer.refused(Role::Sender, other);
        assert_eq!(error.condition.as_str(), "amqp:not-found", "{name}");
    }
}

/// A signature for the bare name of the broker is one for the namespace. (docs/spec/amqp.md#2.5)
#[test]
fn the_names_of_a_new_certificate_are_the_brokers_and_those_of_the_old_one_are_not() {
    let (setup, files) = with_files();
    files.renew_for(&["localhost", "old.example"]);
    let broker = setup.start();
    let ask = |name: &str| {
        let key = Secret::new("SAS_KEY_VALUE".to_owned());
        let expires = Wall(4_000_000_000_000);
        let token = access::sign(name, "RootManageSharedAccessKey", &key, expires);
        let header = format!("authorization: {token}");
        http::request(broker.address(), "GET", "/$namespaceinfo", &[&header], "").0
    };
    assert_eq!((ask("old.example"), ask("new.example")), (200, 401));
    replace(&files.certificate, "no certificate");
    broker.wait_for_log("the current TLS certificate is kept");
    files.renew_for(&["localhost", "new.example"]);
    broker.wait_for_log("reloaded: the names of the broker are localhost, new.example");
    assert_eq!((ask("old.example"), ask("new.example")), (401, 200));
}

#[test]
fn what_can_not_be_used_refuses_to_start_and_says_why() {
    let (setup, files) = with_files();
    files.renew();
    replace(&files.key, &KeyPair::generate().unwrap().serialize_pem());
    let (code, stderr) = setup.refused();
    assert_eq!(code, 2);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(
        stderr.contains("does not belong to the certificate"),
        "{stderr}"
    );

    let (code, stderr) = Setup::new().arguments(&["--tls-key", "k.pem"]).refused();
    assert_eq!(code, 2);
    assert!(stderr.contains("--tls-certificate"), "{stderr}");

    let output = ca(&setup, &["export", "--config", "railbus.toml"]);
    assert_eq!(output.status.code(), Some(2));
}
