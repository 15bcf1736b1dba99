//! The rules of a topic's subscriptions: kept with the topic, stored with each subscription.
//!
//! All of a change holds or nothing of it, from the next message on.

use std::collections::BTreeSet;

use filter::{Filter, Rule};
use store::{EntityId, Entry, Index, StoreError, Write};

use super::{RuleFacts, Topic};
use crate::api::rule::{self, CheckedRule, RuleDescription, RuleError, RuleUsage};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::kind::Kind;

/// A page of a list ends with the rule that takes it beyond this. Some clients ask for all rules at
/// once, and take what they get for all.
const PAGE_BYTES: usize = 16 << 20;

impl Topic {
    /// Whether there is room for one more rule of this kind.
    fn check_room(&self, rule: &Rule, bytes: usize) -> Result<(), RuleError> {
        let is_correlation = matches!(rule.filter, Filter::Correlation(_));
        self.room().check(is_correlation, bytes)
    }

    /// What all of them take up.
    pub(crate) fn room(&self) -> RuleUsage {
        RuleUsage {
            sql: self.sql_filters(),
            correlations: self.correlation_filters,
            bytes: self.rule_bytes,
        }
    }

    /// Adds a rule that was made of a description.
    fn add(
        &mut self,
        subscription: EntityId,
        rule: Rule,
        description: &RuleDescription,
    ) -> Result<(), RuleError> {
        let name = rule.name.clone();
        let correlates = matches!(rule.filter, Filter::Correlation(_));
        let bytes = description.bytes();
        let added = self.rules.change().add(subscription, rule);
        if added.is_err() {
            return Err(RuleError::Exists(name));
        }
        self.rule_bytes = self.rule_bytes.saturating_add(bytes);
        self.correlation_filters += usize::from(correlates);
        let facts = RuleFacts {
            created: description.created,
            place: description.place,
            filter_parameters: description.filter_parameters.clone(),
            action_parameters: description.action_parameters.clone(),
            filter_texts: description.filter_texts.clone(),
            action_texts: description.action_texts.clone(),
        };
        self.facts
            .insert((subscription, name.to_lowercase()), facts);
        Ok(())
    }

    fn remove(&mut self, subscription: EntityId, name: &str) -> bool {
        let Some(rule) = self.rules.get(subscription, name) else {
            return false;
        };
        let correlates = matches!(rule.filter, Filter::Correlation(_));
        let bytes = self.describe(subscription, rule).bytes();
        self.rules.change().remove(subscription, name);
        self.rule_bytes = self.rule_bytes.saturating_sub(bytes);
        self.correlation_filters -= usize::from(correlates);
        self.facts.remove(&(subscription, name.to_lowercase()));
        true
    }

    /// How many rules have SQL filters, or true and false ones.
    pub(crate) fn sql_filters(&self) -> usize {
        self.rules.len().saturating_sub(self.correlation_filters)
    }

    pub(crate) fn correlation_filters(&self) -> usize {
        self.correlation_filters
    }

    /// A subscription is gone, with its rules.
    pub(crate) fn remove_subscription(&mut self, subscription: EntityId) {
        self.subscriptions.remove(&subscription);
        let rules: Vec<_> = self
            .rules
            .of(subscription)
            .map(|rule| rule.name.clone())
            .collect();
        for name in rules {
            self.remove(subscription, &name);
        }
    }

    /// A subscription's rules in the order of their names without regard to case.
    /// (docs/spec/entities.md#17.11)
    fn by_name(&self, subscription: EntityId) -> impl Iterator<Item = RuleDescription> {
        let from = (subscription, String::new());
        let keys = self.facts.range(from..).map(|(key, _)| key);
        let keys = keys.take_while(move |(of, _)| *of == subscription);
        keys.map(move |(_, name)| {
            let rule = self.rules.get(subscription, name);
            self.describe(subscription, rule.expect("facts go with their rule"))
        })
    }

    fn describe(&self, subscription: EntityId, rule: &Rule) -> RuleDescription {
        let facts = self.facts.get(&(subscription, rule.name.to_lowercase()));
        let facts = facts.expect("facts of a rule are kept as long as it is");
        RuleDescription {
            created: facts.created,
            place: facts.place,
            filter_parameters: facts.filter_parameters.clone(),
            action_parameters: facts.action_parameters.clone(),
            filter_texts: facts.filter_texts.clone(),
            action_texts: facts.action_texts.clone(),
            ..RuleDescription::of(rule)
        }
    }
}

