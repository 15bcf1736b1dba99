//! Random: hostile and merely lively peers, thousands of frames each.
//!
//! A wild peer sends any performative with any small number in it, or plain noise: nothing panics,
//! what comes out is sound, and what is kept stays bounded. A lively peer keeps to the rules of
//! credit, and the engine's output is held against them.

use amqp::frame::{self, FrameType, ProtocolHeader};
use amqp::performative::Role;
use amqp::{Begin, Close, DeliveryState, Detach, Disposition, End, Flow, Performative, Transfer};
use bytes::{Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};
use proptest::prelude::*;

use super::grammar::Grammar;
use super::support::pair::attach;
use super::support::script::config;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        cases,
        ..ProptestConfig::default()
    }
}

fn tight() -> Config {
    Config {
        max_frame_size: 1_024,
        channel_max: 3,
        handle_max: 3,
        max_sessions: 4,
        max_links_per_session: 3,
        max_unsettled: 8,
        max_partial_bytes: 8_192,
        incoming_window: 20,
        ..config()
    }
}

/// One step: a frame of the peer on a channel, or an act of the owner.
#[derive(Clone, Debug)]
enum Step {
    /// A frame on a session that is begun for it if need be.
    Frame(u16, Box<Performative>, usize),
    /// A frame whether there is a session for it or not.
    Rude(u16, Box<Performative>),
    Noise(Vec<u8>),
    Act(u8, usize, u32),
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        6 => 0_u32..4,
        2 => 0_u32..40,
        1 => Just(u32::MAX),
        1 => Just(u32::MAX - 1),
        1 => Just(1 << 31),
        1 => any::<u32>(),
    ]
}

/// Above 3 is above handle-max, which ends it all.
fn handle() -> impl Strategy<Value = u32> {
    prop_oneof![500 => 0_u32..4, 1 => Just(4)]
}

/// Half the circle and more is invalid.
fn width() -> impl Strategy<Value = u32> {
    prop_oneof![60 => 0_u32..20, 1 => (0_u32..3).prop_map(|steps| (1 << 31) - 1 + steps)]
}

fn maybe(strategy: impl Strategy<Value = u32>) -> impl Strategy<Value = Option<u32>> {
    proptest::option::weighted(0.8, strategy)
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Sender), Just(Role::Receiver)]
}

fn state() -> impl Strategy<Value = Option<DeliveryState>> {
    prop_oneof![
        Just(None),
        Just(Some(DeliveryState::Accepted)),
        Just(Some(DeliveryState::Released)),
        Just(Some(DeliveryState::Rejected(None))),
    ]
}

fn performative() -> impl Strategy<Value = Performative> {
    prop_oneof![
        2 => begin(),
        4 => attaching(),
        6 => flow(),
        10 => transfer(),
        5 => disposition(),
        2 => (number(), any::<bool>()).prop_map(|(handle, closed)| {
            Performative::Detach(Detach { handle, closed, error: None })
        }),
        1 => (0_u8..20).prop_map(|dice| match dice {
            0 => Performative::Close(Close { error: None }),
            1..8 => Performative::End(End { error: None }),
            _ => Performative::Flow(Flow::default()),
        }),
    ]
}

fn begin() -> impl Strategy<Value = Performative> {
    (
        proptest::option::weighted(0.03, 0_u16..4),
        number(),
        number(),
        number(),
    )
        .prop_map(
            |(remote_channel, next_outgoing_id, incoming_window, handle_max)| {
                Performative::Begin(Box::new(Begin {
                    remote_channel,
                    next_outgoing_id,
                    incoming_window,
                    outgoing_window: 0,
                    handle_max,
                    offered_capabilities: Vec::new(),
                    desired_capabilities: Vec::new(),
                    properties: None,
                }))
            },
        )
}

fn attaching() -> impl Strategy<Value = Performative> {
    ("[a-f]", handle(), role(), maybe(number())).prop_map(|(name, handle, role, count)| {
        let mut attach = attach(&name, role);
        attach.handle = handle;
        attach.initial_delivery_count = count;
        Performative::Attach(Box::new(attach))
    })
}

