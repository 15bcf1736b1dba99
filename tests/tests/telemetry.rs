//! Telemetry: what a collector is sent, and that messages are as they were.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use amqp::error::condition;
use amqp::message::{Sections, decode_map_section, descriptor, encode_map_section};
use amqp::{DeliveryState, Value};
use bytes::{Bytes, BytesMut};
use e2e::{Broker, PATIENCE, Peer, Setup, http};
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde::Serialize;
use serde_json::Value as Json;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

const TOPOLOGY: &str = "
[[queues]]
name = 'final'
[[topics]]
name = 'events'
[[topics.subscriptions]]
name = 'big'
forward-to = 'final'
[[topics.subscriptions.rules]]
name = 'large'
filter = { sql = 'amount > 100' }
";

/// A collector of OpenTelemetry: takes everything, and tells the path and the body of each request.
struct Collector {
    address: SocketAddr,
    requests: Receiver<(String, Json)>,
}

impl Collector {
    fn start() -> Self {
        Self::within(None)
    }

    /// One that speaks within TLS, if there is a configuration for it.
    fn within(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let request = match &tls {
                    None => take(&mut stream),
                    Some(config) => {
                        let server = ServerConnection::new(Arc::clone(config));
                        let server = server.expect("a valid setup");
                        take(&mut StreamOwned::new(server, stream))
                    }
                };
                if sender.send(request).is_err() {
                    return;
                }
            }
        });
        Self { address, requests }
    }

    /// The broker that sends this collector all that it has.
    fn broker(&self) -> Broker {
        self.setup().configure(TOPOLOGY).start()
    }

    fn setup(&self) -> Setup {
        Setup::new()
            .environment(
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                &format!("http://{}", self.address),
            )
            .environment("OTEL_BSP_SCHEDULE_DELAY", "10")
            .environment("OTEL_METRIC_EXPORT_INTERVAL", "50")
            .environment("OTEL_SERVICE_NAME", "shop")
    }

    /// The first `count` spans, by the order of their ends.
    fn spans(&self, count: usize) -> Vec<Json> {
        let mut spans = Vec::new();
        while spans.len() < count {
            let (path, body) = self.next();
            if path == "/v1/traces" {
                let resource = &body["resourceSpans"][0];
                assert!(
                    resource["resource"].to_string().contains("shop"),
                    "{resource}"
                );
                let more = resource["scopeSpans"][0]["spans"].as_array().cloned();
                spans.extend(more.unwrap_or_default());
            }
        }
        spans
    }

    fn next(&self) -> (String, Json) {
        let next = self.requests.recv_timeout(PATIENCE);
        next.expect("the broker sends what it has")
    }
}

fn take<S: Read + Write>(stream: &mut S) -> (String, Json) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request");
    let path = line.split(' ').nth(1).expect("a path").to_owned();
    let (mut length, mut media_type, mut is_compressed) = (0, String::new(), false);
    while line.trim_end() != "" {
        line.clear();
        reader.read_line(&mut line).expect("a header");
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        } else if let Some(value) = lower.strip_prefix("content-type:") {
            media_type = value.trim().to_owned();
        } else if let Some(value) = lower.strip_prefix("content-encoding:") {
            assert_eq!(value.trim(), "gzip");
            is_compressed = true;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    reader
        .get_mut()
        .write_all(answer)
        .expect("the broker reads");
    if is_compressed {
        let mut plain = Vec::new();
        let read = GzDecoder::new(&body[..]).read_to_end(&mut plain);
        assert_eq!(read.expect("it is compressed"), plain.len());
        body = plain;
    }
    let mut body = match (&*media_type, &*path) {
        ("application/json", _) => serde_json::from_slice(&body).expect("JSON"),
        ("application/x-protobuf", "/v1/traces") => decode::<ExportTraceServiceRequest>(&body),
        ("application/x-protobuf", _) => decode::<ExportMetricsServiceRequest>(&body),
        (other, _) => panic!("a body of the type {other}"),
    };
    body["compressed"] = is_compressed.into();
    (path, body)
}

