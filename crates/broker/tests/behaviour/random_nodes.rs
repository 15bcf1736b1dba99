//! Dynamic nodes that come and go at random, with messages and under every lifetime policy.
//!
//! What must hold: a node is there exactly as long as its policy says; every link of a node that
//! goes, but the one whose end it was, hears so once; each message that was accepted is delivered
//! once, in order; and nothing is ever written to the store.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Access, BrokerSettings, Command, ConnectionId, Incoming, LifetimePolicy, NodeKind, NodeLinkId,
    NodeRequest, NodeUse, Output, ReceiveMode, ReceiverId, RequestId, Subqueue, SubqueueId,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{EntityId, NamespaceId, SequenceNumber};

use crate::world::World;

const CONNECTIONS: u64 = 3;
const LINKS: u32 = 4;
const POLICIES: [LifetimePolicy; 4] = [
    LifetimePolicy::DeleteOnClose,
    LifetimePolicy::DeleteOnNoLinks,
    LifetimePolicy::DeleteOnNoMessages,
    LifetimePolicy::DeleteOnNoLinksOrMessages,
];

#[derive(Clone, Debug)]
enum Op {
    Make(NodeLinkId, usize),
    /// The node is one of those that ever were.
    Open(NodeLinkId, usize),
    Close(NodeLinkId),
    Send(usize),
    Receive(usize, u32),
    Disconnect(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let link = || {
        let parts = (1..=CONNECTIONS, 0..LINKS);
        parts.prop_map(|(connection, link)| NodeLinkId {
            connection: ConnectionId(connection),
            link,
        })
    };
    prop_oneof![
        3 => (link(), 0..POLICIES.len()).prop_map(|(link, policy)| Op::Make(link, policy)),
        3 => (link(), any::<usize>()).prop_map(|(link, node)| Op::Open(link, node)),
        3 => link().prop_map(Op::Close),
        6 => any::<usize>().prop_map(Op::Send),
        4 => (any::<usize>(), 1..4_u32).prop_map(|(node, credit)| Op::Receive(node, credit)),
        1 => (1..=CONNECTIONS).prop_map(Op::Disconnect),
    ]
}

/// A node as it should be.
struct Expected {
    maker: Option<NodeLinkId>,
    policy: LifetimePolicy,
    links: BTreeSet<NodeLinkId>,
    messages: u64,
}

impl Expected {
    fn is_over(&self) -> bool {
        let (unused, empty) = (self.links.is_empty(), self.messages == 0);
        match self.policy {
            LifetimePolicy::DeleteOnClose => self.maker.is_none(),
            LifetimePolicy::DeleteOnNoLinks => unused,
            LifetimePolicy::DeleteOnNoMessages => self.maker.is_none() && empty,
            LifetimePolicy::DeleteOnNoLinksOrMessages => unused && empty,
        }
    }
}

struct Run {
    world: World,
    there: BTreeMap<EntityId, Expected>,
    ever: Vec<EntityId>,
    /// Links that must hear that their node is gone.
    told: Vec<NodeLinkId>,
    next: BTreeMap<EntityId, u64>,
    receivers: u32,
    sends: u64,
}

impl Run {
    fn new(settings: BrokerSettings) -> Self {
        Self {
            world: World::empty(settings),
            there: BTreeMap::new(),
            ever: Vec::new(),
            told: Vec::new(),
            next: BTreeMap::new(),
            receivers: 0,
            sends: 0,
        }
    }

    fn any_node(&self, index: usize) -> Option<EntityId> {
        let index = index.checked_rem(self.ever.len())?;
        Some(self.ever[index])
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Make(link, policy) => self.make(link, POLICIES[policy]),
            Op::Open(link, node) => self.open(link, node),
            Op::Close(link) => {
                self.leave(link);
                self.turn(Command::CloseNode { link });
            }
            Op::Send(node) => self.send(node),
            Op::Receive(node, credit) => self.receive(node, credit),
            Op::Disconnect(connection) => {
                let connection = ConnectionId(connection);
                for link in (0..LINKS).map(|link| NodeLinkId { connection, link }) {
                    self.leave(link);
                }
                // Those that went with another link of it hear of it too, though it is gone.
                self.turn(Command::Disconnect { connection });
            }
        }
        self.settle();
        self.check();
    }

