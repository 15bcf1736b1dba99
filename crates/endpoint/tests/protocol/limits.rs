//! Limits: peers that ask for much with little. (Reliability, faults 13 and 15)

use std::collections::{BTreeMap, BTreeSet};

use amqp::error::condition;
use amqp::frame::{self, FrameType, ProtocolHeader};
use amqp::performative::Role;
use amqp::{DeliveryState, Detach, Disposition, End, Error, Flow, Performative, Transfer, Value};
use bytes::{Bytes, BytesMut};
use endpoint::{
    Config, Connection, DetectedError, ErrorScope, Event, LinkId, Mono, Outgoing, Scope, Side,
};

use super::support::pair::attach;
use super::support::print;
use super::support::script::{config, usual_begin, usual_open};

/// A server engine whose links are all accepted.
struct Server {
    connection: Connection,
    input: BytesMut,
    links: Vec<LinkId>,
    output: Vec<String>,
}

impl Server {
    fn new(config: Config) -> Self {
        let mut server = Self {
            connection: Connection::new(Side::Server, config, Mono(0)),
            input: BytesMut::new(),
            links: Vec::new(),
            output: Vec::new(),
        };
        server
            .input
            .extend_from_slice(&ProtocolHeader::Amqp.bytes());
        server.put(&usual_open(u32::MAX));
        server.put(&usual_begin());
        server.run();
        server
    }

    fn put(&mut self, performative: &Performative) {
        let start = frame::begin(&mut self.input, FrameType::Amqp, 0);
        performative.encode(&mut self.input);
        frame::finish(&mut self.input, start);
    }

    fn attach(&mut self, role: Role) {
        self.put(&Performative::Attach(Box::new(attach("link", role))));
    }

    /// Feeds what was put and returns the events.
    fn run(&mut self) -> Vec<Event> {
        self.connection.handle_input(Mono(0), &mut self.input);
        let mut events = Vec::new();
        while let Some(event) = self.connection.poll_event() {
            if let Event::AttachRequested { link, attach, .. } = &event {
                self.links.push(*link);
                self.connection.accept(*link, (**attach).clone());
            }
            events.push(event);
        }
        self.output = print::output(&mut self.connection.output(Mono(0)).split());
        events
    }
}

fn flow(credit: u32) -> Performative {
    Performative::Flow(Flow {
        next_incoming_id: Some(1),
        incoming_window: u32::MAX,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(credit),
        ..Flow::default()
    })
}

#[test]
fn one_small_frame_again_and_again_makes_no_heap_of_events() {
    let mut server = Server::new(config());
    server.attach(Role::Receiver);
    server.put(&flow(10_000));
    server.run();
    for cookie in 0..10_000 {
        let outgoing = Outgoing {
            tag: b"tag",
            cookie,
            ..Outgoing::default()
        };
        let sent = server.connection.send(server.links[0], &outgoing, &[b"x"]);
        assert_eq!(sent, Ok(()));
    }
    server.run();
    for _ in 0..5 {
        server.put(&Performative::Disposition(Disposition {
            role: Role::Receiver,
            first: 0,
            last: Some(u32::MAX >> 1),
            settled: false,
            state: Some(DeliveryState::Accepted),
            batchable: false,
        }));
    }
    server.put(&Performative::End(End { error: None }));
    let events = server.run();
    // Each delivery is told once, however often the peer repeats itself before it is answered.
    let disposed = |event: &&Event| matches!(event, Event::Disposed { .. });
    assert_eq!(events.iter().filter(disposed).count(), 10_000);
    assert!(matches!(
        &events[10_000..],
        [Event::Detached { unsettled, .. }, Event::Ended { .. }] if unsettled.len() == 10_000
    ));
    assert_eq!(server.output, ["0: end"]);
}

#[test]
fn a_large_state_is_not_copied_for_thousands_of_deliveries() {
    let mut server = Server::new(config());
    server.attach(Role::Receiver);
    server.put(&flow(2_000));
    server.run();
    let outgoing = Outgoing {
        tag: b"tag",
        ..Outgoing::default()
    };
    for _ in 0..2_000 {
        let sent = server.connection.send(server.links[0], &outgoing, &[b"x"]);
        assert_eq!(sent, Ok(()));
    }
    server.run();
    let text = Value::String("x".repeat(10_000));
    server.put(&Performative::Disposition(Disposition {
        role: Role::Receiver,
        first: 0,
        last: Some(1_999),
        settled: true,
        state: Some(DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            message_annotations: Some(vec![(Value::Symbol("note".into()), text)]),
        }),
        batchable: false,
    }));
    let events = server.run();
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, Event::Disposed { .. }))
    );
    assert_eq!(server.output, ["0: end error=amqp:resource-limit-exceeded"]);
}

