//! Holder: a client that accepts sessions of one queue, by id or whichever is next, takes their
//! messages and gives them back: by detaching, by losing its connection, or by being too late.
//!
//! It gives up waiting now and then, and while it holds a session it asks for all that a holder
//! may ask for (`holder/calls.rs`).

use amqp::value::lookup;
use amqp::{Attach, Error};
use broker::Subqueue;
use endpoint::{Event, LinkId};

use crate::context::Context;
use crate::ledger::Ledger;
use crate::remote::{Remote, SESSION_FILTER};
use crate::session::Session;
use crate::unsettled::Unsettled;
use crate::violation::Violation;

mod calls;

use calls::Calls;

/// How the broker may end or refuse a link that wants a session.
const ENDINGS: [&str; 4] = [
    // By its own endpoint: the connection is about to be closed.
    "amqp:resource-limit-exceeded",
    "com.microsoft:session-cannot-be-locked",
    "com.microsoft:timeout",
    "com.microsoft:session-lock-lost",
];

/// A client that works by session.
pub struct Holder {
    queue: usize,
    path: &'static str,
    /// It waits for a session, or has one.
    link: Option<LinkId>,
    /// By id.
    wanted: Option<Session>,
    session: Option<Session>,
    unsettled: Unsettled,
    calls: Calls,
    /// Counts the names of its links.
    links: u32,
    /// Nothing more of its session is coming.
    drained: bool,
    /// Accepts one session after the other and completes everything: for the end of a run.
    pub diligent: bool,
}

impl Holder {
    /// A holder of sessions of the queue of that index and path.
    #[must_use]
    pub fn new(queue: usize, path: &'static str) -> Self {
        Self {
            queue,
            path,
            link: None,
            wanted: None,
            session: None,
            unsettled: Unsettled::new(Subqueue::Main, true),
            calls: Calls::new(queue, path),
            links: 0,
            drained: false,
            diligent: false,
        }
    }

    pub(crate) fn connected(&mut self, remote: &mut Remote) {
        self.calls.connected(remote);
    }

    pub(crate) fn parts_with(&self, link: LinkId) -> bool {
        !self.calls.goes_over(link)
    }

    pub(crate) fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        let Some(link) = self.link else {
            return self.seek(context, remote);
        };
        match self.session {
            Some(_) if self.diligent => self.settle_all(context, remote, link),
            Some(session) => self.work(context, remote, link, session),
            None if self.diligent => {}
            None if context.rng.chance(30) => self.leave(context, remote, link),
            None => {}
        }
    }

    /// Wants a session.
    fn seek(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        self.links += 1;
        let by_id = !self.diligent && context.rng.chance(400);
        self.wanted = by_id.then(|| Session::any(context.rng));
        let timeout = context.rng.between(0, 5_000) as u32;
        let wanted = self.wanted.map(Session::name);
        let name = format!("holder-{}", self.links);
        let link = remote.attach_holder(&name, self.path, wanted.as_deref(), timeout);
        // Credit may be sent before the attach is answered.
        if !self.diligent && context.rng.chance(500) {
            remote.endpoint.set_credit(link, 3, false);
        }
        self.drained = false;
        self.link = Some(link);
    }

    fn work(
        &mut self,
        context: &mut Context<'_>,
        remote: &mut Remote,
        link: LinkId,
        session: Session,
    ) {
        match context.rng.below(20) {
            0..=3 if remote.endpoint.credit_left(link) < 5 => {
                let credit = 1 + context.rng.below(10) as u32;
                let drain = context.rng.chance(150);
                remote.endpoint.set_credit(link, credit, drain);
            }
            4 if context.rng.chance(400) => self.leave(context, remote, link),
            5..=8 => self.calls.ask(context, remote, session),
            _ => self.unsettled.settle_some(context, remote),
        }
    }

    fn settle_all(&mut self, context: &mut Context<'_>, remote: &mut Remote, link: LinkId) {
        self.unsettled.complete_all(context, remote);
        if self.drained && self.unsettled.is_settled() {
            self.leave(context, remote, link);
        } else if !self.drained && remote.endpoint.credit_left(link) == 0 {
            remote.endpoint.set_credit(link, 100, true);
        }
    }

    /// Gives its session back, or waits for none any more.
    fn leave(&mut self, context: &mut Context<'_>, remote: &mut Remote, link: LinkId) {
        remote.endpoint.detach(link, true, None);
        self.left(context.ledger);
    }

    fn left(&mut self, ledger: &mut Ledger) {
        self.link = None;
        self.session = None;
        self.unsettled.lost(ledger);
    }

    pub(crate) fn handle(
        &mut self,
        context: &mut Context<'_>,
        event: Event,
    ) -> Result<(), Violation> {
        match event {
            Event::Attached { link, attach } if self.link == Some(link) => {
                self.attached(context.ledger, &attach)?;
            }
            Event::Delivery {
                link,
                delivery_id,
                payload,
                ..
            } if !self.calls.goes_over(link) => {
                let id = context.ledger.received(&payload)?;
                if self.link == Some(link) {
                    self.belongs(id)?;
                    self.unsettled.take(delivery_id, id);
                }
            }
            Event::Delivery { payload, .. } => self.calls.answered(context, &payload)?,
            Event::Updated {
                delivery_id,
                settled: true,
                state,
                ..
            } => self.unsettled.updated(context, delivery_id, state)?,
            Event::Drained { link } if self.link == Some(link) => self.drained = true,
            Event::Detached { link, error, .. } if self.link == Some(link) => {
                self.left(context.ledger);
                check_ending(error.as_ref())?;
            }
            Event::Closed { .. } => self.disconnected(context.ledger),
            _ => {}
        }
        Ok(())
    }

    /// A link without a source is refused; otherwise it says which session it has.
    fn attached(&mut self, ledger: &Ledger, attach: &Attach) -> Result<(), Violation> {
        let Some(source) = attach.source.as_deref() else {
            return Ok(());
        };
        let filter = source.filter.as_deref().unwrap_or_default();
        let granted = lookup(filter, SESSION_FILTER.as_str());
        let granted = granted.and_then(|id| Session::named(id.as_text()?.as_bytes()));
        let Some(session) = granted.filter(|session| self.wanted.is_none_or(|w| w == *session))
        else {
            let what = format!("a client that wants {:?} was given {filter:?}", self.wanted);
            return Err(Violation::new("I4", what));
        };
        self.session = Some(session);
        ledger.session_granted(self.queue, session)
    }

    fn belongs(&self, id: crate::message::MessageId) -> Result<(), Violation> {
        if Session::of(id) == self.session {
            return Ok(());
        }
        let what = format!("message {id} came to a holder of {:?}", self.session);
        Err(Violation::new("I4", what))
    }

    pub(crate) fn disconnected(&mut self, ledger: &mut Ledger) {
        self.calls.disconnected(ledger);
        self.left(ledger);
    }
}

fn check_ending(error: Option<&Error>) -> Result<(), Violation> {
    let known = error.is_some_and(|error| ENDINGS.contains(&error.condition.as_str()));
    if known {
        return Ok(());
    }
    let what = format!("a link for a session ended with {error:?}");
    Err(Violation::new("I4", what))
}