fn flow() -> impl Strategy<Value = Performative> {
    (
        (maybe(number()), number(), number()),
        (maybe(0_u32..5), maybe(number()), maybe(number())),
        (any::<bool>(), any::<bool>()),
    )
        .prop_map(|(session, link, (drain, echo))| {
            Performative::Flow(Flow {
                next_incoming_id: session.0.map(|id| u32::from(id % 8 != 0)),
                incoming_window: session.1,
                next_outgoing_id: session.2,
                outgoing_window: 9,
                handle: link.0,
                delivery_count: link.1,
                link_credit: link.2,
                available: None,
                drain,
                echo,
                properties: None,
            })
        })
}

fn transfer() -> impl Strategy<Value = Performative> {
    (
        (0_u32..5, maybe(0_u32..200), any::<bool>()),
        (proptest::option::of(any::<bool>()), any::<bool>()),
        (0_u8..20, 0_u8..60),
        state(),
    )
        .prop_map(
            |((handle, id, tag), (settled, more), (aborted, resume), state)| {
                Performative::Transfer(Transfer {
                    handle,
                    delivery_id: id,
                    delivery_tag: (tag || id.is_some()).then(|| Bytes::from_static(b"tag")),
                    message_format: None,
                    settled,
                    more,
                    rcv_settle_mode: None,
                    state,
                    resume: resume == 0,
                    aborted: aborted == 0,
                    batchable: false,
                })
            },
        )
}

fn disposition() -> impl Strategy<Value = Performative> {
    (role(), number(), maybe(width()), any::<bool>(), state()).prop_map(
        |(role, first, last, settled, state)| {
            Performative::Disposition(Disposition {
                role,
                first,
                last: last.map(|width| first.wrapping_add(width)),
                settled,
                state,
                batchable: false,
            })
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0_u16..3, performative(), 0_usize..600)
            .prop_map(|(channel, performative, size)| Step::Frame(channel, Box::new(performative), size)),
        8 => (0_u8..14, 0_usize..8, number()).prop_map(|(act, which, number)| Step::Act(act, which, number)),
    ]
}

fn wild_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        800 => step(),
        1 => (0_u16..5, performative()).prop_map(|(channel, performative)| Step::Rude(channel, Box::new(performative))),
        1 => proptest::collection::vec(any::<u8>(), 0..64).prop_map(Step::Noise),
    ]
}

/// What the peer has begun and attached on one of its channels.
#[derive(Default)]
struct Channel {
    begun: bool,
    /// The engine ended the session, and waits for our end.
    broken: bool,
    session: Option<SessionId>,
    handles: [Handle; 5],
}

#[derive(Clone, Copy, Default)]
struct Handle {
    role: Option<Role>,
    unfinished: bool,
}

impl Channel {
    fn handle(&mut self, handle: u32) -> &mut Handle {
        &mut self.handles[handle as usize % 5]
    }
}

struct Wild {
    connection: Connection,
    grammar: Option<Grammar>,
    links: Vec<LinkId>,
    sessions: Vec<SessionId>,
    disposed: Vec<(SessionId, u32)>,
    closed: bool,
    /// The peer's channels and their handles.
    channels: [Channel; 3],
    next_delivery_id: u32,
    input: BytesMut,
    now: u64,
}

impl Wild {
    fn new(config: Config, grammar: Option<Grammar>) -> Self {
        let mut wild = Self {
            connection: Connection::new(Side::Server, config, Mono(0)),
            grammar,
            links: Vec::new(),
            sessions: Vec::new(),
            disposed: Vec::new(),
            closed: false,
            channels: Default::default(),
            next_delivery_id: 0,
            input: BytesMut::new(),
            now: 0,
        };
        wild.input.extend_from_slice(&ProtocolHeader::Amqp.bytes());
        wild.frame(0, &super::support::script::usual_open(512), 0);
        wild
    }

