//! `railbus bench`: load by the program itself, and what it leaves behind.

use std::process::{Child, Command, Stdio};

use amqp::DeliveryState;
use amqp::message::{Header, Sections};
use e2e::broker::program;
use e2e::cli::{Said, railbus, railbus_at};
use e2e::{Broker, Peer, Received, Setup};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn bench(broker: &Broker, options: &str) -> Said {
    let words = format!("bench {options}");
    railbus(broker, &words.split_whitespace().collect::<Vec<_>>())
}

fn ok(broker: &Broker, options: &str) -> String {
    let said = bench(broker, options);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    said.out
}

fn json_of(broker: &Broker, options: &str) -> Value {
    serde_json::from_str(&ok(broker, &format!("{options} --json"))).expect("JSON")
}

fn fails(broker: &Broker, options: &str, code: i32, part: &str) {
    let said = bench(broker, options);
    assert_eq!(said.code, code, "{said:?}");
    assert!(said.err.contains(part), "{said:?}");
}

/// Messages that can be received.
fn left(broker: &Broker, queue: &str) -> Value {
    let said = railbus(broker, &["queue", "show", queue, "--json"]);
    let shown: Value = serde_json::from_str(&said.out).expect("JSON");
    shown["state"]["active"].clone()
}

/// Failed deliveries, as the message says.
fn delivery_count(received: &Received) -> u32 {
    let sections = Sections::scan(&received.payload).expect("a message");
    let header = received.payload.slice(sections.header);
    let header = Header::decode(&header).expect("a header");
    header.delivery_count.unwrap_or_default()
}

/// Waits below each step add up to `count`, and the quantiles rise.
fn check_waits(waits: &Value, count: u64) {
    let steps = waits["histogram"].as_array().expect("steps");
    let counts = steps.iter().map(|step| step["count"].as_u64());
    let counted: Option<u64> = counts.sum();
    assert_eq!(counted, Some(count), "{waits}");
    let quantiles = ["p50", "p90", "p99", "p99.9", "max"].map(|name| waits[name].as_f64());
    assert!(quantiles[0] > Some(0.0), "{waits}");
    assert!(quantiles.is_sorted(), "{waits}");
}

#[test]
fn what_is_sent_is_measured_and_left_there() {
    let broker = Setup::new().start();
    let said = ok(&broker, "orders --mode send --messages 500 --connections 3");
    assert!(said.contains("sent  500 "), "{said}");
    assert!(said.contains("accepted  "), "{said}");
    assert!(said.contains("left in orders  500\n"), "{said}");
    assert_eq!(left(&broker, "orders"), 500);
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 1);
    assert_eq!(peer.receive(receiver).body().len(), 1_024);
}

#[test]
fn as_many_are_received_as_are_asked_for_and_others_stay() {
    let broker = Setup::new().start();
    ok(&broker, "orders --mode send --messages 500 --size 100");
    let options = "orders --mode receive --messages 300 --connections 2 --credit 7";
    let report = json_of(&broker, options);
    assert_eq!(report["received"]["messages"], 300);
    assert_eq!(report.get("sent"), None);
    assert_eq!(left(&broker, "orders"), 200);
    // Without a number it ends when nothing comes any more.
    let report = json_of(&broker, "orders --mode receive");
    assert_eq!(report["received"]["messages"], 200);
    assert_eq!(left(&broker, "orders"), 0);
}

#[test]
fn both_ways_latency_is_measured_for_every_message_of_its_own() {
    let broker = Setup::new().start();
    let options = "--create --messages 1000 --connections 2 --in-flight 10 --size 24";
    let report = json_of(&broker, options);
    assert_eq!(report["sent"]["messages"], 1_000);
    assert_eq!(report["received"]["messages"], 1_000);
    assert_eq!(
        (&report["others"], &report["refused"]),
        (&json!(0), &json!(0))
    );
    check_waits(&report["accepted-ms"], 1_000);
    check_waits(&report["arrived-ms"], 1_000);
    let large = json_of(&broker, "--create --messages 3 --size 1MiB");
    assert_eq!(large["received"]["messages"], 3);
    let queue = report["entity"].as_str().expect("a name");
    let shown = railbus(&broker, &["queue", "show", queue]);
    assert_eq!(shown.code, 1, "{shown:?}");
}

