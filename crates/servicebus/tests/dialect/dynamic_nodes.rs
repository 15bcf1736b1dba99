//! Dynamic nodes: nodes that a link makes, their addresses, rights and ends.
//! (docs/spec/amqp.md#3.7)

use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Map, Source, Symbol, Target, TargetTerminus, Value};
use broker::{Command, ConnectionId, LifetimePolicy, NodeKind, NodeLinkId, NodeRequest};
use dialect::Dialect;
use endpoint::LinkId;
use servicebus::DynamicNodeRight;
use store::NamespaceId;

use crate::client_frames::transfer;
use crate::tracking::{text, untracked};
use crate::world::{LISTEN_KEY, Login, SEND_KEY, World, message, receiver, sender};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;
const SETTLED: SenderSettleMode = SenderSettleMode::Settled;

fn symbol(text: &'static str) -> Value {
    Value::Symbol(Symbol::new(text))
}

fn policy(code: u64) -> Map {
    let policy = Value::described(code, Value::List(Vec::new()));
    vec![(symbol("lifetime-policy"), policy)]
}

/// A receiver that asks for a queue, as many clients do for replies.
fn dynamic_receiver(name: &str, properties: Option<Map>) -> Attach {
    let source = Source {
        dynamic: true,
        dynamic_node_properties: properties.map(Value::Map),
        ..Source::default()
    };
    Attach {
        name: name.to_owned(),
        source: Some(Box::new(source)),
        ..receiver("x", UNSETTLED)
    }
}

/// A sender that makes a temporary destination, as JMS clients do.
fn creator(name: &str, capability: &'static str) -> Attach {
    let target = Target {
        dynamic: true,
        dynamic_node_properties: Some(Value::Map(policy(0x2b))),
        expiry_policy: Some(Symbol::new("link-detach")),
        capabilities: vec![Symbol::new(capability)],
        ..Target::default()
    };
    Attach {
        name: name.to_owned(),
        target: Some(Box::new(TargetTerminus::Node(target))),
        ..sender("x")
    }
}

/// The address that a link's attach was answered with.
fn address(world: &World, link: LinkId) -> String {
    let reply = world.reply(link);
    let of_target = match reply.target.as_deref() {
        Some(TargetTerminus::Node(target)) if target.dynamic => target.address.clone(),
        _ => None,
    };
    let of_source = reply.source.as_ref().filter(|source| source.dynamic);
    let address = of_target.or_else(|| of_source.and_then(|source| source.address.clone()));
    let address = address.expect("the node has an address");
    address
        .as_text()
        .expect("the address is a string")
        .to_owned()
}

fn make(world: &mut World, attach: Attach) -> (LinkId, String) {
    let session = world.session();
    let link = world.attach(session, attach);
    (link, address(world, link))
}

/// A node of another connection.
fn node_of_another(world: &mut World, exclusive: bool) -> String {
    let link = NodeLinkId {
        connection: ConnectionId(8),
        link: 1,
    };
    let node = NodeRequest {
        kind: NodeKind::Queue,
        lifetime: LifetimePolicy::DeleteOnClose,
        exclusive,
    };
    let namespace = NamespaceId::default();
    let (mut said, mut reads) = (Vec::new(), Vec::new());
    let create = Command::CreateNode {
        link,
        namespace,
        node,
    };
    let now = broker::Now {
        wall: broker::Wall(crate::world::BROKER_START),
        mono: broker::Mono(0),
    };
    let mut commands = vec![create];
    world.shard.turn(now, &mut commands, &mut said, &mut reads);
    let opened = said.into_iter().find_map(|output| match output {
        broker::Output::NodeOpened { result, .. } => result.ok(),
        _ => None,
    });
    broker::node_path(opened.expect("it is made").entity)
}

#[test]
fn the_reply_names_the_node_and_what_holds_for_it() {
    let mut world = World::new();
    let (link, address) = make(&mut world, dynamic_receiver("replies", None));
    let (prefix, digits) = address.split_at("railbus.temporary.".len());
    assert_eq!(prefix, "railbus.temporary.");
    assert!(digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit()));
    let source = world.reply(link).source.as_deref().expect("a source");
    let mut properties = policy(0x2b);
    let modes = Value::Array(vec![symbol("move")]);
    properties.push((symbol("supported-dist-modes"), modes));
    assert_eq!(source.dynamic_node_properties, Some(Value::Map(properties)));
    assert!(source.dynamic);
    assert_eq!((source.durable, source.timeout), (0, 0));
}

