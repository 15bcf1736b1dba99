//! Grammar: what an engine may write in which order, checked over its whole output.
//!
//! Knows nothing of the engine: begin before anything else on a channel, nothing after end; attach
//! before anything else on a handle, nothing after detach; delivery-ids without gaps; frames within
//! the limit; transfers within credit and window as the peer granted them.

use std::collections::BTreeMap;

use amqp::frame::{self, FrameType};
use amqp::{Flow, Performative, Transfer};
use bytes::{Buf, BytesMut};

#[derive(Default)]
pub struct Grammar {
    started: bool,
    closed: bool,
    max_frame_size: usize,
    sessions: BTreeMap<u16, Session>,
}

#[derive(Default)]
struct Session {
    /// The peer's channel.
    channel: Option<u16>,
    next_delivery_id: u32,
    window: u32,
    next_outgoing_id: u32,
    links: BTreeMap<u32, Link>,
}

#[derive(Default)]
struct Link {
    name: String,
    sender: bool,
    sent: u32,
    limit: u32,
    unfinished: bool,
}

impl Grammar {
    pub fn new(max_frame_size: usize) -> Self {
        Self {
            max_frame_size,
            ..Self::default()
        }
    }

    /// Takes in what the engine wrote.
    pub fn read(&mut self, output: &mut BytesMut) {
        if !self.started && output.len() >= 8 {
            assert_eq!(&output[..8], b"AMQP\x00\x01\x00\x00");
            output.advance(8);
            self.started = true;
        }
        while !output.is_empty() {
            let frame = frame::split(output, u32::MAX)
                .expect("frames are sound")
                .expect("frames are whole");
            assert_eq!(frame.frame_type, FrameType::Amqp);
            assert!(
                frame.body.len() + 8 <= self.max_frame_size,
                "a frame is too large"
            );
            let mut body = frame.body;
            if body.is_empty() {
                continue;
            }
            let performative = Performative::decode(&mut body).expect("bodies are sound");
            assert!(!self.closed, "{performative:?} comes after close");
            self.check(frame.channel, performative);
        }
    }

    fn check(&mut self, channel: u16, performative: Performative) {
        match performative {
            Performative::Open(_) => {}
            Performative::Close(_) => self.closed = true,
            Performative::Begin(begin) => {
                let session = Session {
                    channel: begin.remote_channel,
                    next_outgoing_id: begin.next_outgoing_id,
                    ..Session::default()
                };
                let before = self.sessions.insert(channel, session);
                assert!(before.is_none(), "channel {channel} begins twice");
            }
            Performative::End(_) => {
                let session = self.sessions.remove(&channel);
                assert!(session.is_some(), "channel {channel} ends twice");
            }
            other => {
                let session = self.sessions.get_mut(&channel);
                session
                    .unwrap_or_else(|| panic!("{other:?} on channel {channel} without session"))
                    .check(other);
            }
        }
    }

    /// The peer begins or joins: its window.
    pub fn granted_window(&mut self, channel: u16, window: u32) {
        if let Some(session) = self.session(channel) {
            session.window = window;
        }
    }

    /// The peer's flow for the link of this name; it has seen all that was written.
    pub fn granted(&mut self, channel: u16, name: &str, credit: u32, window: u32) {
        if let Some(session) = self.session(channel) {
            session.window = window;
            for link in session.links.values_mut() {
                if link.sender && link.name == name {
                    link.limit = link.sent.wrapping_add(credit);
                }
            }
        }
    }

    /// How many deliveries the link has sent, and the session's next transfer-id.
    pub fn seen(&mut self, channel: u16, name: &str) -> Option<(u32, u32)> {
        let session = self.session(channel)?;
        let next = session.next_outgoing_id;
        let link = session
            .links
            .values()
            .find(|link| link.sender && link.name == name)?;
        Some((link.sent, next))
    }

    fn session(&mut self, channel: u16) -> Option<&mut Session> {
        self.sessions
            .values_mut()
            .find(|session| session.channel == Some(channel))
    }
}

impl Session {
    fn check(&mut self, performative: Performative) {
        match performative {
            Performative::Attach(attach) => {
                let link = Link {
                    name: attach.name.clone(),
                    sender: attach.role == amqp::performative::Role::Sender,
                    ..Link::default()
                };
                let before = self.links.insert(attach.handle, link);
                assert!(before.is_none(), "handle {} attaches twice", attach.handle);
            }
            Performative::Detach(detach) => {
                let link = self.links.remove(&detach.handle);
                assert!(link.is_some(), "handle {} detaches twice", detach.handle);
            }
            Performative::Flow(flow) => self.check_flow(&flow),
            Performative::Transfer(transfer) => self.check_transfer(&transfer),
            _ => {}
        }
    }

    fn check_flow(&mut self, flow: &Flow) {
        let Some(handle) = flow.handle else {
            return;
        };
        let link = self.links.get_mut(&handle);
        let link = link.unwrap_or_else(|| panic!("a flow on handle {handle} without link"));
        if link.sender {
            let count = flow.delivery_count.expect("a sender knows its count");
            if flow.drain {
                assert_eq!(flow.link_credit, Some(0), "a drain leaves credit");
                link.sent = count;
            }
            assert_eq!(link.sent, count, "the count is not what was sent");
        }
    }

    fn check_transfer(&mut self, transfer: &Transfer) {
        assert!(self.window > 0, "a transfer without window");
        self.window -= 1;
        self.next_outgoing_id = self.next_outgoing_id.wrapping_add(1);
        let link = self.links.get_mut(&transfer.handle);
        let link = link.expect("a transfer needs a link");
        if !link.unfinished {
            assert_ne!(link.sent, link.limit, "a delivery without credit");
            assert_eq!(transfer.delivery_id, Some(self.next_delivery_id));
            assert!(transfer.delivery_tag.is_some() && transfer.message_format.is_some());
            self.next_delivery_id = self.next_delivery_id.wrapping_add(1);
        }
        assert!(transfer.settled.is_some());
        link.unfinished = transfer.more;
        if !transfer.more {
            link.sent = link.sent.wrapping_add(1);
        }
    }
}
