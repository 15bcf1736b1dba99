//! Batch: entities and rules made, changed and deleted as one.
//!
//! All of a batch is looked at before any of it is done: a [draft](Draft) knows what is there,
//! what the batch has said so far, and how much room that leaves. What it lets pass cannot be
//! refused any more, so it is done in the same step, which is one write set; a batch with anything
//! that cannot be changes nothing. What goes makes room for what comes, wherever it stands.
//!
//! A batch may say which version of the namespace it was made for. If an entity or a rule has
//! changed since, the batch is refused, so it is never mixed with another administrator's changes.

mod draft;

use store::{EntityId, NamespaceId};

use crate::api::batch::{Batch, check_size};
use crate::api::entity_error::EntityError;
use crate::api::kind::EntityKind;
use crate::api::order::Answer;
use crate::api::rule::CheckedRule;
use crate::api::settings::QueueSettings;
use crate::context::Context;
use crate::entities::change::take_over;
use crate::entities::directory::Directory;
use crate::entities::template::Template;
use crate::queue::kind::Kind;
use crate::queue::subscription::Subscription;
use crate::topic::Topic;
use crate::topic::command::note_access;

use draft::Draft;

/// One change that can be made.
enum Step {
    Remove(EntityId),
    RemoveRule(EntityId, String),
    Update {
        id: EntityId,
        settings: QueueSettings,
        /// Of a subscription.
        dead_lettering: Option<bool>,
        rules: Vec<CheckedRule>,
    },
    Create {
        path: String,
        settings: QueueSettings,
        what: New,
    },
}

/// What is made.
enum New {
    Queue,
    Topic,
    Subscription {
        /// Its path.
        topic: String,
        dead_lettering: bool,
        rules: Vec<CheckedRule>,
    },
}

/// Carries a batch out, or says of which entity or rule it cannot be.
pub(super) fn carry_out(
    directory: &mut Directory,
    namespace: NamespaceId,
    batch: Batch,
    cx: &mut Context<'_>,
) -> Result<Answer, EntityError> {
    let mut draft = Draft::new(directory, namespace);
    draft.check_version(batch.version)?;
    check_size(&batch)?;
    for path in &batch.removed {
        draft.remove(path)?;
    }
    for (subscription, name) in batch.removed_rules {
        draft.remove_rule(&subscription, name)?;
    }
    let mut all = batch.ensured;
    for ensured in &mut all {
        ensured.admit(cx.shared.settings.tier)?;
    }
    let template = batch
        .is_template
        .then(|| Template::of_ensured(&all, &batch.policies));
    for ensured in all {
        draft.ensure(ensured)?;
    }
    let steps = draft.finish()?;
    directory.check_policies(namespace, &batch.policies, &batch.removed_policies)?;
    if !batch.dry_run {
        let mut concerned = Vec::new();
        for (layer, name) in batch.removed_policies {
            let removed = directory.take_policy(namespace, layer, &name, &mut concerned, cx);
            assert!(removed.is_ok(), "it was seen to be there");
        }
        for policy in batch.policies {
            let put = directory.insert_policy(namespace, policy, &mut concerned, cx);
            assert!(put.is_ok(), "it was seen to be possible");
        }
        if !concerned.is_empty() {
            directory.apply_policies(namespace, concerned, cx);
        }
        for step in steps {
            take(directory, namespace, step, cx);
        }
        if let Some(template) = template {
            directory.set_template(namespace, template, cx);
        }
    }
    Ok(Answer::Done)
}

/// Takes a step.
fn take(directory: &mut Directory, namespace: NamespaceId, step: Step, cx: &mut Context<'_>) {
    match step {
        Step::Remove(id) => directory.delete(id, cx),
        Step::RemoveRule(subscription, name) => {
            let removed = directory.remove_rule(subscription, &name, cx);
            assert!(removed.is_ok(), "the draft has seen it");
            note_access(directory, subscription, cx);
        }
        Step::Update {
            id,
            settings,
            dead_lettering,
            rules,
        } => {
            put_rules(directory, id, rules, cx);
            take_over(directory, id, settings, dead_lettering, cx);
        }
        Step::Create {
            path,
            settings,
            what,
        } => create(directory, namespace, path, settings, what, cx),
    }
}

fn create(
    directory: &mut Directory,
    namespace: NamespaceId,
    path: String,
    settings: QueueSettings,
    what: New,
    cx: &mut Context<'_>,
) {
    let (kind, rules) = match what {
        New::Queue => (Kind::Queue, Vec::new()),
        New::Topic => (Kind::Topic(Topic::default()), Vec::new()),
        New::Subscription {
            topic,
            dead_lettering,
            rules,
        } => {
            let topic = directory.find_kind(namespace, &topic, EntityKind::Topic);
            let topic = topic.ok().flatten();
            let subscription = Subscription {
                topic: topic.expect("the draft has seen it, or it was made before this"),
                client_affine: None,
                dead_lettering_on_filter_evaluation_exceptions: dead_lettering,
            };
            (Kind::Subscription(Box::new(subscription)), rules)
        }
    };
    let id = directory.create(namespace, path, kind, settings, cx);
    put_rules(directory, id, rules, cx);
}

fn put_rules(
    directory: &mut Directory,
    subscription: EntityId,
    rules: Vec<CheckedRule>,
    cx: &mut Context<'_>,
) {
    for rule in rules {
        directory.put_rule(subscription, rule, cx);
    }
}
