//! Rules made, changed, shown and deleted by order. (docs/spec/entities.md#17.1)

use store::{EntityId, NamespaceId};

use super::inquiry;
use crate::api::entity_error::EntityError;
use crate::api::kind::EntityKind;
use crate::api::order::Answer;
use crate::api::page::Page;
use crate::api::rule::{RuleDescription, RuleError};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::topic::command::note_access;

/// The subscription of a path.
pub(super) fn subscription(
    directory: &Directory,
    namespace: NamespaceId,
    path: &str,
) -> Result<EntityId, EntityError> {
    let found = directory.find(namespace, path);
    let found = found.and_then(|id| directory.get(id));
    let subscription = found.filter(|queue| queue.kind.seen() == EntityKind::Subscription);
    let id = subscription.map(|queue| queue.id);
    id.ok_or_else(|| inquiry::missing(directory, namespace, path))
}

/// Adds a rule.
pub(super) fn create(
    directory: &mut Directory,
    subscription: EntityId,
    rule: &RuleDescription,
    cx: &mut Context<'_>,
) -> Result<Answer, EntityError> {
    directory.add_rule(subscription, rule, cx)?;
    note_access(directory, subscription, cx);
    describe(directory, subscription, &rule.name)
}

/// Puts a rule in the place of another.
pub(super) fn replace(
    directory: &mut Directory,
    subscription: EntityId,
    rule: &RuleDescription,
    cx: &mut Context<'_>,
) -> Result<Answer, EntityError> {
    directory.replace_rule(subscription, rule, cx)?;
    note_access(directory, subscription, cx);
    describe(directory, subscription, &rule.name)
}

/// Deletes a rule.
pub(super) fn remove(
    directory: &mut Directory,
    subscription: EntityId,
    name: &str,
    cx: &mut Context<'_>,
) -> Result<Answer, EntityError> {
    directory.remove_rule(subscription, name, cx)?;
    note_access(directory, subscription, cx);
    Ok(Answer::Done)
}

/// One rule.
pub(super) fn describe(
    directory: &mut Directory,
    subscription: EntityId,
    name: &str,
) -> Result<Answer, EntityError> {
    let rule = directory.rule_of(subscription, name)?;
    let rule = rule.ok_or_else(|| RuleError::NotFound(name.to_owned()))?;
    Ok(Answer::Rule(Box::new(rule)))
}

/// Rules in the order of their names.
pub(super) fn list(
    directory: &mut Directory,
    subscription: EntityId,
    skip: usize,
    top: usize,
) -> Result<Answer, EntityError> {
    let mut items = directory.rules_by_name(subscription, skip, top.saturating_add(1))?;
    let more = items.len() > top;
    items.truncate(top);
    Ok(Answer::Rules(Page { items, more }))
}
