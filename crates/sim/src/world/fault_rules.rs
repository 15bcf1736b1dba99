//! Fault rules: an administrator has sends of a namespace fail on purpose for a while.
//!
//! A send is refused, or its connection is dropped: before the send is carried out, or when it is
//! stored and before its answer. The ledger of the namespace knows that this may happen, and of
//! nothing else: what was stored without an answer is there like anything whose answer was lost on
//! the way, and what was refused is not. Rules are not stored, so a crash ends them.

use broker::{
    Command, ConnectionId, DisconnectTime, FaultEffect, FaultMatch, FaultOperation, FaultRule,
    InjectedError, NamespaceOrder, Order, Output, RequestId,
};

use super::{World, namespace, snapshots};
use crate::inbox::NamespaceIndex;
use crate::server::{self, NAMESPACES};
use crate::violation::Violation;

/// The index of what the administrator asks for, which no ledger sees.
pub(super) const INDEX: NamespaceIndex = snapshots::INDEX + 1;

/// The administrator.
#[derive(Debug, Default)]
pub(super) struct FaultRules {
    /// What the broker is to hear next.
    pub commands: Vec<Command>,
    count: u64,
    /// The request that is not answered yet, of which namespace, and whether it has rules then.
    asked: Option<(RequestId, NamespaceIndex, bool)>,
    /// Which namespaces have rules.
    in_force: [bool; NAMESPACES.len()],
}

impl FaultRules {
    /// The broker is another one now, without rules.
    pub(super) fn crashed(&mut self) {
        self.commands.clear();
        self.asked = None;
        self.in_force = Default::default();
    }
}

impl World {
    /// The administrator sets rules of a namespace or takes them away, unless it waits.
    pub(super) fn change_fault_rules(&mut self) {
        let n = self.rng.below(NAMESPACES.len());
        let is_in_force = self.fault_rules.in_force[n];
        // Most of the time there are none.
        let stays = !is_in_force && !self.rng.chance(200);
        if stays || self.fault_rules.asked.is_some() {
            return;
        }
        let rules = match is_in_force {
            true => Vec::new(),
            false => vec![self.any_fault_rule()],
        };
        self.replace_fault_rules(n, rules);
    }

    /// No rule is in force any more once all is said.
    pub(super) fn end_fault_rules(&mut self) -> Result<(), Violation> {
        self.run_until_idle()?;
        for n in 0..NAMESPACES.len() {
            self.replace_fault_rules(n, Vec::new());
            self.run_until_idle()?;
        }
        Ok(())
    }

    fn replace_fault_rules(&mut self, n: NamespaceIndex, rules: Vec<FaultRule>) {
        self.fault_rules.count += 1;
        let request = RequestId {
            connection: ConnectionId::SERVER,
            token: namespace::id_in(INDEX, self.fault_rules.count),
        };
        let has_rules = !rules.is_empty();
        if has_rules {
            self.namespaces[n].ledger.expect_injected_faults(true);
        }
        self.fault_rules.asked = Some((request, n, has_rules));
        let order = Order::Namespaces(NamespaceOrder::ReplaceFaults {
            name: NAMESPACES[n].to_owned(),
            rules,
        });
        let command = server::administer(request, 0, order);
        self.fault_rules.commands.push(command);
    }

    fn any_fault_rule(&mut self) -> FaultRule {
        let entity = self.definitions[self.rng.below(self.definitions.len())].path;
        let effect = match self.rng.below(4) {
            0 => FaultEffect::Refuse(InjectedError::ServerBusy),
            1 => FaultEffect::Disconnect(DisconnectTime::Before),
            _ => FaultEffect::Disconnect(DisconnectTime::After),
        };
        let matches = FaultMatch {
            entity: Some(entity.to_owned()),
            operations: vec![FaultOperation::Send],
            skip: self.rng.below(3) as u64,
            every: 1 + self.rng.below(5) as u64,
            ..FaultMatch::default()
        };
        FaultRule {
            name: "simulated".to_owned(),
            matches,
            effect,
        }
    }

    /// The administrator is answered.
    ///
    /// # Errors
    /// I13 or I14.
    pub(super) fn fault_rules_changed(&mut self, output: &Output) -> Result<(), Violation> {
        let Output::Administered { request, result } = output else {
            let what = format!("the administrator of fault rules hears {output:?}");
            return Err(Violation::new("I14", what));
        };
        if let Err(error) = &**result {
            let what = format!("fault rules were refused: {error}");
            return Err(Violation::new("I13", what));
        }
        let asked = self.fault_rules.asked.take();
        let Some((_, n, has_rules)) = asked.filter(|(asked, ..)| asked == request) else {
            let what = format!("{request:?} is answered and was not asked");
            return Err(Violation::new("I14", what));
        };
        self.fault_rules.in_force[n] = has_rules;
        if !has_rules {
            self.namespaces[n].ledger.expect_injected_faults(false);
        }
        Ok(())
    }

    /// A rule has the connection of a client dropped.
    pub(super) fn drop_client(&mut self, n: NamespaceIndex, connection: ConnectionId) {
        self.report.injected += 1;
        let mut clients = self.namespaces[n].clients.iter();
        let is_it = |client: &super::SimClient| {
            let remote = client.remote.as_ref();
            remote.is_some_and(|(remote, _)| remote.connection == connection)
        };
        if let Some(client) = clients.position(is_it) {
            self.close_connection(n, client);
        }
    }
}
