//! Commands about the rules of subscriptions.
//!
//! A rule that is added twice is refused. What changes here holds for what is published from now on.
//! (docs/spec/entities.md#17.1)

use store::EntityId;

use crate::command::Command;
use crate::directory::Directory;
use crate::output::Output;
use crate::shared::Context;

/// (docs/spec/entities.md#4)
pub(crate) const MAX_SUBSCRIPTIONS: usize = 2_000;

/// Does what a command about rules says; any other is not for here.
pub(crate) fn dispatch(directory: &mut Directory, command: Command, cx: &mut Context<'_>) {
    match command {
        Command::AddRule {
            request,
            entity,
            rule,
        } => {
            let result = directory.add_rule(entity, &rule, cx);
            note_access(directory, entity, cx);
            cx.say(Output::RuleChanged { request, result });
        }
        Command::RemoveRule {
            request,
            entity,
            name,
        } => {
            let result = directory.remove_rule(entity, &name, cx);
            note_access(directory, entity, cx);
            cx.say(Output::RuleChanged { request, result });
        }
        Command::ListRules {
            request,
            entity,
            skip,
            top,
        } => {
            let result = directory.rules_of(entity, skip, top);
            cx.say(Output::Rules { request, result });
        }
        other => unreachable!("the broker handles it elsewhere: {other:?}"),
    }
}

/// The subscription of a rule is used by whoever changes it. (docs/spec/entities.md#15)
pub(crate) fn note_access(directory: &mut Directory, entity: EntityId, cx: &mut Context<'_>) {
    if let Some(queue) = directory.get_mut(entity) {
        queue.note_access(cx);
        queue.set_alarm(cx);
    }
}