/// What a request in protobuf says, as JSON has it.
fn decode<T: Message + Default + Serialize>(body: &[u8]) -> Json {
    let request = T::decode(body).expect("a request");
    serde_json::to_value(request).expect("keys are strings")
}

/// A message whose sender was sampled, or was not.
fn message(is_sampled: bool) -> (BytesMut, Vec<(Value, Value)>) {
    let flags = u8::from(is_sampled);
    let context = format!("00-{TRACE}-{PARENT}-{flags:02}");
    let properties = vec![
        (Value::from("amount"), Value::Int(500)),
        (Value::from("Diagnostic-Id"), Value::from(context.as_str())),
    ];
    let mut message = BytesMut::new();
    encode_map_section(
        &mut message,
        descriptor::APPLICATION_PROPERTIES,
        &properties,
    );
    message.extend_from_slice(&e2e::message::encode(b"hello"));
    (message, properties)
}

fn attribute(span: &Json, key: &str) -> Option<String> {
    let attributes = span["attributes"].as_array()?;
    let found = attributes
        .iter()
        .find(|attribute| attribute["key"] == key)?;
    let value = &found["value"];
    let text = value["stringValue"].as_str().or(value["intValue"].as_str());
    text.map(str::to_owned)
}

#[test]
fn one_trace_leads_from_the_sender_through_topic_and_forwarding_to_the_dead_letter() {
    for protocol in ["http/protobuf", "http/json"] {
        follow_a_trace(protocol);
    }
}

