//! Controller: a client that works in transactions. It declares one after the other, sends and
//! settles within them to and from several queues, keeps a session's state, and commits or rolls
//! back; or it is too late, or goes.
//!
//! What a transaction holds is in `controller/open.rs`, over which links in `controller/links.rs`.

use amqp::message::descriptor;
use amqp::{DeliveryState, Value, encode};
use bytes::{Bytes, BytesMut};
use endpoint::{Event, LinkId, Outgoing};

use crate::context::Context;
use crate::ledger::{Ledger, TRANSACTION_LIFE};
use crate::message::MessageId;
use crate::remote::Remote;
use crate::violation::Violation;

mod links;
mod open;

use links::Links;
use open::Open;

/// Descriptors of what a coordinator is sent. [AMQP 4.5.3, 4.5.4]
const DECLARE: u64 = 0x31;
const DISCHARGE: u64 = 0x32;
/// Most operations of a transaction.
const MOST: usize = 12;

/// How far it is.
enum Phase {
    Idle,
    Declaring,
    /// With the name of the transaction.
    Open(Bytes),
    Ending {
        commit: bool,
    },
}

/// A client with a coordinator.
pub struct Controller {
    links: Links,
    phase: Phase,
    open: Open,
    /// It does not discharge before its time is up.
    late_until: Option<u64>,
    tag: u32,
}

impl Controller {
    /// A controller that has done nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            links: Links::new(),
            phase: Phase::Idle,
            open: Open::default(),
            late_until: None,
            tag: 0,
        }
    }

    pub(crate) fn connected(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        self.links.connected(context, remote);
    }

    pub(crate) fn parts_with(&self, link: LinkId) -> bool {
        self.links.parts_with(link)
    }

    pub(crate) fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        self.links.act(context, remote);
        match &self.phase {
            Phase::Idle => self.declare(context, remote),
            Phase::Open(name) => {
                let name = name.clone();
                self.work(context, remote, &name);
            }
            Phase::Declaring | Phase::Ending { .. } => {
                if context.rng.chance(10) {
                    self.leave(context, remote);
                }
            }
        }
    }

    fn declare(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        if self.control(remote, DECLARE, vec![Value::Null]) {
            self.phase = Phase::Declaring;
            let late = context.now.mono.0 + TRANSACTION_LIFE + context.rng.between(0, 2_000);
            self.late_until = context.rng.chance(40).then_some(late);
        }
    }

    /// Some operations, and the end, or not yet.
    fn work(&mut self, context: &mut Context<'_>, remote: &mut Remote, name: &Bytes) {
        for _ in 0..=context.rng.below(4) {
            if self.open.len() < MOST {
                self.tag = self.tag.wrapping_add(1);
                let tag = self.tag;
                self.open
                    .enlist(context, remote, &mut self.links, name, tag);
            }
        }
        let waits = self
            .late_until
            .is_some_and(|until| until > context.now.mono.0);
        match context.rng.below(100) {
            0 => self.leave(context, remote),
            1..=40 if !waits => {
                let commit = context.rng.chance(750);
                let fields = vec![Value::Binary(name.clone()), Value::Bool(!commit)];
                if self.control(remote, DISCHARGE, fields) {
                    self.phase = Phase::Ending { commit };
                }
            }
            _ => {}
        }
    }

    fn control(&mut self, remote: &mut Remote, code: u64, fields: Vec<Value>) -> bool {
        let Some(link) = self.links.coordinator else {
            return false;
        };
        let mut payload = BytesMut::new();
        let body = Value::described(code, Value::List(fields));
        encode::value(&mut payload, &Value::described(descriptor::VALUE, body));
        self.tag = self.tag.wrapping_add(1);
        let tag = self.tag.to_be_bytes();
        let outgoing = Outgoing {
            tag: &tag,
            ..Outgoing::default()
        };
        remote.endpoint.send(link, &outgoing, &[&payload]).is_ok()
    }

    /// Leaves its coordinator, which rolls back what it has not discharged.
    fn leave(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        self.links.leave_coordinator(remote);
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Ending { commit: true } => self.open.lost(context.ledger, &mut self.links),
            _ => {
                // A rollback does nothing, so no answer about it can be wrong.
                let ended = self.open.ended(context.ledger, &mut self.links, false);
                ended.expect("a rollback promises nothing");
            }
        }
    }

    pub(crate) fn handle(
        &mut self,
        context: &mut Context<'_>,
        event: Event,
    ) -> Result<(), Violation> {
        match event {
            Event::Disposed { link, state, .. } if self.links.coordinator == Some(link) => {
                self.controlled(context, state)
            }
            Event::Disposed { cookie, state, .. } => {
                let id = MessageId::try_from(cookie).expect("cookies are our own ids");
                self.open.sent(context.ledger, id, state.as_ref())
            }
            Event::Updated {
                delivery_id,
                settled,
                state,
                ..
            } => {
                let links = &mut self.links;
                let state = state.as_ref();
                self.open
                    .updated(context, links, delivery_id, settled, state)
            }
            Event::Closed { .. } => {
                self.disconnected(context.ledger);
                Ok(())
            }
            event => self.links.handle(context, event),
        }
    }

    /// The coordinator answers.
    fn controlled(
        &mut self,
        context: &mut Context<'_>,
        state: Option<DeliveryState>,
    ) -> Result<(), Violation> {
        let done = matches!(state, Some(DeliveryState::Accepted));
        match (std::mem::replace(&mut self.phase, Phase::Idle), state) {
            (Phase::Declaring, Some(DeliveryState::Declared { txn_id })) => {
                self.phase = Phase::Open(txn_id);
                Ok(())
            }
            (
                Phase::Ending { commit },
                Some(DeliveryState::Accepted | DeliveryState::Rejected(_)),
            ) => {
                let (ledger, links) = (&mut *context.ledger, &mut self.links);
                self.open.ended(ledger, links, commit && done)
            }
            (_, state) => {
                let what = format!("a coordinator answered with {state:?}");
                Err(Violation::new("I7", what))
            }
        }
    }

    pub(crate) fn disconnected(&mut self, ledger: &mut Ledger) {
        self.open.lost(ledger, &mut self.links);
        self.links.disconnected(ledger);
        self.phase = Phase::Idle;
    }
}

impl Default for Controller {
    fn default() -> Self {
        Self::new()
    }
}
