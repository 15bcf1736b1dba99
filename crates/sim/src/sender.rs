//! Sender: a client that sends messages to one queue and waits for what becomes of them.

use std::collections::BTreeSet;

use amqp::DeliveryState;
use endpoint::{Event, LinkId, Outgoing};

use crate::actor::Stage;
use crate::ledger::Ledger;
use crate::message::{self, MessageId, Wish};
use crate::remote::Remote;
use crate::violation::Violation;

/// Most messages of one sender that wait for an answer.
const IN_FLIGHT: usize = 30;

/// A sending client.
pub struct Sender {
    path: &'static str,
    link: Option<LinkId>,
    /// Messages that wait for their answer.
    waiting: BTreeSet<MessageId>,
    tag: u32,
    /// Messages are left alone once it has stopped.
    pub stopped: bool,
}

impl Sender {
    /// A sender to the entity of that path.
    #[must_use]
    pub fn new(path: &'static str) -> Self {
        Self {
            path,
            link: None,
            waiting: BTreeSet::new(),
            tag: 0,
            stopped: false,
        }
    }

    pub(crate) fn connected(&mut self, remote: &mut Remote) {
        self.link = Some(remote.attach_sender("sender", self.path));
    }

    pub(crate) fn act(&mut self, stage: &mut Stage<'_>, remote: &mut Remote) {
        let Some(link) = self.link.filter(|_| !self.stopped) else {
            return;
        };
        for _ in 0..=stage.rng.below(4) {
            if self.waiting.len() < IN_FLIGHT {
                self.send(stage, remote, link);
            }
        }
    }

    fn send(&mut self, stage: &mut Stage<'_>, remote: &mut Remote, link: LinkId) {
        let Some(queue) = stage.ledger.index_of(self.path) else {
            return;
        };
        let id = stage.ledger.fresh_id(stage.rng, queue);
        let mut wish = Wish::any(stage.rng, id, stage.now);
        if !stage.ledger.may_detect_duplicates(queue) {
            wish = wish.perhaps_unnamed(stage.rng);
        }
        let size = match stage.rng.below(100) {
            0 => 40_000,
            1..=9 => 2_000,
            _ => stage.rng.below(100),
        };
        let payload = message::build(stage.rng, id, wish, size);
        self.tag = self.tag.wrapping_add(1);
        let tag = self.tag.to_be_bytes();
        let outgoing = Outgoing {
            tag: &tag,
            cookie: id.into(),
            ..Outgoing::default()
        };
        if remote.endpoint.send(link, &outgoing, &[&payload]).is_ok() {
            stage.ledger.send_asked(id, queue, payload, wish, stage.now);
            self.waiting.insert(id);
        }
    }

    pub(crate) fn handle(
        &mut self,
        stage: &mut Stage<'_>,
        _remote: &mut Remote,
        event: Event,
    ) -> Result<(), Violation> {
        match event {
            Event::Disposed { cookie, state, .. } => {
                let id = MessageId::try_from(cookie).expect("cookies are our own ids");
                if self.waiting.remove(&id) {
                    stage
                        .ledger
                        .send_answered(id, state == Some(DeliveryState::Accepted))?;
                }
            }
            Event::Detached { .. } | Event::Closed { .. } => self.disconnected(stage.ledger),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn disconnected(&mut self, ledger: &mut Ledger) {
        self.link = None;
        for id in std::mem::take(&mut self.waiting) {
            ledger.send_lost(id);
        }
    }
}