    fn frame(&mut self, channel: u16, performative: &Performative, size: usize) {
        let start = frame::begin(&mut self.input, FrameType::Amqp, channel);
        performative.encode(&mut self.input);
        if matches!(performative, Performative::Transfer(_)) {
            self.input.extend_from_slice(&vec![0; size]);
        }
        frame::finish(&mut self.input, start);
        self.feed();
    }

    /// A frame that makes sense on its channel, led up to by what it needs: a session, a link.
    fn polite_frame(&mut self, index: u16, performative: &Performative, size: usize) {
        let channel = &mut self.channels[usize::from(index)];
        if std::mem::take(&mut channel.broken) {
            *channel = Channel::default();
            self.frame(index, &Performative::End(End { error: None }), 0);
            return;
        }
        let mut performative = performative.clone();
        match &mut performative {
            Performative::Begin(_) | Performative::End(_) => {
                let begins = matches!(performative, Performative::Begin(_));
                if channel.begun == begins {
                    return;
                }
                *channel = Channel {
                    begun: begins,
                    ..Channel::default()
                };
            }
            _ if !channel.begun => {
                channel.begun = true;
                self.frame(index, &usual_begin(), 0);
                return;
            }
            Performative::Attach(attach) => {
                let slot = channel.handle(attach.handle);
                if slot.role.is_some() {
                    return;
                }
                slot.role = Some(attach.role);
            }
            Performative::Detach(detach) => {
                detach.handle %= 4;
                let slot = channel.handle(detach.handle);
                if std::mem::take(slot).role.is_none() {
                    return;
                }
            }
            Performative::Flow(flow) => {
                flow.handle = flow
                    .handle
                    .filter(|&handle| channel.handle(handle).role.is_some());
            }
            Performative::Transfer(transfer) => {
                transfer.handle %= 4;
                let slot = channel.handle(transfer.handle);
                if slot.role != Some(Role::Sender) {
                    return;
                }
                if slot.unfinished {
                    transfer.delivery_id = None;
                } else if matches!(transfer.delivery_id, Some(0..195)) {
                    transfer.delivery_id = Some(self.next_delivery_id);
                    self.next_delivery_id += 1;
                }
                slot.unfinished = transfer.more && !transfer.aborted;
            }
            _ => {}
        }
        self.frame(index, &performative, size);
    }

    fn feed(&mut self) {
        self.connection
            .handle_input(Mono(self.now), &mut self.input);
        self.after();
    }

