//! Script: a raw peer and the owner of one engine, line by line.
//!
//! A line `> ...` is a frame of the peer, any other line an act of the owner. After each line come
//! the frames (`<`) and events (`*`) that it causes. Every script runs twice, the second time with
//! the peer's bytes fed one by one, and must come out the same.

use std::collections::BTreeMap;

use amqp::frame::{self, FrameType, ProtocolHeader};
use amqp::performative::{ReceiverSettleMode, Role};
use amqp::sasl::{Code, SaslFrame};
use amqp::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Performative, Source, Symbol,
    Target, TargetTerminus, Transfer, Value,
};
use bytes::{Bytes, BytesMut};
use endpoint::{Bounds, Config, Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};
use expect_test::Expect;

use super::print;
use super::words::{self, Words};

/// Where a script starts; what leads there is not printed.
#[derive(Clone, Copy)]
pub enum Start {
    /// A server without any input.
    Fresh,
    /// A client that has not been answered.
    Client,
    /// A server after headers and opens.
    Opened,
    /// And after a begin on channel 0, answered on channel 0.
    Begun,
    /// And with link `in` on handle 0, on which the peer sends: 10 credits.
    Receiving,
    /// And with link `out` on handle 0, on which the engine sends: 10 credits.
    Sending,
}

impl Start {
    fn side(self) -> Side {
        match self {
            Self::Client => Side::Client,
            _ => Side::Server,
        }
    }

    fn prelude(self) -> &'static str {
        match self {
            Self::Fresh | Self::Client => "",
            Self::Opened => "> AMQP\n> open",
            Self::Begun => "> AMQP\n> open\n> 0: begin",
            Self::Receiving => {
                "> AMQP\n> open\n> 0: begin\n> 0: attach in h=0 sender\naccept in\ncredit in 10"
            }
            Self::Sending => {
                "> AMQP\n> open\n> 0: begin\n> 0: attach out h=0 receiver\naccept out\n> 0: flow h=0 credit=10"
            }
        }
    }
}

/// The configuration of scripts: the default but for a short container-id and a small window.
pub fn config() -> Config {
    Config {
        container_id: "engine".to_owned(),
        incoming_window: 100,
        idle_time_out: None,
        ..Config::default()
    }
}

/// Runs `script` from `start` and compares what comes out.
pub fn check(start: Start, script: &str, expect: &Expect) {
    check_with(config(), start, script, expect);
}

/// Runs `script` with a configuration of its own.
pub fn check_with(config: Config, start: Start, script: &str, expect: &Expect) {
    let whole = run(config.clone(), start, script, usize::MAX);
    let bytewise = run(config, start, script, 1);
    assert_eq!(whole, bytewise, "fed byte by byte it comes out differently");
    expect.assert_eq(&whole);
}

fn run(config: Config, start: Start, script: &str, step: usize) -> String {
    let mut runner = Runner {
        connection: Connection::new(start.side(), config, Mono(0)),
        now: 0,
        step,
        input: BytesMut::new(),
        links: BTreeMap::new(),
        printed: String::new(),
        cookie: 100,
    };
    for line in start.prelude().lines() {
        runner.line(line);
    }
    runner.printed.clear();
    for line in script.lines().map(str::trim) {
        if !line.is_empty() {
            runner.printed += &format!("{line}\n");
            runner.line(line);
        }
    }
    runner.printed
}

struct Runner {
    connection: Connection,
    now: u64,
    step: usize,
    input: BytesMut,
    links: BTreeMap<String, LinkId>,
    printed: String,
    cookie: u128,
}

impl Runner {
    fn line(&mut self, line: &str) {
        match line.strip_prefix("> ") {
            Some(frames) => {
                let mut bytes = BytesMut::new();
                for frame in frames.split(" > ") {
                    encode(&mut bytes, frame);
                }
                self.feed(&bytes);
            }
            None => self.act(line),
        }
        self.collect();
        self.flush();
    }

