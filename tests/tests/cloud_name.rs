//! A broker in the place of a namespace of the cloud, and what makes clients trust it.

use std::fs;
use std::process::{Command, Output};

use e2e::tls::Trust;
use e2e::{Credentials, Peer, Setup};

const HOST: &str = "shop.servicebus.windows.net";

fn railbus(setup: &Setup, arguments: &[&str]) -> Output {
    let mut command = Command::new(e2e::broker::program());
    command.current_dir(setup.directory()).args(arguments);
    command.output().expect("the program is there")
}

fn ca_env(setup: &Setup, more: &[&str]) -> String {
    let data = setup.data().display().to_string();
    let arguments = [&["ca", "env", "--data-dir", &data], more].concat();
    let output = railbus(setup, &arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("commands are text")
}

#[test]
fn a_broker_with_the_name_of_a_namespace_shows_a_certificate_for_it() {
    let setup = Setup::new().arguments(&["--as", HOST]);
    let broker = setup.start();
    let port = broker.address().port();
    let expected = format!(
        "connection-string=\"Endpoint=sb://{HOST}:{port}/;SharedAccessKeyName=RootManageSharedAccessKey;\
         SharedAccessKey=SAS_KEY_VALUE;\""
    );
    let ready = broker.ready_line();
    assert!(ready.ends_with(&expected), "{ready}");
    let authority = fs::read_to_string(setup.data().join("tls/ca.pem")).unwrap();
    let trust = Trust::new(&authority);
    for name in [HOST, "localhost"] {
        let stream = trust.connect(broker.address(), name);
        let mut peer = Peer::over(stream, Credentials::DEVELOPMENT);
        assert!(peer.try_open(), "{name}");
    }
}

#[test]
fn what_clients_need_is_printed_with_a_bundle_of_all_certificates() {
    let setup = Setup::new();
    let printed = ca_env(&setup, &["--as", HOST]);
    let directory = fs::canonicalize(setup.data().join("tls")).unwrap();
    let bundle = directory.join("ca-bundle.pem");
    let authority = directory.join("ca.pem");
    for expected in [
        format!("# 127.0.0.1 {HOST}\n"),
        format!("export SSL_CERT_FILE='{}'\n", bundle.display()),
        format!("export REQUESTS_CA_BUNDLE='{}'\n", bundle.display()),
        format!("export NODE_EXTRA_CA_CERTS='{}'\n", authority.display()),
    ] {
        assert!(printed.contains(&expected), "{expected} {printed}");
    }
    let text = fs::read_to_string(&bundle).unwrap();
    assert!(text.starts_with(&fs::read_to_string(&authority).unwrap()));
    // The commands are those of a shell.
    let script = format!("{printed}test -r \"$SSL_CERT_FILE\" && test -r \"$NODE_EXTRA_CA_CERTS\"");
    let status = Command::new("sh").arg("-euc").arg(script).status();
    assert!(status.expect("there is a shell").success());
    let without = ca_env(&setup, &[]);
    assert!(!without.contains("hosts"), "{without}");
}

#[test]
fn a_name_that_is_none_is_refused() {
    let (code, said) = Setup::new().arguments(&["--as", "shop"]).refused();
    assert_eq!(code, 2);
    assert!(
        said.contains("such as shop.servicebus.windows.net"),
        "{said}"
    );
}

#[test]
fn the_variables_of_the_development_issuer_are_printed_while_there_is_one() {
    let setup = Setup::new();
    let env = |arguments: &[&str]| railbus(&setup, &[&["identity", "env"], arguments].concat());
    let output = env(&["--listen", "127.0.0.1:7000"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        printed,
        "export IDENTITY_ENDPOINT=http://localhost:7000/msi/token\n\
         export IDENTITY_HEADER=SAS_KEY_VALUE\n\
         unset IDENTITY_SERVER_THUMBPRINT IMDS_ENDPOINT MSI_ENDPOINT MSI_SECRET\n"
    );
    fs::write(
        setup.directory().join("railbus.toml"),
        "[[auth.rules]]\nname = 'own'\nprimary-key = 'key-of-own'\nrights = ['manage']\n",
    )
    .unwrap();
    assert_eq!(env(&[]).status.code(), Some(2));
}
