//! Open: what a client has put into the transaction that it has open, and what it was told of it.

use std::collections::BTreeMap;

use amqp::{DeliveryState, Value};
use bytes::Bytes;
use endpoint::Outgoing;

use super::links::{Links, TARGETS};
use crate::context::Context;
use crate::ledger::{Ask, Ledger};
use crate::message::{self, MessageId, SendOptions};
use crate::remote::Remote;
use crate::request::request;
use crate::session::Session;
use crate::unsettled::state_of;
use crate::violation::Violation;

/// A settlement within the transaction.
struct Settlement {
    id: MessageId,
    ask: Ask,
    /// Which of the links it came over.
    intake: usize,
    taken: bool,
}

/// What one transaction holds.
#[derive(Default)]
pub(super) struct Open {
    /// And whether they were taken in.
    sends: Vec<(MessageId, bool)>,
    /// By delivery-id.
    settlements: BTreeMap<u32, Settlement>,
    /// Those of a transaction that ended before they were answered, and whether it was committed.
    strays: BTreeMap<u32, (Settlement, bool)>,
    states: Vec<(u64, Session, Option<Bytes>)>,
}

fn within(name: &Bytes, outcome: Option<DeliveryState>) -> DeliveryState {
    DeliveryState::Transactional {
        txn_id: name.clone(),
        outcome: outcome.map(Box::new),
    }
}

impl Open {
    pub(super) fn len(&self) -> usize {
        self.sends.len() + self.settlements.len() + self.states.len()
    }

    /// One more operation of some kind.
    pub(super) fn enlist(
        &mut self,
        context: &mut Context<'_>,
        remote: &mut Remote,
        links: &mut Links,
        name: &Bytes,
        tag: u32,
    ) {
        match context.rng.below(10) {
            0..=3 => self.send(context, remote, links, name, tag),
            4..=8 => self.settle(context, remote, links, name),
            _ => self.set_state(context, remote, links, name, tag),
        }
    }

    fn send(
        &mut self,
        context: &mut Context<'_>,
        remote: &mut Remote,
        links: &Links,
        name: &Bytes,
        tag: u32,
    ) {
        let Some((queue, link)) = links.senders.get(context.rng.below(TARGETS.len())).copied()
        else {
            return;
        };
        let id = context.ledger.fresh_id(context.rng, queue);
        let options = SendOptions::any(context.rng, id, context.now);
        let size = context.rng.below(100);
        let payload = message::build(context.rng, id, options, size);
        let tag = tag.to_be_bytes();
        let outgoing = Outgoing {
            tag: &tag,
            cookie: id.into(),
            state: Some(within(name, None)),
            ..Outgoing::default()
        };
        if remote.endpoint.send(link, &outgoing, &[&payload]).is_ok() {
            let ledger = &mut context.ledger;
            ledger.send_asked(id, queue, payload, options, context.now);
            self.sends.push((id, false));
        }
    }

    fn settle(
        &mut self,
        context: &mut Context<'_>,
        remote: &mut Remote,
        links: &mut Links,
        name: &Bytes,
    ) {
        let intake = context.rng.below(links.intakes.len());
        let Some((delivery, id)) = links.intakes[intake].unsettled.pick(context) else {
            return;
        };
        let ask = match context.rng.below(10) {
            0..=5 => Ask::Complete,
            6 => Ask::Abandon,
            7 => Ask::DeadLetter,
            8 => Ask::Defer,
            _ => Ask::Release,
        };
        context.ledger.asked(id, ask);
        let state = within(name, Some(state_of(ask, false, context)));
        remote
            .endpoint
            .dispose_received(remote.session, delivery, state, false);
        let taken = false;
        let settlement = Settlement {
            id,
            ask,
            intake,
            taken,
        };
        self.settlements.insert(delivery, settlement);
    }

    fn set_state(
        &mut self,
        context: &mut Context<'_>,
        remote: &mut Remote,
        links: &Links,
        name: &Bytes,
        tag: u32,
    ) {
        let (Some(session), Some(link)) = (links.session, links.requests) else {
            return;
        };
        let state = context.ledger.fresh_state(context.rng);
        let value = state.clone().map_or(Value::Null, Value::Binary);
        let body = vec![
            ("session-id".into(), Value::String(session.name())),
            ("session-state".into(), value),
        ];
        let operation = "com.microsoft:set-session-state";
        let request = request(u64::from(tag), &Links::node(), operation, body);
        let outgoing = Outgoing {
            tag: &tag.to_be_bytes(),
            settled: true,
            state: Some(within(name, None)),
            ..Outgoing::default()
        };
        if remote.endpoint.send(link, &outgoing, &[&request]).is_ok() {
            self.states.push((u64::from(tag), session, state));
        }
    }