#[test]
fn messages_of_others_are_given_back_and_do_not_count() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    for body in ["one", "two", "three"] {
        assert_eq!(peer.send(sender, body.as_bytes()), DeliveryState::Accepted);
    }
    let report = json_of(&broker, "orders --messages 50");
    assert_eq!(report["received"]["messages"], 50);
    assert_eq!(report["others"], 3);
    let receiver = peer.receiver("orders", 3);
    for body in ["one", "two", "three"] {
        let received = peer.receive(receiver);
        assert_eq!(received.body(), body.as_bytes());
        assert_eq!(delivery_count(&received), 0);
        let settled = peer.settle(&received, DeliveryState::Accepted);
        assert_eq!(settled, Some(DeliveryState::Accepted));
    }
    assert_eq!(left(&broker, "orders"), 0);
}

#[test]
fn a_queue_with_too_many_messages_of_others_is_left_as_it_is() {
    let broker = Setup::new().start();
    ok(&broker, "orders --mode send --messages 3000 --size 24");
    fails(&broker, "orders", 1, "orders holds too many other messages");
    assert_eq!(left(&broker, "orders"), 3_000);
    // As many as may come at once are not too many.
    ok(&broker, "orders --mode receive --messages 2500");
    let report = json_of(&broker, "orders --credit 100 --messages 50");
    assert_eq!(
        (&report["others"], left(&broker, "orders")),
        (&json!(500), json!(500))
    );
}

#[test]
fn a_rate_is_kept_and_the_schedule_does_not_wait_for_outcomes() {
    let broker = Setup::new().start();
    let report = json_of(
        &broker,
        "orders --mode send --messages 200 --rate 500 --connections 2",
    );
    assert_eq!(
        (&report["rate"], &report["in-flight"]),
        (&json!(500), &Value::Null)
    );
    check_waits(&report["accepted-ms"], 200);
    // The last of them is due 398 ms after the first.
    let seconds = report["sent"]["seconds"].as_f64();
    assert!(seconds >= Some(0.398), "{report}");
    assert_eq!(report["unsent"], 0);
    // What it cannot keep up with is told.
    let said = ok(
        &broker,
        "orders --mode send --rate 500000 --in-flight 1 --duration 100ms",
    );
    assert!(said.contains("behind the rate  "), "{said}");
}

#[test]
fn a_run_ends_when_its_time_is_over() {
    let broker = Setup::new().start();
    let report = json_of(&broker, "--create --duration 200ms");
    assert!(report["sent"]["messages"].as_u64() > Some(0), "{report}");
    assert_eq!(report["sent"]["messages"], report["received"]["messages"]);
}

/// One that goes on for an hour.
fn spawn(broker: &Broker, mode: &str) -> Child {
    let connection_string = e2e::cli::connection_string(broker);
    Command::new(program())
        .args(["bench", "orders", "--mode", mode, "--duration", "1h"])
        .args(["--rate", "100", "--in-flight", "1"])
        .env("RAILBUS_CONNECTION_STRING", connection_string)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is there")
}

fn interrupt(process: &Child) {
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::INT).expect("it runs");
}

/// One that sends, and has begun.
fn at_work(broker: &Broker) -> Child {
    let mut peer = Peer::connect(broker.address());
    let process = spawn(broker, "send");
    let receiver = peer.receiver("orders", 2);
    // When the second comes, it has been told that the first was accepted.
    for _ in 0..2 {
        assert_eq!(peer.receive(receiver).body().len(), 1_024);
    }
    process
}