#[test]
fn a_link_refused_for_want_of_room_gets_its_credit_again() {
    // Two links share a session that remembers four deliveries: the second one is refused while
    // the first has them all, and its limit, unchanged, is news to it when they are settled.
    let mut server = Server::new(Config {
        max_unsettled: 4,
        ..config()
    });
    server.attach(Role::Receiver);
    let mut second = attach("other", Role::Receiver);
    second.handle = 1;
    server.put(&Performative::Attach(Box::new(second)));
    for handle in 0..2 {
        let Performative::Flow(flow) = flow(4) else {
            unreachable!("a flow is a flow");
        };
        server.put(&Performative::Flow(Flow {
            handle: Some(handle),
            ..flow
        }));
    }
    server.run();
    let outgoing = Outgoing {
        tag: b"tag",
        ..Outgoing::default()
    };
    for _ in 0..4 {
        let sent = server.connection.send(server.links[0], &outgoing, &[b"x"]);
        assert_eq!(sent, Ok(()));
    }
    let refused = server.connection.send(server.links[1], &outgoing, &[b"x"]);
    assert!(refused.is_err());
    server.run();
    server.put(&Performative::Disposition(Disposition {
        role: Role::Receiver,
        first: 0,
        last: Some(3),
        settled: true,
        state: Some(DeliveryState::Accepted),
        batchable: false,
    }));
    let events = server.run();
    let second = server.links[1];
    let told =
        |event: &Event| matches!(event, Event::Credit { link, limit: 4, .. } if *link == second);
    assert!(events.iter().any(told), "{events:?}");
}

#[test]
fn a_link_that_never_listens_to_our_detach_ends_the_session() {
    // [AMQP 2.8.17]: errant-link
    let mut server = Server::new(Config {
        incoming_window: 1_000_000,
        ..config()
    });
    server.attach(Role::Sender);
    server.run();
    server.connection.detach(server.links[0], true, None);
    for _ in 0..65_536 {
        server.put(&transfer(0));
    }
    assert_eq!(server.run(), []);
    server.put(&transfer(0));
    let events = server.run();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(server.output, ["0: end error=amqp:session:errant-link"]);
}

fn transfer(delivery_id: u32) -> Performative {
    Performative::Transfer(Transfer {
        delivery_id: Some(delivery_id),
        delivery_tag: Some(Bytes::from_static(b"tag")),
        settled: Some(true),
        ..Transfer::default()
    })
}

#[test]
fn ids_of_links_and_sessions_are_never_used_again() {
    let mut server = Server::new(config());
    let mut sessions = BTreeSet::new();
    for _ in 0..10_000 {
        server.attach(Role::Sender);
        server.put(&Performative::Detach(Detach {
            handle: 0,
            closed: true,
            error: None,
        }));
        server.put(&Performative::End(End { error: None }));
        server.put(&usual_begin());
        for event in server.run() {
            if let Event::Begun { session } = event {
                assert!(sessions.insert(session), "{session:?} came twice");
            }
        }
    }
    let links: BTreeSet<_> = server.links.iter().collect();
    assert_eq!(links.len(), 10_000);
    assert_eq!(sessions.len(), 10_000);
}

/// Attaches link after link, with a name as long as it may be, and never answers a detach.
fn attach_without_end(server: &mut Server, name_bytes: usize) -> usize {
    for handle in 0..1_000 {
        let mut attach = attach(&format!("{handle:0name_bytes$}"), Role::Sender);
        attach.handle = handle;
        server.put(&Performative::Attach(Box::new(attach)));
        server.run();
        if server.output.iter().any(|line| line.contains(": end")) {
            return handle as usize;
        }
    }
    panic!("a thousand refusals wait for their answers");
}

#[test]
fn a_peer_that_never_answers_refusals_loses_its_session() {
    // [AMQP 2.8.15]: resource-limit-exceeded
    for name_bytes in [10, 5_000] {
        let mut server = Server::new(Config {
            max_links_per_session: 10,
            ..config()
        });
        assert_eq!(attach_without_end(&mut server, name_bytes), 266);
        let end = "0: end error=amqp:resource-limit-exceeded";
        assert_eq!(server.output, [end]);
    }
}