    /// A send was taken into the transaction, or not.
    pub(super) fn sent(
        &mut self,
        ledger: &mut Ledger,
        id: MessageId,
        state: Option<&DeliveryState>,
    ) -> Result<(), Violation> {
        let taken = matches!(state, Some(DeliveryState::Transactional { outcome: Some(outcome), .. }) if **outcome == DeliveryState::Accepted);
        let Some(index) = self.sends.iter().position(|(sent, _)| *sent == id) else {
            return Ok(());
        };
        if taken {
            self.sends[index].1 = true;
            return Ok(());
        }
        self.sends.remove(index);
        ledger.send_answered(id, false)
    }

    /// A settlement was answered.
    pub(super) fn updated(
        &mut self,
        context: &mut Context<'_>,
        links: &mut Links,
        delivery: u32,
        settled: bool,
        state: Option<&DeliveryState>,
    ) -> Result<(), Violation> {
        if !settled && matches!(state, Some(DeliveryState::Transactional { .. })) {
            return self.taken_in(context, links, delivery);
        }
        let stray = self.strays.remove(&delivery).map(|(stray, _)| stray);
        let Some(settlement) = self.settlements.remove(&delivery).or(stray) else {
            let mut intakes = links.intakes.iter_mut();
            return intakes.try_for_each(|intake| {
                intake.unsettled.updated(context, delivery, state.cloned())
            });
        };
        let done = !matches!(state, Some(DeliveryState::Rejected(Some(_))));
        let intake = &mut links.intakes[settlement.intake];
        let Settlement { id, ask, .. } = settlement;
        if !settled {
            // It can be settled another time.
            intake.unsettled.take(delivery, id);
        }
        context.ledger.answered(id, intake.subqueue, ask, done)
    }

    /// A settlement is part of its transaction, which may be rolled back already.
    fn taken_in(
        &mut self,
        context: &mut Context<'_>,
        links: &mut Links,
        delivery: u32,
    ) -> Result<(), Violation> {
        if let Some(settlement) = self.settlements.get_mut(&delivery) {
            settlement.taken = true;
        } else if self.strays.get(&delivery).is_some_and(|stray| !stray.1)
            && let Some((settlement, _)) = self.strays.remove(&delivery)
        {
            let intake = &mut links.intakes[settlement.intake];
            intake.unsettled.take(delivery, settlement.id);
            let Settlement { id, ask, .. } = settlement;
            return context.ledger.answered(id, intake.subqueue, ask, false);
        }
        Ok(())
    }

    /// The transaction is over, and is said to be committed or rolled back.
    pub(super) fn ended(
        &mut self,
        ledger: &mut Ledger,
        links: &mut Links,
        committed: bool,
    ) -> Result<(), Violation> {
        for (id, taken) in std::mem::take(&mut self.sends) {
            if committed && !taken {
                ledger.send_lost(id);
            } else {
                ledger.send_answered(id, committed)?;
            }
        }
        for (delivery, settlement) in std::mem::take(&mut self.settlements) {
            let Settlement {
                id,
                ask,
                intake: index,
                taken,
            } = settlement;
            let intake = &mut links.intakes[index];
            if !taken {
                let settlement = Settlement {
                    id,
                    ask,
                    intake: index,
                    taken,
                };
                self.strays.insert(delivery, (settlement, committed));
                continue;
            }
            ledger.answered(id, intake.subqueue, ask, committed)?;
            if !committed {
                intake.unsettled.take(delivery, id);
            }
        }
        let responses = links.responses();
        for (tag, session, state) in std::mem::take(&mut self.states) {
            let mut answers = responses.iter();
            let taken = answers.any(|answer| answer.correlation == tag && answer.code == 200);
            if committed && taken {
                ledger.state_answered(Links::by_session(), session, state.as_ref())?;
            }
        }
        Ok(())
    }

    /// The client will never learn how it ended.
    pub(super) fn lost(&mut self, ledger: &mut Ledger, links: &mut Links) {
        for (id, _) in std::mem::take(&mut self.sends) {
            ledger.send_lost(id);
        }
        for settlement in std::mem::take(&mut self.settlements).into_values() {
            ledger.answer_lost(settlement.id, settlement.ask);
        }
        for (stray, _) in std::mem::take(&mut self.strays).into_values() {
            ledger.answer_lost(stray.id, stray.ask);
        }
        self.states.clear();
        drop(links.responses());
    }
}
