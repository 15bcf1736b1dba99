//! Actor: a simulated client with a purpose. It outlives its connections and opens new ones.

use endpoint::{Event, LinkId};

use crate::context::Context;
use crate::controller::Controller;
use crate::declarer::Declarer;
use crate::holder::Holder;
use crate::ledger::Ledger;
use crate::manager::Manager;
use crate::publisher::Publisher;
use crate::receiver::Receiver;
use crate::remote::Remote;
use crate::sender::Sender;
use crate::violation::Violation;

/// Any kind of client.
#[allow(missing_docs, reason = "named for what they are")]
pub enum Actor {
    Sender(Sender),
    Receiver(Receiver),
    Manager(Manager),
    Holder(Holder),
    Controller(Controller),
    Publisher(Publisher),
    Declarer(Declarer),
}

impl Actor {
    /// The actor has a fresh connection: attaches its links.
    pub fn connected(&mut self, context: &mut Context<'_>, remote: &mut Remote) {
        match self {
            Self::Sender(sender) => sender.connected(remote),
            Self::Receiver(receiver) => receiver.connected(context, remote),
            Self::Manager(manager) => manager.connected(remote),
            Self::Holder(holder) => holder.connected(remote),
            Self::Controller(controller) => controller.connected(context, remote),
            Self::Publisher(publisher) => publisher.connected(context, remote),
            Self::Declarer(declarer) => declarer.connected(remote),
        }
    }

    /// Does something of its own accord. Returns false when it wants to leave.
    pub fn act(&mut self, context: &mut Context<'_>, remote: &mut Remote) -> bool {
        match self {
            Self::Sender(sender) => sender.act(context, remote),
            Self::Receiver(receiver) => receiver.act(context, remote),
            Self::Manager(manager) => manager.act(context, remote),
            Self::Holder(holder) => holder.act(context, remote),
            Self::Controller(controller) => controller.act(context, remote),
            Self::Publisher(publisher) => publisher.act(context, remote),
            Self::Declarer(declarer) => declarer.act(context, remote),
        }
        !context.rng.chance(2)
    }

    /// Takes in what the broker did.
    ///
    /// # Errors
    /// When that cannot be.
    pub fn handle(&mut self, context: &mut Context<'_>, event: Event) -> Result<(), Violation> {
        match self {
            Self::Sender(sender) => sender.handle(context, event),
            Self::Receiver(receiver) => receiver.handle(context, event),
            Self::Manager(manager) => manager.handle(context, event),
            Self::Holder(holder) => holder.handle(context, event),
            Self::Controller(controller) => controller.handle(context, event),
            Self::Publisher(publisher) => publisher.handle(context, event),
            Self::Declarer(declarer) => declarer.handle(context, event),
        }
    }

    /// Whether a link may go while the connection stays.
    #[must_use]
    pub fn parts_with(&self, link: LinkId) -> bool {
        match self {
            Self::Holder(holder) => holder.parts_with(link),
            Self::Controller(controller) => controller.parts_with(link),
            Self::Sender(sender) => sender.parts_with(link),
            Self::Receiver(receiver) => receiver.parts_with(link),
            Self::Declarer(declarer) => declarer.parts_with(link),
            Self::Publisher(_) => true,
            Self::Manager(_) => false,
        }
    }

    /// The connection is gone, with every answer that had not come.
    pub fn disconnected(&mut self, ledger: &mut Ledger) {
        match self {
            Self::Sender(sender) => sender.disconnected(ledger),
            Self::Receiver(receiver) => receiver.disconnected(ledger),
            Self::Manager(manager) => manager.disconnected(ledger),
            Self::Holder(holder) => holder.disconnected(ledger),
            Self::Controller(controller) => controller.disconnected(ledger),
            Self::Publisher(publisher) => publisher.disconnected(),
            Self::Declarer(declarer) => declarer.disconnected(),
        }
    }
}