    fn make(&mut self, link: NodeLinkId, lifetime: LifetimePolicy) {
        self.leave(link);
        let node = NodeRequest {
            kind: NodeKind::Queue,
            lifetime,
            exclusive: false,
        };
        let namespace = NamespaceId(0);
        let opened = self.turn(Command::CreateNode {
            link,
            namespace,
            node,
        });
        let node = opened.expect("there is room");
        assert!(!self.ever.contains(&node), "a node comes back");
        self.ever.push(node);
        let expected = Expected {
            maker: Some(link),
            policy: lifetime,
            links: BTreeSet::from([link]),
            messages: 0,
        };
        self.there.insert(node, expected);
    }

    fn open(&mut self, link: NodeLinkId, node: usize) {
        let Some(node) = self.any_node(node) else {
            return;
        };
        self.leave(link);
        let used = NodeUse::Send;
        let opened = self.turn(Command::OpenNode {
            link,
            namespace: NamespaceId(0),
            node,
            used,
        });
        match self.there.get_mut(&node) {
            Some(expected) => {
                assert_eq!(opened, Some(node));
                expected.links.insert(link);
            }
            None => assert_eq!(opened, None),
        }
    }

    fn send(&mut self, node: usize) {
        let Some(entity) = self.any_node(node) else {
            return;
        };
        self.sends += 1;
        if let Some(expected) = self.there.get_mut(&entity) {
            expected.messages += 1;
        }
        let request = RequestId {
            connection: ConnectionId(9),
            token: self.sends,
        };
        let payload = Bytes::from_static(b"payload");
        let messages = vec![Incoming {
            payload,
            ..Incoming::default()
        }];
        self.turn(Command::Send {
            request,
            entity,
            messages,
        });
    }

    /// A receiver of another connection takes some messages and goes.
    fn receive(&mut self, node: usize, credit: u32) {
        let Some(entity) = self.any_node(node) else {
            return;
        };
        self.receivers += 1;
        let receiver = ReceiverId {
            connection: ConnectionId(8),
            link: self.receivers,
        };
        let subqueue = Subqueue::Main;
        self.turn(Command::Attach {
            receiver,
            subqueue: SubqueueId { entity, subqueue },
            access: Access::Consume(ReceiveMode::ReceiveAndDelete),
            selector: None,
        });
        self.turn(Command::Credit {
            receiver,
            limit: credit,
            drain: false,
        });
        self.settle();
        self.turn(Command::Detach { receiver });
    }

    /// A link is closed: its node may go, and others hear of it.
    fn leave(&mut self, link: NodeLinkId) {
        for expected in self.there.values_mut() {
            expected.links.remove(&link);
            if expected.maker == Some(link) {
                expected.maker = None;
            }
        }
        self.settle();
    }

    /// Takes nodes out that are over.
    fn settle(&mut self) {
        let over = self.there.extract_if(.., |_, expected| expected.is_over());
        for (_, expected) in over {
            self.told.extend(expected.links);
        }
    }

    /// Makes a turn; returns the node that was opened.
    fn turn(&mut self, command: Command) -> Option<EntityId> {
        let mut opened = None;
        let mut closed = Vec::new();
        let mut said = self.world.turn(command);
        // What was read meanwhile goes on at once.
        while self.world.step_to(self.world.mono) {
            said.extend(self.world.turn_with(Vec::new()));
        }
        for output in said {
            match output {
                Output::NodeOpened { result, .. } => opened = result.ok().map(|node| node.entity),
                Output::NodeClosed { link } => closed.push(link),
                Output::Deliver { delivery, .. } => {
                    let node = self.there.get_mut(&delivery.message.entity);
                    node.expect("a node that is there delivers").messages -= 1;
                    let next = self.next.entry(delivery.message.entity).or_insert(1);
                    assert_eq!(delivery.message.number, SequenceNumber(*next));
                    *next += 1;
                }
                Output::Sent { .. } | Output::Evicted { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        self.settle();
        closed.sort_unstable();
        let mut told = std::mem::take(&mut self.told);
        told.sort_unstable();
        assert_eq!(closed, told);
        opened
    }

    fn check(&self) {
        for node in &self.ever {
            let is_there = self.world.shard.broker.queue(*node).is_some();
            assert_eq!(is_there, self.there.contains_key(node), "{node:?}");
        }
        let is_empty = |image: &store::Image| *image == store::Image::default();
        assert!(
            self.world.disk.with_current(is_empty),
            "something is stored"
        );
        assert!(self.world.waiting.is_empty(), "something is read");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn nodes_come_and_go_as_their_policies_say(
        ops in prop::collection::vec(op(), 1..120),
        window in 2..6_usize,
    ) {
        let mut run = Run::new(BrokerSettings {
            window,
            body_bytes: 64,
            ..BrokerSettings::default()
        });
        for op in &ops {
            run.apply(op);
        }
    }
}
