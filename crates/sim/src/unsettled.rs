//! Unsettled: deliveries that a client has not settled, and settlements that wait for their answer.
//!
//! Messages are settled in every way there is, sometimes too late, sometimes never.

use std::collections::BTreeMap;

use amqp::{DeliveryState, Error, Symbol, Value};
use broker::Subqueue;

use crate::context::Context;
use crate::ledger::{Ask, Ledger};
use crate::message::MessageId;
use crate::remote::Remote;
use crate::rng::Rng;
use crate::spoken::{self, Spoken};
use crate::violation::Violation;

/// How a settlement may be refused.
const REFUSALS: [&str; 3] = [
    "com.microsoft:message-lock-lost",
    "com.microsoft:session-lock-lost",
    "amqp:not-allowed",
];

/// The deliveries and settlements of one link.
#[derive(Debug)]
pub struct Unsettled {
    subqueue: Subqueue,
    spoken: Spoken,
    /// Whether what is abandoned may wait.
    may_wait: bool,
    /// By delivery-id.
    held: Vec<(u32, MessageId)>,
    /// By delivery-id.
    asked: BTreeMap<u32, (MessageId, Ask)>,
}

impl Unsettled {
    /// Nothing yet, from there.
    #[must_use]
    pub fn new(subqueue: Subqueue, by_session: bool) -> Self {
        Self {
            subqueue,
            spoken: Spoken::ServiceBus,
            may_wait: subqueue == Subqueue::Main && !by_session,
            held: Vec::new(),
            asked: BTreeMap::new(),
        }
    }

    /// The same, of a consumer of RabbitMQ's dialect.
    #[must_use]
    pub fn of_consumer() -> Self {
        Self {
            spoken: Spoken::RabbitMq,
            ..Self::new(Subqueue::Main, false)
        }
    }

    /// A delivery came.
    pub fn take(&mut self, delivery: u32, id: MessageId) {
        self.held.push((delivery, id));
    }

    /// Whether nothing is held and no answer is to come.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.held.is_empty() && self.asked.is_empty()
    }

    /// Settles everything with success.
    pub fn complete_all(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        while let Some((delivery, id)) = self.held.pop() {
            self.ask(context, remote, delivery, id, Ask::Complete);
        }
    }

    /// Settles some, in any way.
    pub fn settle_some(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        for _ in 0..=context.rng.below(3) {
            let Some((delivery, id)) = self.pick(context) else {
                return;
            };
            let ask = match context.rng.below(20) {
                0..=10 => Ask::Complete,
                11..=12 => Ask::Abandon,
                13 => Ask::Release,
                14 => Ask::DeadLetter,
                15 if self.spoken == Spoken::ServiceBus => Ask::Defer,
                // Forgotten: its lock runs out, or ends with the link.
                _ => continue,
            };
            self.ask(context, remote, delivery, id, ask);
        }
    }

    /// Takes any of them out.
    pub fn pick(&mut self, context: &mut Context<'_>) -> Option<(u32, MessageId)> {
        match self.held.len() {
            0 => None,
            count => Some(self.held.remove(context.rng.below(count))),
        }
    }

    fn ask(
        &mut self,
        context: &mut Context<'_>,
        remote: &mut Remote,
        delivery: u32,
        id: MessageId,
        ask: Ask,
    ) {
        let state = match self.spoken {
            Spoken::ServiceBus => {
                let waits = self.may_wait && context.rng.chance(300);
                state_of(ask, waits, context)
            }
            Spoken::RabbitMq => spoken::rabbitmq_state(ask),
        };
        context.ledger.asked(id, ask);
        // Clients of RabbitMQ's dialect mostly wait for no answer.
        let settled = self.spoken == Spoken::RabbitMq && context.rng.chance(500);
        if settled {
            context.ledger.answer_lost(id, ask);
        } else {
            self.asked.insert(delivery, (id, ask));
        }
        remote
            .endpoint
            .dispose_received(remote.session, delivery, state, settled);
    }

    /// A settlement was answered, if it is one of these.
    ///
    /// # Errors
    /// I2, when the answer makes no sense.
    pub fn updated(
        &mut self,
        context: &mut Context<'_>,
        delivery: u32,
        state: Option<DeliveryState>,
    ) -> Result<(), Violation> {
        let Some((id, ask)) = self.asked.remove(&delivery) else {
            return Ok(());
        };
        if self.spoken == Spoken::RabbitMq {
            // The client gets its own state back, whatever has become of the lock.
            let done = context.ledger.was_granted(id, ask);
            let completed = done && ask == Ask::Complete;
            context.ledger.report.rabbitmq_completions += u64::from(completed);
            return context.ledger.answered(id, self.subqueue, ask, done);
        }
        let wrong = |what: String| Err(Violation::new("I2", format!("settling {id} was {what}")));
        let done = match state {
            Some(DeliveryState::Rejected(Some(error))) => {
                if !REFUSALS.contains(&error.condition.as_str()) {
                    return wrong(format!("refused with {error:?}"));
                }
                false
            }
            Some(_) => true,
            None => return wrong("answered without a state".to_owned()),
        };
        context.ledger.answered(id, self.subqueue, ask, done)
    }

    /// Their link is gone, with every answer that had not come.
    pub fn lost(&mut self, ledger: &mut Ledger) {
        self.held.clear();
        for (_, (id, ask)) in std::mem::take(&mut self.asked) {
            ledger.answer_lost(id, ask);
        }
    }
}

/// The state that asks for an outcome, as the SDKs spell it. (docs/spec/amqp.md#5.1)
pub fn state_of(ask: Ask, waits: bool, context: &mut Context<'_>) -> DeliveryState {
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
    let delay = |rng: &mut Rng| {
        let delay = Value::Uint(rng.below(20_000) as u32);
        vec![(Value::from("x-opt-delivery-delay"), delay)]
    };
    match ask {
        Ask::Complete => DeliveryState::Accepted,
        Ask::Abandon if waits => modified(false, Some(delay(context.rng))),
        Ask::Abandon => modified(false, context.rng.chance(300).then(note)),
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