#[test]
fn a_target_is_echoed_with_its_capabilities_and_its_policy() {
    let mut world = World::new();
    let (link, _) = make(&mut world, creator("temp", "temporary-queue"));
    let Some(TargetTerminus::Node(target)) = world.reply(link).target.as_deref() else {
        panic!("the target is echoed");
    };
    assert_eq!(target.capabilities, vec![Symbol::new("temporary-queue")]);
    assert_eq!(target.expiry_policy, Some(Symbol::new("link-detach")));
}

#[test]
fn a_reply_reaches_the_receiver_that_made_the_node() {
    let mut world = World::new();
    let (replies, address) = make(&mut world, dynamic_receiver("replies", None));
    world.client.set_credit(replies, 10, false);
    world.pump();
    let (_, link) = world.sender(&address);
    world.send(link, &message("answer"));
    assert_eq!(world.outcomes(link), vec![DeliveryState::Accepted]);
    let received = world.received(replies);
    assert_eq!(received.len(), 1);
    world.dispose(&received[0], DeliveryState::Accepted, true);
}

#[test]
fn temporary_queues_of_jms_are_used_by_links_of_their_own() {
    let mut world = World::new();
    let (creator, address) = make(&mut world, creator("temp", "temporary-queue"));
    let consumer = world.receiver(&address, UNSETTLED, 10);
    let (_, producer) = world.sender(&address.to_uppercase());
    world.send(producer, &message("a"));
    assert_eq!(world.received(consumer).len(), 1);
    world.client.detach(creator, true, None);
    world.pump();
    for link in [consumer, producer] {
        let error = world.detach_error(link).expect("its node is gone");
        assert_eq!(error.condition, "amqp:resource-deleted");
    }
    let error = world.refusal(receiver(&address, UNSETTLED));
    assert_eq!(error.condition, "amqp:not-found");
    let error = world.refusal(sender(&address));
    assert_eq!(error.condition, "amqp:not-found");
}

#[test]
fn each_consumer_of_a_temporary_topic_gets_every_message() {
    let mut world = World::new();
    let (_, address) = make(&mut world, creator("temp", "temporary-topic"));
    let (_, producer) = world.sender(&address);
    world.send(producer, &message("nobody hears this"));
    let one = world.receiver(&address, SETTLED, 10);
    let two = world.receiver(&address, UNSETTLED, 10);
    world.send(producer, &message("a"));
    assert_eq!(world.received(one).len(), 1);
    assert_eq!(world.received(two).len(), 1);
    world.client.detach(one, true, None);
    world.pump();
    world.send(producer, &message("b"));
    assert_eq!(world.received(two).len(), 1);
}

#[test]
fn a_detach_without_close_keeps_the_node_until_its_session_ends() {
    let mut world = World::new();
    let session = world.session();
    let link = world.attach(session, dynamic_receiver("replies", None));
    let address = address(&world, link);
    world.client.detach(link, false, None);
    world.pump();
    let (_, producer) = world.sender(&address);
    world.send(producer, &message("a"));
    assert_eq!(world.outcomes(producer), vec![DeliveryState::Accepted]);
    world.client.end(session, None);
    world.pump();
    let error = world.detach_error(producer).expect("the node is gone");
    assert_eq!(error.condition, "amqp:resource-deleted");
}

#[test]
fn a_node_without_links_goes_if_its_policy_says_so() {
    let mut world = World::new();
    let (maker, address) = make(&mut world, dynamic_receiver("replies", Some(policy(0x2c))));
    let (_, producer) = world.sender(&address);
    world.client.detach(maker, true, None);
    world.pump();
    world.send(producer, &message("a"));
    assert_eq!(world.outcomes(producer), vec![DeliveryState::Accepted]);
    world.client.detach(producer, true, None);
    world.pump();
    let error = world.refusal(sender(&address));
    assert_eq!(error.condition, "amqp:not-found");
}

