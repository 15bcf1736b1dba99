//! Receiver: a client that takes messages from one queue and settles them in every way there is,
//! sometimes too late, sometimes never. One of RabbitMQ's dialect ends its session now and then
//! with what it holds, and begins another one.

use broker::Subqueue;
use endpoint::{Event, LinkId};

use crate::context::Context;
use crate::ledger::Ledger;
use crate::remote::Remote;
use crate::spoken::Spoken;
use crate::unsettled::Unsettled;
use crate::violation::Violation;

/// A receiving client.
pub struct Receiver {
    path: String,
    spoken: Spoken,
    /// Receive-and-delete.
    settled: bool,
    link: Option<LinkId>,
    attached: bool,
    unsettled: Unsettled,
    /// Completes everything at once and never drains: for the end of a run.
    pub diligent: bool,
    /// Counts the names of its links.
    links: u32,
}

impl Receiver {
    /// A receiver of the queue at `path` or of one of its subqueues.
    #[must_use]
    pub fn new(path: &'static str, subqueue: Subqueue, settled: bool) -> Self {
        let path = match subqueue {
            Subqueue::Main => path.to_owned(),
            Subqueue::DeadLetter => format!("{path}/$DeadLetterQueue"),
            Subqueue::TransferDeadLetter => format!("{path}/$Transfer/$DeadLetterQueue"),
        };
        Self {
            path,
            spoken: Spoken::ServiceBus,
            settled,
            link: None,
            attached: false,
            unsettled: Unsettled::new(subqueue, false),
            diligent: false,
            links: 0,
        }
    }

    /// A consumer of the queue at `path`, in RabbitMQ's dialect.
    #[must_use]
    pub fn consumer(path: &'static str) -> Self {
        Self {
            spoken: Spoken::RabbitMq,
            unsettled: Unsettled::of_consumer(),
            ..Self::new(path, Subqueue::Main, false)
        }
    }

    pub(crate) fn connected(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        self.links += 1;
        let name = format!("receiver-{}", self.links);
        let address = self.spoken.address(&self.path);
        let link = match self.spoken {
            Spoken::ServiceBus => remote.attach_receiver(&name, &address, self.settled),
            Spoken::RabbitMq => remote.attach_consumer(&name, &address),
        };
        // Credit may be sent before the attach is answered.
        if context.rng.chance(500) {
            remote.endpoint.set_credit(link, 3, false);
        }
        self.link = Some(link);
    }

    /// Whether a link went with a session that it has ended.
    pub(crate) fn parts_with(&self, link: LinkId) -> bool {
        self.link != Some(link)
    }

    pub(crate) fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        let Some(link) = self.link.filter(|_| self.attached) else {
            return;
        };
        if self.diligent {
            return self.settle_all(context, remote, link);
        }
        match context.rng.below(20) {
            0..=5 if remote.endpoint.credit_left(link) < 5 => {
                let credit = 1 + context.rng.below(20) as u32;
                remote
                    .endpoint
                    .set_credit(link, credit, context.rng.chance(100));
            }
            6 if context.rng.chance(20) => remote.endpoint.detach(link, true, None),
            7 if self.spoken == Spoken::RabbitMq && context.rng.chance(100) => {
                remote.begin_again();
                self.disconnected(context.ledger);
                self.connected(context, remote);
            }
            _ => self.unsettled.settle_some(context, remote),
        }
    }

    fn settle_all(&mut self, context: &mut Context<'_>, remote: &mut Remote, link: LinkId) {
        if remote.endpoint.credit_left(link) < 50 {
            remote.endpoint.set_credit(link, 100, false);
        }
        self.unsettled.complete_all(context, remote);
    }

    pub(crate) fn handle(
        &mut self,
        context: &mut Context<'_>,
        event: Event,
    ) -> Result<(), Violation> {
        match event {
            Event::Attached { link, attach } if self.link == Some(link) => {
                self.attached = attach.source.is_some();
            }
            Event::Delivery {
                delivery_id,
                tag,
                payload,
                settled,
                ..
            } => {
                let id = match self.spoken {
                    Spoken::ServiceBus => context.ledger.received(&payload)?,
                    Spoken::RabbitMq => context.ledger.consumed(&tag, &payload)?,
                };
                if !settled {
                    self.unsettled.take(delivery_id, id);
                }
            }
            Event::Updated {
                delivery_id,
                settled: true,
                state,
                ..
            } => self.unsettled.updated(context, delivery_id, state)?,
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
        self.attached = false;
        self.unsettled.lost(ledger);
    }
}