fn follow_a_trace(protocol: &str) {
    let collector = Collector::start();
    let setup = collector.setup().configure(TOPOLOGY);
    let broker = setup
        .environment("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        .start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("events");
    for is_sampled in [false, true] {
        let cookie = peer.send_encoded(sender, &message(is_sampled).0);
        assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
    }
    let receiver = peer.receiver("final", 2);
    for is_sampled in [false, true] {
        let received = peer.receive(receiver);
        let sections = Sections::scan(&received.payload).expect("a message");
        let section = Bytes::copy_from_slice(&received.payload[sections.application_properties]);
        let properties = decode_map_section(&section).expect("a map");
        let properties: Vec<_> = properties.into_iter().collect();
        assert_eq!(properties, message(is_sampled).1, "they are unchanged");
        let reasons = vec![
            ("DeadLetterReason".into(), "spoilt".into()),
            ("DeadLetterErrorDescription".into(), "it smells".into()),
        ];
        let error = amqp::Error {
            info: Some(reasons),
            ..amqp::Error::new(condition::DEAD_LETTER, "")
        };
        let reject = DeliveryState::Rejected(Some(error));
        drop(peer.settle(&received, reject));
    }
    let spans = collector.spans(3);
    let port = broker.address().port().to_string();
    let names: Vec<_> = spans.iter().map(|span| &span["name"]).collect();
    assert_eq!(names, ["send events", "receive final", "dead_letter final"]);
    for span in &spans {
        assert_eq!(
            (&span["traceId"], &span["parentSpanId"]),
            (&TRACE.into(), &PARENT.into())
        );
        assert_eq!(
            attribute(span, "messaging.system").as_deref(),
            Some("servicebus")
        );
        let server = attribute(span, "server.address");
        assert_eq!(server.as_deref(), Some("localhost"), "of the open");
        assert_eq!(attribute(span, "server.port").as_ref(), Some(&port));
        let time = |key: &str| span[key].as_str().and_then(|time| time.parse::<u64>().ok());
        assert!(
            time("startTimeUnixNano") <= time("endTimeUnixNano"),
            "{span}"
        );
        assert!(span["status"].is_null(), "{span}");
    }
    let kinds = spans
        .iter()
        .map(|span| attribute(span, "messaging.operation.type"));
    let kinds: Vec<_> = kinds.flatten().collect();
    assert_eq!(kinds, ["send", "receive", "settle"]);
    let enqueued = attribute(&spans[1], "messaging.servicebus.message.enqueued_time");
    let enqueued = enqueued.and_then(|seconds| seconds.parse::<u64>().ok());
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.expect("after 1970").as_secs();
    let since = enqueued.and_then(|enqueued| now.checked_sub(enqueued));
    let is_recent = since.is_some_and(|seconds| seconds <= PATIENCE.as_secs());
    assert!(is_recent, "{}", spans[1]);
    let event = &spans[2]["events"][0];
    assert_eq!(event["name"], "dead-letter");
    assert_eq!(attribute(event, "reason").as_deref(), Some("spoilt"));
    assert_eq!(
        attribute(event, "description").as_deref(),
        Some("it smells")
    );
}

#[test]
fn messages_over_http_have_spans_in_each_namespace() {
    let collector = Collector::start();
    let setup = collector.setup().arguments(&["--entities", "shop.toml"]);
    let file = "[[namespaces]]\nname = 'shop'\n[[namespaces.queues]]\nname = 'baskets'";
    fs::write(setup.directory().join("shop.toml"), file).expect("the directory is ours");
    let broker = setup.start();
    let context = format!("Diagnostic-Id: \"00-{TRACE}-{PARENT}-01\"");
    for (host, queue) in [("localhost", "orders"), ("shop.localhost", "baskets")] {
        let ask = |request: &str| {
            let head = format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
            http::exchange(broker.address(), &format!("{head}{context}\r\n\r\n"))
        };
        let sent = ask(&format!("POST /{queue}/messages"));
        assert!(sent.starts_with("HTTP/1.1 201 "), "{sent}");
        let received = ask(&format!("POST /{queue}/messages/head?timeout=60"));
        let location = received.lines().find_map(|line| {
            let location = line.to_ascii_lowercase();
            let location = location.strip_prefix("location: ")?.to_owned();
            Some(location.split_once(host)?.1.to_owned())
        });
        let location = location.expect("the lock has an address");
        let completed = ask(&format!("DELETE {location}"));
        assert!(completed.starts_with("HTTP/1.1 200 "), "{completed}");
        let spans = collector.spans(3);
        let names: Vec<_> = spans.iter().map(|span| span["name"].clone()).collect();
        let expected = ["send", "receive", "complete"];
        assert_eq!(
            names,
            expected.map(|name| Json::from(format!("{name} {queue}")))
        );
        for span in &spans {
            assert_eq!(span["traceId"], TRACE);
            let peer = attribute(span, "network.peer.address");
            assert_eq!(peer.as_deref(), Some("127.0.0.1"));
            assert_eq!(attribute(span, "server.address").as_deref(), Some(host));
            let port = attribute(span, "server.port");
            assert_eq!(port, Some(broker.address().port().to_string()));
        }
    }
}

#[test]
fn the_last_abandon_has_the_reason_that_the_dead_letter_has() {
    const ONE_DELIVERY: &str = "
[[queues]]
name = 'once'
max-delivery-count = 1
lock-duration = 'PT5M'
default-message-time-to-live = 'PT1M'
dead-lettering-on-message-expiration = true
";
    let collector = Collector::start();
    let setup = collector.setup().configure(ONE_DELIVERY);
    let broker = setup.arguments(&["--virtual-clock"]).start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("once");
    let receiver = peer.receiver("once", 2);
    let abandon = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: false,
        message_annotations: None,
    };
    for expected in ["MaxDeliveryCountExceeded", "TTLExpiredException"] {
        let cookie = peer.send_encoded(sender, &message(true).0);
        assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
        let received = peer.receive(receiver);
        if expected == "TTLExpiredException" {
            let (clock, later) = ("/$railbus/clock", r#"{"advance": "PT2M"}"#);
            let (status, text) = http::request(broker.address(), "POST", clock, &[], later);
            assert_eq!(status, 200, "{text}");
        }
        drop(peer.settle(&received, abandon.clone()));
        let spans = collector.spans(3);
        assert_eq!(spans[2]["name"], "abandon once");
        let event = &spans[2]["events"][0];
        assert_eq!(attribute(event, "reason").as_deref(), Some(expected));
        assert!(attribute(event, "description").is_some(), "{event}");
    }
}

#[test]
fn metrics_are_those_of_the_page() {
    let collector = Collector::start();
    let _broker = collector.broker();
    let (path, body) = std::iter::repeat_with(|| collector.next())
        .find(|(path, _)| path == "/v1/metrics")
        .expect("there is one at each interval");
    assert_eq!(path, "/v1/metrics");
    let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array();
    let metrics = metrics.expect("a list");
    let named = |name: &str| metrics.iter().find(|metric| metric["name"] == name);
    let entities = named("railbus_entities").expect("a gauge");
    assert!(
        entities["gauge"]["dataPoints"][0]["asDouble"].as_f64() >= Some(3.0),
        "{entities}"
    );
    let commits = named("railbus_commit_duration_seconds").expect("a histogram");
    let point = &commits["histogram"]["dataPoints"][0];
    let (bounds, counts) = (&point["explicitBounds"], &point["bucketCounts"]);
    let length = |list: &Json| list.as_array().map_or(0, Vec::len);
    assert_eq!(length(counts), length(bounds) + 1, "{point}");
}

#[test]
fn a_collector_that_is_gone_stops_nothing_and_is_told_once() {
    let broker = Setup::new()
        .configure("[telemetry]\nendpoint = 'http://127.0.0.1:9'")
        .environment("OTEL_BSP_SCHEDULE_DELAY", "1")
        .environment("OTEL_METRIC_EXPORT_INTERVAL", "1")
        .start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let cookie = peer.send_encoded(sender, &message(true).0);
    assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
    broker.wait_for_log("the collector does not take spans");
    broker.wait_for_log("the collector does not take metrics");
    let lines = broker.log().matches("does not take metrics").count();
    assert_eq!(lines, 1);
    assert!(broker.stop().success());
}

#[test]
fn a_collector_within_tls_is_trusted_by_the_file_that_a_variable_names() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let parameters = rcgen::CertificateParams::new(names).expect("a name");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring does both versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        );
    let collector = Collector::within(Some(Arc::new(config.expect("a pair"))));
    let setup = collector.setup();
    let file = setup.directory().join("collector.pem");
    fs::write(&file, certificate.pem()).expect("the directory is ours");
    let endpoint = format!("https://localhost:{}", collector.address.port());
    let broker = setup
        .environment("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
        .environment("OTEL_EXPORTER_OTLP_CERTIFICATE", &file.to_string_lossy())
        .start();
    let mut peer = Peer::connect(broker.address());
    let sender = peer.sender("orders");
    let cookie = peer.send_encoded(sender, &message(true).0);
    assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
    assert_eq!(collector.spans(1)[0]["name"], "send orders");
}

#[test]
fn bodies_are_compressed_if_the_environment_says_so() {
    for protocol in ["http/protobuf", "http/json"] {
        let collector = Collector::start();
        let broker = collector
            .setup()
            .environment("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
            .environment("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip")
            .start();
        let mut peer = Peer::connect(broker.address());
        let sender = peer.sender("orders");
        let cookie = peer.send_encoded(sender, &message(true).0);
        assert_eq!(peer.outcome(cookie), DeliveryState::Accepted);
        let mut seen = [false; 2];
        while seen != [true; 2] {
            let (path, body) = collector.next();
            let is_of_traces = path == "/v1/traces";
            assert_eq!(body["compressed"], is_of_traces, "{path}");
            seen[usize::from(is_of_traces)] = true;
            if is_of_traces {
                let span = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
                assert_eq!(span["name"], "send orders");
            }
        }
    }
}
