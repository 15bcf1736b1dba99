//! Peer: what a connection would say to a shard that sends to a queue as fast as its window allows, and
//! perhaps receives from it and settles.

use std::collections::VecDeque;

use broker::{
    Command, ConnectionId, Incoming, LockToken, Outcome, Output, QueueSettings, ReceiveMode,
    ReceiverId, RequestId, Subqueue,
};
use bytes::{BufMut, Bytes, BytesMut};
use store::{EntityId, NamespaceId};

/// Messages that are taken in turn.
const KINDS: usize = 1_024;
/// The descriptor of a data section whose length has four bytes. [AMQP 3.2.6]
const DATA: [u8; 4] = [0x00, 0x53, 0x75, 0xb0];

/// See the module.
pub struct Peer {
    name: String,
    queue: Option<EntityId>,
    kinds: Vec<Bytes>,
    window: u64,
    /// Credit that is kept up: more than are sent at a time, so that there is no backlog.
    credit: u32,
    settles: bool,
    stopping: bool,
    sent: u64,
    accepted: u64,
    received: u32,
    granted: u32,
    settled: u64,
    locks: Vec<LockToken>,
}

const CONNECTION: ConnectionId = ConnectionId(1);
const RECEIVER: ReceiverId = ReceiverId {
    connection: CONNECTION,
    link: 0,
};
/// Settlements have a token above all those of sends.
const SETTLING: u64 = 1 << 63;

fn request(token: u64) -> RequestId {
    RequestId {
        connection: CONNECTION,
        token,
    }
}

impl Peer {
    /// One that has said nothing yet.
    pub fn new(number: u64, size: usize, window: u64, settles: bool) -> Self {
        Self {
            name: format!("queue-{number}"),
            queue: None,
            kinds: (0..KINDS).map(|kind| message(kind, size)).collect(),
            window,
            credit: u32::try_from(window).expect("small") * 2,
            settles,
            stopping: false,
            sent: 0,
            accepted: 0,
            received: 0,
            granted: 0,
            settled: 0,
            locks: Vec::new(),
        }
    }

    /// The first it says.
    pub fn begin(&self) -> Vec<Command> {
        vec![Command::EnsureQueue {
            request: request(0),
            namespace: NamespaceId(0),
            path: self.name.clone(),
            settings: QueueSettings {
                max_size: 1 << 50,
                ..QueueSettings::default()
            },
        }]
    }

    /// Sends nothing more.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether it has stopped and all has its outcome.
    pub fn is_done(&self) -> bool {
        let settled = if self.settles {
            self.settled
        } else {
            self.sent
        };
        self.stopping && self.accepted == self.sent && settled == self.sent
    }

    /// Messages that have come to their end.
    pub fn messages(&self) -> u64 {
        self.accepted
    }

    /// Hears what was said and adds what it says to that.
    pub fn hear(&mut self, said: &mut Vec<Output>, commands: &mut VecDeque<Command>) {
        let mut written = 0;
        for output in said.drain(..) {
            match output {
                Output::Ensured { result, .. } => {
                    self.queue = Some(result.expect("a queue"));
                    self.attach(commands);
                }
                Output::Sent { result, .. } => {
                    result.expect("accepted");
                    self.accepted += 1;
                }
                Output::Deliver { delivery, .. } => {
                    written += delivery.size();
                    self.received += 1;
                    self.locks.push(delivery.token);
                }
                Output::Settled { result, .. } => {
                    result.expect("settled");
                    self.settled += 1;
                }
                _ => {}
            }
        }
        if written > 0 {
            commands.push_back(Command::Written {
                connection: CONNECTION,
                bytes: written,
            });
        }
        self.settle(commands);
        self.send(commands);
    }

    fn attach(&mut self, commands: &mut VecDeque<Command>) {
        if let Some(entity) = self.queue.filter(|_| self.settles) {
            commands.push_back(Command::Attach {
                receiver: RECEIVER,
                entity,
                subqueue: Subqueue::Main,
                mode: ReceiveMode::PeekLock,
            });
            self.grant(commands);
        }
    }

    fn grant(&mut self, commands: &mut VecDeque<Command>) {
        self.granted = self.received + self.credit;
        commands.push_back(Command::Credit {
            receiver: RECEIVER,
            limit: self.granted,
            drain: false,
        });
    }

    fn settle(&mut self, commands: &mut VecDeque<Command>) {
        let Some(entity) = self.queue else { return };
        for token in self.locks.drain(..) {
            commands.push_back(Command::Settle {
                request: Some(request(SETTLING)),
                session: None,
                entity,
                subqueue: Subqueue::Main,
                token,
                outcome: Outcome::Complete,
            });
        }
        if self.settles && self.granted - self.received < self.credit / 2 {
            self.grant(commands);
        }
    }

    fn send(&mut self, commands: &mut VecDeque<Command>) {
        let Some(entity) = self.queue else { return };
        while !self.stopping && self.sent - self.accepted < self.window {
            self.sent += 1;
            let kind = usize::try_from(self.sent).unwrap_or(0) % KINDS;
            let message = Incoming {
                payload: self.kinds[kind].clone(),
                ..Incoming::default()
            };
            commands.push_back(Command::Send {
                request: request(self.sent),
                entity,
                messages: vec![message],
            });
        }
    }
}

/// An encoded message with a body of `size` bytes that differs from the others.
fn message(kind: usize, size: usize) -> Bytes {
    let mut word = 0x9E37_79B9_7F4A_7C15_u64 ^ kind as u64;
    let mut next = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word.to_be_bytes()[0]
    };
    let mut message = BytesMut::with_capacity(DATA.len() + 4 + size);
    message.put_slice(&DATA);
    message.put_u32(u32::try_from(size).expect("small"));
    message.extend((0..size).map(|_| next()));
    message.freeze()
}
