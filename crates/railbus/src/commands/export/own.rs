//! Our own shape, in TOML and in JSON, without default values.

use broker::{QueueSettings, RuleDescription, SubscriptionSettings};
use entity::{Properties, of_file, of_queue, of_subscription, of_topic};
use serde_json::Value;

use super::{ExportFile, ExportedEntities, warn_of_missing_rules};

/// A file for `railbus.toml` or `--entities`.
pub fn toml(found: &ExportedEntities) -> ExportFile {
    let (file, mut warnings) = concise(found);
    let text = toml::to_string_pretty(&file).unwrap_or_else(|error| {
        warnings.push(format!("TOML cannot say all of it: {error}"));
        String::new()
    });
    ExportFile { text, warnings }
}

/// A file for `--entities`.
pub fn json(found: &ExportedEntities) -> ExportFile {
    let (file, warnings) = concise(found);
    let text = serde_json::to_string_pretty(&file).expect("a file is JSON") + "\n";
    ExportFile { text, warnings }
}

fn concise(found: &ExportedEntities) -> (Properties, Vec<String>) {
    let mut file = of_file(&found.queues, &found.topics, &found.policies);
    let queue = of_queue(&QueueSettings::default());
    for entity in list(&mut file, "queues") {
        drop_defaults(entity, &queue);
    }
    let topic = of_topic(&QueueSettings::default());
    let subscription = of_subscription(&SubscriptionSettings::default());
    for entity in list(&mut file, "topics") {
        for below in list(entity, "subscriptions") {
            drop_defaults(below, &subscription);
            drop_default_rule(below);
        }
        drop_defaults(entity, &topic);
        drop_empty(entity, "subscriptions");
    }
    drop_empty(&mut file, "queues");
    drop_empty(&mut file, "topics");
    drop_empty(&mut file, "policies");
    (file, warn_of_missing_rules(found))
}

fn list<'a>(object: &'a mut Properties, name: &str) -> impl Iterator<Item = &'a mut Properties> {
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    let list = list.into_iter().flatten();
    list.filter_map(Value::as_object_mut)
}

fn drop_defaults(entity: &mut Properties, default: &Properties) {
    entity.retain(|name, value| default.get(name) != Some(value));
}

fn drop_empty(object: &mut Properties, name: &str) {
    let is_empty = object.get(name).and_then(Value::as_array);
    if is_empty.is_some_and(Vec::is_empty) {
        object.remove(name);
    }
}

/// The rule that a subscription gets by itself.
fn drop_default_rule(subscription: &mut Properties) {
    let name = RuleDescription::default_rule().name;
    let default = serde_json::json!([{"name": name, "filter": true}]);
    if subscription.get("rules") == Some(&default) {
        subscription.remove("rules");
    }
}
