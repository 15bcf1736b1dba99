//! Make: the template of a namespace, and a namespace of its template.

use std::sync::Arc;

use store::NamespaceId;

use super::{Template, TemplateEntity, TemplateKind};
use crate::api::kind::EntityKind;
use crate::api::policy::PolicyLayer;
use crate::api::rule::CheckedRule;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::kind::Kind;
use crate::queue::subscription::Subscription;
use crate::topic::Topic;

/// Why a part of a template can be made.
const CHECKED: &str = "a template was checked, or is of entities that are there";

/// The template of what a namespace has now.
pub(crate) fn of_namespace(directory: &Directory, namespace: NamespaceId) -> Template {
    let mut found: Vec<_> = directory.by_path(namespace, "").collect();
    // A topic is older than its subscriptions.
    found.sort_unstable_by_key(|(_, queue)| queue.id);
    let entities = found.into_iter().filter_map(|(_, queue)| {
        let kind = match &queue.kind {
            Kind::Queue => TemplateKind::Queue,
            Kind::Topic(_) => TemplateKind::Topic,
            // A client has made it by attaching, and makes it again.
            Kind::Subscription(it) if it.client_affine.is_some() => return None,
            Kind::Subscription(it) => TemplateKind::Subscription {
                topic: directory.get(it.topic)?.path.clone(),
                dead_lettering: it.dead_lettering_on_filter_evaluation_exceptions,
                rules: directory.rules_at(it.topic, queue.id),
            },
            Kind::Transfer { .. } => return None,
        };
        Some(TemplateEntity {
            path: queue.path.clone(),
            kind,
            settings: queue.own().clone(),
            store_only: Arc::clone(&queue.store_only),
        })
    });
    let layers = [PolicyLayer::User, PolicyLayer::Operator];
    let policies = layers
        .iter()
        .flat_map(|layer| directory.policies(namespace, *layer));
    Template {
        entities: entities.collect(),
        policies: policies.cloned().collect(),
    }
}

/// Makes the policies of a template in a namespace that has no entities and policies.
pub(crate) fn make_policies(
    template: &Template,
    directory: &mut Directory,
    namespace: NamespaceId,
    cx: &mut Context<'_>,
) {
    for policy in template.policies.iter().cloned() {
        let put = directory.insert_policy(namespace, policy, &mut Vec::new(), cx);
        put.expect(CHECKED);
    }
    directory.govern_routers(namespace);
}

/// Makes all of it in a namespace that has no entities and policies.
pub(crate) fn make(
    template: &Template,
    directory: &mut Directory,
    namespace: NamespaceId,
    cx: &mut Context<'_>,
) {
    // First, so that they apply to the entities from the beginning.
    make_policies(template, directory, namespace, cx);
    for entity in template.entities.iter() {
        let (kind, rules) = match &entity.kind {
            TemplateKind::Queue => (Kind::Queue, &[][..]),
            TemplateKind::Topic => (Kind::Topic(Topic::default()), &[][..]),
            TemplateKind::Subscription {
                topic,
                dead_lettering,
                rules,
            } => {
                let topic = directory.find_kind(namespace, topic, EntityKind::Topic);
                let subscription = Subscription {
                    topic: topic.ok().flatten().expect(CHECKED),
                    dead_lettering_on_filter_evaluation_exceptions: *dead_lettering,
                    client_affine: None,
                };
                (Kind::Subscription(Box::new(subscription)), &rules[..])
            }
        };
        let (path, settings) = (entity.path.clone(), entity.settings.clone());
        let store_only = Arc::clone(&entity.store_only);
        let id = directory.create_with(namespace, path, kind, settings, store_only, cx);
        for rule in rules {
            let rule = CheckedRule::new(rule.clone()).expect(CHECKED);
            directory.put_rule(id, rule, cx);
        }
    }
}
