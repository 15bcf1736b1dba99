//! Flow: windows and credit, sent and received. [AMQP 2.5.6, 2.6.7]
//!
//! Credit is absolute. A drain is always answered (docs/spec/amqp.md#rule-17): by the owner's
//! `drained`, or here as soon as no credit is left.

use amqp::error::condition;
use amqp::{Flow, Map, Performative};

use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::event::Event;
use crate::id::LinkId;
use crate::link::detach::unattached;
use crate::link::sender::FlowAction;
use crate::link::{End, Stage};
use crate::session;

impl Connection {
    pub(crate) fn handle_flow(&mut self, channel: u16, flow: Flow) -> Result<(), Fault> {
        let key = self.session_on(channel)?;
        let Some(session) = self.sessions.get_mut(key) else {
            return Ok(());
        };
        if session.stage == session::Stage::Ending {
            return Ok(());
        }
        if !session.window.handle_flow(&flow) {
            let text = "next-incoming-id is ahead of next-outgoing-id";
            return Err(Fault::session(condition::WINDOW_VIOLATION, text));
        }
        match flow.handle {
            None if flow.echo => self.write_session_flow(key),
            None => {}
            Some(handle) => {
                let link = session.remote_handles.get(handle);
                self.route_flow(link.ok_or_else(|| unattached(handle))?, flow);
            }
        }
        self.pump(key);
        self.notify_starved_senders(key);
        Ok(())
    }

    fn route_flow(&mut self, key: u32, flow: Flow) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        match link.stage {
            Stage::Requested => link.hold_flow(flow),
            Stage::Attached => self.handle_link_flow(key, &flow),
            Stage::Offered | Stage::Detaching | Stage::Closing => {}
        }
    }

    /// Takes the link part of a flow in.
    pub(crate) fn handle_link_flow(&mut self, key: u32, flow: &Flow) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        if matches!(link.end, End::Sender(_)) && acquires(flow) {
            let text = "messages cannot be acquired within a transaction";
            let fault = Fault::link(key, condition::NOT_IMPLEMENTED, text);
            return self.handle_fault(0, fault);
        }
        let answered = match &mut link.end {
            End::Sender(sender) => {
                let action = sender.handle_flow(flow);
                self.act_on_flow(key, &action)
            }
            End::Receiver(receiver) => {
                if receiver.handle_flow(flow) {
                    self.events.push_back(Event::Drained { link: LinkId(key) });
                }
                false
            }
        };
        if flow.echo && !answered {
            self.write_link_flow(key, false);
        }
    }

    /// Acts on a receiver's flow; true when a flow answers it, now or with the drain's end.
    fn act_on_flow(&mut self, key: u32, action: &FlowAction) -> bool {
        match action {
            FlowAction::Nothing => false,
            FlowAction::Announce => {
                self.announce(key);
                false
            }
            FlowAction::Answer => {
                self.announce(key);
                self.write_link_flow(key, false);
                true
            }
            FlowAction::Drain => {
                if !self.answer_drain(key) {
                    self.announce_drain(key);
                }
                true
            }
        }
    }

    /// Tells the owner its new limit, if it is new.
    pub(crate) fn announce(&mut self, key: u32) {
        self.report_limit(key, false);
    }

    /// Tells the owner to use its credit and then to call `drained`.
    fn announce_drain(&mut self, key: u32) {
        self.report_limit(key, true);
    }

    fn report_limit(&mut self, key: u32, drain: bool) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(link.session) else {
            return;
        };
        let End::Sender(sender) = &mut link.end else {
            return;
        };
        let room = session.room(self.config.max_unsettled);
        session.starved |= sender.usable() > room;
        let news = sender.announce(room);
        if news || drain {
            self.events.push_back(Event::Credit {
                link: LinkId(key),
                limit: sender.announced(),
                drain,
            });
        }
    }

    /// Reports the rest of their credit to senders that got less, once there is room again.
    pub(crate) fn notify_starved_senders(&mut self, session_key: u32) {
        let Some(session) = self.sessions.get_mut(session_key) else {
            return;
        };
        if !session.starved || !session.has_recovered(self.config.max_unsettled) {
            return;
        }
        session.starved = false;
        let links = session.links.clone();
        for key in links {
            let draining = match self.links.get(key).map(|link| &link.end) {
                Some(End::Sender(sender)) if sender.usable() > 0 => sender.is_draining(),
                _ => continue,
            };
            self.report_limit(key, draining);
        }
    }

    /// Our sender link has no more to send: uses the credit up and answers the drain. [AMQP 2.6.7]
    pub fn drained(&mut self, link: LinkId) {
        let key = link.0;
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        if let (Stage::Attached, End::Sender(sender)) = (link.stage, &mut link.end) {
            sender.set_drained();
            self.answer_drain(key);
        }
    }

    /// Answers a drain if it is owed and nothing is to be sent before.
    pub(crate) fn answer_drain(&mut self, key: u32) -> bool {
        let Some(link) = self.links.get_mut(key) else {
            return false;
        };
        let answered = match &mut link.end {
            End::Sender(sender) => sender.exhaust(),
            End::Receiver(_) => false,
        };
        if answered {
            self.write_link_flow(key, true);
        }
        answered
    }

    /// Sets our receiver link's credit, replacing what was left, and tells the sender.
    /// Does nothing before the link is accepted.
    pub fn set_credit(&mut self, link: LinkId, credit: u32, drain: bool) {
        let key = link.0;
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        if !matches!(link.stage, Stage::Attached | Stage::Offered) {
            return;
        }
        if let End::Receiver(receiver) = &mut link.end {
            receiver.credit = credit;
            receiver.drain = drain;
            self.write_link_flow(key, drain);
        }
    }

    /// Tells the receiver of our sender link about properties of the link's state. Does nothing
    /// before the link is attached. [AMQP 2.7.4]
    pub fn send_link_properties(&mut self, link: LinkId, properties: Map) {
        let Some(known) = self.links.get(link.0) else {
            return;
        };
        if let (Stage::Attached, End::Sender(sender)) = (known.stage, &known.end) {
            let drain = sender.is_draining();
            self.write_link_state(link.0, drain, Some(properties));
        }
    }

    /// Writes a link's state. A receiver's open drain is repeated.
    fn write_link_flow(&mut self, key: u32, drain: bool) {
        self.write_link_state(key, drain, None);
    }

    fn write_link_state(&mut self, key: u32, drain: bool, properties: Option<Map>) {
        let Some(link) = self.links.get(key) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(link.session) else {
            return;
        };
        let mut flow = session.window.flow();
        flow.handle = link.local_handle;
        flow.properties = properties;
        match &link.end {
            End::Sender(sender) => {
                flow.delivery_count = Some(sender.delivery_count);
                flow.link_credit = Some(sender.credit);
                flow.available = Some(sender.queued);
                flow.drain = drain;
            }
            End::Receiver(receiver) => {
                flow.delivery_count = receiver.delivery_count;
                flow.link_credit = Some(receiver.credit);
                flow.drain = receiver.drain;
            }
        }
        self.outbox
            .write(session.local_channel, &Performative::Flow(flow));
    }

    pub(crate) fn write_session_flow(&mut self, key: u32) {
        if let Some(session) = self.sessions.get_mut(key) {
            let flow = Performative::Flow(session.window.flow());
            self.outbox.write(session.local_channel, &flow);
        }
    }
}

/// Whether a flow asks that messages be acquired within a transaction. [AMQP 4.4.3]
fn acquires(flow: &Flow) -> bool {
    let properties = flow.properties.as_deref().unwrap_or_default();
    amqp::value::lookup(properties, "txn-id").is_some()
}
