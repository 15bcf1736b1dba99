//! Lines of scripts about snapshots of the default namespace: `snapshot NAME`, `restore NAME`,
//! `drop NAME`, `fork NAMESPACE [NAME]`, `snapshots`.

use broker::{
    Answer, DEFAULT_NAMESPACE, EntityError, NamespaceAnswer, NamespaceDefinition, NamespaceOrder,
    Order,
};

use super::Stage;
use crate::world::administer;

impl Stage {
    pub(super) fn snapshot_command(&mut self, verb: &str, args: &[&str]) {
        let name = DEFAULT_NAMESPACE.to_owned();
        let first = || args[0].to_owned();
        let order = match verb {
            "snapshot" => NamespaceOrder::TakeSnapshot {
                name,
                snapshot: first(),
            },
            "restore" => NamespaceOrder::Restore {
                name,
                snapshot: first(),
            },
            "drop" => NamespaceOrder::RemoveSnapshot {
                name,
                snapshot: first(),
            },
            "fork" => NamespaceOrder::Fork {
                name,
                snapshot: args.get(1).map(|it| (*it).to_owned()),
                definition: Box::new(NamespaceDefinition {
                    name: first(),
                    ..NamespaceDefinition::default()
                }),
            },
            "snapshots" => NamespaceOrder::ListSnapshots(name),
            other => panic!("no such line: {other}"),
        };
        let request = self.request(&[&[verb], args].concat().join(" "));
        self.turn(vec![administer(request, Order::Namespaces(order))]);
    }
}

/// What is said of an answer about snapshots.
pub(super) fn answered(what: &str, result: &Result<Answer, EntityError>) -> Option<String> {
    let verbs = ["snapshot", "restore", "drop", "fork"];
    if !verbs.iter().any(|verb| what.starts_with(verb)) {
        return None;
    }
    let answer = match result {
        Ok(Answer::Namespaces(answer)) => answer,
        Ok(other) => panic!("{other:?}"),
        Err(error) => return Some(format!("{what}: {error}")),
    };
    let text = match answer {
        NamespaceAnswer::Snapshots(all) => {
            let described = all.iter().map(|it| {
                let (name, entities, messages) = (&it.name, it.entities, it.messages);
                format!("{name} has {entities} entities, {messages} messages")
            });
            described.collect::<Vec<_>>().join(", ")
        }
        NamespaceAnswer::One(namespace) => format!("{} entities", namespace.entities),
        NamespaceAnswer::Done => "done".to_owned(),
        other => panic!("{other:?}"),
    };
    Some(format!("{what}: {text}"))
}
