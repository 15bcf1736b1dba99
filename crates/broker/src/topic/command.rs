//! Commands about the rules of subscriptions.
//!
//! A rule that is added twice is refused. What changes here holds for what is published from now
//! on. (docs/spec/entities.md#17.1)

use store::EntityId;

use crate::api::id::RequestId;
use crate::api::output::Output;
use crate::api::rule::RuleDescription;
use crate::context::Context;
use crate::entities::directory::Directory;

/// (docs/spec/entities.md#4)
pub(crate) const MAX_SUBSCRIPTIONS: usize = 2_000;

/// Adds a rule that is not there.
pub(crate) fn add_rule(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    rule: &RuleDescription,
    cx: &mut Context<'_>,
) {
    let result = directory.add_rule(entity, rule, cx);
    note_access(directory, entity, cx);
    cx.emit(Output::RuleChanged { request, result });
}

/// Removes a rule.
pub(crate) fn remove_rule(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    name: &str,
    cx: &mut Context<'_>,
) {
    let result = directory.remove_rule(entity, name, cx);
    note_access(directory, entity, cx);
    cx.emit(Output::RuleChanged { request, result });
}

/// Shows a page of rules.
pub(crate) fn list_rules(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    skip: usize,
    top: usize,
    cx: &mut Context<'_>,
) {
    let result = directory.rules_of(entity, skip, top);
    cx.emit(Output::Rules { request, result });
}

/// A change of a rule is a use of its subscription. (docs/spec/entities.md#15)
pub(crate) fn note_access(directory: &mut Directory, entity: EntityId, cx: &mut Context<'_>) {
    if let Some(queue) = directory.get_mut(entity) {
        queue.note_access(cx);
        queue.set_alarm(cx);
    }
}
