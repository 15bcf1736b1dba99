//! Dispose: states and settlements of deliveries, sent and received. [AMQP 2.6.12, 2.7.6]
//!
//! Incoming dispositions count only for deliveries that are still unsettled, however wide their
//! range. Outgoing dispositions are delayed until the output is taken, so that neighbours share
//! one.

use amqp::error::condition;
use amqp::performative::Role;
use amqp::{DeliveryState, Disposition};

use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::connection::phase::Phase;
use crate::event::Event;
use crate::id::{LinkId, SessionId};
use crate::link::{End, Link, Stage};
use crate::serial;
use crate::session;
use crate::session::disposition_range::DispositionRange;
use crate::slab::Slab;

/// Most bytes of copies of one disposition's state.
const MAX_COPIED: usize = 16 << 20;

impl Connection {
    pub(crate) fn handle_disposition(
        &mut self,
        channel: u16,
        disposition: &Disposition,
    ) -> Result<(), Fault> {
        let key = self.session_on(channel)?;
        let Some(session) = self.sessions.get(key) else {
            return Ok(());
        };
        if session.stage == session::Stage::Ending {
            return Ok(());
        }
        let last = disposition.last.unwrap_or(disposition.first);
        if serial::distance(disposition.first, last).is_none() {
            let first = disposition.first;
            let text = format!("first {first} comes after last {last}");
            return Err(Fault::session(condition::INVALID_FIELD, text));
        }
        match disposition.role {
            Role::Receiver => {
                let unsettled = session.outgoing.count(disposition.first, last);
                check_copies(disposition.state.as_ref(), unsettled)?;
                self.handle_sent_disposition(key, disposition, last);
            }
            Role::Sender => {
                let unsettled = session.incoming.count(disposition.first, last);
                check_copies(disposition.state.as_ref(), unsettled)?;
                self.handle_received_disposition(key, disposition, last);
            }
        }
        Ok(())
    }

    fn handle_sent_disposition(&mut self, key: u32, disposition: &Disposition, last: u32) {
        let events = &mut self.events;
        let settled = disposition.settled;
        if let Some(session) = self.sessions.get_mut(key) {
            let first = disposition.first;
            let has_missed = is_outcome(disposition.state.as_ref())
                && session.forgotten.is_in(first, last, &session.outgoing);
            let visit = |delivery_id, link, cookie| {
                events.push_back(Event::Disposed {
                    link: LinkId(link),
                    cookie,
                    delivery_id,
                    settled,
                    state: disposition.state.clone(),
                });
            };
            let once = is_outcome(disposition.state.as_ref());
            session.outgoing.visit(first, last, settled, once, visit);
            if has_missed {
                events.push_back(Event::Missed {
                    session: SessionId(key),
                    state: disposition.state.clone(),
                });
            }
        }
        if settled {
            self.notify_starved_senders(key);
        }
    }

    fn handle_received_disposition(&mut self, key: u32, disposition: &Disposition, last: u32) {
        let (events, links) = (&mut self.events, &self.links);
        let settled = disposition.settled;
        if let Some(session) = self.sessions.get_mut(key) {
            let first = disposition.first;
            let visit = |delivery_id, link, ()| {
                if is_reported(links, link, delivery_id) {
                    events.push_back(Event::Updated {
                        link: LinkId(link),
                        delivery_id,
                        settled,
                        state: disposition.state.clone(),
                    });
                }
            };
            session.incoming.visit(first, last, settled, false, visit);
        }
    }

    /// Settles a delivery that we received (or, with `settled` false, only sends its state).
    /// Neighbours with the same state share one disposition. Does nothing once the sender has
    /// settled the delivery or its link is detached.
    pub fn dispose_received(
        &mut self,
        session: SessionId,
        delivery_id: u32,
        state: DeliveryState,
        settled: bool,
    ) {
        let key = session.0;
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let known = if settled {
            session.settle_incoming(delivery_id)
        } else {
            session.has_incoming(delivery_id)
        };
        if known {
            self.queue_disposition(key, Role::Receiver, delivery_id, state, settled);
        }
        if self.phase == Phase::Failing && !self.owes_answers() {
            self.end_failing();
        }
    }

    /// The session and the id of a delivery that we sent with this cookie, until it is settled.
    #[must_use]
    pub fn delivery_of(&self, link: LinkId, cookie: u128) -> Option<(SessionId, u32)> {
        let session = self.session_of(link)?;
        let unsettled = &self.sessions.get(session.0)?.outgoing;
        Some((session, unsettled.find(link.0, cookie)?))
    }

