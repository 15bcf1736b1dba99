//! Drain: what must be true of the governed namespace at the end of a run.

use std::collections::BTreeSet;

use broker::{ApplyTo, ConnectionId, NamespaceOrder, Order, Policy, PolicyLayer};
use store::image::MessageKey;
use store::{MessageRow, NamespaceId, Part};

use super::model::{PATTERNS, definition};
use super::{Asked, NAME};
use crate::server;
use crate::violation::Violation;
use crate::world::World;

/// Milliseconds that messages live in the end.
const LAST: u64 = 1;
/// Milliseconds of the default lock, and at least those that pass at a time.
const LONGEST_LOCK: u64 = 60_000;
const PASSED: u64 = 20_000;

impl World {
    /// The end of a run: what is there is what must be, and then a policy ends all messages.
    ///
    /// # Errors
    /// I1, I2, I12, I13 or I14.
    pub(in crate::world) fn drain_governed(&mut self) -> Result<(), Violation> {
        self.run_until_idle()?;
        self.check_governed_answered()?;
        let Some((namespace, _)) = self.look_at_governed()? else {
            return Ok(());
        };
        for layer in [PolicyLayer::User, PolicyLayer::Operator] {
            self.governed.list_policies(namespace, Some(layer));
            self.run_until_idle()?;
            self.check_governed_answered()?;
        }
        let (_, infos) = self.look_at_governed()?.expect("it was there");
        for info in &infos {
            self.governed.model.check_rules(info)?;
        }
        self.governed.survey(&infos);
        self.run_until_idle()?;
        // The last turn may have answered the first half, which asks for the second.
        self.run_until_idle()?;
        self.check_governed_answered()?;
        (0..self.governed.users.len()).for_each(|user| self.governed.leave(user));
        self.run_until_idle()?;
        let (_, infos) = self.look_at_governed()?.expect("it was there");
        let passing = infos
            .iter()
            .find(|info| self.governed.model.places[&info.path].passes);
        if let Some(info) = passing {
            let what = format!("{} has outlived its connection", info.path);
            return Err(Violation::new("I13", what));
        }
        let key = (PolicyLayer::Operator, "last".to_owned());
        let policy = Policy {
            name: key.1.clone(),
            layer: key.0,
            pattern: PATTERNS[0].to_owned(),
            apply_to: ApplyTo::All,
            priority: 100.into(),
            definition: definition(&[("message-ttl", LAST)]),
        };
        self.governed.put_policy(namespace, key, Some(policy));
        self.run_until_idle()?;
        self.check_governed_answered()
    }

    /// When locks are over and time has passed, no message is left where the policy is in force,
    /// and when the namespace goes, nothing of it is left.
    ///
    /// # Errors
    /// I6, I9 or I14.
    pub(in crate::world) fn end_governed(&mut self) -> Result<(), Violation> {
        let Some(namespace) = self.space_id(NAME) else {
            return Ok(());
        };
        self.let_governed_locks_end(namespace)?;
        let broker = &self.server.shard.broker;
        let infos = broker.queues_of(namespace, self.now);
        let entities: BTreeSet<_> = infos.map(|info| info.id).collect();
        // What came by a clock that was ahead has its time still to come.
        let wall = self.now.wall.0 - 1_000;
        self.disk.with_current(|image| {
            let mut rows = image.messages.iter();
            let is_late = |(at, row): &(&MessageKey, &MessageRow)| {
                at.1 == Part::Active && entities.contains(&at.0) && row.enqueued_ms + LAST < wall
            };
            match rows.find(is_late) {
                None => Ok(()),
                Some(late) => {
                    let what = format!("a policy should have ended {late:?} before {wall}");
                    Err(Violation::new("I6", what))
                }
            }
        })?;
        let request = self.governed.request(ConnectionId::SERVER);
        let order = Order::Namespaces(NamespaceOrder::Remove(NAME.to_owned()));
        self.governed.asked = Asked::Namespace;
        let command = server::administer(request, 0, order);
        self.governed.commands.push(command);
        self.run_until_idle()?;
        self.check_governed_answered()?;
        self.disk.with_current(|image| {
            let mut rows = image.entities.values();
            match rows.find(|row| row.namespace == namespace) {
                None => Ok(()),
                Some(row) => {
                    let what = format!("of the governed namespace {row:?} is left");
                    Err(Violation::new("I9", what))
                }
            }
        })
    }

    /// Subscriptions that consumers make by attaching lock for longer than the queues do.
    fn let_governed_locks_end(&mut self, namespace: NamespaceId) -> Result<(), Violation> {
        for _ in 0..LONGEST_LOCK / PASSED {
            let broker = &self.server.shard.broker;
            let has_locks = broker
                .queues_of(namespace, self.now)
                .any(|info| info.locked > 0);
            if !has_locks {
                break;
            }
            self.let_time_pass()?;
        }
        Ok(())
    }

    fn check_governed_answered(&self) -> Result<(), Violation> {
        let asked = &self.governed.asked;
        if matches!(asked, Asked::Nothing) {
            return Ok(());
        }
        let what = format!("the user of the governed namespace still waits: {asked:?}");
        Err(Violation::new("I14", what))
    }
}
