//! Tests of the bench over a real socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Role, Source, Symbol, Target, TargetTerminus, Value};
use bytes::{Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};
use tokio::net::TcpListener;

use crate::bare::Bare;
use crate::committer::{Delivery, Store, Write as Change};
use crate::database::{Database, Table};
use crate::file::Log;
use crate::queue::{Queues, Taker};

/// More than a stretch that goes by one deletion.
const MESSAGES: u8 = 40;

#[test]
fn messages_come_go_in_order_and_are_settled_in_rocksdb() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::open(directory.path()).expect("opens");
    let (table, left) = (database.table(), database.table());
    check(Box::new(database), Some(table));
    let is_there = |number| left.read(crate::row::Place { queue: 0, number }).is_ok();
    // All but the last, which was received and not settled.
    let there: Vec<_> = (0..u64::from(MESSAGES))
        .filter(|number| is_there(*number))
        .collect();
    assert_eq!(there, [u64::from(MESSAGES) - 1]);
}

#[test]
fn messages_come_go_in_order_and_are_settled_in_a_file() {
    let directory = tempfile::tempdir().expect("a directory");
    check(Box::new(Log::create(directory.path()).expect("made")), None);
    let written = std::fs::read(directory.path().join("log")).expect("it is there");
    let mut at = 0;
    for number in 0..MESSAGES {
        let body = body(number);
        let found = written[at..]
            .windows(body.len())
            .position(|found| *found == body[..]);
        at += found.expect("every body is in the file, in order");
    }
}

#[test]
fn bodies_that_memory_has_no_room_for_are_read_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::open(directory.path()).expect("opens");
    let mut queues = Queues::new(Some(database.table()));
    let queue = queues.find("queue");
    let bodies: Vec<_> = (0..80)
        .map(|byte| Bytes::from(vec![byte; 1 << 20]))
        .collect();
    for body in &bodies {
        let place = queues.place(queue);
        let delivery = Delivery {
            peer: 0,
            session: SessionId(0),
            id: 0,
        };
        let put = Change::Put(place, body.clone(), delivery);
        database.commit(&[vec![put]], &[]).expect("written");
        queues.push(place, body.clone());
    }
    let link = LinkId(0);
    queues.attach(queue, Taker { peer: 0, link });
    let mut given = Vec::new();
    let delivered = queues.deliver(queue, |_, _, body| {
        given.push(body.clone());
        true
    });
    assert!(delivered.is_ok() && queues.is_empty(queue));
    assert!(given == bodies);
    let is_kept = |at: usize| given[at].as_ptr() == bodies[at].as_ptr();
    assert!(is_kept(0) && !is_kept(79));
}

/// Sends, receives what was sent, and settles all but the last.
fn check(store: Box<dyn Store>, table: Option<Table>) {
    let mut client = Client::connect(serve(store, table));
    let (session, sender) = client.attach(Role::Sender);
    let (_, receiver) = client.attach(Role::Receiver);
    client.engine.set_credit(receiver, MESSAGES.into(), false);
    for number in 0..MESSAGES {
        let outgoing = Outgoing {
            tag: &[number],
            ..Outgoing::default()
        };
        let sent = client.engine.send(sender, &outgoing, &[&body(number)]);
        assert!(sent.is_ok());
    }
    let (mut accepted, mut received) = (0, Vec::new());
    client.until(|event| {
        match event {
            Event::Disposed { state, .. } => {
                assert_eq!(state, Some(DeliveryState::Accepted));
                accepted += 1;
            }
            Event::Delivery {
                delivery_id,
                payload,
                ..
            } => received.push((delivery_id, payload)),
            _ => {}
        }
        let all = usize::from(MESSAGES);
        (accepted == all && received.len() == all).then_some(())
    });
    let bodies: Vec<_> = received.iter().map(|(_, body)| body.clone()).collect();
    assert_eq!(bodies, (0..MESSAGES).map(body).collect::<Vec<_>>());
    received.pop();
    for (delivery, _) in &received {
        let accepted = DeliveryState::Accepted;
        client
            .engine
            .dispose_received(session, *delivery, accepted, false);
    }
    let mut settled = 0;
    client.until(|event| {
        settled += usize::from(matches!(event, Event::Updated { settled: true, .. }));
        (settled == received.len()).then_some(())
    });
    client.engine.set_credit(receiver, 1, true);
    client.until(|event| matches!(event, Event::Drained { .. }).then_some(()));
}

fn body(number: u8) -> Bytes {
    // A data section of one hundred bytes. [AMQP 3.2.6]
    let mut body = vec![0x00, 0x53, 0x75, 0xa0, 100];
    body.extend([number; 100]);
    body.into()
}

/// Serves for as long as the test goes on.
fn serve(store: Box<dyn Store>, table: Option<Table>) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    listener.set_nonblocking(true).expect("it does not wait");
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::from_std(listener).expect("it does not wait");
            Bare::new(listener, store, table).run().await
        })
    });
    address
}

/// A connection that waits for what it wants.
struct Client {
    stream: TcpStream,
    engine: Connection,
    session: SessionId,
    input: BytesMut,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let config = Config {
            client_sasl: Some((Symbol::new("PLAIN"), b"\0name\0password".to_vec())),
            ..Config::default()
        };
        let mut engine = Connection::new(Side::Client, config, Mono(0));
        Self {
            stream: TcpStream::connect(address).expect("it listens"),
            session: engine.begin(),
            engine,
            input: BytesMut::new(),
        }
    }

    fn attach(&mut self, role: Role) -> (SessionId, LinkId) {
        let address = Some(Value::from("queue"));
        let (source, target) = match role {
            Role::Sender => (None, address),
            Role::Receiver => (address, None),
        };
        let source = Source {
            address: source,
            ..Source::default()
        };
        let target = Target {
            address: target,
            ..Target::default()
        };
        let attach = Attach {
            name: "link".to_owned(),
            handle: 0,
            role,
            snd_settle_mode: Some(SenderSettleMode::Unsettled),
            rcv_settle_mode: Some(ReceiverSettleMode::Second),
            source: Some(Box::new(source)),
            target: Some(Box::new(TargetTerminus::Node(target))),
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: Some(0),
            max_message_size: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        };
        let link = self.engine.attach(self.session, attach);
        // A sender has been let in and may send when it has credit.
        self.until(|event| match (role, event) {
            (Role::Sender, Event::Credit { .. }) | (Role::Receiver, Event::Attached { .. }) => {
                Some(())
            }
            _ => None,
        });
        (self.session, link)
    }

    /// Writes the output, and reads until `found` returns a value for an event.
    fn until<T>(&mut self, mut found: impl FnMut(Event) -> Option<T>) -> T {
        loop {
            let output = self.engine.output(Mono(0));
            self.stream.write_all(&output.split()).expect("written");
            while let Some(event) = self.engine.poll_event() {
                assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
                if let Some(found) = found(event) {
                    return found;
                }
            }
            let mut bytes = [0; 4_096];
            let read = self.stream.read(&mut bytes).expect("read");
            assert!(read > 0, "the connection has ended");
            self.input.extend_from_slice(&bytes[..read]);
            self.engine.handle_input(Mono(0), &mut self.input);
        }
    }
}