    fn feed(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.step.min(bytes.len().max(1))) {
            self.input.extend_from_slice(piece);
            self.connection
                .handle_input(Mono(self.now), &mut self.input);
        }
    }

    fn collect(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            self.printed += &format!("  * {}\n", print::event(&event));
            if let Event::AttachRequested { link, attach, .. } = event {
                self.links.insert(attach.name.clone(), link);
            }
        }
    }

    fn flush(&mut self) {
        for line in print::output(&mut self.connection.output(Mono(self.now)).split()) {
            self.printed += &format!("  < {line}\n");
        }
    }

    fn act(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or("");
        let words = Words::new(words);
        let name = words.at(0);
        let session = SessionId(words.number("s").unwrap_or(0));
        match verb {
            "accept" => self.accept(name, &words),
            "refuse" => self
                .connection
                .refuse(self.link(name), words::error(words.at(1))),
            "attach" => {
                let link = self.connection.attach(session, attach(&words));
                self.links.insert(name.to_owned(), link);
            }
            "detach" => {
                let closed = words.flag("closed");
                self.connection
                    .detach(self.link(name), closed, words.error());
            }
            "hold-close" => self.connection.hold_close(self.link(name)),
            "answer-close" => {
                self.connection.answer_close(self.link(name), words.error());
            }
            "credit" => {
                let credit = words.at(1).parse().expect("a number of credits");
                self.connection
                    .set_credit(self.link(name), credit, words.flag("drain"));
            }
            "send" => self.send(name, &words),
            "repeats" => self.connection.allow_repeated_ids(self.link(name)),
            "drained" => self.connection.drained(self.link(name)),
            "dispose" => {
                let id = name.parse().expect("a delivery-id");
                let state = words::state(words.at(1));
                self.connection
                    .dispose_received(session, id, state, !words.flag("unsettled"));
            }
            "settle" => {
                let id = name.parse().expect("a delivery-id");
                let state = words::state(words.at(1));
                self.connection
                    .settle_sent(session, id, state, !words.flag("unsettled"));
            }
            "acts" => {
                // Several dispositions before the output is taken.
                for act in line.trim_start_matches("acts ").split(" & ") {
                    self.act(act);
                }
            }
            "begin" => {
                self.connection.begin();
            }
            "end" => self.connection.end(session, words.error()),
            "close" => self.connection.close(words.error()),
            "sasl" => self.connection.finish_sasl(code(name)),
            "wait" => {
                self.now += name.parse::<u64>().expect("milliseconds");
                self.connection.handle_timeout(Mono(self.now));
            }
            "left" => {
                let link = self.link(name);
                let (received, sent) = (
                    self.connection.credit_left(link),
                    self.connection.send_credit(link),
                );
                self.printed += &format!("  = to receive {received}, to send {sent}\n");
            }
            "set-bounds" => self.connection.set_bounds((name != "off").then(|| Bounds {
                sessions: words.number("sessions").unwrap_or(usize::MAX),
                links: words.number("links").unwrap_or(usize::MAX),
                partial_bytes: words.number("partial").unwrap_or(usize::MAX),
            })),
            "shed" => self
                .connection
                .shed_partials(name.parse().expect("a number of bytes")),
            "untaken" => {
                let untaken = self.connection.has_untaken_input();
                self.printed += &format!("  = untaken={untaken}\n");
            }
            "partial" => {
                self.printed += &format!("  = {} bytes\n", self.connection.partial_bytes());
            }
            "eof" => self.connection.handle_eof(),
            "status" => {
                let deadline = self.connection.deadline().map(|deadline| deadline.0);
                self.printed += &format!(
                    "  = finished={} deadline={deadline:?} buffered={}\n",
                    self.connection.is_finished(),
                    self.connection.buffered()
                );
            }
            _ => panic!("no such act: {line}"),
        }
    }

    fn link(&self, name: &str) -> LinkId {
        *self
            .links
            .get(name)
            .unwrap_or_else(|| panic!("no such link: {name}"))
    }

    fn accept(&mut self, name: &str, words: &Words<'_>) {
        let mut reply = attach(words);
        reply.initial_delivery_count = words.number("idc");
        self.connection.accept(self.link(name), reply);
    }

    fn send(&mut self, name: &str, words: &Words<'_>) {
        let body = words.body();
        self.cookie += 1;
        let outgoing = Outgoing {
            tag: words.text("tag").unwrap_or("t").as_bytes(),
            message_format: 0,
            settled: words.flag("settled"),
            cookie: self.cookie,
            state: words.state(),
            owner: None,
        };
        let link = self.link(name);
        let (front, back) = body.split_at(body.len() / 2);
        if self
            .connection
            .send(link, &outgoing, &[front, back])
            .is_err()
        {
            self.printed += "  = no credit\n";
        }
    }
}

fn code(name: &str) -> Code {
    match name {
        "ok" => Code::Ok,
        "auth" => Code::Auth,
        _ => panic!("no such code: {name}"),
    }
}

