//! The official emulator's `Config.json`. (docs/spec/admin.md#12)
//!
//! Its defaults are not ours, so every property that it knows is written. Two that only Railbus
//! reads, `Status` and `AutoDeleteOnIdle`, are written if they differ from their default.

use amqp::Value as Amqp;
use broker::{
    Correlation, FilterDescription, QueueSettings, RuleDescription, Status, SubscriptionSettings,
};
use entity::duration;
use entity::{QueueDefinition, SubscriptionDefinition, TopicDefinition};
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
        let settings = &queue.settings;
        self.warn_unsupported(&queue.path, settings);
        let mut properties = received(settings);
        properties.extend(duplicates(settings));
        json!({"Name": queue.path, "Properties": properties})
    }

    fn topic(&mut self, topic: &TopicDefinition) -> Value {
        self.warn_unsupported(&topic.path, &topic.settings);
        let mut properties = common(&topic.settings);
        properties.extend(duplicates(&topic.settings));
        let below = topic.subscriptions.iter();
        let below: Vec<_> = below.map(|it| self.subscription(&topic.path, it)).collect();
        json!({"Name": topic.path, "Properties": properties, "Subscriptions": below})
    }

    fn subscription(&mut self, topic: &str, subscription: &SubscriptionDefinition) -> Value {
        let path = format!("{topic}/{}", subscription.name);
        self.warn_unsupported(&path, &subscription.settings.queue);
        let mut properties = received(&subscription.settings.queue);
        let default = SubscriptionSettings::default();
        let flag = subscription
            .settings
            .dead_lettering_on_filter_evaluation_exceptions;
        if flag != default.dead_lettering_on_filter_evaluation_exceptions {
            let name = "DeadLetteringOnFilterEvaluationExceptions";
            properties.insert(name.to_owned(), flag.into());
        }
        let rules = subscription.rules.as_deref().unwrap_or_default();
        let rules: Vec<_> = match rules {
            [only] if *only == RuleDescription::default_rule() => Vec::new(),
            rules => rules.iter().map(|rule| self.rule(&path, rule)).collect(),
        };
        json!({"Name": subscription.name, "Properties": properties, "Rules": rules})
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
            FilterDescription::Sql(text) => sql(text),
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
        for (name, text) in [
            ("ContentType", &fields.content_type),
            ("CorrelationId", &fields.correlation_id),
            ("Label", &fields.label),
            ("MessageId", &fields.message_id),
            ("ReplyTo", &fields.reply_to),
            ("ReplyToSessionId", &fields.reply_to_session_id),
            ("SessionId", &fields.session_id),
            ("To", &fields.to),
        ] {
            if let Some(text) = text {
                filter.insert(name.to_owned(), text.clone().into());
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

    fn warn_unsupported(&mut self, path: &str, settings: &QueueSettings) {
        let default = QueueSettings::default();
        for (what, differs) in [
            ("its size", settings.max_size != default.max_size),
            (
                "the size of its messages",
                settings.max_message_size != default.max_message_size,
            ),
            ("its expiry", settings.expiry != default.expiry),
        ] {
            if differs {
                self.warn(path, what);
            }
        }
    }

    fn warn(&mut self, path: &str, what: &str) {
        let text = format!("{path}: {what} can not be said in a Config.json");
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

fn common(settings: &QueueSettings) -> Object {
    let mut properties = Object::new();
    let time_to_live = duration::text(settings.default_message_time_to_live);
    properties.insert("DefaultMessageTimeToLive".to_owned(), time_to_live.into());
    if settings.auto_delete_on_idle != QueueSettings::default().auto_delete_on_idle {
        let idle = duration::text(settings.auto_delete_on_idle);
        properties.insert("AutoDeleteOnIdle".to_owned(), idle.into());
    }
    let status = match settings.status {
        Status::Active => return properties,
        Status::Disabled => "Disabled",
        Status::SendDisabled => "SendDisabled",
        Status::ReceiveDisabled => "ReceiveDisabled",
    };
    properties.insert("Status".to_owned(), status.into());
    properties
}

fn received(settings: &QueueSettings) -> Object {
    let target = |path: &Option<String>| Value::from(path.clone().unwrap_or_default());
    let dead_letters_to = target(&settings.forward_dead_lettered_messages_to);
    let dead_lettering = settings.dead_lettering_on_message_expiration;
    let mut properties = common(settings);
    for (name, value) in [
        ("DeadLetteringOnMessageExpiration", dead_lettering.into()),
        ("ForwardDeadLetteredMessagesTo", dead_letters_to),
        ("ForwardTo", target(&settings.forward_to)),
        (
            "LockDuration",
            duration::text(settings.lock_duration).into(),
        ),
        ("MaxDeliveryCount", settings.max_delivery_count.into()),
        ("RequiresSession", settings.requires_session.into()),
    ] {
        properties.insert(name.to_owned(), value);
    }
    properties
}

fn duplicates(settings: &QueueSettings) -> Object {
    let window = duration::text(settings.duplicate_detection_history_time_window);
    let mut properties = Object::new();
    properties.insert(
        "DuplicateDetectionHistoryTimeWindow".to_owned(),
        window.into(),
    );
    let detects = settings.requires_duplicate_detection.into();
    properties.insert("RequiresDuplicateDetection".to_owned(), detects);
    properties
}
