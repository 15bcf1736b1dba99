//! Commands about topics, subscriptions and their rules.
//!
//! A topic or subscription that is there takes over changed settings; what it became by its
//! creation stays. A rule that is added twice is refused, unless it is a file that says so once
//! more. What changes here holds for what is published from now on. (Entities contract 17.1)

use store::{EntityId, NamespaceId};

use crate::administration::SUBSCRIPTIONS;
use crate::command::Command;
use crate::directory::{Directory, check_forwarding, settled};
use crate::kind::{EntityKind, Kind};
use crate::output::{Output, RequestError};
use crate::rules::{RuleDescription, RuleError};
use crate::settings::{QueueSettings, SubscriptionSettings};
use crate::shared::Context;
use crate::subscription::Subscription;
use crate::topic::Topic;

/// (Entities contract 4)
pub(crate) const MAX_SUBSCRIPTIONS: usize = 2_000;

/// Does what a command about topics says; any other is not for here.
pub(crate) fn dispatch(directory: &mut Directory, command: Command, cx: &mut Context<'_>) {
    match command {
        Command::EnsureTopic {
            request,
            namespace,
            path,
            settings,
        } => {
            let result = ensure_topic(directory, namespace, path, settings, cx);
            cx.say(Output::Ensured { request, result });
        }
        Command::EnsureSubscription {
            request,
            namespace,
            topic,
            name,
            settings,
            rules,
        } => {
            let result =
                ensure_subscription(directory, namespace, &topic, &name, *settings, rules, cx);
            cx.say(Output::Ensured { request, result });
        }
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
        _ => {}
    }
}

fn ensure_topic(
    directory: &mut Directory,
    namespace: NamespaceId,
    path: String,
    settings: QueueSettings,
    cx: &mut Context<'_>,
) -> Result<EntityId, RequestError> {
    match directory.find_kind(namespace, &path, EntityKind::Topic)? {
        Some(id) => directory.update(id, settings, cx),
        None => {
            let kind = Kind::Topic(Topic::default());
            Ok(directory.create(namespace, path, kind, settings, cx))
        }
    }
}

fn ensure_subscription(
    directory: &mut Directory,
    namespace: NamespaceId,
    topic: &str,
    name: &str,
    settings: SubscriptionSettings,
    rules: Option<Vec<RuleDescription>>,
    cx: &mut Context<'_>,
) -> Result<EntityId, RequestError> {
    let topic = directory.find_kind(namespace, topic, EntityKind::Topic)?;
    let topic = topic.ok_or(RequestError::NotFound)?;
    let parent = directory.get(topic).ok_or(RequestError::NotFound)?;
    let path = format!("{}{SUBSCRIPTIONS}{name}", parent.path);
    let queue = settled(settings.queue);
    check_forwarding(&path, &queue)?;
    // All of them or none, so they are understood before anything is made.
    for rule in rules.iter().flatten() {
        rule.compile().map_err(|error| invalid(&error))?;
    }
    let Some(id) = directory.find_kind(namespace, &path, EntityKind::Subscription)? else {
        if parent.kind.subscriptions() >= MAX_SUBSCRIPTIONS {
            let text = format!("a topic can have {MAX_SUBSCRIPTIONS} subscriptions");
            return Err(RequestError::Invalid(text));
        }
        let subscription = Subscription {
            topic,
            dead_lettering_on_filter_evaluation_exceptions: settings
                .dead_lettering_on_filter_evaluation_exceptions,
        };
        let kind = Kind::Subscription(Box::new(subscription));
        let id = directory.create(namespace, path, kind, queue, cx);
        let rules = rules.unwrap_or_else(|| vec![RuleDescription::default_rule()]);
        ensure_rules(directory, id, &rules, cx)?;
        return Ok(id);
    };
    ensure_rules(directory, id, &rules.unwrap_or_default(), cx)?;
    directory.update_subscription(
        id,
        queue,
        settings.dead_lettering_on_filter_evaluation_exceptions,
        cx,
    )
}

/// The subscription of a rule is used by whoever changes it. (Entities contract 15)
pub(crate) fn note_access(directory: &mut Directory, entity: EntityId, cx: &mut Context<'_>) {
    if let Some(queue) = directory.get_mut(entity) {
        queue.note_access(cx);
        queue.set_alarm(cx);
    }
}

fn ensure_rules(
    directory: &mut Directory,
    subscription: EntityId,
    rules: &[RuleDescription],
    cx: &mut Context<'_>,
) -> Result<(), RequestError> {
    for rule in rules {
        directory
            .ensure_rule(subscription, rule, cx)
            .map_err(|error| invalid(&error))?;
    }
    Ok(())
}

fn invalid(error: &RuleError) -> RequestError {
    RequestError::Invalid(error.to_string())
}
