//! Store-only properties: an entity keeps them and never acts upon them.
//! (docs/spec/entities.md#2, "store only")
//!
//! An administrator gets back what was given. Texts of durations and targets are kept beside their
//! values in the settings; before they are shown, they are compared with the values, since a
//! configuration file changes the values alone.

#![allow(
    missing_docs,
    reason = "the fields are named for the contract's properties"
)]

use std::fmt;

use serde::{Deserialize, Serialize};

/// An entity's properties besides its settings.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct StoreOnlyProperties {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<String>,
    pub enable_batched_operations: bool,
    pub is_anonymous_accessible: bool,
    pub support_ordering: bool,
    pub enable_partitioning: bool,
    pub enable_express: bool,
    /// Of a topic.
    pub enable_subscription_partitioning: bool,
    /// Of a topic.
    pub filtering_messages_before_publishing: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_rules: Vec<AuthorizationRule>,
    pub texts: OriginalTexts,
}

impl Default for StoreOnlyProperties {
    fn default() -> Self {
        Self {
            user_metadata: None,
            enable_batched_operations: true,
            is_anonymous_accessible: false,
            support_ordering: true,
            enable_partitioning: false,
            enable_express: false,
            enable_subscription_partitioning: false,
            filtering_messages_before_publishing: false,
            authorization_rules: Vec::new(),
            texts: OriginalTexts::default(),
        }
    }
}

/// Values as they were written, where that can differ from how they would be written here.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct OriginalTexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_duration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_message_time_to_live: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_detection_history_time_window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_delete_on_idle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_dead_lettered_messages_to: Option<String>,
}

/// A shared access rule of a queue or topic. (docs/spec/entities.md#2.6) Its keys are never shown
/// by `Debug`.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AuthorizationRule {
    pub key_name: String,
    pub claim_type: String,
    pub claim_value: String,
    pub send: bool,
    pub listen: bool,
    pub manage: bool,
    pub primary_key: String,
    pub secondary_key: String,
    /// As the client wrote it; the broker sets none. (docs/spec/admin.md#5.6)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<String>,
    /// The same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_time: Option<String>,
}

impl AuthorizationRule {
    /// A rule with one key and all rights.
    #[must_use]
    pub fn of_key(key_name: String, primary_key: String) -> Self {
        Self {
            key_name,
            claim_type: "SharedAccessKey".to_owned(),
            claim_value: "None".to_owned(),
            send: true,
            listen: true,
            manage: true,
            primary_key,
            secondary_key: String::new(),
            created_time: None,
            modified_time: None,
        }
    }
}

impl fmt::Debug for AuthorizationRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AuthorizationRule");
        shown.field("key_name", &self.key_name);
        shown.finish_non_exhaustive()
    }
}

impl StoreOnlyProperties {
    /// A property that cannot be changed, and that differs. (docs/spec/entities.md#2)
    pub(crate) fn fixed_difference(&self, new: &Self) -> Option<&'static str> {
        let fixed = [
            (
                "EnablePartitioning",
                self.enable_partitioning != new.enable_partitioning,
            ),
            (
                "EnableSubscriptionPartitioning",
                self.enable_subscription_partitioning != new.enable_subscription_partitioning,
            ),
        ];
        let different = fixed.into_iter().find(|(_, differs)| *differs);
        different.map(|(name, _)| name)
    }
}
