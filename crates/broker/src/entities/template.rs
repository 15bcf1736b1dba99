//! Template: the entities and policies that a namespace is made with, without messages.
//!
//! A new namespace may be made like another, and a reset goes back to what a namespace was made
//! with. Topics come before their subscriptions. Copies share what they have, and thousands of
//! namespaces of one template take the memory of one. Exchanges and bindings are not part of it.
//!
//! Invariant: all of a template can be made in an empty namespace.

pub(crate) mod make;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::StoreError;

use crate::api::batch::{Ensured, MAX_BATCH, MAX_BATCH_BYTES};
use crate::api::entity_error::EntityError;
use crate::api::name::SUBSCRIPTIONS;
use crate::api::namespace::NamespaceLimits;
use crate::api::policy::Policy;
use crate::api::rule::stored::StoredRule;
use crate::api::rule::{CheckedRule, RuleDescription};
use crate::api::settings::QueueSettings;
use crate::api::store_only::StoreOnlyProperties;

/// See the head of this file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Template {
    entities: Arc<[TemplateEntity]>,
    policies: Arc<[Policy]>,
}

#[derive(Clone, Debug, PartialEq)]
struct TemplateEntity {
    path: String,
    kind: TemplateKind,
    settings: QueueSettings,
    store_only: Arc<StoreOnlyProperties>,
}

#[derive(Clone, Debug, PartialEq)]
enum TemplateKind {
    Queue,
    Topic,
    Subscription {
        /// Its path.
        topic: String,
        dead_lettering: bool,
        rules: Vec<RuleDescription>,
    },
}

impl Template {
    /// Of what a batch has made. Topics are before their subscriptions.
    pub(crate) fn of_ensured(ensured: &[Ensured], policies: &[Policy]) -> Self {
        let entities = ensured.iter().map(|ensured| {
            let (path, kind, settings) = match ensured {
                Ensured::Queue { path, settings } => (path.clone(), TemplateKind::Queue, settings),
                Ensured::Topic { path, settings } => (path.clone(), TemplateKind::Topic, settings),
                Ensured::Subscription {
                    topic,
                    name,
                    settings,
                    rules,
                } => {
                    let default = || vec![RuleDescription::default_rule()];
                    let kind = TemplateKind::Subscription {
                        topic: topic.clone(),
                        dead_lettering: settings.dead_lettering_on_filter_evaluation_exceptions,
                        rules: rules.clone().unwrap_or_else(default),
                    };
                    let path = format!("{topic}{SUBSCRIPTIONS}{name}");
                    (path, kind, &settings.queue)
                }
            };
            TemplateEntity {
                path,
                kind,
                settings: settings.clone(),
                store_only: Arc::default(),
            }
        });
        Self {
            entities: entities.collect(),
            policies: policies.into(),
        }
    }

    /// Whether all of it can be made in one turn.
    pub(crate) fn check_size(&self) -> Result<(), EntityError> {
        let rules = self.entities.iter().map(|entity| match &entity.kind {
            TemplateKind::Subscription { rules, .. } => rules.len(),
            TemplateKind::Queue | TemplateKind::Topic => 0,
        });
        if self.entities.len().saturating_add(rules.sum()) > MAX_BATCH {
            let (limit, what) = (MAX_BATCH, "entities and rules in one batch");
            return Err(EntityError::TooMany { limit, what });
        }
        let rules = self.entities.iter().flat_map(|entity| match &entity.kind {
            TemplateKind::Subscription { rules, .. } => &rules[..],
            TemplateKind::Queue | TemplateKind::Topic => &[],
        });
        if rules.map(RuleDescription::bytes).sum::<usize>() > MAX_BATCH_BYTES {
            let (limit, what) = (MAX_BATCH_BYTES, "bytes of rules in one batch");
            return Err(EntityError::TooMany { limit, what });
        }
        Ok(())
    }

