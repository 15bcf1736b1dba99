//! Draft: what a batch makes of a namespace, as far as it has been looked at.
//!
//! A draft changes nothing. It knows what goes, what comes, and what each topic it is about will
//! have; the limits of entities hold at each step, since what goes is said first, and those of
//! rules at the end, when one that is replaced by a smaller one has made room for others.

use std::collections::{BTreeMap, BTreeSet};

use store::{EntityId, NamespaceId};

use super::{New, Step};
use crate::administration::{entities, rules};
use crate::api::batch::Ensured;
use crate::api::entity_error::EntityError;
use crate::api::error::RequestError;
use crate::api::kind::EntityKind;
use crate::api::name::SUBSCRIPTIONS;
use crate::api::rule::{CheckedRule, RuleDescription, RuleError, RuleUsage};
use crate::api::settings::{QueueSettings, SubscriptionSettings};
use crate::entities::directory::{Directory, check_unchanged};
use crate::topic::command::MAX_SUBSCRIPTIONS;

pub(super) struct Draft<'a> {
    directory: &'a Directory,
    namespace: NamespaceId,
    /// Paths of entities and rules in lower case.
    named: BTreeSet<String>,
    gone: BTreeSet<EntityId>,
    /// What is new, by path in lower case, as it is to be shown.
    made: BTreeMap<String, (EntityKind, String)>,
    /// Queues and topics, once one is made.
    entities: Option<usize>,
    /// By path in lower case.
    topics: BTreeMap<String, Fill>,
    steps: Vec<Step>,
}

/// What a topic will have.
struct Fill {
    path: String,
    subscriptions: usize,
    rules: RuleUsage,
    /// The first rule with which there were too many.
    beyond: Option<String>,
}

impl<'a> Draft<'a> {
    /// Of a batch that has not said anything.
    pub(super) fn new(directory: &'a Directory, namespace: NamespaceId) -> Self {
        Self {
            directory,
            namespace,
            named: BTreeSet::new(),
            gone: BTreeSet::new(),
            made: BTreeMap::new(),
            entities: None,
            topics: BTreeMap::new(),
            steps: Vec::new(),
        }
    }

    /// Whether the namespace is still what the batch was made for.
    pub(super) fn check_version(&self, version: Option<u64>) -> Result<(), EntityError> {
        match version {
            Some(version) if version != self.directory.version(self.namespace) => {
                Err(EntityError::Changed)
            }
            _ => Ok(()),
        }
    }

    /// An entity goes.
    pub(super) fn remove(&mut self, path: &str) -> Result<(), EntityError> {
        self.name(path)?;
        let found = self.directory.find(self.namespace, path);
        let found = found.and_then(|id| self.directory.get(id));
        let queue = found.ok_or_else(|| at(path, EntityError::NotFound))?;
        let topic = queue.kind.topic();
        if let Some(topic) = topic.filter(|topic| !self.gone.contains(topic)) {
            let rules = self.directory.rules_at(topic, queue.id);
            if let Some(fill) = self.fill_of(topic) {
                fill.subscriptions = fill.subscriptions.saturating_sub(1);
                rules.iter().for_each(|rule| fill.rules.take(rule));
            }
        }
        self.gone.insert(queue.id);
        self.steps.push(Step::Remove(queue.id));
        Ok(())
    }

    /// A rule goes.
    pub(super) fn remove_rule(
        &mut self,
        subscription: &str,
        name: String,
    ) -> Result<(), EntityError> {
        let path = format!("{subscription}/Rules/{name}");
        self.name(&path)?;
        let id = rules::subscription(self.directory, self.namespace, subscription);
        let id = id.map_err(|error| at(subscription, error))?;
        let topic = self.directory.get(id).and_then(|queue| queue.kind.topic());
        let topic = topic.filter(|_| !self.is_gone(id));
        let rule = topic.and_then(|topic| self.directory.rule_at(topic, id, &name));
        let (Some(topic), Some(rule)) = (topic, rule) else {
            return Err(at(&path, RuleError::NotFound(name).into()));
        };
        if let Some(fill) = self.fill_of(topic) {
            fill.rules.take(&rule);
        }
        self.steps.push(Step::RemoveRule(id, name));
        Ok(())
    }

