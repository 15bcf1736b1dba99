//! Plan: what an order must change, and what it must be answered with, before the broker has it.
//!
//! Each order is planned on what the store holds and on what the requests before it in the same
//! turn have changed. A batch is planned as a whole: the first thing that cannot be done refuses
//! all of it.

use std::collections::BTreeSet;

use broker::{
    Batch, Ensured, EntityDescription, EntityPath, Listing, Order, RuleDescription, Status,
};
use store::EntityId;

use super::super::{Ledger, Queue};
use super::{More, Reason, Shown};
use crate::rule;

impl Ledger {
    pub(super) fn plan(&mut self, order: &Order) -> Result<Shown, Reason> {
        match order {
            Order::Create { path, rules, .. } => self.plan_creation(path, rules.as_deref()),
            Order::Update {
                entity,
                description,
            } => self.plan_update(*entity, description),
            Order::Remove { path } => {
                self.plan_removal(path)?;
                Ok(Shown::Nothing)
            }
            Order::Apply(batch) => self.plan_batch(batch),
            Order::Describe { path } | Order::Redeclare { path } => {
                self.entity_at(path).ok_or(Reason::Missing)
            }
            Order::List { of, skip, top } => {
                let (paths, more) = page(self.paths(of), *skip, *top);
                Ok(Shown::Entities(paths, more))
            }
            Order::DescribeNamespace => Ok(Shown::Namespace),
            Order::PutPolicy(_) | Order::RemovePolicy { .. } | Order::ListPolicies(_) => {
                unreachable!("no client of a simulation asks about policies")
            }
            Order::FindDurable { .. } | Order::Unsubscribe { .. } => {
                unreachable!("no client of a simulation makes a subscription by attaching")
            }
            Order::FindNode { .. } => {
                unreachable!("no client of a simulation asks about a dynamic node")
            }
            Order::Namespaces(_) => {
                unreachable!("no client of a simulation asks about namespaces")
            }
            Order::Router(order) => {
                let mut topology = std::mem::take(&mut self.routing.topology);
                let planned = topology.plan(order, |path| self.is_there(path));
                self.routing.topology = topology;
                planned.map(Shown::Bindings).ok_or(Reason::Invalid)
            }
            Order::CreateRule { subscription, rule } => {
                let path = self.subscription(subscription)?;
                self.plan_new_rule(path, &rule.name)
            }
            Order::ReplaceRule { subscription, rule } => {
                let path = self.subscription(subscription)?;
                if !self.rules_at(path).contains(&rule.name) {
                    return Err(Reason::Missing);
                }
                self.versions.note_change();
                Ok(Shown::Rule(rule.name.clone()))
            }
            Order::RemoveRule { subscription, name } => {
                let path = self.subscription(subscription)?;
                self.plan_rule_removal(path, name)?;
                Ok(Shown::Nothing)
            }
            Order::DescribeRule { subscription, name } => {
                let rules = self.rules_at(self.subscription(subscription)?);
                let rule = rules.get(name).ok_or(Reason::Missing)?;
                Ok(Shown::Rule(rule.clone()))
            }
            Order::ListRules {
                subscription,
                skip,
                top,
            } => {
                let rules = self.rules_at(self.subscription(subscription)?);
                let (names, more) = page(rules.into_iter().collect(), *skip, *top);
                Ok(Shown::Rules(names, more))
            }
        }
    }

    fn plan_creation(
        &mut self,
        path: &EntityPath,
        rules: Option<&[RuleDescription]>,
    ) -> Result<Shown, Reason> {
        let path = match path {
            EntityPath::Queue(path) | EntityPath::Topic(path) => path.clone(),
            EntityPath::Subscription { topic, name } => format!("{topic}/Subscriptions/{name}"),
        };
        if self.is_there(&path) {
            return Err(Reason::Exists);
        }
        let default = || BTreeSet::from([rule::DEFAULT.to_owned()]);
        self.plan_entity(&path, rules.map_or_else(default, names));
        self.entity_at(&path).ok_or(Reason::Missing)
    }

    fn plan_update(
        &mut self,
        entity: EntityId,
        description: &EntityDescription,
    ) -> Result<Shown, Reason> {
        let path = self.path_of(entity).ok_or(Reason::Missing)?;
        let queue = self.entry(path).ok_or(Reason::Missing)?;
        if queue.sessions != description.settings.requires_session {
            return Err(Reason::Immutable);
        }
        self.plan_status(path, description.settings.status);
        self.versions.note_change();
        self.entity_at(path).ok_or(Reason::Missing)
    }