    fn after(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            assert!(!self.closed, "{event:?} comes after Closed");
            self.note(event);
        }
        let now = Mono(self.now);
        let mut output = self.connection.output(now).split();
        match &mut self.grammar {
            Some(grammar) => grammar.read(&mut output),
            None => drop(super::support::print::output(&mut output)),
        }
        assert!(
            self.connection.buffered() < 300_000,
            "too much waits: {}",
            self.connection.buffered()
        );
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Begun { session } => {
                self.sessions.push(session);
                if let Some(channel) = self
                    .channels
                    .iter_mut()
                    .find(|channel| channel.begun && channel.session.is_none())
                {
                    channel.session = Some(session);
                }
            }
            Event::AttachRequested { link, attach, .. } => {
                self.links.push(link);
                if attach.handle % 4 != 3 {
                    self.connection.accept(link, *attach);
                }
            }
            Event::Delivery {
                session,
                delivery_id,
                ..
            } => self.disposed.push((session, delivery_id)),
            Event::Disposed {
                link, delivery_id, ..
            } => {
                if let Some(session) = self.connection.session_of(link) {
                    self.disposed.push((session, delivery_id));
                }
            }
            Event::Detached { link, .. } => self.links.retain(|&known| known != link),
            Event::Ended { session, .. } => {
                self.sessions.retain(|&known| known != session);
                if let Some(channel) = self
                    .channels
                    .iter_mut()
                    .find(|channel| channel.session == Some(session))
                {
                    channel.broken = channel.begun;
                }
            }
            Event::Closed { .. } => self.closed = true,
            _ => {}
        }
    }

    fn act(&mut self, act: u8, which: usize, number: u32) {
        let session = pick(&self.sessions, which).unwrap_or(SessionId(0));
        let Some(link) = pick(&self.links, which) else {
            return;
        };
        let error = amqp::Error::new(amqp::error::condition::NOT_FOUND, "x".repeat(600));
        match act {
            0..=2 => self.connection.accept(link, attach("", Role::Sender)),
            3 if number == 0 => self.connection.refuse(link, error),
            3 | 4 => self
                .connection
                .set_credit(link, number % 20, number.is_multiple_of(5)),
            5..=8 => self.send(link, number),
            9 => self.connection.drained(link),
            10 | 11 => self.settle(which, number),
            12 if number == 1 => self.connection.detach(link, true, Some(error)),
            13 if number == 2 => self.connection.end(session, Some(error)),
            _ => {
                self.now += u64::from(number % 3);
                self.connection.handle_timeout(Mono(self.now));
            }
        }
        self.after();
    }

    fn send(&mut self, link: LinkId, number: u32) {
        let body = vec![1; (number % 40) as usize * 50];
        let outgoing = Outgoing {
            tag: b"tag",
            settled: number.is_multiple_of(3),
            cookie: number.into(),
            ..Outgoing::default()
        };
        // Without credit nothing happens, which is as good.
        let _ = self.connection.send(link, &outgoing, &[&body]);
    }

    fn settle(&mut self, which: usize, number: u32) {
        if let Some((session, id)) = pick(&self.disposed, which) {
            let state = DeliveryState::Accepted;
            self.connection
                .dispose_received(session, id, state.clone(), number.is_multiple_of(2));
            self.connection
                .settle_sent(session, id, state, !number.is_multiple_of(3));
        }
    }
}

fn pick<T: Copy>(from: &[T], which: usize) -> Option<T> {
    (!from.is_empty()).then(|| from[which % from.len()])
}

fn run_wild(steps: &[Step]) {
    let mut wild = Wild::new(tight(), None);
    for step in steps {
        match step {
            Step::Frame(channel, performative, size) => {
                wild.polite_frame(*channel, performative, *size);
            }
            Step::Rude(channel, performative) => wild.frame(*channel, performative, 0),
            Step::Noise(noise) => {
                wild.input.extend_from_slice(noise);
                wild.feed();
            }
            Step::Act(act, which, number) => wild.act(*act, *which, *number),
        }
    }
    wild.connection.handle_eof();
    wild.after();
    assert!(wild.closed && wild.connection.is_finished());
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn no_sequence_of_performatives_makes_the_engine_panic(
        steps in proptest::collection::vec(wild_step(), 1..300)
    ) {
        run_wild(&steps);
    }

    #[test]
    fn no_bytes_make_the_engine_panic(
        open in any::<bool>(),
        noise in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..8)
    ) {
        let mut wild = if open {
            Wild::new(tight(), None)
        } else {
            let mut wild = Wild::new(tight(), None);
            wild.connection = Connection::new(Side::Server, tight(), Mono(0));
            wild.input.clear();
            wild
        };
        for noise in noise {
            wild.input.extend_from_slice(&noise);
            wild.feed();
        }
    }

    #[test]
    fn what_is_written_keeps_to_the_grammar(
        steps in proptest::collection::vec(lively_step(), 1..150)
    ) {
        run_lively(&steps);
    }
}

/// A step of a peer with one session, which grants credit by what it has seen.
#[derive(Clone, Debug)]
enum Lively {
    Attach(u32, bool),
    Credit {
        name: usize,
        credit: u32,
        window: u32,
        drain: bool,
    },
    Detach(u32),
    Dispose {
        first: u32,
        width: u32,
        settled: bool,
    },
    Reopen,
    Act(u8, usize, u32),
}