#[test]
fn a_node_without_messages_goes_after_its_link_if_its_policy_says_so() {
    let mut world = World::new();
    let (maker, address) = make(&mut world, dynamic_receiver("replies", Some(policy(0x2d))));
    let source = world.reply(maker).source.as_deref().expect("a source");
    let Some(Value::Map(properties)) = &source.dynamic_node_properties else {
        panic!("no properties");
    };
    assert_eq!(properties[0], policy(0x2d)[0]);
    let (_, producer) = world.sender(&address);
    world.send(producer, &message("a"));
    world.client.detach(maker, true, None);
    world.pump();
    assert_eq!(world.outcomes(producer), vec![DeliveryState::Accepted]);
    let consumer = world.receiver(&address, UNSETTLED, 1);
    let received = world.received(consumer).pop().expect("the node is there");
    world.dispose(&received, DeliveryState::Accepted, true);
    for link in [producer, consumer] {
        let error = world.detach_error(link).expect("the node is gone");
        assert_eq!(error.condition, "amqp:resource-deleted");
    }
}

#[test]
fn the_right_of_the_connection_that_made_a_node_outlives_the_link() {
    let mut world = World::new();
    let (maker, address) = make(&mut world, dynamic_receiver("replies", Some(policy(0x2c))));
    let (_, producer) = world.sender(&address);
    let mut rules = crate::world::rules();
    rules.rules.retain(|rule| rule.name != "root");
    world.replace_rules(rules);
    world.client.detach(maker, true, None);
    world.pump();
    world.send(producer, &message("a"));
    let consumer = world.receiver(&address, UNSETTLED, 1);
    assert_eq!(world.received(consumer).len(), 1);
    let foreign = node_of_another(&mut world, false);
    let error = world.refusal(receiver(&foreign, UNSETTLED));
    assert_eq!(error.condition, "amqp:unauthorized-access");
}

#[test]
fn wrong_requests_are_refused_with_their_errors() {
    let properties = |value: Value| Some(vec![(symbol("lifetime-policy"), value)]);
    let modes = |value: Value| Some(vec![(symbol("supported-dist-modes"), value)]);
    let list = || Value::List(Vec::new());
    let table = [
        (properties(Value::Uint(1)), "amqp:invalid-field"),
        (
            properties(Value::described(0x2b, Value::Null)),
            "amqp:invalid-field",
        ),
        (
            properties(Value::described(0x2f, list())),
            "amqp:not-implemented",
        ),
        (modes(symbol("copy")), "amqp:not-implemented"),
        (
            modes(Value::Array(vec![symbol("copy")])),
            "amqp:not-implemented",
        ),
        (modes(Value::Uint(1)), "amqp:invalid-field"),
    ];
    let mut world = World::new();
    for (properties, condition) in table {
        let error = world.refusal(dynamic_receiver("x", properties.clone()));
        assert_eq!(error.condition, condition, "{properties:?}");
        text(&error);
    }
    let mut no_map = dynamic_receiver("x", None);
    if let Some(source) = no_map.source.as_deref_mut() {
        source.dynamic_node_properties = Some(list());
    }
    assert_eq!(world.refusal(no_map).condition, "amqp:invalid-field");
    let mut named = dynamic_receiver("x", None);
    if let Some(source) = named.source.as_deref_mut() {
        source.address = Some(Value::from("mine"));
    }
    assert_eq!(world.refusal(named).condition, "amqp:invalid-field");
    let digits = "railbus.temporary.00000000000000000000000000000000";
    let error = world.refusal(sender(digits));
    assert_eq!(error.condition, "amqp:not-found");
    text(&error);
}

#[test]
fn a_policy_may_be_named_by_its_symbol() {
    let mut world = World::new();
    let name = symbol("amqp:delete-on-no-links-or-messages:list");
    let policy = Value::Described(Box::new((name, Value::List(Vec::new()))));
    let properties = vec![(symbol("lifetime-policy"), policy)];
    let (link, _) = make(&mut world, dynamic_receiver("replies", Some(properties)));
    let source = world.reply(link).source.as_deref().expect("a source");
    let Some(Value::Map(properties)) = &source.dynamic_node_properties else {
        panic!("no properties");
    };
    let in_force = Value::described(0x2e, Value::List(Vec::new()));
    assert_eq!(properties[0].1, in_force);
}

