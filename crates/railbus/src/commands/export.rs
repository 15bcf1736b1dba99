//! `railbus config export`: writes a running broker's entities to a file that creates the same
//! ones.
//!
//! Our own shape leaves out default values. Properties that the file cannot express are listed on
//! stderr.

mod emulator;
mod own;

use std::path::Path;

use broker::Policy;
use entity::{QueueDefinition, TopicDefinition};
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{ExportArguments, ExportFormat};
use crate::command_error::CommandError;
use crate::remote::runtime::runtime;
use crate::remote::{Call, Error, Remote};
use crate::stdout;

/// Where the broker shows everything.
const ENTITIES: &str = "/$railbus/entities";

/// Where it shows the policies.
const POLICIES: &str = "/$railbus/policies";

/// All entities and policies.
#[derive(Debug, Default, Deserialize)]
pub struct ExportedEntities {
    pub queues: Vec<QueueDefinition>,
    pub topics: Vec<TopicDefinition>,
    #[serde(default)]
    pub policies: Vec<Policy>,
}

/// A file's text, and warnings of what it cannot express.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct ExportFile {
    pub text: String,
    pub warnings: Vec<String>,
}

/// Gets the entities from the broker and writes the file.
pub fn run(arguments: &ExportArguments) -> Result<(), CommandError> {
    let remote = Remote::new(&arguments.broker)?;
    let runtime = runtime()?;
    let mut json: Value = runtime.block_on(remote.call(Call::get(ENTITIES)))?;
    let mut policies: Value = runtime.block_on(remote.call(Call::get(POLICIES)))?;
    if let Some(object) = json.as_object_mut() {
        object.insert("policies".to_owned(), policies["policies"].take());
    }
    let found = read(json).map_err(|error| Error::Protocol {
        authority: remote.broker.authority,
        reason: error.to_string(),
    })?;
    let ExportFile { text, warnings } = match arguments.format {
        ExportFormat::Toml => own::toml(&found),
        ExportFormat::Json => own::json(&found),
        ExportFormat::Emulator => emulator::write(&found),
    };
    for warning in warnings {
        eprintln!("railbus: {warning}");
    }
    write(arguments.out.as_deref(), &text)
}

fn write(file: Option<&Path>, text: &str) -> Result<(), CommandError> {
    let Some(path) = file else {
        return stdout::print(text);
    };
    std::fs::write(path, text).map_err(|error| CommandError::Write {
        path: path.to_owned(),
        error,
    })
}

fn read(mut json: Value) -> serde_json::Result<ExportedEntities> {
    without_client_affine(&mut json);
    // Counts belong to no file.
    without(&mut json, "state");
    serde_json::from_value(json)
}

/// Takes the subscriptions away that JMS clients make and delete by themselves.
fn without_client_affine(json: &mut Value) {
    let topics = json.get_mut("topics").and_then(Value::as_array_mut);
    for topic in topics.into_iter().flatten() {
        if let Some(Value::Array(subscriptions)) = topic.get_mut("subscriptions") {
            subscriptions.retain(|it| it["state"]["client-affine"].is_null());
        }
    }
}

/// Takes a member away from every entity.
fn without(json: &mut Value, name: &str) {
    let lists = ["queues", "topics", "subscriptions"];
    if let Value::Object(object) = json {
        object.remove(name);
        for list in lists {
            if let Some(Value::Array(list)) = object.get_mut(list) {
                list.iter_mut().for_each(|entity| without(entity, name));
            }
        }
    }
}

/// Warnings of subscriptions without rules, which no file can express.
fn warn_of_missing_rules(found: &ExportedEntities) -> Vec<String> {
    let subscriptions = found.topics.iter().flat_map(|topic| {
        let subscriptions = topic.subscriptions.iter();
        subscriptions.map(|subscription| (&topic.path, subscription))
    });
    let without_rules = subscriptions.filter(|(_, subscription)| subscription.rules.is_none());
    let warnings = without_rules.map(|(topic, subscription)| {
        let name = &subscription.name;
        format!("{topic}/{name} has no rule; made from the file it would select everything")
    });
    warnings.collect()
}

#[cfg(test)]
mod tests;