impl Directory {
    /// Adds a rule to a subscription.
    pub(crate) fn add_rule(
        &mut self,
        subscription: EntityId,
        description: &RuleDescription,
        cx: &mut Context<'_>,
    ) -> Result<(), RuleError> {
        let rule = description.compile_new()?;
        let topic = self.topic_of(subscription)?;
        if topic.rules.get(subscription, &rule.name).is_some() {
            return Err(RuleError::Exists(rule.name));
        }
        topic.check_room(&rule, description.bytes())?;
        let stored = RuleDescription {
            place: topic.next_rule,
            created: cx.now.wall,
            ..description.clone()
        };
        topic.add(subscription, rule, &stored)?;
        topic.next_rule += 1;
        self.note_change(subscription);
        cx.write(put(subscription, &stored));
        Ok(())
    }

    /// Adds a rule, or puts it in the place of the one of its name, which keeps when it was
    /// created. The caller has checked that there is room for it.
    pub(crate) fn put_rule(
        &mut self,
        subscription: EntityId,
        checked: CheckedRule,
        cx: &mut Context<'_>,
    ) {
        let CheckedRule { rule, description } = checked;
        // A start refuses a subscription without its topic; here no rule of one would count.
        let Ok(topic) = self.topic_of(subscription) else {
            return;
        };
        let there = topic.rules.get(subscription, &rule.name);
        let old = there.map(|there| topic.describe(subscription, there));
        let (name, created) = match old {
            Some(old) => (old.name, old.created),
            None => (description.name.clone(), cx.now.wall),
        };
        let stored = RuleDescription {
            name: name.clone(),
            place: topic.next_rule,
            created,
            ..description
        };
        let rule = Rule {
            name: name.clone(),
            ..rule
        };
        topic.remove(subscription, &name);
        let added = topic.add(subscription, rule, &stored);
        assert!(added.is_ok(), "there is none of this name any more");
        topic.next_rule += 1;
        self.note_change(subscription);
        cx.write(put(subscription, &stored));
    }

    pub(crate) fn remove_rule(
        &mut self,
        subscription: EntityId,
        name: &str,
        cx: &mut Context<'_>,
    ) -> Result<(), RuleError> {
        let topic = self.topic_of(subscription)?;
        if !topic.remove(subscription, name) {
            return Err(RuleError::NotFound(name.to_owned()));
        }
        self.note_change(subscription);
        cx.write(Write::RemoveEntry {
            entity: subscription,
            index: Index::Rule,
            key: rule::key_of(name),
        });
        Ok(())
    }

