//! Actor: a simulated client with a purpose. It outlives its connections and opens new ones.

use broker::Now;
use endpoint::Event;

use crate::ledger::Ledger;
use crate::manager::Manager;
use crate::receiver::Receiver;
use crate::remote::Remote;
use crate::rng::Rng;
use crate::sender::Sender;
use crate::violation::Violation;

/// What an actor needs to act.
#[allow(missing_docs, reason = "named for what they are")]
pub struct Stage<'a> {
    pub rng: &'a mut Rng,
    pub ledger: &'a mut Ledger,
    pub now: Now,
}

/// Any kind of client.
#[allow(missing_docs, reason = "named for what they are")]
pub enum Actor {
    Sender(Sender),
    Receiver(Receiver),
    Manager(Manager),
}

impl Actor {
    /// The actor has a fresh connection: attaches its links.
    pub fn connected(&mut self, stage: &mut Stage<'_>, remote: &mut Remote) {
        match self {
            Self::Sender(sender) => sender.connected(remote),
            Self::Receiver(receiver) => receiver.connected(stage, remote),
            Self::Manager(manager) => manager.connected(remote),
        }
    }

    /// Does something of its own accord. Returns false when it wants to leave.
    pub fn act(&mut self, stage: &mut Stage<'_>, remote: &mut Remote) -> bool {
        match self {
            Self::Sender(sender) => sender.act(stage, remote),
            Self::Receiver(receiver) => receiver.act(stage, remote),
            Self::Manager(manager) => manager.act(stage, remote),
        }
        !stage.rng.chance(2)
    }

    /// Takes in what the broker did.
    ///
    /// # Errors
    /// When that can not be.
    pub fn handle(
        &mut self,
        stage: &mut Stage<'_>,
        remote: &mut Remote,
        event: Event,
    ) -> Result<(), Violation> {
        match self {
            Self::Sender(sender) => sender.handle(stage, remote, event),
            Self::Receiver(receiver) => receiver.handle(stage, remote, event),
            Self::Manager(manager) => manager.handle(stage, remote, event),
        }
    }

    /// The connection is gone, with every answer that had not come.
    pub fn disconnected(&mut self, ledger: &mut Ledger) {
        match self {
            Self::Sender(sender) => sender.disconnected(ledger),
            Self::Receiver(receiver) => receiver.disconnected(ledger),
            Self::Manager(manager) => manager.disconnected(ledger),
        }
    }
}