    fn plan_removal(&mut self, path: &str) -> Result<(), Reason> {
        if !self.is_there(path) {
            return Err(Reason::Missing);
        }
        if let Some(index) = self.index_of(path) {
            self.queues[index].going = true;
            self.queues[index].unsteady = true;
        }
        let planned = &mut self.turn.planned;
        planned.entities.insert(path.to_lowercase(), false);
        planned.removed.insert(path.to_lowercase());
        self.routing.topology.remove_queue(path);
        planned.rules.remove(&path.to_lowercase());
        self.versions.note_change();
        Ok(())
    }

    /// The whole batch, or nothing of it: the first thing that cannot be done decides.
    fn plan_batch(&mut self, batch: &Batch) -> Result<Shown, Reason> {
        let current = |version| self.versions.seen.get(&version) == Some(&self.versions.changes);
        if batch.version.is_some_and(|version| !current(version)) {
            return Err(Reason::Changed);
        }
        let mut named = BTreeSet::new();
        let mut name = |path: String| match named.insert(path.to_lowercase()) {
            true => Ok(()),
            false => Err(Reason::Invalid),
        };
        for path in &batch.removed {
            name(path.clone())?;
            if !self.is_there(path) {
                return Err(Reason::Missing);
            }
        }
        for (path, rule) in &batch.removed_rules {
            name(format!("{path}/Rules/{rule}"))?;
            let stays = !batch.removed.contains(path);
            let rules = self.rules_at(self.subscription(path)?);
            if !stays || !rules.contains(rule) {
                return Err(Reason::Missing);
            }
        }
        for ensured in &batch.ensured {
            let path = path_of(ensured);
            name(path.clone())?;
            for rule in self.rules_given(ensured) {
                name(format!("{path}/Rules/{rule}"))?;
            }
        }
        if batch.dry_run {
            return Ok(Shown::Nothing);
        }
        for path in &batch.removed {
            self.plan_removal(path)?;
        }
        for (path, rule) in &batch.removed_rules {
            let path = self.subscription(path)?;
            self.plan_rule_removal(path, rule)?;
        }
        for ensured in &batch.ensured {
            self.plan_ensured(ensured);
        }
        Ok(Shown::Nothing)
    }

    /// The names of the rules that an entity is given with its description.
    fn rules_given(&self, ensured: &Ensured) -> BTreeSet<String> {
        match ensured {
            Ensured::Subscription {
                rules: Some(rules), ..
            } => names(rules),
            Ensured::Subscription { .. } if !self.is_there(&path_of(ensured)) => {
                BTreeSet::from([rule::DEFAULT.to_owned()])
            }
            _ => BTreeSet::new(),
        }
    }

    fn plan_ensured(&mut self, ensured: &Ensured) {
        let path = path_of(ensured);
        let rules = self.rules_given(ensured);
        let settings = match ensured {
            Ensured::Queue { settings, .. } | Ensured::Topic { settings, .. } => settings,
            Ensured::Subscription { settings, .. } => &settings.queue,
        };
        let Some(queue) = self.entry(&path).filter(|_| self.is_there(&path)) else {
            self.plan_entity(&path, rules);
            return;
        };
        let (path, status) = (queue.path, queue.status);
        if status != settings.status {
            self.plan_status(path, settings.status);
            self.versions.note_change();
        }
        for rule in rules {
            // A rule that is there already stays as it is.
            drop(self.plan_new_rule(path, &rule));
        }
    }

    fn plan_entity(&mut self, path: &str, rules: BTreeSet<String>) {
        let is_subscription = path.contains("/Subscriptions/");
        let planned = &mut self.turn.planned;
        planned.entities.insert(path.to_lowercase(), true);
        planned.made.insert(path.to_lowercase());
        if is_subscription {
            planned.rules.insert(path.to_lowercase(), rules);
        }
        self.versions.note_change();
    }

    pub(super) fn plan_new_rule(
        &mut self,
        path: &'static str,
        name: &str,
    ) -> Result<Shown, Reason> {
        let mut rules = self.rules_at(path);
        if !rules.insert(name.to_owned()) {
            return Err(Reason::Exists);
        }
        self.turn.planned.rules.insert(path.to_lowercase(), rules);
        self.versions.note_change();
        Ok(Shown::Rule(name.to_owned()))
    }