    /// A page of a subscription's rules in the order of their names, for an answer of AMQP. It ends
    /// early when it has become large.
    pub(super) fn rules_of(
        &mut self,
        subscription: EntityId,
        skip: usize,
        top: usize,
    ) -> Result<Vec<RuleDescription>, RuleError> {
        let topic = self.topic_of(subscription)?;
        let mut page = Vec::new();
        let mut bytes = 0_usize;
        for rule in topic.by_name(subscription).skip(skip).take(top) {
            bytes = bytes.saturating_add(rule.bytes());
            page.push(rule);
            if bytes > PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }

    /// The rules of a new subscription of a topic, if it can have all of them.
    pub(crate) fn check_rules(
        &self,
        topic: EntityId,
        descriptions: Vec<RuleDescription>,
    ) -> Result<Vec<CheckedRule>, RuleError> {
        let kind = self.get(topic).map(|queue| &queue.kind);
        let mut room = kind.ok_or(RuleError::NoSubscription)?.rule_room();
        let mut names = BTreeSet::new();
        let check = |description: RuleDescription| {
            if !names.insert(description.name.to_lowercase()) {
                return Err(RuleError::Exists(description.name));
            }
            room.add(&description)?;
            CheckedRule::new(description)
        };
        descriptions.into_iter().map(check).collect()
    }

    /// One of the rules of a subscription of a topic.
    pub(crate) fn rule_at(
        &self,
        topic: EntityId,
        subscription: EntityId,
        name: &str,
    ) -> Option<RuleDescription> {
        match self.get(topic).map(|queue| &queue.kind) {
            Some(Kind::Topic(topic)) => {
                let rule = topic.rules.get(subscription, name)?;
                Some(topic.describe(subscription, rule))
            }
            _ => None,
        }
    }

    /// All rules of a subscription of a topic.
    pub(crate) fn rules_at(&self, topic: EntityId, subscription: EntityId) -> Vec<RuleDescription> {
        match self.get(topic).map(|queue| &queue.kind) {
            Some(Kind::Topic(topic)) => {
                let rules = topic.rules.of(subscription);
                rules
                    .map(|rule| topic.describe(subscription, rule))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Puts a rule in the place of the one of its name, which keeps when it was created.
    pub(crate) fn replace_rule(
        &mut self,
        subscription: EntityId,
        description: &RuleDescription,
        cx: &mut Context<'_>,
    ) -> Result<(), RuleError> {
        let rule = description.compile()?;
        let topic = self.topic_of(subscription)?;
        let Some(there) = topic.rules.get(subscription, &rule.name) else {
            return Err(RuleError::NotFound(rule.name));
        };
        let old = topic.describe(subscription, there);
        let old_rule = there.as_ref().clone();
        let stored = RuleDescription {
            name: old.name.clone(),
            place: topic.next_rule,
            created: old.created,
            ..description.clone()
        };
        let rule = Rule {
            name: old.name.clone(),
            ..rule
        };
        topic.remove(subscription, &old.name);
        let checked = topic.check_room(&rule, stored.bytes());
        if checked.is_err() {
            topic.add(subscription, old_rule, &old)?;
            return checked;
        }
        topic.add(subscription, rule, &stored)?;
        topic.next_rule += 1;
        self.note_change(subscription);
        cx.write(put(subscription, &stored));
        Ok(())
    }

    /// One of a subscription's rules.
    pub(crate) fn rule_of(
        &mut self,
        subscription: EntityId,
        name: &str,
    ) -> Result<Option<RuleDescription>, RuleError> {
        let topic = self.topic_of(subscription)?;
        let rule = topic.rules.get(subscription, name);
        Ok(rule.map(|rule| topic.describe(subscription, rule)))
    }

    /// A subscription's rules in the order of their names without regard to case.
    pub(crate) fn rules_by_name(
        &mut self,
        subscription: EntityId,
        skip: usize,
        top: usize,
    ) -> Result<Vec<RuleDescription>, RuleError> {
        let topic = self.topic_of(subscription)?;
        Ok(topic.by_name(subscription).skip(skip).take(top).collect())
    }

    /// Rules that the store has recovered, in the order of their creation.
    pub(crate) fn recover_rules(
        &mut self,
        entries: &[(EntityId, Entry)],
    ) -> Result<(), StoreError> {
        let mut found = Vec::with_capacity(entries.len());
        for (subscription, entry) in entries {
            found.push((*subscription, rule::decode(entry)?));
        }
        found.sort_by_key(|(_, description)| description.place);
        for (subscription, description) in found {
            let damaged = |error: RuleError| StoreError::Corrupt {
                what: "a rule".to_owned(),
                detail: error.to_string(),
            };
            // Of a subscription that is gone there is nothing to recover.
            if let Ok(topic) = self.topic_of(subscription) {
                topic.next_rule = topic.next_rule.max(description.place.saturating_add(1));
                let rule = description.compile().map_err(damaged)?;
                topic
                    .add(subscription, rule, &description)
                    .map_err(damaged)?;
            }
        }
        Ok(())
    }

    /// The topic of a subscription, whose rules may be about to change.
    fn topic_of(&mut self, subscription: EntityId) -> Result<&mut Topic, RuleError> {
        let topic = self.get(subscription).and_then(|queue| queue.kind.topic());
        let topic = topic.ok_or(RuleError::NoSubscription)?;
        self.rules_may_change(topic);
        match self.get_mut(topic).map(|queue| &mut queue.kind) {
            Some(Kind::Topic(topic)) => Ok(topic),
            _ => Err(RuleError::NoSubscription),
        }
    }
}

/// A rule as it is written.
fn put(subscription: EntityId, rule: &RuleDescription) -> Write {
    Write::PutEntry {
        entity: subscription,
        index: Index::Rule,
        key: rule::key_of(&rule.name),
        value: rule::encode(rule),
    }
}
