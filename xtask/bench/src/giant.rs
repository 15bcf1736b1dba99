//! Giant: sends messages of the largest size there is, one after the other.
//!
//! Their bodies go out from where they lie: a copy of a whole body would keep a processor busy, and
//! any other client that is measured on it would wait for the generator rather than for the broker.

use std::time::Instant;

use amqp::performative::ReceiverSettleMode;
use amqp::{Attach, DeliveryState, Role, Source, Target, Value};
use anyhow::{Result, bail};
use bytes::Bytes;
use endpoint::{Connection, Event, LinkId, Outgoing, SessionId};

use super::task::{Tally, Task};
use load::bodies::{self, HEADER};
use load::request_client;

/// A message's bytes: 100 MiB, which no entity lets be more, less what stands before the body.
pub const BODY: usize = (100 << 20) - 1_024;
/// One piece of a body.
pub const PIECE: usize = 4 << 20;

/// A sending link and what became of its messages.
pub struct Giant {
    queue: String,
    piece: Bytes,
    link: Option<LinkId>,
    started: bool,
    stopped: bool,
    sent: u64,
    accepted: u64,
    last: Option<Instant>,
}

impl Giant {
    /// A sender to `queue` that has not started.
    pub fn new(queue: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            piece: bodies::block().slice(..PIECE),
            link: None,
            started: false,
            stopped: false,
            sent: 0,
            accepted: 0,
            last: None,
        }
    }

    /// Header and body, in pieces.
    fn parts<'a>(&'a self, head: &'a [u8; 8]) -> Vec<&'a [u8]> {
        let mut parts = vec![HEADER, &head[..]];
        parts.resize(2 + BODY / PIECE, &self.piece[..]);
        parts.push(&self.piece[..BODY % PIECE]);
        parts
    }
}

/// The start of a data section. [AMQP 3.2.6]
fn head() -> [u8; 8] {
    let [a, b, c, d] = u32::try_from(BODY).expect("it is 100 MiB").to_be_bytes();
    [0x00, 0x53, 0x75, 0xb0, a, b, c, d]
}

impl Task for Giant {
    fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        let target = Target {
            address: Some(Value::from(self.queue.as_str())),
            ..Target::default()
        };
        let link = request_client::link("bench-giant", Role::Sender, Source::default(), target);
        let attach = Attach {
            rcv_settle_mode: Some(ReceiverSettleMode::First),
            ..link
        };
        self.link = Some(engine.attach(session, attach));
    }

    fn links(&self) -> Vec<LinkId> {
        self.link.into_iter().collect()
    }

    fn start(&mut self, _now: Instant, _engine: &mut Connection) {
        self.started = true;
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn act(&mut self, _now: Instant, engine: &mut Connection) {
        let Some(link) = self.link else { return };
        if !self.started || self.stopped || self.sent > self.accepted {
            return;
        }
        let tag = self.sent.to_be_bytes();
        let outgoing = Outgoing {
            tag: &tag,
            owner: Some(&self.piece),
            ..Outgoing::default()
        };
        if engine.send(link, &outgoing, &self.parts(&head())).is_ok() {
            self.sent += 1;
        }
    }

    fn handle(&mut self, now: Instant, event: &Event, _engine: &mut Connection) -> Result<bool> {
        let Event::Disposed { state, .. } = event else {
            return Ok(false);
        };
        if !matches!(state, Some(DeliveryState::Accepted)) {
            bail!("a message of 100 MiB was refused: {state:?}");
        }
        self.accepted += 1;
        self.last = Some(now);
        Ok(true)
    }

    fn tally(&self) -> Tally {
        Tally {
            is_answered: self.sent == self.accepted,
            accepted: self.accepted,
            last: self.last,
            ..Tally::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_message_are_one_data_section_of_its_size() {
        let (giant, head) = (Giant::new("q"), head());
        let parts = giant.parts(&head);
        let body: usize = parts[2..].iter().map(|part| part.len()).sum();
        assert_eq!(body, BODY);
        let whole: usize = parts.iter().map(|part| part.len()).sum();
        assert!(whole <= 100 << 20);
    }
}
