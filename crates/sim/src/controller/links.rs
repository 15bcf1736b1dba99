//! Links: what a controller has attached: a coordinator, links to and from several queues, a
//! session and what it takes to set its state.

use amqp::value::lookup;
use broker::Subqueue;
use bytes::Bytes;
use endpoint::{Event, LinkId};

use crate::context::Context;
use crate::ledger::Ledger;
use crate::remote::{Remote, SESSION_FILTER};
use crate::request::Response;
use crate::session::Session;
use crate::unsettled::Unsettled;
use crate::violation::Violation;
use crate::world::queues;

/// Where it sends to.
pub(super) const TARGETS: [&str; 5] = [
    "plain",
    "detects-duplicates",
    "sessions-once",
    "forwards",
    "news",
];
/// Where it takes from.
const SOURCES: [(&str, Subqueue); 4] = [
    ("plain", Subqueue::Main),
    ("expires-to-dead-letter", Subqueue::Main),
    ("expires-to-dead-letter", Subqueue::DeadLetter),
    ("news/Subscriptions/changed", Subqueue::Main),
];
/// Whose sessions it holds.
const BY_SESSION: &str = "sessions";

/// A link that takes messages.
pub(super) struct Intake {
    pub link: Option<LinkId>,
    pub unsettled: Unsettled,
    pub subqueue: Subqueue,
}

/// All links of one connection.
pub(super) struct Links {
    pub coordinator: Option<LinkId>,
    /// With the index of the queue.
    pub senders: Vec<(usize, LinkId)>,
    /// The last one is for a session.
    pub intakes: Vec<Intake>,
    pub session: Option<Session>,
    pub requests: Option<LinkId>,
    responses: Option<LinkId>,
    /// Answers of the management node.
    answers: Vec<Bytes>,
    names: u32,
}

impl Links {
    pub(super) fn new() -> Self {
        let subqueues = SOURCES.iter().map(|(_, subqueue)| *subqueue);
        let intake = |subqueue| Intake {
            link: None,
            unsettled: Unsettled::new(subqueue, true),
            subqueue,
        };
        Self {
            coordinator: None,
            senders: Vec::new(),
            intakes: subqueues.chain([Subqueue::Main]).map(intake).collect(),
            session: None,
            requests: None,
            responses: None,
            answers: Vec::new(),
            names: 0,
        }
    }

    /// The queue whose sessions it holds.
    pub(super) fn by_session() -> usize {
        queues::index_of(BY_SESSION)
    }

    /// The management node of that queue.
    pub(super) fn node() -> String {
        format!("{BY_SESSION}/$management")
    }

    pub(super) fn connected(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        self.attach_coordinator(remote);
        let to = |path: &&str| (queues::index_of(path), remote.attach_sender(path, path));
        self.senders = TARGETS.iter().map(to).collect();
        for (intake, (path, subqueue)) in self.intakes.iter_mut().zip(SOURCES) {
            let (name, address) = match subqueue {
                Subqueue::Main => (path.to_owned(), path.to_owned()),
                _ => (format!("{path} dead"), format!("{path}/$DeadLetterQueue")),
            };
            let link = remote.attach_receiver(&name, &address, false);
            remote.endpoint.set_credit(link, 3, false);
            intake.link = Some(link);
        }
        self.seek(context, remote);
        self.requests = Some(remote.attach_sender("requests", &Self::node()));
        let responses = remote.attach_receiver("responses", &Self::node(), true);
        remote.endpoint.set_credit(responses, 1_000, false);
        self.responses = Some(responses);
    }

    fn attach_coordinator(&mut self, remote: &mut Remote) {
        self.names += 1;
        let name = format!("coordinator-{}", self.names);
        self.coordinator = Some(remote.attach_coordinator(&name));
    }

    pub(super) fn leave_coordinator(&mut self, remote: &mut Remote) {
        if let Some(link) = self.coordinator.take() {
            remote.endpoint.detach(link, true, None);
        }
        self.attach_coordinator(remote);
    }

    /// Wants a session.
    fn seek(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        self.names += 1;
        let name = format!("session-{}", self.names);
        let timeout = context.rng.between(0, 5_000) as u32;
        let link = remote.attach_holder(&name, BY_SESSION, None, timeout);
        remote.endpoint.set_credit(link, 3, false);
        self.session = None;
        if let Some(intake) = self.intakes.last_mut() {
            intake.link = Some(link);
        }
    }

    /// Whether a link may go while the connection stays.
    pub(super) fn parts_with(&self, link: LinkId) -> bool {
        let plain = self.intakes.iter().take(SOURCES.len());
        let plain = plain.filter_map(|intake| intake.link);
        let senders = self.senders.iter().map(|(_, link)| *link);
        let others = [self.coordinator, self.requests, self.responses];
        let mut all = plain.chain(senders).chain(others.into_iter().flatten());
        !all.any(|kept| kept == link)
    }

    /// Takes more, settles some outside of any transaction, looks for a session.
    pub(super) fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        for intake in &mut self.intakes {
            let Some(link) = intake.link else { continue };
            if remote.endpoint.credit_left(link) < 2 && context.rng.chance(300) {
                remote.endpoint.set_credit(link, 4, false);
            }
            if context.rng.chance(60) {
                intake.unsettled.settle_some(context, remote);
            }
        }
        let session = self.intakes.last().and_then(|intake| intake.link);
        match session {
            None => self.seek(context, remote),
            Some(link) if self.session.is_some() && context.rng.chance(20) => {
                remote.endpoint.detach(link, true, None);
                self.lose_session(context.ledger);
            }
            Some(_) => {}
        }
    }

    fn lose_session(&mut self, ledger: &mut Ledger) {
        self.session = None;
        if let Some(intake) = self.intakes.last_mut() {
            intake.link = None;
            intake.unsettled.lost(ledger);
        }
    }

    pub(super) fn handle(
        &mut self,
        context: &mut Context<'_>,
        event: Event,
    ) -> Result<(), Violation> {
        let session = self.intakes.last().and_then(|intake| intake.link);
        match event {
            Event::Attached { link, attach } if session == Some(link) => {
                let filter = attach.source.as_deref();
                let filter = filter.and_then(|source| source.filter.as_deref());
                let id = filter.and_then(|filter| lookup(filter, SESSION_FILTER.as_str()));
                self.session = id.and_then(|id| Session::named(id.as_text()?.as_bytes()));
            }
            Event::Delivery { link, payload, .. } if self.responses == Some(link) => {
                self.answers.push(payload);
            }
            Event::Delivery {
                link,
                delivery_id,
                payload,
                ..
            } => {
                let id = context.ledger.received(&payload)?;
                let mut intakes = self.intakes.iter_mut();
                if let Some(intake) = intakes.find(|intake| intake.link == Some(link)) {
                    intake.unsettled.take(delivery_id, id);
                }
            }
            Event::Detached { link, .. } if session == Some(link) => {
                self.lose_session(context.ledger);
            }
            _ => {}
        }
        Ok(())
    }

    /// What the management node answered.
    pub(super) fn responses(&mut self) -> Vec<Response> {
        let answers = std::mem::take(&mut self.answers);
        answers.iter().filter_map(Response::decode).collect()
    }

    pub(super) fn disconnected(&mut self, ledger: &mut Ledger) {
        for intake in &mut self.intakes {
            intake.link = None;
            intake.unsettled.lost(ledger);
        }
        self.session = None;
        self.coordinator = None;
        self.senders.clear();
        self.requests = None;
        self.responses = None;
        self.answers.clear();
    }
}
