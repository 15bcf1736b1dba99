//! Receiver: a client that takes messages from one queue and settles them in every way there is,
//! sometimes too late, sometimes never.

use std::collections::BTreeMap;

use amqp::{DeliveryState, Error, Symbol, Value};
use broker::Subqueue;
use endpoint::{Event, LinkId};

use crate::actor::Stage;
use crate::ledger::{Ask, Ledger};
use crate::message::MessageId;
use crate::remote::Remote;
use crate::violation::Violation;

/// A receiving client.
pub struct Receiver {
    path: String,
    subqueue: Subqueue,
    /// Receive-and-delete.
    settled: bool,
    link: Option<LinkId>,
    attached: bool,
    /// Deliveries that it has not settled.
    held: Vec<(u32, MessageId)>,
    /// Settlements that wait for their answer, by delivery-id.
    asked: BTreeMap<u32, (MessageId, Ask)>,
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
            subqueue,
            settled,
            link: None,
            attached: false,
            held: Vec::new(),
            asked: BTreeMap::new(),
            diligent: false,
            links: 0,
        }
    }

    pub(crate) fn connected(&mut self, stage: &mut Stage<'_>, remote: &mut Remote) {
        self.links += 1;
        let link = remote.attach_receiver(
            &format!("receiver-{}", self.links),
            &self.path,
            self.settled,
        );
        // Credit may be sent before the attach is answered.
        if stage.rng.chance(500) {
            remote.endpoint.set_credit(link, 3, false);
        }
        self.link = Some(link);
    }

    pub(crate) fn act(&mut self, stage: &mut Stage<'_>, remote: &mut Remote) {
        let Some(link) = self.link.filter(|_| self.attached) else {
            return;
        };
        if self.diligent {
            return self.work_off(stage, remote, link);
        }
        match stage.rng.below(20) {
            0..=5 if remote.endpoint.credit_left(link) < 5 => {
                let credit = 1 + stage.rng.below(20) as u32;
                remote
                    .endpoint
                    .set_credit(link, credit, stage.rng.chance(100));
            }
            6 if stage.rng.chance(20) => remote.endpoint.detach(link, true, None),
            _ => self.settle_some(stage, remote),
        }
    }

    fn work_off(&mut self, stage: &mut Stage<'_>, remote: &mut Remote, link: LinkId) {
        if remote.endpoint.credit_left(link) < 50 {
            remote.endpoint.set_credit(link, 100, false);
        }
        while let Some((delivery, id)) = self.held.pop() {
            self.ask(stage, remote, delivery, id, Ask::Complete);
        }
    }

    fn settle_some(&mut self, stage: &mut Stage<'_>, remote: &mut Remote) {
        for _ in 0..=stage.rng.below(3) {
            if self.held.is_empty() {
                return;
            }
            let (delivery, id) = self.held.remove(stage.rng.below(self.held.len()));
            let ask = match stage.rng.below(20) {
                0..=10 => Ask::Complete,
                11..=12 => Ask::Abandon,
                13 => Ask::Release,
                14 => Ask::DeadLetter,
                15 => Ask::Defer,
                // Forgotten: its lock runs out.
                _ => continue,
            };
            self.ask(stage, remote, delivery, id, ask);
        }
    }

    fn ask(
        &mut self,
        stage: &mut Stage<'_>,
        remote: &mut Remote,
        delivery: u32,
        id: MessageId,
        ask: Ask,
    ) {
        stage.ledger.asked(id, ask);
        self.asked.insert(delivery, (id, ask));
        remote
            .endpoint
            .dispose_received(remote.session, delivery, state_of(ask, stage), false);
    }

    pub(crate) fn handle(
        &mut self,
        stage: &mut Stage<'_>,
        _remote: &mut Remote,
        event: Event,
    ) -> Result<(), Violation> {
        match event {
            Event::Attached { attach, .. } => self.attached = attach.source.is_some(),
            Event::Delivery {
                delivery_id,
                payload,
                settled,
                ..
            } => {
                let id = stage.ledger.received(&payload)?;
                if !settled {
                    self.held.push((delivery_id, id));
                }
            }
            Event::Updated {
                delivery_id,
                settled: true,
                state,
                ..
            } => self.updated(stage, delivery_id, state)?,
            Event::Detached { .. } | Event::Closed { .. } => self.disconnected(stage.ledger),
            _ => {}
        }
        Ok(())
    }

    fn updated(
        &mut self,
        stage: &mut Stage<'_>,
        delivery: u32,
        state: Option<DeliveryState>,
    ) -> Result<(), Violation> {
        let Some((id, ask)) = self.asked.remove(&delivery) else {
            return Ok(());
        };
        let done = match state {
            Some(DeliveryState::Rejected(Some(error))) => {
                if error.condition != "com.microsoft:message-lock-lost"
                    && error.condition != "amqp:not-allowed"
                {
                    return Err(Violation::new(
                        "I2",
                        format!("settling {id} was refused with {error:?}"),
                    ));
                }
                false
            }
            Some(_) => true,
            None => {
                return Err(Violation::new(
                    "I2",
                    format!("settling {id} was answered without a state"),
                ));
            }
        };
        stage.ledger.answered(id, self.subqueue, ask, done)
    }

    pub(crate) fn disconnected(&mut self, ledger: &mut Ledger) {
        self.link = None;
        self.attached = false;
        self.held.clear();
        for (_, (id, ask)) in std::mem::take(&mut self.asked) {
            ledger.answer_lost(id, ask);
        }
    }
}

/// The state that asks for an outcome, as the SDKs spell it. (Wire contract 5.1)
fn state_of(ask: Ask, stage: &mut Stage<'_>) -> DeliveryState {
    let modified = |undeliverable_here, message_annotations| DeliveryState::Modified {
        delivery_failed: false,
        undeliverable_here,
        message_annotations,
    };
    let note = || {
        vec![(
            Value::Symbol(Symbol::new("note")),
            Value::String("changed".to_owned()),
        )]
    };
    match ask {
        Ask::Complete => DeliveryState::Accepted,
        Ask::Abandon => modified(false, stage.rng.chance(300).then(note)),
        Ask::Release => DeliveryState::Released,
        Ask::Defer => modified(true, None),
        Ask::DeadLetter => DeliveryState::Rejected(Some(Error {
            condition: Symbol::new("com.microsoft:dead-letter"),
            description: None,
            info: Some(vec![(
                Value::Symbol(Symbol::new("DeadLetterReason")),
                Value::String("sim".to_owned()),
            )]),
        })),
    }
}
