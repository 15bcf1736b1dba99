//! A rule, as files and our own interface write it. (docs/spec/entities.md#2.4)

#![allow(
    missing_docs,
    reason = "the fields are named for the contract's properties"
)]

use std::collections::BTreeMap;

use broker::RuleDescription;
use serde::Deserialize;

use crate::rules::{Filter, TypedValue};

/// One of `[[topics.subscriptions.rules]]`. (docs/spec/entities.md#2.4)
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleConfig {
    pub name: String,
    /// Selects every message by default.
    #[serde(default)]
    pub filter: Filter,
    /// What an SQL filter refers to as `@name`.
    #[serde(default)]
    pub filter_parameters: BTreeMap<String, TypedValue>,
    /// In SQL.
    pub action: Option<String>,
    /// What the action refers to as `@name`.
    #[serde(default)]
    pub action_parameters: BTreeMap<String, TypedValue>,
}

impl From<RuleConfig> for RuleDescription {
    fn from(rule: RuleConfig) -> Self {
        let values = |values: BTreeMap<String, TypedValue>| {
            let values = values.into_iter();
            values.map(|(name, value)| (name, value.0)).collect()
        };
        Self {
            name: rule.name,
            filter: rule.filter.0,
            filter_parameters: values(rule.filter_parameters),
            action: rule.action,
            action_parameters: values(rule.action_parameters),
            ..Self::default()
        }
    }
}