    /// An entity is there.
    pub(super) fn ensure(&mut self, ensured: Ensured) -> Result<(), EntityError> {
        match ensured {
            Ensured::Queue { path, settings } => {
                self.ensure_root(path, EntityKind::Queue, New::Queue, settings)
            }
            Ensured::Topic { path, settings } => {
                self.ensure_root(path, EntityKind::Topic, New::Topic, settings)
            }
            Ensured::Subscription {
                topic,
                name,
                settings,
                rules,
            } => self.ensure_subscription(&topic, &name, *settings, rules),
        }
    }

    fn ensure_root(
        &mut self,
        path: String,
        kind: EntityKind,
        what: New,
        settings: QueueSettings,
    ) -> Result<(), EntityError> {
        self.name(&path)?;
        match self.known(&path, kind, &settings)? {
            Some(id) => self.steps.push(Step::Update {
                id,
                settings,
                dead_lettering: None,
                rules: Vec::new(),
            }),
            None => {
                if kind == EntityKind::Topic {
                    let free = entities::check_no_router(self.directory, self.namespace, &path);
                    free.map_err(|error| at(&path, error))?;
                }
                self.count_entity(&path)?;
                self.make(path, kind, settings, what);
            }
        }
        Ok(())
    }

    fn ensure_subscription(
        &mut self,
        topic: &str,
        name: &str,
        settings: SubscriptionSettings,
        rules: Option<Vec<RuleDescription>>,
    ) -> Result<(), EntityError> {
        let dead_lettering = settings.dead_lettering_on_filter_evaluation_exceptions;
        let topic = self.topic(topic)?;
        let path = format!("{topic}{SUBSCRIPTIONS}{name}");
        self.name(&path)?;
        let settings = settings.queue;
        let known = self.known(&path, EntityKind::Subscription, &settings)?;
        let rules = match known {
            Some(_) => rules.unwrap_or_default(),
            None => rules.unwrap_or_else(|| vec![RuleDescription::default_rule()]),
        };
        if known.is_none() {
            self.count_subscription(&topic, &path)?;
        }
        let rules = self.put_rules(&topic, &path, known, rules)?;
        match known {
            Some(id) => self.steps.push(Step::Update {
                id,
                settings,
                dead_lettering: Some(dead_lettering),
                rules,
            }),
            None => {
                let what = New::Subscription {
                    topic,
                    dead_lettering,
                    rules,
                };
                self.make(path, EntityKind::Subscription, settings, what);
            }
        }
        Ok(())
    }

    /// The rules of a subscription that are new or other than what is there.
    fn put_rules(
        &mut self,
        topic: &str,
        subscription: &str,
        known: Option<EntityId>,
        rules: Vec<RuleDescription>,
    ) -> Result<Vec<CheckedRule>, EntityError> {
        let mut checked = Vec::new();
        let place = known.and_then(|id| Some((self.directory.get(id)?.kind.topic()?, id)));
        for rule in rules {
            let path = format!("{subscription}/Rules/{}", rule.name);
            self.name(&path)?;
            let there = place.and_then(|(topic, id)| self.directory.rule_at(topic, id, &rule.name));
            if there.as_ref().is_some_and(|there| there.says(&rule)) {
                continue;
            }
            let rule = CheckedRule::new(rule).map_err(|error| at(&path, error.into()))?;
            let fill = self.fill(topic);
            there.iter().for_each(|there| fill.rules.take(there));
            fill.rules.put(&rule.description);
            if fill.beyond.is_none() && fill.rules.check_whole().is_err() {
                fill.beyond = Some(path);
            }
            checked.push(rule);
        }
        Ok(checked)
    }

    /// All that is to be done, if all of it can be.
    pub(super) fn finish(self) -> Result<Vec<Step>, EntityError> {
        for fill in self.topics.values() {
            let path = fill.beyond.as_ref().unwrap_or(&fill.path);
            let checked = fill.rules.check_whole();
            checked.map_err(|error| at(path, error.into()))?;
        }
        Ok(self.steps)
    }