fn lively_step() -> impl Strategy<Value = Lively> {
    prop_oneof![
        4 => (0_u32..4, any::<bool>()).prop_map(|(handle, receiver)| Lively::Attach(handle, receiver)),
        6 => (0_usize..4, 0_u32..6, 0_u32..6, 0_u8..4).prop_map(|(name, credit, window, drain)| {
            Lively::Credit { name, credit, window, drain: drain == 0 }
        }),
        1 => (0_u32..4).prop_map(Lively::Detach),
        2 => (0_u32..30, 0_u32..5, any::<bool>())
            .prop_map(|(first, width, settled)| Lively::Dispose { first, width, settled }),
        1 => Just(Lively::Reopen),
        16 => (0_u8..12, 0_usize..4, number()).prop_map(|(act, which, number)| Lively::Act(act, which, number)),
    ]
}

/// Which handles of the peer are attached, for it to use only those.
fn run_lively(steps: &[Lively]) {
    let mut wild = Wild::new(tight(), Some(Grammar::new(512)));
    let mut handles: [Option<bool>; 4] = [None; 4];
    begin_again(&mut wild);
    for step in steps {
        match step {
            Lively::Attach(handle, receiver) => {
                let slot = &mut handles[*handle as usize];
                // The fourth link is refused, and the peer would have to answer that.
                if slot.is_none() && *handle < 3 {
                    *slot = Some(*receiver);
                    attach_again(&mut wild, *handle, *receiver);
                }
            }
            Lively::Credit {
                name,
                credit,
                window,
                drain,
            } => {
                if handles[*name] == Some(true) {
                    grant(&mut wild, *name, *credit, *window, *drain);
                }
            }
            Lively::Detach(handle) => {
                if handles[*handle as usize].take().is_some() {
                    let detach = Detach {
                        handle: *handle,
                        closed: true,
                        error: None,
                    };
                    wild.frame(0, &Performative::Detach(detach), 0);
                }
            }
            Lively::Dispose {
                first,
                width,
                settled,
            } => {
                let disposition = Disposition {
                    role: Role::Receiver,
                    first: *first,
                    last: Some(first + width),
                    settled: *settled,
                    state: Some(DeliveryState::Accepted),
                    batchable: false,
                };
                wild.frame(0, &Performative::Disposition(disposition), 0);
            }
            Lively::Reopen => {
                handles = [None; 4];
                wild.frame(0, &Performative::End(End { error: None }), 0);
                begin_again(&mut wild);
            }
            // The owner refuses nothing here: the peer would have to answer.
            Lively::Act(3, ..) => {}
            Lively::Act(act, which, number) => wild.act(*act, *which, *number),
        }
    }
    assert!(!wild.closed, "a peer that keeps the rules is not closed");
}

fn usual_begin() -> Performative {
    Performative::Begin(Box::new(Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: 3,
        outgoing_window: 0,
        handle_max: 7,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }))
}

fn begin_again(wild: &mut Wild) {
    wild.frame(0, &usual_begin(), 0);
    if let Some(grammar) = &mut wild.grammar {
        grammar.granted_window(0, 3);
    }
}

fn name(handle: usize) -> String {
    format!("link-{handle}")
}

fn attach_again(wild: &mut Wild, handle: u32, receiver: bool) {
    let role = if receiver {
        Role::Receiver
    } else {
        Role::Sender
    };
    let mut attach = attach(&name(handle as usize), role);
    attach.handle = handle;
    wild.frame(0, &Performative::Attach(Box::new(attach)), 0);
}

fn grant(wild: &mut Wild, handle: usize, credit: u32, window: u32, drain: bool) {
    let name = name(handle);
    let Some(grammar) = &mut wild.grammar else {
        return;
    };
    let Some((sent, next)) = grammar.seen(0, &name) else {
        return;
    };
    grammar.granted(0, &name, credit, window);
    let flow = Flow {
        next_incoming_id: Some(next),
        incoming_window: window,
        outgoing_window: 9,
        handle: u32::try_from(handle).ok(),
        delivery_count: Some(sent),
        link_credit: Some(credit),
        drain,
        ..Flow::default()
    };
    wild.frame(0, &Performative::Flow(flow), 0);
}
