//! Session: a server engine under a peer and an owner that do anything in any order.
//!
//! The input is a program: each step is a performative with fields from the input, raw bytes, or
//! an act of the owner. What the engine writes must be sound frames, and nothing follows `Closed`.

#![no_main]

mod program;

use amqp::frame::{self, FrameType, ProtocolHeader};
use amqp::performative::Role;
use amqp::sasl::Code;
use amqp::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, End, Error, Flow, Open, Performative,
    Source, Symbol, Transfer,
};
use bytes::{Buf, Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};
use libfuzzer_sys::fuzz_target;
use program::Program;

/// More than this never waits in the engine: pieces are small and windows few.
const MAX_BUFFERED: usize = 4 << 20;

fuzz_target!(|input: &[u8]| {
    let mut program = Program { bytes: input };
    let mut run = Run::new(program.flag());
    while !program.bytes.is_empty() {
        run.step(&mut program);
    }
    run.connection.handle_eof();
    run.settle();
    assert!(run.closed && run.connection.is_finished());
});

impl Program<'_> {
    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Small numbers mostly, and those where arithmetic wraps.
    fn number(&mut self) -> u32 {
        match self.byte() {
            small @ 0..240 => u32::from(small % 16),
            240..248 => u32::MAX - u32::from(self.byte() % 4),
            248..252 => (1 << 31) - 2 + u32::from(self.byte() % 4),
            _ => u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()]),
        }
    }

    fn maybe(&mut self) -> Option<u32> {
        (self.byte() % 4 != 0).then(|| self.number())
    }

    fn role(&mut self) -> Role {
        if self.flag() {
            Role::Sender
        } else {
            Role::Receiver
        }
    }

    fn state(&mut self) -> Option<DeliveryState> {
        match self.byte() % 8 {
            0..3 => None,
            3 => Some(DeliveryState::Released),
            4 => Some(DeliveryState::Rejected(None)),
            5 => Some(DeliveryState::Transactional {
                txn_id: Bytes::from_static(b"transaction"),
                outcome: None,
            }),
            _ => Some(DeliveryState::Accepted),
        }
    }

    fn performative(&mut self) -> Performative {
        match self.byte() % 24 {
            0 => Performative::Open(Box::new(self.open())),
            1 | 2 => Performative::Begin(Box::new(self.begin())),
            3..6 => Performative::Attach(Box::new(self.attach())),
            6..11 => Performative::Flow(self.flow()),
            11..17 => Performative::Transfer(self.transfer()),
            17..20 => Performative::Disposition(self.disposition()),
            20 | 21 => Performative::Detach(Detach {
                handle: self.number(),
                closed: self.flag(),
                error: None,
            }),
            22 => Performative::End(End { error: None }),
            _ => Performative::Close(Close { error: None }),
        }
    }

    fn open(&mut self) -> Open {
        Open {
            container_id: String::new(),
            hostname: None,
            max_frame_size: self.number(),
            channel_max: u16::from(self.byte()),
            idle_time_out: self.maybe(),
            outgoing_locales: Vec::new(),
            incoming_locales: Vec::new(),
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }

    fn begin(&mut self) -> Begin {
        Begin {
            remote_channel: (self.byte() % 16 == 0).then(|| u16::from(self.byte() % 4)),
            next_outgoing_id: self.number(),
            incoming_window: self.number(),
            outgoing_window: 0,
            handle_max: self.number(),
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }

    fn attach(&mut self) -> Attach {
        attach(
            usize::from(self.byte() % 4),
            self.number(),
            self.role(),
            self.maybe(),
        )
    }

    fn flow(&mut self) -> Flow {
        Flow {
            next_incoming_id: self.maybe(),
            incoming_window: self.number(),
            next_outgoing_id: self.number(),
            outgoing_window: 0,
            handle: self.maybe(),
            delivery_count: self.maybe(),
            link_credit: self.maybe(),
            available: None,
            drain: self.flag(),
            echo: self.flag(),
            properties: None,
        }
    }

    fn transfer(&mut self) -> Transfer {
        Transfer {
            handle: self.number(),
            delivery_id: self.maybe(),
            delivery_tag: self.flag().then(|| Bytes::from_static(b"tag")),
            message_format: None,
            settled: self.flag().then(|| self.flag()),
            more: self.flag(),
            rcv_settle_mode: None,
            state: self.state(),
            resume: self.byte() == 1,
            aborted: self.byte() == 1,
            batchable: false,
        }
    }

    fn disposition(&mut self) -> Disposition {
        let first = self.number();
        Disposition {
            role: self.role(),
            first,
            last: self.maybe().map(|width| first.wrapping_add(width)),
            settled: self.flag(),
            state: self.state(),
            batchable: false,
        }
    }
}

struct Run {
    connection: Connection,
    input: BytesMut,
    links: Vec<LinkId>,
    sessions: Vec<SessionId>,
    closed: bool,
    now: u64,
}

impl Run {
    fn new(opened: bool) -> Self {
        let config = Config {
            max_frame_size: 1_024,
            channel_max: 7,
            handle_max: 7,
            incoming_window: 16,
            max_links_per_session: 6,
            max_unsettled: 32,
            max_partial_bytes: 16_384,
            ..Config::default()
        };
        let mut run = Self {
            connection: Connection::new(Side::Server, config, Mono(0)),
            input: BytesMut::new(),
            links: Vec::new(),
            sessions: Vec::new(),
            closed: false,
            now: 0,
        };
        if opened {
            run.open();
        }
        run
    }

    fn open(&mut self) {
        self.input.extend_from_slice(&ProtocolHeader::Amqp.bytes());
        let mut open = Program { bytes: &[] }.open();
        open.max_frame_size = 512;
        open.channel_max = 7;
        self.frame(0, &Performative::Open(Box::new(open)), 0);
        let mut begin = Program { bytes: &[1] }.begin();
        begin.incoming_window = 3;
        begin.handle_max = 7;
        self.frame(0, &Performative::Begin(Box::new(begin)), 0);
    }

    fn step(&mut self, program: &mut Program<'_>) {
        match program.byte() % 8 {
            0 => self.raw(program),
            1..5 => {
                let channel = u16::from(program.byte() % 4 / 3);
                let performative = program.performative();
                let size = usize::from(program.byte()) * 3;
                self.frame(channel, &performative, size);
            }
            _ => self.act(program),
        }
    }

    fn raw(&mut self, program: &mut Program<'_>) {
        let size = usize::from(program.byte()).min(program.bytes.len());
        let (raw, rest) = program.bytes.split_at(size);
        program.bytes = rest;
        self.input.extend_from_slice(raw);
        self.feed();
    }

    fn frame(&mut self, channel: u16, performative: &Performative, size: usize) {
        let start = frame::begin(&mut self.input, FrameType::Amqp, channel);
        performative.encode(&mut self.input);
        if matches!(performative, Performative::Transfer(_)) {
            self.input.resize(self.input.len() + size, 0);
        }
        frame::finish(&mut self.input, start);
        self.feed();
    }

    fn feed(&mut self) {
        self.connection
            .handle_input(Mono(self.now), &mut self.input);
        self.settle();
    }

    fn act(&mut self, program: &mut Program<'_>) {
        let which = usize::from(program.byte());
        let session = pick(&self.sessions, which).unwrap_or(SessionId(0));
        let link = pick(&self.links, which).unwrap_or(LinkId(0));
        let connection = &mut self.connection;
        match program.byte() % 32 {
            0..6 => connection.accept(link, attach(0, 0, Role::Sender, program.maybe())),
            6 => connection.refuse(link, error()),
            7 => connection.detach(link, program.flag(), Some(error())),
            8 => connection.end(session, Some(error())),
            9 => connection.close(None),
            10 => connection.finish_sasl(if program.flag() { Code::Ok } else { Code::Auth }),
            11 => drop(connection.begin()),
            12 => {
                let attach = program.attach();
                self.links.push(connection.attach(session, attach));
            }
            13..16 => connection.set_credit(link, program.number(), program.flag()),
            16..22 => send(connection, link, program),
            22..24 => connection.drained(link),
            24..28 => {
                let id = program.number();
                let settled = program.flag();
                connection.dispose_received(session, id, DeliveryState::Accepted, settled);
                connection.settle_sent(session, id, DeliveryState::Accepted, settled);
            }
            _ => {
                self.now += u64::from(program.number() % 20_000);
                connection.handle_timeout(Mono(self.now));
            }
        }
        self.settle();
    }

    /// Takes events and output, and holds them against what is promised.
    fn settle(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            assert!(!self.closed, "{event:?} comes after Closed");
            match event {
                Event::Begun { session } => self.sessions.push(session),
                Event::AttachRequested { link, .. } => self.links.push(link),
                Event::Closed { .. } => self.closed = true,
                _ => {}
            }
        }
        assert!(self.connection.buffered() < MAX_BUFFERED);
        let mut output = self.connection.output(Mono(self.now)).split();
        check(&mut output);
    }
}