    fn make(&mut self, path: String, kind: EntityKind, settings: QueueSettings, what: New) {
        self.made.insert(path.to_lowercase(), (kind, path.clone()));
        self.steps.push(Step::Create {
            path,
            settings,
            what,
        });
    }

    fn name(&mut self, path: &str) -> Result<(), EntityError> {
        if self.named.insert(path.to_lowercase()) {
            return Ok(());
        }
        let text = "it is named twice".to_owned();
        Err(at(path, EntityError::Invalid(text)))
    }

    /// What is there already and may be given these settings.
    fn known(
        &self,
        path: &str,
        kind: EntityKind,
        settings: &QueueSettings,
    ) -> Result<Option<EntityId>, EntityError> {
        let find = || -> Result<Option<EntityId>, RequestError> {
            let found = self.directory.find_kind(self.namespace, path, kind)?;
            let found = found.filter(|id| !self.is_gone(*id));
            if let Some(queue) = found.and_then(|id| self.directory.get(id)) {
                check_unchanged(&queue.settings, settings)?;
            }
            Ok(found)
        };
        find().map_err(|error| at(path, error.into()))
    }

    /// Whether an entity goes, by itself or with its topic.
    fn is_gone(&self, id: EntityId) -> bool {
        let topic = self.directory.get(id).and_then(|queue| queue.kind.topic());
        self.gone.contains(&id) || topic.is_some_and(|topic| self.gone.contains(&topic))
    }

    /// The path of a topic that is there, as it is shown.
    fn topic(&self, path: &str) -> Result<String, EntityError> {
        if let Some((EntityKind::Topic, shown)) = self.made.get(&path.to_lowercase()) {
            return Ok(shown.clone());
        }
        let kind = EntityKind::Topic;
        let found = self.directory.find_kind(self.namespace, path, kind);
        let found = found.map_err(|error| at(path, error.into()))?;
        let found = found.filter(|id| !self.gone.contains(id));
        let topic = found.and_then(|id| self.directory.get(id));
        let topic = topic.ok_or_else(|| at(path, EntityError::NotFound))?;
        Ok(topic.path.clone())
    }

    fn count_entity(&mut self, path: &str) -> Result<(), EntityError> {
        let (directory, namespace, gone) = (self.directory, self.namespace, &self.gone);
        let count = self.entities.get_or_insert_with(|| {
            let all = directory.by_path(namespace, "").map(|(_, queue)| queue);
            let roots = all.filter(|queue| queue.kind.topic().is_none());
            roots.filter(|queue| !gone.contains(&queue.id)).count()
        });
        let limits = directory.namespaces.limits(namespace);
        entities::check_count(*count, limits).map_err(|error| at(path, error))?;
        *count += 1;
        Ok(())
    }

    fn count_subscription(&mut self, topic: &str, path: &str) -> Result<(), EntityError> {
        let fill = self.fill(topic);
        if fill.subscriptions >= MAX_SUBSCRIPTIONS {
            let (limit, what) = (MAX_SUBSCRIPTIONS, "subscriptions of a topic");
            return Err(at(path, EntityError::TooMany { limit, what }));
        }
        fill.subscriptions += 1;
        Ok(())
    }

    fn fill_of(&mut self, topic: EntityId) -> Option<&mut Fill> {
        let path = &self.directory.get(topic)?.path;
        Some(self.fill(path))
    }

    /// What the topic of a path has so far.
    fn fill(&mut self, path: &str) -> &mut Fill {
        let (directory, namespace) = (self.directory, self.namespace);
        let fill = self.topics.entry(path.to_lowercase());
        fill.or_insert_with(|| {
            let found = directory.find(namespace, path);
            let kind = found.and_then(|id| directory.get(id)).map(|it| &it.kind);
            Fill {
                path: path.to_owned(),
                subscriptions: kind.map_or(0, |kind| kind.subscriptions()),
                rules: kind.map_or_else(RuleUsage::default, |kind| kind.rule_room()),
                beyond: None,
            }
        })
    }
}

/// Which entity or rule it is that cannot be.
fn at(path: &str, error: EntityError) -> EntityError {
    let (path, error) = (path.to_owned(), Box::new(error));
    EntityError::At { path, error }
}
