//! Dynamic nodes as a script writes them: `make replies r1/7 until=no-links exclusive`,
//! `open replies r2/1 receive as=mine`, `close r1/7`. Elsewhere `in=replies` names the node, and
//! `dynamic` tells which of them are there.

use std::collections::BTreeMap;

use broker::{
    Command, LifetimePolicy, Node, NodeError, NodeKind, NodeLinkId, NodeRequest, NodeUse, node_at,
    node_path,
};
use store::{EntityId, NamespaceId};

use super::{Stage, named, receiver};

/// The nodes that links were given, by the names that the script has for them.
#[derive(Default)]
pub struct Names {
    given: BTreeMap<String, EntityId>,
    /// The names of nodes that links wait for.
    asked: BTreeMap<NodeLinkId, String>,
}

impl Names {
    /// The node of a name.
    pub fn get(&self, name: &str) -> Option<EntityId> {
        self.given.get(name).copied()
    }
}

impl Stage {
    pub(super) fn node_command(&mut self, verb: &str, args: &[&str]) {
        let command = match verb {
            "dynamic" => return self.tell_nodes(),
            "close" => Command::CloseNode {
                link: link(args[0]),
            },
            _ => {
                let name = named(args, "as=").unwrap_or(args[0]);
                self.nodes.asked.insert(link(args[1]), name.to_owned());
                self.ask_for_node(verb == "make", args)
            }
        };
        self.turn(vec![command]);
    }

    fn ask_for_node(&self, makes: bool, args: &[&str]) -> Command {
        let link = link(args[1]);
        if makes {
            let kind = match args.contains(&"topic") {
                true => NodeKind::Topic,
                false => NodeKind::Queue,
            };
            let node = NodeRequest {
                kind,
                lifetime: lifetime(args),
                exclusive: args.contains(&"exclusive"),
            };
            let namespace = NamespaceId(0);
            return Command::CreateNode {
                link,
                namespace,
                node,
            };
        }
        let used = match args.contains(&"receive") {
            true => NodeUse::Receive,
            false => NodeUse::Send,
        };
        let node = self.named_entity(args[0]);
        Command::OpenNode {
            link,
            namespace: NamespaceId(0),
            node,
            used,
        }
    }

    fn tell_nodes(&mut self) {
        let there = self.nodes.given.iter();
        let there = there.filter(|(_, node)| self.shard.broker.queue(**node).is_some());
        let names: Vec<&str> = there.map(|(name, _)| name.as_str()).collect();
        self.tell(&format!("dynamic: {}", names.join(" ")));
    }

    pub(super) fn hear_node(
        &mut self,
        link: NodeLinkId,
        result: Result<Node, NodeError>,
    ) -> String {
        let name = self.nodes.asked.remove(&link).unwrap();
        match result {
            Ok(node) => {
                let path = node_path(node.entity);
                assert_eq!(node_at(&path), Some(node.entity), "{path}");
                let text = format!("{} has the {:?} {name}", name_of(link), node.kind);
                self.nodes.given.insert(name, node.entity);
                text
            }
            Err(error) => format!("{} has no {name}: {error}", name_of(link)),
        }
    }
}

fn lifetime(args: &[&str]) -> LifetimePolicy {
    match named(args, "until=") {
        None => LifetimePolicy::DeleteOnClose,
        Some("no-links") => LifetimePolicy::DeleteOnNoLinks,
        Some("no-messages") => LifetimePolicy::DeleteOnNoMessages,
        Some("nothing") => LifetimePolicy::DeleteOnNoLinksOrMessages,
        Some(other) => panic!("unknown lifetime {other}"),
    }
}

fn link(name: &str) -> NodeLinkId {
    let receiver = receiver(name);
    NodeLinkId {
        connection: receiver.connection,
        link: receiver.link,
    }
}

/// A link as scripts write it.
pub fn name_of(link: NodeLinkId) -> String {
    format!("r{}/{}", link.connection.0, link.link)
}