    /// Settles a delivery that we sent, answering the receiver's disposition, and forgets it (with
    /// `settled` false the state is sent and the delivery kept). Does nothing when the delivery is
    /// not known any more.
    pub fn settle_sent(
        &mut self,
        session: SessionId,
        delivery_id: u32,
        state: DeliveryState,
        settled: bool,
    ) {
        let key = session.0;
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let known = if settled {
            session.outgoing.remove(delivery_id)
        } else {
            session.outgoing.expect_another(delivery_id);
            session.outgoing.get(delivery_id)
        };
        if known.is_some() {
            self.queue_disposition(key, Role::Sender, delivery_id, state, settled);
            self.notify_starved_senders(key);
        }
    }

    /// Adds a delivery to the run of its neighbours, or starts a new run.
    fn queue_disposition(
        &mut self,
        key: u32,
        role: Role,
        id: u32,
        state: DeliveryState,
        settled: bool,
    ) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let channel = session.local_channel;
        let range = session.disposition_range(role);
        if range
            .as_mut()
            .is_some_and(|range| range.extend(id, &state, settled))
        {
            return;
        }
        if let Some(full) = range.replace(DispositionRange::new(id, state, settled)) {
            self.outbox.write(channel, &full.into_disposition(role));
        }
        if !std::mem::replace(&mut session.unflushed, true) {
            self.unflushed.push(key);
        }
    }

    /// Writes all dispositions that were put off.
    pub(crate) fn flush_dispositions(&mut self) {
        while let Some(key) = self.unflushed.pop() {
            if let Some(session) = self.sessions.get_mut(key) {
                session.unflushed = false;
            }
            self.write_dispositions(key);
        }
    }

    /// Writes a session's dispositions, for something that must not overtake them.
    pub(crate) fn write_dispositions(&mut self, key: u32) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        for role in [Role::Sender, Role::Receiver] {
            if let Some(range) = session.disposition_range(role).take() {
                let disposition = range.into_disposition(role);
                self.outbox.write(session.local_channel, &disposition);
            }
        }
    }
}

/// A state that carries much is not copied for any number of deliveries.
fn check_copies(state: Option<&DeliveryState>, copies: usize) -> Result<(), Fault> {
    let is_plain = match state {
        Some(DeliveryState::Rejected(error)) => error.is_none(),
        Some(DeliveryState::Modified {
            message_annotations,
            ..
        }) => message_annotations.is_none(),
        Some(DeliveryState::Transactional { .. }) => false,
        _ => true,
    };
    if is_plain || copies < 2 {
        return Ok(());
    }
    let bytes = state.map_or(0, DeliveryState::encoded_len);
    if bytes.saturating_mul(copies) > MAX_COPIED {
        let text = format!(
            "a state of {bytes} bytes for {copies} deliveries exceeds {MAX_COPIED} bytes in total"
        );
        return Err(Fault::session(condition::RESOURCE_LIMIT_EXCEEDED, text));
    }
    Ok(())
}

impl Connection {
    /// Whether the last frame of a delivery has not come whose state so far `is_it`.
    #[must_use]
    pub fn has_unfinished(&self, is_it: impl Fn(&DeliveryState) -> bool) -> bool {
        let links = self.links.keys().filter_map(|key| self.links.get(key));
        let mut partials = links.filter_map(|link| match &link.end {
            End::Receiver(receiver) => receiver.partial.as_ref(),
            End::Sender(_) => None,
        });
        partials.any(|partial| partial.state.as_ref().is_some_and(&is_it))
    }
}

/// Whether a state is an outcome, which is answered, rather than news of progress.
fn is_outcome(state: Option<&DeliveryState>) -> bool {
    !matches!(state, None | Some(DeliveryState::Received { .. }))
}

/// Whether the owner knows of the delivery: not while it is unfinished or held.
fn is_reported(links: &Slab<Link>, link: u32, delivery_id: u32) -> bool {
    // Of a link that is detached only such deliveries are left.
    let Some(link) = links.get(link) else {
        return true;
    };
    let End::Receiver(receiver) = &link.end else {
        return false;
    };
    let unfinished = receiver
        .partial
        .as_ref()
        .is_some_and(|partial| partial.delivery_id == delivery_id);
    !unfinished && link.stage != Stage::Requested
}
