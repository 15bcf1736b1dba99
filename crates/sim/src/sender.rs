//! Sender: a client that sends messages to one queue and waits for what becomes of them. One
//! of RabbitMQ's dialect ends its session now and then, and begins another one.

use std::collections::BTreeSet;

use amqp::DeliveryState;
use endpoint::{Event, LinkId, Outgoing};

use crate::context::Context;
use crate::ledger::Ledger;
use crate::message::{self, MessageId, SendOptions};
use crate::remote::Remote;
use crate::spoken::Spoken;
use crate::violation::Violation;

/// Most messages of one sender that wait for an answer.
const IN_FLIGHT: usize = 30;

/// A sending client.
pub struct Sender {
    path: &'static str,
    spoken: Spoken,
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
    pub fn new(path: &'static str, spoken: Spoken) -> Self {
        Self {
            path,
            spoken,
            link: None,
            waiting: BTreeSet::new(),
            tag: 0,
            stopped: false,
        }
    }

    pub(crate) fn connected(&mut self, remote: &mut Remote) {
        self.link = Some(remote.attach_sender("sender", &self.spoken.address(self.path)));
    }

    /// Whether a link went with a session that it has ended.
    pub(crate) fn parts_with(&self, link: LinkId) -> bool {
        self.link != Some(link)
    }

    pub(crate) fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        let Some(link) = self.link.filter(|_| !self.stopped) else {
            return;
        };
        if self.spoken == Spoken::RabbitMq && context.rng.chance(10) {
            remote.begin_again();
            self.disconnected(context.ledger);
            return self.connected(remote);
        }
        for _ in 0..=context.rng.below(4) {
            if self.waiting.len() < IN_FLIGHT {
                self.send(context, remote, link);
            }
        }
    }

    fn send(&mut self, context: &mut Context<'_>, remote: &mut Remote, link: LinkId) {
        let Some(queue) = context.ledger.index_of(self.path) else {
            return;
        };
        let id = context.ledger.fresh_id(context.rng, queue);
        let mut options = SendOptions::any(context.rng, id, context.now);
        // Without an id a message of RabbitMQ's dialect is stored with one beside it.
        let is_named = self.spoken == Spoken::RabbitMq;
        if !is_named && !context.ledger.may_detect_duplicates(queue) {
            options = options.perhaps_unnamed(context.rng);
        }
        let size = match context.rng.below(100) {
            0 => 40_000,
            1..=9 => 2_000,
            _ => context.rng.below(100),
        };
        let payload = message::build(context.rng, id, options, size);
        self.tag = self.tag.wrapping_add(1);
        let tag = self.tag.to_be_bytes();
        let outgoing = Outgoing {
            tag: &tag,
            cookie: id.into(),
            ..Outgoing::default()
        };
        if remote.endpoint.send(link, &outgoing, &[&payload]).is_ok() {
            context
                .ledger
                .send_asked(id, queue, payload, options, context.now);
            self.waiting.insert(id);
        }
    }

    pub(crate) fn handle(
        &mut self,
        context: &mut Context<'_>,
        event: Event,
    ) -> Result<(), Violation> {
        match event {
            Event::Disposed { cookie, state, .. } => {
                let id = MessageId::try_from(cookie).expect("cookies are our own ids");
                if self.waiting.remove(&id) {
                    let accepted = state == Some(DeliveryState::Accepted);
                    context.ledger.send_answered(id, accepted)?;
                    let counts = accepted && self.spoken == Spoken::RabbitMq;
                    context.ledger.report.rabbitmq_accepted += u64::from(counts);
                }
            }
            Event::Detached { link, .. } if self.link == Some(link) => {
                self.disconnected(context.ledger);
            }
            Event::Closed { .. } => self.disconnected(context.ledger),
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