#[test]
fn making_a_node_needs_manage_unless_the_setting_says_otherwise() {
    let refusal = |key: (&'static str, &'static str), right: DynamicNodeRight| {
        let login = Login::Plain(key.0, key.1);
        let mut world = World::with(login, |settings| settings.dynamic_nodes = right);
        let session = world.session();
        let link = world.attach(session, dynamic_receiver("replies", None));
        let error = world.detach_error(link).cloned();
        error.map(|error| (error.condition.as_str().to_owned(), error.description))
    };
    let (manage, both, off) = (
        DynamicNodeRight::Manage,
        DynamicNodeRight::SendListen,
        DynamicNodeRight::Off,
    );
    let root = ("root", crate::world::KEY);
    let (send, listen) = (("sender", SEND_KEY), ("listener", LISTEN_KEY));
    assert_eq!(refusal(root, manage), None);
    assert_eq!(refusal(root, both), None);
    let (condition, text) = refusal(send, manage).expect("it has no Manage");
    assert_eq!(condition, "amqp:unauthorized-access");
    let text = text.unwrap_or_default();
    assert!(text.contains("'Manage' claim(s)"), "{text}");
    for key in [send, listen] {
        let (condition, _) = refusal(key, both).expect("it has one of two rights");
        assert_eq!(condition, "amqp:unauthorized-access");
    }
    let (condition, text) = refusal(root, off).expect("there are none");
    assert_eq!(condition, "amqp:not-implemented");
    let text = text.as_deref().map(untracked);
    assert_eq!(text, Some("Dynamic nodes are not supported."));
}

#[test]
fn nodes_of_other_connections_need_the_right_of_the_operation() {
    let mut world = World::with(Login::Plain("sender", SEND_KEY), |_| {});
    let node = node_of_another(&mut world, false);
    world.sender(&node);
    let error = world.refusal(receiver(&node, UNSETTLED));
    assert_eq!(error.condition, "amqp:unauthorized-access");

    let mut world = World::with(Login::Plain("listener", LISTEN_KEY), |_| {});
    let node = node_of_another(&mut world, false);
    world.receiver(&node, UNSETTLED, 1);
    let error = world.refusal(sender(&node));
    assert_eq!(error.condition, "amqp:unauthorized-access");
    let node = node_of_another(&mut world, true);
    let error = world.refusal(receiver(&node, UNSETTLED));
    assert_eq!(error.condition, "amqp:resource-locked");
}

#[test]
fn a_client_that_detaches_before_the_answer_leaves_nothing() {
    let mut world = World::new();
    let session = world.session();
    world.broker_stalls = true;
    let link = world.attach(session, dynamic_receiver("replies", None));
    world.client.detach(link, true, None);
    world.pump();
    world.broker_stalls = false;
    world.pump();
    let closed = |command: &Command| matches!(command, Command::CloseNode { .. });
    assert_eq!(world.commands.iter().filter(|it| closed(it)).count(), 1);
}

#[test]
fn transfers_that_come_before_the_answer_wait_for_it() {
    let mut world = World::new();
    let session = world.session();
    let (_, address) = make(&mut world, creator("temp", "temporary-queue"));
    let consumer = world.receiver(&address, UNSETTLED, 10);
    world.broker_stalls = true;
    let link = world.attach(session, sender(&address));
    assert!(!world.server.has_untaken_input());
    let mut bytes = transfer(0, 0, None, false, &message("a"));
    world.server.handle_input(world.clock_reading(), &mut bytes);
    world.pump();
    assert!(!world.client.is_attached(link));
    assert!(world.server.has_untaken_input());
    world.broker_stalls = false;
    world.pump();
    assert!(!world.server.has_untaken_input());
    // The client may end its session afterwards: its endpoint has sent no transfer.
    world.reply(link);
    assert_eq!(world.received(consumer).len(), 1);
}

#[test]
fn the_limit_of_a_connection_is_told() {
    let mut world = World::new();
    let session = world.session();
    for number in 0..1_000 {
        let link = world.attach(session, dynamic_receiver(&format!("{number}"), None));
        assert!(world.client.is_attached(link), "node {number}");
    }
    let error = world.refusal(dynamic_receiver("one more", None));
    assert_eq!(error.condition, "amqp:resource-limit-exceeded");
}

#[test]
fn a_transfer_destination_is_refused() {
    let mut world = World::new();
    let (_, address) = make(&mut world, creator("temp", "temporary-queue"));
    let to_node = crate::send_via::via(&address, "orders2");
    let properties = to_node.properties.clone();
    let making = Attach {
        properties,
        ..creator("another", "temporary-queue")
    };
    for attach in [to_node, making] {
        let error = world.refusal(attach);
        assert_eq!(error.condition, "com.microsoft:argument-error");
    }
}
