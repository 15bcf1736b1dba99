//! What scripts say and hear of topics, subscriptions and rules.

use amqp::message::Sections;
use amqp::{Value, decode};
use broker::{
    Command, Correlation, Ensured, FilterDescription, Order, Output, QueueSettings,
    RuleDescription, SubscriptionSettings,
};
use bytes::Bytes;

use super::{Stage, named, queue_settings};
use crate::world::administer;

impl Stage {
    pub(super) fn topic(&mut self, args: &[&str]) {
        let request = self.request("topic");
        self.turn(vec![administer(
            request,
            Order::ensure(vec![Ensured::Topic {
                path: args[0].to_owned(),
                settings: settings(args),
            }]),
        )]);
    }

    /// `subscription NAME of=TOPIC`, perhaps with `no-rules` or `drop-errors`.
    pub(super) fn subscription(&mut self, args: &[&str]) {
        let request = self.request("subscription");
        let settings = SubscriptionSettings {
            queue: settings(args),
            dead_lettering_on_filter_evaluation_exceptions: !args.contains(&"drop-errors"),
        };
        self.turn(vec![administer(
            request,
            Order::ensure(vec![Ensured::Subscription {
                topic: named(args, "of=").unwrap().to_owned(),
                name: args[0].to_owned(),
                settings: Box::new(settings),
                rules: args.contains(&"no-rules").then(Vec::new),
            }]),
        )]);
    }

    /// `rule NAME in=PATH where CONDITION do ACTION`, or `label LABEL` instead of the condition.
    pub(super) fn rule(&mut self, args: &[&str]) {
        let request = self.request(&format!("rule {}", args[0]));
        let after = |word: &str| args.iter().position(|arg| *arg == word).map(|at| at + 1);
        let act = after("do");
        let until = act.map_or(args.len(), |act| act - 1);
        let filter = if let Some(label) = after("label") {
            let label = Some(args[label].to_owned());
            FilterDescription::Correlation(Box::new(Correlation {
                label,
                ..Correlation::default()
            }))
        } else {
            let condition = after("where").map(|at| args[at..until].join(" "));
            condition.map_or(FilterDescription::True, FilterDescription::Sql)
        };
        let rule = RuleDescription {
            name: args[0].to_owned(),
            filter,
            action: act.map(|act| args[act..].join(" ")),
            ..RuleDescription::default()
        };
        let entity = self.entity(args);
        self.turn(vec![Command::AddRule {
            request,
            entity,
            rule: Box::new(rule),
        }]);
    }

    pub(super) fn remove_rule(&mut self, args: &[&str]) {
        let request = self.request(&format!("remove rule {}", args[0]));
        let (entity, name) = (self.entity(args), args[0].to_owned());
        self.turn(vec![Command::RemoveRule {
            request,
            entity,
            name,
        }]);
    }

    pub(super) fn rules(&mut self, args: &[&str]) {
        let request = self.request("rules");
        let entity = self.entity(args);
        self.turn(vec![Command::ListRules {
            request,
            entity,
            skip: 0,
            top: 100,
        }]);
    }

    pub(super) fn hear_rules(&self, output: &Output) -> Option<String> {
        match output {
            Output::RuleChanged { request, result } => {
                let what = self.what(*request);
                Some(match result {
                    Ok(()) => format!("{what}: done"),
                    Err(error) => format!("{what}: {error}"),
                })
            }
            Output::Rules { result, .. } => Some(match result {
                Ok(rules) => {
                    let rules = rules.iter().map(described);
                    format!("rules: {}", rules.collect::<Vec<_>>().join(", "))
                }
                Err(error) => format!("rules: {error}"),
            }),
            _ => None,
        }
    }
}

fn described(rule: &RuleDescription) -> String {
    let filter = match &rule.filter {
        FilterDescription::True => "everything".to_owned(),
        FilterDescription::False => "nothing".to_owned(),
        FilterDescription::Sql(text) => format!("where {text}"),
        FilterDescription::Selector(text) => format!("selector {text}"),
        FilterDescription::Correlation(fields) => format!("label {:?}", fields.label),
    };
    let action = rule.action.as_ref().map(|action| format!(" do {action}"));
    format!("{} {filter}{}", rule.name, action.unwrap_or_default())
}

/// Settings besides the name, and what only subscriptions have.
fn settings(args: &[&str]) -> QueueSettings {
    let own = |arg: &&str| {
        let own = ["no-rules", "drop-errors"].contains(arg);
        !own && !arg.starts_with("of=")
    };
    let common: Vec<&str> = args[1..].iter().filter(|arg| own(arg)).copied().collect();
    queue_settings(&common)
}

/// A payload that is only text as it is; of an encoded message its text and what filters see.
pub(super) fn shown(payload: &Bytes) -> String {
    encoded(payload).unwrap_or_else(|| String::from_utf8_lossy(payload).into_owned())
}

fn encoded(payload: &Bytes) -> Option<String> {
    let sections = Sections::scan(payload).ok()?;
    let section = |range: std::ops::Range<usize>| match decode::value(&payload.slice(range)).ok()? {
        Value::Described(described) => Some(described.1),
        _ => None,
    };
    let Value::Binary(text) = section(sections.body)? else {
        return None;
    };
    let mut shown = String::from_utf8_lossy(&text).into_owned();
    if let Some(Value::List(properties)) = section(sections.properties)
        && let Some(Value::String(label)) = properties.get(3)
    {
        shown += &format!(" label={label}");
    }
    if let Some(Value::Map(properties)) = section(sections.application_properties) {
        for (key, value) in properties {
            shown += &format!(" {}={}", plain(&key), plain(&value));
        }
    }
    Some(shown)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Long(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}
