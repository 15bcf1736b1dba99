//! The official emulator's `Config.json`. (docs/spec/admin.md#12)
//!
//! Its defaults are not ours, so every property that it knows is written. Those that only Railbus
//! reads are written if they differ from their default.

use amqp::Value as Amqp;
use broker::{
    Correlation, CorrelationField, EntityDescription, EntityKind, FilterDescription, QueueSettings,
    RuleDescription,
};
use entity::{InEmulator, QueueDefinition, Slot, SubscriptionDefinition, TopicDefinition};
use serde_json::{Map, Value, json};

use super::{ExportFile, ExportedEntities, warn_of_missing_rules};

/// The only name that the emulator's schema allows.
const NAMESPACE: &str = "sbemulatorns";

type Object = Map<String, Value>;

/// Such a file.
pub fn write(found: &ExportedEntities) -> ExportFile {
    let mut writer = Writer {
        warnings: warn_of_missing_rules(found),
    };
    for policy in &found.policies {
        writer.warn(&policy.name, "policies");
    }
    let queues: Vec<_> = found.queues.iter().map(|it| writer.queue(it)).collect();
    let topics: Vec<_> = found.topics.iter().map(|it| writer.topic(it)).collect();
    let file = json!({"UserConfig": {
        "Namespaces": [{"Name": NAMESPACE, "Queues": queues, "Topics": topics}],
        "Logging": {"Type": "Console"},
    }});
    let text = serde_json::to_string_pretty(&file).expect("a file is JSON");
    ExportFile {
        text: text + "\n",
        warnings: writer.warnings,
    }
}

struct Writer {
    warnings: Vec<String>,
}

impl Writer {
    fn queue(&mut self, queue: &QueueDefinition) -> Value {
        let mut description = description(&queue.settings);
        let properties = self.properties(EntityKind::Queue, &queue.path, &mut description);
        json!({"Name": queue.path, "Properties": properties})
    }

    fn topic(&mut self, topic: &TopicDefinition) -> Value {
        let mut description = description(&topic.settings);
        let properties = self.properties(EntityKind::Topic, &topic.path, &mut description);
        let below = topic.subscriptions.iter();
        let below: Vec<_> = below.map(|it| self.subscription(&topic.path, it)).collect();
        json!({"Name": topic.path, "Properties": properties, "Subscriptions": below})
    }

    fn subscription(&mut self, topic: &str, subscription: &SubscriptionDefinition) -> Value {
        let path = format!("{topic}/{}", subscription.name);
        let settings = &subscription.settings;
        let mut description = EntityDescription {
            dead_lettering_on_filter_evaluation_exceptions: settings
                .dead_lettering_on_filter_evaluation_exceptions,
            ..description(&settings.queue)
        };
        let properties = self.properties(EntityKind::Subscription, &path, &mut description);
        let rules = subscription.rules.as_deref().unwrap_or_default();
        let rules: Vec<_> = match rules {
            [only] if *only == RuleDescription::default_rule() => Vec::new(),
            rules => rules.iter().map(|rule| self.rule(&path, rule)).collect(),
        };
        json!({"Name": subscription.name, "Properties": properties, "Rules": rules})
    }

    /// What of an entity such a file has.
    fn properties(
        &mut self,
        kind: EntityKind,
        path: &str,
        description: &mut EntityDescription,
    ) -> Object {
        let mut properties = Object::new();
        for (_, property) in entity::named(kind) {
            let value = property.get(description);
            let is_usual = value == property.default();
            let value = match (property.slot)(description) {
                Slot::Status(status) => entity::status_text(*status).into(),
                // No target is the empty text.
                _ => value.unwrap_or_else(|| Value::from("")),
            };
            match (property.emulator, property.element) {
                (InEmulator::Never(what), _) if !is_usual => self.warn(path, what),
                (InEmulator::Unusual, _) if is_usual => {}
                (InEmulator::Always | InEmulator::Unusual, Some(name)) => {
                    properties.insert(name.to_owned(), value);
                }
                _ => {}
            }
        }
        properties
    }

    fn rule(&mut self, subscription: &str, rule: &RuleDescription) -> Value {
        let path = format!("{subscription}/{}", rule.name);
        if !(rule.filter_parameters.is_empty() && rule.action_parameters.is_empty()) {
            self.warn(&path, "its parameters");
        }
        let sql = |text: &str| {
            let filter = json!({"SqlExpression": text});
            json!({"FilterType": "Sql", "SqlFilter": filter})
        };
        let mut properties = match &rule.filter {
            FilterDescription::True => sql("1=1"),
            FilterDescription::False => sql("1=0"),
            FilterDescription::Sql(text) | FilterDescription::Selector(text) => sql(text),
            FilterDescription::Correlation(fields) => {
                let filter = self.correlation(&path, fields);
                json!({"FilterType": "Correlation", "CorrelationFilter": filter})
            }
        };
        if let Some(action) = &rule.action {
            properties["Action"] = json!({"SqlExpression": action});
        }
        json!({"Name": rule.name, "Properties": properties})
    }

    fn correlation(&mut self, path: &str, fields: &Correlation) -> Object {
        let mut filter = Object::new();
        for field in CorrelationField::ALL {
            if let Some(text) = field.of(fields) {
                filter.insert(field.element.to_owned(), text.clone().into());
            }
        }
        let mut properties = Object::new();
        for (name, value) in &fields.properties {
            match plain(value) {
                Some(value) => _ = properties.insert(name.clone(), value),
                None => self.warn(path, &format!("the type of its property {name}")),
            }
        }
        if !properties.is_empty() {
            filter.insert("Properties".to_owned(), properties.into());
        }
        filter
    }

    fn warn(&mut self, path: &str, what: &str) {
        let text = format!("{path}: {what} cannot be said in a Config.json");
        self.warnings.push(text);
    }
}

/// A value that the file's reader would take for the same.
fn plain(value: &Amqp) -> Option<Value> {
    match value {
        Amqp::String(text) => Some(text.clone().into()),
        Amqp::Long(number) => Some((*number).into()),
        // A whole one would come back as a long.
        Amqp::Double(number) if number.is_finite() && number.fract() != 0.0 => {
            Some((*number).into())
        }
        Amqp::Bool(value) => Some((*value).into()),
        _ => None,
    }
}

fn description(settings: &QueueSettings) -> EntityDescription {
    EntityDescription {
        settings: settings.clone(),
        ..EntityDescription::default()
    }
}
