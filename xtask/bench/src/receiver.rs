//! Receiver: takes messages from one queue in peek-lock and completes each.
//!
//! A message counts when the broker has confirmed its completion, which it does once that is
//! durable: the receiver asks to settle second. [AMQP 2.6.12]

use std::time::Instant;

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Role, Source, Symbol, TargetTerminus, Value};
use endpoint::{Connection, LinkId, SessionId};

/// Credit it keeps up.
const CREDIT: u32 = 1_000;

/// A receiving link and what it has settled.
pub struct Receiver {
    queue: String,
    session: Option<&'static str>,
    link: Option<LinkId>,
    settled: u64,
    last: Option<Instant>,
}

impl Receiver {
    /// A receiver from `queue` that has not started.
    pub fn new(queue: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            session: None,
            link: None,
            settled: 0,
            last: None,
        }
    }

    /// A receiver from one session of `queue`.
    pub fn of_session(queue: &str, session: &'static str) -> Self {
        Self {
            session: Some(session),
            ..Self::new(queue)
        }
    }

    /// Asks for the link.
    pub fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        let source = Source {
            address: Some(Value::from(self.queue.as_str())),
            filter: self.session.map(|session| {
                let key = Symbol::new("com.microsoft:session-filter");
                vec![(Value::Symbol(key), Value::from(session))]
            }),
            ..Source::default()
        };
        let link = engine.attach(
            session,
            Attach {
                name: format!("bench-receive-{}", self.queue),
                handle: 0,
                role: Role::Receiver,
                snd_settle_mode: Some(SenderSettleMode::Unsettled),
                rcv_settle_mode: Some(ReceiverSettleMode::Second),
                source: Some(Box::new(source)),
                target: Some(Box::new(TargetTerminus::Node(amqp::Target::default()))),
                unsettled: None,
                incomplete_unsettled: false,
                initial_delivery_count: None,
                max_message_size: None,
                offered_capabilities: Vec::new(),
                desired_capabilities: Vec::new(),
                properties: None,
            },
        );
        self.link = Some(link);
    }

    /// Its link, once asked for.
    pub fn link(&self) -> Option<LinkId> {
        self.link
    }

    /// Lets messages come.
    pub fn start(&mut self, engine: &mut Connection) {
        if let Some(link) = self.link {
            engine.set_credit(link, CREDIT, false);
        }
    }

    /// Completes a message and keeps the credit up.
    pub fn settle(&mut self, session: SessionId, delivery_id: u32, engine: &mut Connection) {
        self.dispose(session, delivery_id, DeliveryState::Accepted, engine);
    }

    /// Ends a message's lock and keeps the credit up.
    pub fn dispose(
        &mut self,
        session: SessionId,
        delivery_id: u32,
        state: DeliveryState,
        engine: &mut Connection,
    ) {
        engine.dispose_received(session, delivery_id, state, false);
        if let Some(link) = self.link
            && engine.credit_left(link) <= CREDIT / 2
        {
            engine.set_credit(link, CREDIT, false);
        }
    }

    /// Counts a confirmed completion.
    pub fn settled(&mut self, now: Instant) {
        self.settled += 1;
        self.last = Some(now);
    }

    /// Messages completed.
    pub fn count(&self) -> u64 {
        self.settled
    }

    /// When the newest completion was confirmed.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }
}