    /// Whether a namespace with these limits has room for all of it.
    pub(crate) fn check_limits(&self, limits: NamespaceLimits) -> Result<(), EntityError> {
        let is_root = |kind: &TemplateKind| !matches!(kind, TemplateKind::Subscription { .. });
        let roots = self.entities.iter().filter(|it| is_root(&it.kind)).count();
        match limits.max_entities.map(|limit| limit as usize) {
            Some(limit) if roots > limit => {
                let what = "queues and topics";
                Err(EntityError::TooMany { limit, what })
            }
            _ => Ok(()),
        }
    }
}

/// How the store keeps a template.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct StoredTemplate {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entities: Vec<StoredEntity>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    policies: Vec<Policy>,
}

#[derive(Debug, Deserialize, Serialize)]
struct StoredEntity {
    path: String,
    #[serde(flatten)]
    kind: StoredKind,
    settings: QueueSettings,
    #[serde(default)]
    store_only: StoreOnlyProperties,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum StoredKind {
    Queue,
    Topic,
    Subscription {
        topic: String,
        dead_lettering: bool,
        rules: Vec<StoredRule>,
    },
}

impl StoredTemplate {
    pub(crate) fn of(template: &Template) -> Self {
        let entities = template.entities.iter().map(|entity| StoredEntity {
            path: entity.path.clone(),
            kind: match &entity.kind {
                TemplateKind::Queue => StoredKind::Queue,
                TemplateKind::Topic => StoredKind::Topic,
                TemplateKind::Subscription {
                    topic,
                    dead_lettering,
                    rules,
                } => StoredKind::Subscription {
                    topic: topic.clone(),
                    dead_lettering: *dead_lettering,
                    rules: rules.iter().map(StoredRule::of).collect(),
                },
            },
            settings: entity.settings.clone(),
            store_only: (*entity.store_only).clone(),
        });
        Self {
            entities: entities.collect(),
            policies: template.policies.to_vec(),
        }
    }

    /// What a row says, if all of it can be made.
    pub(crate) fn template(self) -> Result<Template, StoreError> {
        let mut entities = Vec::with_capacity(self.entities.len());
        let mut topics = BTreeSet::new();
        let mut paths = BTreeSet::new();
        for entity in self.entities {
            if !paths.insert(entity.path.to_lowercase()) {
                return Err(damaged(format!("{} is there twice", entity.path)));
            }
            let kind = match entity.kind {
                StoredKind::Queue => TemplateKind::Queue,
                StoredKind::Topic => {
                    topics.insert(entity.path.to_lowercase());
                    TemplateKind::Topic
                }
                StoredKind::Subscription {
                    topic,
                    dead_lettering,
                    rules,
                } => {
                    if !topics.contains(&topic.to_lowercase()) {
                        return Err(damaged(format!("the topic of {} is missing", entity.path)));
                    }
                    TemplateKind::Subscription {
                        topic,
                        dead_lettering,
                        rules: rules.into_iter().map(checked).collect::<Result<_, _>>()?,
                    }
                }
            };
            entities.push(TemplateEntity {
                path: entity.path,
                kind,
                settings: entity.settings,
                store_only: Arc::new(entity.store_only),
            });
        }
        for policy in &self.policies {
            let compiled = policy.compile();
            compiled.map_err(|error| damaged(format!("the policy {}: {error}", policy.name)))?;
        }
        Ok(Template {
            entities: entities.into(),
            policies: self.policies.into(),
        })
    }
}

fn checked(rule: StoredRule) -> Result<RuleDescription, StoreError> {
    let description = rule.describe().map_err(damaged)?;
    let checked = CheckedRule::new(description);
    let checked = checked.map_err(|error| damaged(error.to_string()))?;
    Ok(checked.description)
}

fn damaged(detail: String) -> StoreError {
    StoreError::Corrupt {
        what: "the template of a namespace".to_owned(),
        detail,
    }
}