#[test]
fn what_was_measured_is_told_though_the_broker_dies() {
    let broker = Setup::new().start();
    let process = at_work(&broker);
    broker.kill();
    let output = process.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (output.stdout, output.stderr);
    let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    assert!(out.contains("left in orders  "), "{out}");
    assert!(err.contains("ended the connection"), "{err}");
}

#[test]
fn who_interrupts_it_is_told_what_was_measured_so_far() {
    let broker = Setup::new().start();
    let process = at_work(&broker);
    interrupt(&process);
    let output = process.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("left in orders  "), "{said}");
}

#[test]
fn messages_that_somebody_else_takes_are_missed() {
    let broker = Setup::new().start();
    let mut peer = Peer::connect(broker.address());
    let receiver = peer.receiver("orders", 1);
    let process = spawn(&broker, "both");
    let taken = peer.receive(receiver);
    interrupt(&process);
    let output = process.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("accepted 1 did not arrive"), "{said}");
    assert_eq!(taken.body().len(), 1_024);
}

#[test]
fn what_is_refused_is_said_and_what_was_accepted_before_is_measured() {
    let queues = "[[queues]]\nname = 'small'\nmax-size-in-megabytes = 1\n\
                  [[queues]]\nname = 'sessions'\nrequires-session = true";
    let broker = Setup::new().configure(queues).start();
    let said = bench(&broker, "small --mode send --size 64KiB --in-flight 1");
    assert_eq!(said.code, 1, "{said:?}");
    let reason = "a message was refused with amqp:resource-limit-exceeded: ";
    assert!(said.err.contains(reason), "{said:?}");
    assert!(said.out.contains("refused  1\n"), "{said:?}");
    let said = bench(&broker, "sessions --mode send");
    assert!(
        said.err
            .contains("a message was refused with amqp:not-allowed"),
        "{said:?}"
    );
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    fails(&broker, "nowhere", 1, "could not be found");
}

#[test]
fn a_stranger_is_not_let_in() {
    let broker = Setup::new().start();
    let address = broker.address();
    let wrong = format!(
        "Endpoint=sb://{address};SharedAccessKeyName=RootManageSharedAccessKey;\
         SharedAccessKey=wrong;UseDevelopmentEmulator=true"
    );
    let said = railbus_at(&wrong, &["bench", "orders"], "");
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    assert!(
        said.err.contains("access to orders was refused with 401"),
        "{said:?}"
    );
}

#[test]
fn options_that_do_not_fit_begin_nothing() {
    let broker = Setup::new().start();
    fails(&broker, "", 2, "<ENTITY>");
    fails(&broker, "--create --mode receive", 2, "--create");
    fails(&broker, "orders --size 2MiB", 2, "1048576");
    fails(&broker, "orders --size 5", 2, "--size");
    assert_eq!(left(&broker, "orders"), 0);
}

#[test]
fn a_name_that_is_taken_is_not_made_and_not_deleted() {
    let broker = Setup::new().start();
    fails(&broker, "orders --create --messages 5", 1, "refused with 4");
    assert_eq!(left(&broker, "orders"), 0);
}

#[test]
fn tls_is_spoken_where_the_connection_string_says_so() {
    let setup = Setup::new();
    let broker = setup.start();
    let address = broker.address();
    let ca = setup.data().join("tls").join("ca.pem");
    let secured = format!(
        "Endpoint=sb://localhost:{};SharedAccessKeyName=RootManageSharedAccessKey;\
         SharedAccessKey=SAS_KEY_VALUE",
        address.port()
    );
    let ca = ca.to_str().expect("a path");
    let arguments = [
        "bench",
        "orders",
        "--messages",
        "300",
        "--size",
        "16KiB",
        "--ca",
        ca,
    ];
    let said = railbus_at(&secured, &arguments, "");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(said.out.contains("received  300 "), "{said:?}");
    let said = railbus_at(&secured, &["bench", "orders"], "");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("no connection to localhost"), "{said:?}");
}
