//! What scripts say of policies: `policy NAME on=PATTERN KEY=VALUE...`, perhaps with
//! `operator`, `priority=N` and `apply-to=KIND`.

use broker::{ApplyTo, Order, Policy, PolicyLayer};
use serde_json::Value;

use super::{Stage, named};
use crate::world::administer;

impl Stage {
    pub(super) fn policy(&mut self, args: &[&str]) {
        let request = self.request(&format!("policy {}", args[0]));
        let pairs = args[1..].iter().filter_map(|arg| arg.split_once('='));
        let keys = pairs.filter(|(key, _)| !["on", "priority", "apply-to"].contains(key));
        let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let policy = Policy {
            name: args[0].to_owned(),
            layer: layer(args),
            pattern: named(args, "on=").unwrap_or("").to_owned(),
            apply_to: ApplyTo::parse(named(args, "apply-to=").unwrap_or("all")).unwrap(),
            priority: named(args, "priority=")
                .map_or(0, |it| it.parse().unwrap())
                .into(),
            definition: keys
                .map(|(key, text)| (key.to_owned(), value(text)))
                .collect(),
        };
        self.turn(vec![administer(
            request,
            Order::PutPolicy(Box::new(policy)),
        )]);
    }

    pub(super) fn clear_policy(&mut self, args: &[&str]) {
        let request = self.request(&format!("clear-policy {}", args[0]));
        let (layer, name) = (layer(args), args[0].to_owned());
        self.turn(vec![administer(
            request,
            Order::RemovePolicy { layer, name },
        )]);
    }

    /// The policies that apply to an entity, and what they say together.
    pub(super) fn applied(&mut self, args: &[&str]) {
        let info = self.shard.broker.queue(self.entity(args)).unwrap();
        let text = info.policy.map_or_else(
            || "applied none".to_owned(),
            |it| {
                let name = |name: &Option<String>| name.clone().unwrap_or_default();
                let definition = serde_json::to_string(&it.definition).unwrap();
                format!(
                    "applied {}/{} {definition}",
                    name(&it.user),
                    name(&it.operator)
                )
            },
        );
        self.tell(&text);
    }
}

fn layer(args: &[&str]) -> PolicyLayer {
    if args.contains(&"operator") {
        PolicyLayer::Operator
    } else {
        PolicyLayer::User
    }
}