fn send(connection: &mut Connection, link: LinkId, program: &mut Program<'_>) {
    let body = vec![0; usize::from(program.byte()) * 8];
    let outgoing = Outgoing {
        tag: b"tag",
        settled: program.flag(),
        state: program.state(),
        ..Outgoing::default()
    };
    // Without credit nothing is sent, which is as good.
    let _ = connection.send(link, &outgoing, &[&body]);
}

fn pick<T: Copy>(from: &[T], which: usize) -> Option<T> {
    (!from.is_empty()).then(|| from[which % from.len()])
}

fn error() -> Error {
    Error::new(Symbol::new("amqp:not-found"), "x".repeat(600))
}

fn attach(name: usize, handle: u32, role: Role, count: Option<u32>) -> Attach {
    Attach {
        name: ["a", "b", "c", "d"][name].to_owned(),
        handle,
        role,
        snd_settle_mode: None,
        rcv_settle_mode: None,
        source: Some(Box::new(Source::default())),
        target: None,
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: count,
        max_message_size: Some(2_000),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

fn check(output: &mut BytesMut) {
    while !output.is_empty() {
        if output.starts_with(b"AMQP") {
            output.advance(8);
            continue;
        }
        let frame = frame::split(output, u32::MAX)
            .expect("frames are sound")
            .expect("frames are whole");
        let mut body = frame.body;
        if frame.frame_type == FrameType::Amqp && !body.is_empty() {
            Performative::decode(&mut body).expect("bodies are sound");
        }
    }
}