    pub(super) fn plan_rule_removal(
        &mut self,
        path: &'static str,
        name: &str,
    ) -> Result<Shown, Reason> {
        let mut rules = self.rules_at(path);
        if !rules.remove(name) {
            return Err(Reason::Missing);
        }
        self.turn.planned.rules.insert(path.to_lowercase(), rules);
        self.versions.note_change();
        Ok(Shown::Nothing)
    }

    fn plan_status(&mut self, path: &str, status: Status) {
        if let Some(index) = self.index_of(path) {
            let queue = &mut self.queues[index];
            queue.unsteady |= queue.status != status;
            queue.status = status;
            if !status.allows_receive() {
                let entity = queue.id;
                self.doubt_locks_with_receivers(entity);
            }
        }
    }

    /// Whether there is an entity at that path, after the requests so far.
    fn is_there(&self, path: &str) -> bool {
        let planned = self.turn.planned.entities.get(&path.to_lowercase());
        planned.map_or_else(|| self.live(path).is_some(), |there| *there)
    }

    /// The path of an entity that is still there, after the requests so far.
    pub(super) fn path_of(&self, entity: EntityId) -> Option<&'static str> {
        let path = self.queues[self.queue_of(entity)?].path;
        let planned = self.turn.planned.entities.get(&path.to_lowercase());
        (planned.is_none() && self.books.is_live(entity)).then_some(path)
    }

    /// What is known of the entity that is, or is to be, at that path.
    fn entry(&self, path: &str) -> Option<&Queue> {
        if self.turn.planned.makes(path) {
            return self.expected.get(&path.to_lowercase());
        }
        Some(&self.queues[self.index_of(path)?])
    }

    fn entity_at(&self, path: &str) -> Option<Shown> {
        let queue = self.entry(path).filter(|_| self.is_there(path))?;
        Some(Shown::Entity {
            path: queue.path.to_owned(),
            status: queue.status,
            lock_duration: queue.lock_duration,
        })
    }

    /// The path of a subscription that is there, as it is shown.
    fn subscription(&self, path: &str) -> Result<&'static str, Reason> {
        let queue = self.entry(path).filter(|_| self.is_there(path));
        let queue = queue.filter(|queue| queue.topic.is_some());
        Ok(queue.ok_or(Reason::Missing)?.path)
    }

    fn rules_at(&self, path: &str) -> BTreeSet<String> {
        let planned = self.turn.planned.rules.get(&path.to_lowercase());
        let written = || {
            let entity = self.live(path);
            let rules = entity.map(|entity| self.books.rules(entity));
            rules.unwrap_or_default().into_iter().collect()
        };
        planned.cloned().unwrap_or_else(written)
    }

    /// The paths of all entities of a list.
    fn paths(&self, of: &Listing) -> Vec<String> {
        let all = self.queues.iter().chain(self.expected.values());
        let listed = all.filter(|queue| match of {
            Listing::Queues => !queue.is_topic && queue.topic.is_none(),
            Listing::Topics => queue.is_topic,
            Listing::Subscriptions(topic) => {
                let topic = format!("{}/", topic.to_lowercase());
                queue.topic.is_some() && queue.path.to_lowercase().starts_with(&topic)
            }
        });
        let there = listed.filter(|queue| self.is_there(queue.path));
        let paths: BTreeSet<_> = there.map(|queue| queue.path).collect();
        paths.into_iter().map(str::to_owned).collect()
    }
}

/// A page of names, in the order of their lower-case forms.
fn page(mut names: Vec<String>, skip: usize, top: usize) -> (Vec<String>, More) {
    names.sort_by_key(|name| name.to_lowercase());
    let more = names.len() > skip.saturating_add(top);
    (names.into_iter().skip(skip).take(top).collect(), more)
}

fn names(rules: &[RuleDescription]) -> BTreeSet<String> {
    rules.iter().map(|rule| rule.name.clone()).collect()
}

fn path_of(ensured: &Ensured) -> String {
    match ensured {
        Ensured::Queue { path, .. } | Ensured::Topic { path, .. } => path.clone(),
        Ensured::Subscription { topic, name, .. } => format!("{topic}/Subscriptions/{name}"),
    }
}