fn attach(words: &Words<'_>) -> Attach {
    let role = if words.flag("receiver") {
        Role::Receiver
    } else {
        Role::Sender
    };
    let null = words.flag("null");
    Attach {
        name: words.at(0).to_owned(),
        handle: words.number("h").unwrap_or(0),
        role,
        snd_settle_mode: None,
        rcv_settle_mode: words.flag("first").then_some(ReceiverSettleMode::First),
        source: (!null).then(|| Box::new(Source::default())),
        target: (!null).then(|| Box::new(TargetTerminus::Node(Target::default()))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: words.number("idc"),
        max_message_size: words.number("max-message-size"),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

/// Appends what one line of the peer stands for.
fn encode(out: &mut BytesMut, line: &str) {
    let (channel, line) = match line.split_once(": ") {
        Some((channel, line)) => (channel.parse().expect("a channel"), line),
        None => (0, line),
    };
    let mut split = line.split_whitespace();
    let verb = split.next().unwrap_or("");
    let words = Words::new(split);
    match verb {
        "AMQP" => out.extend_from_slice(&ProtocolHeader::Amqp.bytes()),
        "SASL" => out.extend_from_slice(&ProtocolHeader::Sasl.bytes()),
        "TLS" => out.extend_from_slice(b"AMQP\x02\x01\x00\x00"),
        "HTTP" => out.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n"),
        "hex" => out.extend((0..words.at(0).len() / 2).map(|index| {
            u8::from_str_radix(&words.at(0)[2 * index..2 * index + 2], 16).expect("hexadecimal")
        })),
        _ if verb.starts_with("sasl-") => {
            let start = frame::begin(out, FrameType::Sasl, 0);
            sasl(verb, &words).encode(out);
            frame::finish(out, start);
        }
        _ => {
            let start = frame::begin(out, FrameType::Amqp, channel);
            if verb != "empty" {
                performative(verb, &words).encode(out);
            }
            if matches!(verb, "transfer" | "trailing-flow") {
                out.extend_from_slice(&words.body());
            }
            frame::finish(out, start);
        }
    }
}

fn sasl(verb: &str, words: &Words<'_>) -> SaslFrame {
    match verb {
        "sasl-init" => SaslFrame::Init {
            mechanism: Symbol::from(words.at(0).to_owned()),
            initial_response: None,
            hostname: None,
        },
        "sasl-response" => SaslFrame::Response(Bytes::new()),
        "sasl-challenge" => SaslFrame::Challenge(Bytes::new()),
        "sasl-mechanisms" => SaslFrame::Mechanisms(vec![Symbol::from(words.at(0).to_owned())]),
        "sasl-outcome" => SaslFrame::Outcome {
            code: code(words.at(0)),
            additional_data: None,
        },
        _ => panic!("no such SASL frame: {verb}"),
    }
}

fn performative(verb: &str, words: &Words<'_>) -> Performative {
    match verb {
        "open" => Performative::Open(Box::new(open(words))),
        "begin" => Performative::Begin(Box::new(begin(words))),
        "attach" => Performative::Attach(Box::new(attach(words))),
        "flow" | "trailing-flow" => Performative::Flow(flow(words)),
        "transfer" => Performative::Transfer(transfer(words)),
        "disposition" => Performative::Disposition(disposition(words)),
        "detach" => Performative::Detach(Detach {
            handle: words.number("h").unwrap_or(0),
            closed: words.flag("closed"),
            error: words.error(),
        }),
        "end" => Performative::End(End {
            error: words.error(),
        }),
        "close" => Performative::Close(Close {
            error: words.error(),
        }),
        _ => panic!("no such performative: {verb}"),
    }
}

/// The open that a peer usually sends.
pub fn usual_open(max_frame_size: u32) -> Performative {
    let mut open = open(&Words::new(std::iter::empty()));
    open.max_frame_size = max_frame_size;
    Performative::Open(Box::new(open))
}

/// The begin that a peer usually sends.
pub fn usual_begin() -> Performative {
    Performative::Begin(Box::new(begin(&Words::new(std::iter::empty()))))
}

fn open(words: &Words<'_>) -> Open {
    Open {
        container_id: "peer".to_owned(),
        hostname: None,
        max_frame_size: words.number("max-frame-size").unwrap_or(u32::MAX),
        channel_max: words.number("channel-max").unwrap_or(u16::MAX),
        idle_time_out: words.number("idle"),
        outgoing_locales: Vec::new(),
        incoming_locales: Vec::new(),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

fn begin(words: &Words<'_>) -> Begin {
    Begin {
        remote_channel: words.number("remote"),
        next_outgoing_id: words.number("next-out").unwrap_or(0),
        incoming_window: words.number("in-window").unwrap_or(1_000),
        outgoing_window: 1_000,
        handle_max: words.number("handle-max").unwrap_or(u32::MAX),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

fn flow(words: &Words<'_>) -> Flow {
    Flow {
        next_incoming_id: words.number("next-in"),
        incoming_window: words.number("in-window").unwrap_or(1_000),
        next_outgoing_id: words.number("next-out").unwrap_or(0),
        outgoing_window: 1_000,
        handle: words.number("h"),
        delivery_count: words.number("dc"),
        link_credit: words.number("credit"),
        available: None,
        drain: words.flag("drain"),
        echo: words.flag("echo"),
        properties: words
            .text("txn-id")
            .map(|id| vec![("txn-id".into(), Value::from(id))]),
    }
}

fn transfer(words: &Words<'_>) -> Transfer {
    Transfer {
        handle: words.number("h").unwrap_or(0),
        delivery_id: words.number("id"),
        delivery_tag: words
            .text("tag")
            .map(|tag| Bytes::from(tag.as_bytes().to_vec())),
        message_format: words.number("format"),
        settled: words.settled(),
        more: words.flag("more"),
        rcv_settle_mode: words.flag("second").then_some(ReceiverSettleMode::Second),
        state: words.state(),
        resume: words.flag("resume"),
        aborted: words.flag("aborted"),
        batchable: false,
    }
}

fn disposition(words: &Words<'_>) -> Disposition {
    let role = if words.flag("sender") {
        Role::Sender
    } else {
        Role::Receiver
    };
    Disposition {
        role,
        first: words.number("first").unwrap_or(0),
        last: words.number("last"),
        settled: words.flag("settled"),
        state: words.state(),
        batchable: false,
    }
}
