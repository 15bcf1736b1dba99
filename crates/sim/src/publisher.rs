//! Publisher: a client of RabbitMQ's dialect that publishes to one exchange after the other.
//!
//! The exchange may be missing, and may be deleted meanwhile: its link goes, and it takes another.

use std::collections::BTreeSet;

use endpoint::{Event, LinkId, Outgoing};

use crate::context::Context;
use crate::message::{self, MessageId, SendOptions};
use crate::remote::Remote;
use crate::topology;
use crate::violation::Violation;

/// Most messages that wait for an answer.
const IN_FLIGHT: usize = 10;

/// A client that publishes.
#[derive(Debug, Default)]
pub struct Publisher {
    link: Option<LinkId>,
    /// Messages that wait for their answer.
    waiting: BTreeSet<MessageId>,
    tag: u32,
}

impl Publisher {
    pub(crate) fn connected(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        let exchange = topology::any_exchange(context.rng);
        let key = topology::any_key(context.rng);
        let address = format!("/exchanges/{exchange}/{key}");
        self.link = Some(remote.attach_sender("publisher", &address));
    }

    pub(crate) fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        if context.rng.chance(20) {
            remote.begin_again();
            self.disconnected();
        }
        let Some(link) = self.link else {
            return self.connected(context, remote);
        };
        for _ in 0..=context.rng.below(3) {
            if self.waiting.len() < IN_FLIGHT {
                self.publish(context, remote, link);
            }
        }
    }

    fn publish(&mut self, context: &mut Context<'_>, remote: &mut Remote, link: LinkId) {
        let id = context.ledger.next_id(None);
        let rng = &mut *context.rng;
        let options = SendOptions {
            ttl: rng.chance(100).then(|| rng.between(1, 20_000) as u32),
            ..SendOptions::default()
        };
        let size = rng.below(100);
        let payload = message::build(rng, id, options, size);
        self.tag = self.tag.wrapping_add(1);
        let outgoing = Outgoing {
            tag: &self.tag.to_be_bytes(),
            cookie: id.into(),
            ..Outgoing::default()
        };
        if remote.endpoint.send(link, &outgoing, &[&payload]).is_ok() {
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
                    context.ledger.publish_answered(id, state.as_ref())?;
                }
            }
            Event::Detached { link, .. } if self.link == Some(link) => self.disconnected(),
            Event::Closed { .. } => self.disconnected(),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn disconnected(&mut self) {
        self.link = None;
        self.waiting.clear();
    }
}