#[test]
fn sent_errors_are_counted_once_by_scope() {
    let mut server = Server::new(config());
    server.attach(Role::Sender);
    server.put(&transfer(0));
    server.run();
    let error = || Some(Error::new(condition::NOT_FOUND, "it is gone"));
    server.connection.detach(server.links[0], true, error());
    // Nothing is attached there.
    server.put(&Performative::Detach(Detach {
        handle: 7,
        closed: true,
        error: error(),
    }));
    server.run();
    server.connection.close(None);
    let expected = [
        ((Scope::Session, condition::UNATTACHED_HANDLE), 1),
        ((Scope::Link, condition::NOT_FOUND), 1),
    ];
    assert_eq!(
        server.connection.take_error_counts(),
        BTreeMap::from(expected)
    );
    assert_eq!(server.connection.take_error_counts(), BTreeMap::new());
}

/// What was found since the last call: what it ended, and the condition.
fn detected_errors(connection: &mut Connection) -> Vec<(ErrorScope, String)> {
    let detected_errors = connection.take_detected_errors().into_iter();
    detected_errors
        .map(|DetectedError { scope, error }| (scope, error.condition.as_str().to_owned()))
        .collect()
}

fn of_link(link: LinkId, name: &str, attached: bool) -> ErrorScope {
    ErrorScope::Link {
        link,
        name: name.to_owned(),
        attached,
    }
}

#[test]
fn detected_errors_are_kept_once_with_their_scope() {
    let mut server = Server::new(Config {
        max_links_per_session: 2,
        ..config()
    });
    for (handle, name) in [(0, "one"), (1, "two"), (2, "three"), (3, "two")] {
        let mut attach = attach(name, Role::Sender);
        attach.handle = handle;
        server.put(&Performative::Attach(Box::new(attach)));
        server.run();
    }
    let limit = || condition::RESOURCE_LIMIT_EXCEEDED.as_str().to_owned();
    let found = detected_errors(&mut server.connection);
    let [(three, why), (stolen, _), (again, _)] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(matches!(three, ErrorScope::Link { name, attached: false, .. } if name == "three"));
    assert_eq!(*why, limit());
    assert_eq!(*stolen, of_link(server.links[1], "two", true));
    assert!(matches!(again, ErrorScope::Link { name, attached: false, .. } if name == "two"));
    // The owner knows of this one.
    let error = Error::new(condition::NOT_FOUND, "it is gone");
    server
        .connection
        .detach(server.links[0], true, Some(error.clone()));
    assert_eq!(detected_errors(&mut server.connection), []);
    server.put(&Performative::Detach(Detach {
        handle: 7,
        closed: true,
        error: None,
    }));
    server.run();
    let session = "amqp:session:unattached-handle".to_owned();
    let expected = [(ErrorScope::Session, session)];
    assert_eq!(detected_errors(&mut server.connection), expected);
    // A peer's own errors are no findings.
    server.put(&Performative::End(End { error: Some(error) }));
    server.put(&Performative::End(End { error: None }));
    server.run();
    let connection = (ErrorScope::Connection, "amqp:illegal-state".to_owned());
    assert_eq!(detected_errors(&mut server.connection), [connection]);
}

#[test]
fn detected_errors_are_bounded_and_so_are_their_names() {
    let mut server = Server::new(Config {
        max_links_per_session: 0,
        ..config()
    });
    attach_without_end(&mut server, 5_000);
    let detected_errors = server.connection.take_detected_errors();
    assert_eq!(detected_errors.len(), 256);
    let is_short = |detected_error: &DetectedError| match &detected_error.scope {
        ErrorScope::Link { name, .. } => name.len() == 512,
        _ => false,
    };
    assert!(detected_errors.iter().all(is_short));
}

#[test]
fn a_sasl_exchange_that_the_owner_did_not_end_is_found() {
    let check = |init: &amqp::sasl::SaslFrame, expected: &str| {
        let mut server = Connection::new(Side::Server, config(), Mono(0));
        let mut input = BytesMut::from(&ProtocolHeader::Sasl.bytes()[..]);
        let start = frame::begin(&mut input, FrameType::Sasl, 0);
        init.encode(&mut input);
        frame::finish(&mut input, start);
        server.handle_input(Mono(0), &mut input);
        let detected_errors = server.take_detected_errors();
        let [DetectedError { scope, error }] = &detected_errors[..] else {
            panic!("{detected_errors:?}");
        };
        assert_eq!(*scope, ErrorScope::Connection);
        assert_eq!(error.description.as_deref(), Some(expected));
    };
    let init = amqp::sasl::SaslFrame::Init {
        mechanism: amqp::Symbol::new("EXTERNAL"),
        initial_response: None,
        hostname: None,
    };
    check(&init, "the SASL mechanism 'EXTERNAL' is not offered");
    let text = "the server expects a sasl-init frame";
    check(&amqp::sasl::SaslFrame::Response(Bytes::new()), text);
}
