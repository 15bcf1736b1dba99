//! Before a login: each performative in each state of a connection whose peer has shown no right.
//! None of them makes a command for the broker, however the peer goes on afterwards.

use amqp::frame::{self, FrameType, ProtocolHeader};
use amqp::performative::SenderSettleMode::Unsettled;
use amqp::sasl::SaslFrame;
use amqp::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, End, Flow, Open, Performative, Role,
    Symbol, Transfer,
};
use broker::Command;
use bytes::{Bytes, BytesMut};
use dialect::Dialect;

use crate::client_frames::{message, receiver, sender};
use crate::transactions::coordinator_attach;
use crate::world::{KEY, Login, World};

/// What the peer writes before the performatives, and whether links may be asked for then.
fn states() -> Vec<(&'static str, BytesMut)> {
    let mut states = vec![("nothing", BytesMut::new())];
    let mut add = |name, before: &[BytesMut]| {
        states.push((name, before.iter().flatten().copied().collect()));
    };
    let (sasl, amqp) = (header(ProtocolHeader::Sasl), header(ProtocolHeader::Amqp));
    let wrong = init("PLAIN", "\0root\0wrong");
    let nobody = init("ANONYMOUS", "");
    let opened = written(0, &open(None));
    let begun = written(0, &begin());
    add("the header of AMQP", std::slice::from_ref(&amqp));
    add("the header of SASL", std::slice::from_ref(&sasl));
    add("a wrong key", &[sasl.clone(), wrong.clone()]);
    add(
        "a wrong key, then all the rest",
        &[
            sasl.clone(),
            wrong,
            amqp.clone(),
            opened.clone(),
            begun.clone(),
        ],
    );
    let mut anonymous = vec![sasl, nobody];
    add("no key", &anonymous);
    for (name, next) in [
        ("no key and a header", amqp),
        ("no key and an open", opened),
        ("no key and a session", begun),
    ] {
        anonymous.push(next);
        add(name, &anonymous);
    }
    states
}

pub fn header(header: ProtocolHeader) -> BytesMut {
    BytesMut::from(&header.bytes()[..])
}

pub fn init(mechanism: &'static str, response: &str) -> BytesMut {
    let mut bytes = BytesMut::new();
    let start = frame::begin(&mut bytes, FrameType::Sasl, 0);
    let init = SaslFrame::Init {
        mechanism: Symbol::from(mechanism.to_owned()),
        initial_response: Some(Bytes::copy_from_slice(response.as_bytes())),
        hostname: None,
    };
    init.encode(&mut bytes);
    frame::finish(&mut bytes, start);
    bytes
}

pub fn written(channel: u16, performative: &Performative) -> BytesMut {
    let mut bytes = BytesMut::new();
    let start = frame::begin(&mut bytes, FrameType::Amqp, channel);
    performative.encode(&mut bytes);
    if matches!(performative, Performative::Transfer(_)) {
        bytes.extend_from_slice(&message("unwanted"));
    }
    frame::finish(&mut bytes, start);
    bytes
}

pub fn open(hostname: Option<&str>) -> Performative {
    Performative::Open(Box::new(Open {
        container_id: "stranger".to_owned(),
        hostname: hostname.map(str::to_owned),
        max_frame_size: 65_536,
        channel_max: 9,
        idle_time_out: None,
        outgoing_locales: Vec::new(),
        incoming_locales: Vec::new(),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }))
}

fn begin() -> Performative {
    Performative::Begin(Box::new(Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: 1_000,
        outgoing_window: 1_000,
        handle_max: 9,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }))
}

/// Each performative, those that ask for a link once for each kind of node.
fn performatives() -> Vec<Performative> {
    let attaches: [Attach; 6] = [
        sender("orders"),
        receiver("orders", Unsettled),
        receiver("orders/$deadletterqueue", Unsettled),
        sender("orders/$management"),
        receiver("orders/$management", Unsettled),
        coordinator_attach(Vec::new()),
    ];
    let attaches = attaches.into_iter().map(Box::new).map(Performative::Attach);
    let others = [
        open(None),
        begin(),
        Performative::Flow(Flow {
            next_incoming_id: Some(0),
            incoming_window: 1_000,
            outgoing_window: 1_000,
            handle: Some(0),
            delivery_count: Some(0),
            link_credit: Some(1_000),
            ..Flow::default()
        }),
        Performative::Transfer(Transfer {
            handle: 0,
            delivery_id: Some(0),
            delivery_tag: Some(Bytes::from_static(b"tag")),
            message_format: Some(0),
            ..Transfer::default()
        }),
        Performative::Disposition(Disposition {
            role: Role::Receiver,
            first: 0,
            last: None,
            settled: true,
            state: Some(DeliveryState::Accepted),
            batchable: false,
        }),
        Performative::Detach(Detach {
            handle: 0,
            closed: true,
            error: None,
        }),
        Performative::End(End { error: None }),
        Performative::Close(Close { error: None }),
    ];
    attaches.chain(others).collect()
}

/// The commands for the broker after these bytes and the end of the connection.
fn commands(bytes: &[&[u8]]) -> Vec<Command> {
    let mut world = World::offline(Login::Plain("root", KEY), |_| {});
    for bytes in bytes {
        let now = world.clock_reading();
        world.server.handle_input(now, &mut BytesMut::from(*bytes));
    }
    world.server.handle_eof(world.clock_reading());
    std::mem::take(world.server.commands())
}

#[test]
fn no_performative_reaches_the_broker_before_a_right_is_shown() {
    let all = performatives();
    for (state, before) in states() {
        for first in &all {
            for second in &all {
                let (first, second) = (written(0, first), written(0, second));
                let commands = commands(&[&before, &first, &second]);
                // A coordinator needs no right, and ends with its connection.
                let (last, before) = commands.split_last().expect("it is told of the end");
                let ends = |it: &Command| matches!(it, Command::EndTransactions { .. });
                assert!(
                    matches!(last, Command::Disconnect { .. }) && before.iter().all(ends),
                    "after {state}: {commands:?}"
                );
            }
        }
    }
}

#[test]
fn the_same_performatives_reach_the_broker_once_a_right_is_shown() {
    let root = init("PLAIN", &format!("\0root\0{KEY}"));
    let (sasl, amqp) = (header(ProtocolHeader::Sasl), header(ProtocolHeader::Amqp));
    let (opened, begun) = (written(0, &open(None)), written(0, &begin()));
    let attach = Performative::Attach(Box::new(receiver("orders", Unsettled)));
    let attach = written(0, &attach);
    let commands = commands(&[&sasl, &root, &amqp, &opened, &begun, &attach]);
    let is_attach = |command: &Command| matches!(command, Command::Attach { .. });
    assert!(commands.iter().any(is_attach), "{commands:?}");
}
