//! The rules of a topic's subscriptions: kept with the topic, stored with each subscription.
//!
//! All of a change holds or nothing of it, from the next message on.

use filter::{Filter, Rule};
use store::{EntityId, Entry, Index, StoreError, Write};

use super::Topic;
use crate::directory::Directory;
use crate::kind::Kind;
use crate::rules::{self, RuleDescription, RuleError};
use crate::shared::Context;
use crate::time::Wall;

/// (Entities contract 4)
const MAX_SQL_FILTERS: usize = 2_000;
const MAX_CORRELATION_FILTERS: usize = 100_000;
/// They stay in memory.
const MAX_BYTES: usize = 64 << 20;
/// A page of a list ends with the rule that takes it beyond this.
const PAGE_BYTES: usize = 512 << 10;

impl Topic {
    /// Whether there is room for one more rule of this kind.
    fn check_room(&self, rule: &Rule) -> Result<(), RuleError> {
        let correlations = self.correlation_filters;
        let (count, limit, what) = match rule.filter {
            Filter::Correlation(_) => {
                (correlations, MAX_CORRELATION_FILTERS, "correlation filters")
            }
            _ => (
                self.rules.len().saturating_sub(correlations),
                MAX_SQL_FILTERS,
                "SQL filters",
            ),
        };
        if count >= limit {
            return Err(RuleError::TooMany { limit, what });
        }
        let bytes = self.rule_bytes.saturating_add(bytes_of(rule));
        if bytes > MAX_BYTES {
            return Err(RuleError::TooLarge { limit: MAX_BYTES });
        }
        Ok(())
    }

    fn add(&mut self, subscription: EntityId, rule: Rule, created: Wall) -> Result<(), RuleError> {
        let name = rule.name.clone();
        let correlates = matches!(rule.filter, Filter::Correlation(_));
        let bytes = bytes_of(&rule);
        let added = self.rules.change().add(subscription, rule);
        if added.is_err() {
            return Err(RuleError::Exists(name));
        }
        self.rule_bytes = self.rule_bytes.saturating_add(bytes);
        self.correlation_filters += usize::from(correlates);
        self.created
            .insert((subscription, name.to_lowercase()), created);
        Ok(())
    }

    fn remove(&mut self, subscription: EntityId, name: &str) -> bool {
        let removed = self.rules.change().remove(subscription, name);
        if let Some(rule) = &removed {
            let correlates = matches!(rule.filter, Filter::Correlation(_));
            self.rule_bytes = self.rule_bytes.saturating_sub(bytes_of(rule));
            self.correlation_filters -= usize::from(correlates);
            self.created.remove(&(subscription, name.to_lowercase()));
        }
        removed.is_some()
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

    fn describe(&self, subscription: EntityId, rule: &Rule) -> RuleDescription {
        let created = self.created.get(&(subscription, rule.name.to_lowercase()));
        RuleDescription::of(rule, created.copied().unwrap_or_default())
    }
}

impl Directory {
    /// Adds a rule to a subscription.
    pub(super) fn add_rule(
        &mut self,
        subscription: EntityId,
        description: &RuleDescription,
        cx: &mut Context<'_>,
    ) -> Result<(), RuleError> {
        let rule = description.compile()?;
        let topic = self.topic_of(subscription)?;
        if topic.rules.get(subscription, &rule.name).is_some() {
            return Err(RuleError::Exists(rule.name));
        }
        topic.check_room(&rule)?;
        let stored = RuleDescription {
            place: topic.next_rule,
            created: cx.now.wall,
            ..description.clone()
        };
        topic.add(subscription, rule, cx.now.wall)?;
        topic.next_rule += 1;
        cx.write(Write::PutEntry {
            entity: subscription,
            index: Index::Rule,
            key: rules::key_of(&stored.name),
            value: rules::encode(&stored),
        });
        Ok(())
    }

    /// Adds a rule, or puts it in the place of one of its name that is not the same.
    pub(super) fn ensure_rule(
        &mut self,
        subscription: EntityId,
        description: &RuleDescription,
        cx: &mut Context<'_>,
    ) -> Result<(), RuleError> {
        let wanted = description.compile()?;
        let topic = self.topic_of(subscription)?;
        match topic.rules.get(subscription, &wanted.name) {
            Some(there) if **there == wanted => return Ok(()),
            Some(_) => self.remove_rule(subscription, &wanted.name, cx)?,
            None => {}
        }
        self.add_rule(subscription, description, cx)
    }

    pub(super) fn remove_rule(
        &mut self,
        subscription: EntityId,
        name: &str,
        cx: &mut Context<'_>,
    ) -> Result<(), RuleError> {
        let topic = self.topic_of(subscription)?;
        if !topic.remove(subscription, name) {
            return Err(RuleError::NotFound(name.to_owned()));
        }
        cx.write(Write::RemoveEntry {
            entity: subscription,
            index: Index::Rule,
            key: rules::key_of(name),
        });
        Ok(())
    }

    /// A subscription's rules in the order of their creation.
    pub(super) fn rules_of(
        &mut self,
        subscription: EntityId,
        skip: usize,
        top: usize,
    ) -> Result<Vec<RuleDescription>, RuleError> {
        let topic = self.topic_of(subscription)?;
        let mut page = Vec::new();
        let mut bytes = 0_usize;
        for rule in topic.rules.of(subscription).skip(skip).take(top) {
            let rule = topic.describe(subscription, rule);
            bytes = bytes.saturating_add(rule.bytes());
            page.push(rule);
            if bytes > PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }

    /// Rules that the store has recovered, in the order of their creation.
    pub(crate) fn recover_rules(
        &mut self,
        entries: &[(EntityId, Entry)],
    ) -> Result<(), StoreError> {
        let mut found = Vec::with_capacity(entries.len());
        for (subscription, entry) in entries {
            found.push((*subscription, rules::decode(entry)?));
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
                    .add(subscription, rule, description.created)
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

fn bytes_of(rule: &Rule) -> usize {
    RuleDescription::of(rule, Wall::default()).bytes()
}
