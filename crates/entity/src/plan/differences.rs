//! Differences: properties of an entity before and after a change.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::duration;
use crate::properties::Properties;

/// One property that changes. None has no value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Difference {
    /// As files name it.
    pub property: String,
    /// What it is.
    pub before: Option<Json>,
    /// What it will be.
    pub after: Option<Json>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (
            format_value(self.before.as_ref()),
            format_value(self.after.as_ref()),
        );
        write!(f, "{} {before} -> {after}", self.property)
    }
}

/// Texts as they are, anything else as JSON.
fn format_value(value: Option<&Json>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Json::String(text)) if text == duration::NEVER_TEXT => "never".to_owned(),
        Some(Json::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// What is different, by name.
#[must_use]
pub fn between(before: &Properties, after: &Properties) -> Vec<Difference> {
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differences = names.into_iter().map(|name| Difference {
        property: name.clone(),
        before: before.get(name).cloned(),
        after: after.get(name).cloned(),
    });
    differences
        .filter(|difference| difference.before != difference.after)
        .collect()
}
