//! Send: our deliveries, cut into frames and held back by the session's window. [AMQP 2.6.12-14]
//!
//! A delivery gets its id when its first frame is written, so ids on the wire have no gaps. Frames
//! of one link's deliveries never interleave.

use amqp::{DeliveryState, Transfer};
use bytes::{Buf, Bytes};

use crate::connection::{Connection, NoCredit, Outgoing};
use crate::id::LinkId;
use crate::link::{End, Link, Stage};
use crate::output::outbox::Outbox;
use crate::output::payload::Payload;
use crate::session::{Delivery, SendProgress, Session};
use crate::slab::Slab;

/// Where a delivery goes and how.
struct Route {
    link: u32,
    handle: u32,
    settled: bool,
    cookie: u128,
}

impl Connection {
    /// Sends a message given in pieces that follow each other, split into frames as the peer needs.
    ///
    /// # Errors
    /// When the link has no credit or is not attached.
    pub fn send(
        &mut self,
        link: LinkId,
        outgoing: &Outgoing<'_>,
        payload: &[&[u8]],
    ) -> Result<(), NoCredit> {
        let key = link.0;
        let session_key = self.check_room(key, outgoing.settled)?;
        let tag = self.outbox.tag(outgoing.tag);
        let (Some(session), Some(link)) =
            (self.sessions.get_mut(session_key), self.links.get_mut(key))
        else {
            return Err(NoCredit);
        };
        let (Some(handle), End::Sender(sender)) = (link.local_handle, &mut link.end) else {
            return Err(NoCredit);
        };
        let route = Route {
            link: key,
            handle,
            settled: outgoing.settled,
            cookie: outgoing.cookie,
        };
        let mut payload = Payload::new(payload, outgoing.owner);
        let mut progress = Some(SendProgress::Unsent {
            tag,
            message_format: outgoing.message_format,
            state: outgoing.state.clone(),
        });
        let direct = session.waiting.is_empty();
        if direct {
            progress = write(&mut self.outbox, session, &route, progress, &mut payload);
        }
        match progress {
            None => sender.count(),
            Some(progress) => {
                sender.queued += 1;
                self.waiting_bytes += payload.remaining();
                session.queue(Delivery::new(&route, progress, payload.into_bytes()));
            }
        }
        let behind = sender.is_behind();
        self.after_send(key, session_key, direct, behind);
        Ok(())
    }

    /// Whether the link has credit and the session can remember one more delivery; the session's
    /// key.
    fn check_room(&mut self, key: u32, settled: bool) -> Result<u32, NoCredit> {
        let link = self.links.get(key).ok_or(NoCredit)?;
        let (Stage::Attached, End::Sender(sender)) = (link.stage, &link.end) else {
            return Err(NoCredit);
        };
        if sender.usable() == 0 {
            return Err(NoCredit);
        }
        let session = self.sessions.get_mut(link.session).ok_or(NoCredit)?;
        if !session.can_take(settled, self.config.max_unsettled) {
            session.starved = true;
            // The owner now takes its credit for used up, so the same limit is news to it again.
            if let Some(End::Sender(sender)) = self.links.get_mut(key).map(|link| &mut link.end) {
                sender.withdraw();
            }
            return Err(NoCredit);
        }
        Ok(link.session)
    }

    fn after_send(&mut self, key: u32, session: u32, direct: bool, behind: bool) {
        if !direct {
            self.pump(session);
        }
        self.answer_drain(key);
        if behind {
            self.announce(key);
        }
    }

    /// Writes what waits, as far as the peer's window and the links' credit go.
    pub(crate) fn pump(&mut self, session_key: u32) {
        while let Some(finished) = self.pump_one(session_key) {
            self.answer_drain(finished);
        }
    }

    /// Writes the first delivery that may go and returns its link; `None` when none could be
    /// finished.
    fn pump_one(&mut self, session_key: u32) -> Option<u32> {
        let session = self.sessions.get_mut(session_key)?;
        let index = next_to_write(session, &self.links)?;
        let mut delivery = session.unqueue(index)?;
        let link = self.links.get_mut(delivery.link)?;
        let End::Sender(sender) = &mut link.end else {
            return None;
        };
        let route = Route {
            link: delivery.link,
            handle: link.local_handle?,
            settled: delivery.settled,
            cookie: delivery.cookie,
        };
        let before = delivery.payload.len();
        let pieces = [&delivery.payload[..]];
        let mut payload = Payload::new(&pieces, Some(&delivery.payload));
        let progress = write(
            &mut self.outbox,
            session,
            &route,
            Some(delivery.progress),
            &mut payload,
        );
        let written = before - payload.remaining();
        self.waiting_bytes -= written;
        let Some(progress) = progress else {
            sender.queued = sender.queued.saturating_sub(1);
            sender.count();
            return Some(route.link);
        };
        delivery.progress = progress;
        delivery.payload.advance(written);
        session.requeue(index, delivery);
        None
    }
}

/// The first delivery that is begun already or has credit, if the window lets anything go.
fn next_to_write(session: &Session, links: &Slab<Link>) -> Option<usize> {
    if session.window.remote_incoming == 0 {
        return None;
    }
    session.waiting.iter().position(|delivery| {
        let credit = match links.get(delivery.link).map(|link| &link.end) {
            Some(End::Sender(sender)) => sender.credit,
            _ => 0,
        };
        credit > 0 || !delivery.is_unsent()
    })
}

/// Writes frames until the delivery is finished (`None`) or the window is used up.
fn write(
    outbox: &mut Outbox,
    session: &mut Session,
    route: &Route,
    mut progress: Option<SendProgress>,
    payload: &mut Payload<'_>,
) -> Option<SendProgress> {
    while session.window.remote_incoming > 0 {
        let transfer = match progress? {
            SendProgress::Unsent {
                tag,
                message_format,
                state,
            } => first(session, route, tag, message_format, state),
            SendProgress::Begun => continuation(route),
        };
        outbox.transfer(session.local_channel, transfer, payload);
        session.window.take_outgoing();
        progress = (payload.remaining() > 0).then_some(SendProgress::Begun);
    }
    progress
}

/// A delivery's first frame says all there is (docs/spec/amqp.md#4.5).
fn first(
    session: &mut Session,
    route: &Route,
    tag: Bytes,
    message_format: u32,
    state: Option<DeliveryState>,
) -> Transfer {
    let id = session.next_delivery_id;
    session.next_delivery_id = id.wrapping_add(1);
    if !route.settled {
        session.outgoing.push(id, route.link, route.cookie);
    }
    Transfer {
        handle: route.handle,
        delivery_id: Some(id),
        delivery_tag: Some(tag),
        message_format: Some(message_format),
        settled: Some(route.settled),
        state,
        ..Transfer::default()
    }
}

/// Later frames leave the delivery's identity out: one client takes any delivery-id for a first
/// frame.
fn continuation(route: &Route) -> Transfer {
    Transfer {
        handle: route.handle,
        settled: Some(route.settled),
        ..Transfer::default()
    }
}

impl Delivery {
    fn new(route: &Route, progress: SendProgress, payload: Bytes) -> Self {
        Self {
            link: route.link,
            cookie: route.cookie,
            settled: route.settled,
            progress,
            payload,
        }
    }
}
