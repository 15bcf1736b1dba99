//! Attaching: accepted links, refused links, and the fields of the reply.

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, Role, Source, Symbol, Value};
use broker::{Access, Command, ReceiveMode, Subqueue, SubqueueId};
use dialect::Dialect;
use endpoint::Event;

use crate::tracking::text;
use crate::world::{Login, SEND_KEY, World, receiver, sender, target};

const UNSETTLED: SenderSettleMode = SenderSettleMode::Unsettled;

#[test]
fn rule_04_addresses_are_echoed_byte_for_byte() {
    let mut world = World::new();
    let session = world.session();
    for (number, address) in [
        "orders",
        "/orders",
        "amqps://host:5672/Orders/",
        "//ORDERS",
        "%6Frders",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("link {number}");
        let link = world.attach(
            session,
            Attach {
                name: name.clone(),
                ..receiver(address, UNSETTLED)
            },
        );
        let reply = world.reply(link);
        assert_eq!(reply.name, name);
        assert_eq!(
            reply.source.as_ref().expect("let in").address,
            Some(Value::from(address))
        );
        assert_eq!(reply.target.as_deref(), Some(&target(Some("client-side"))));

        let link = world.attach(
            session,
            Attach {
                name,
                ..sender(address)
            },
        );
        let reply = world.reply(link);
        assert_eq!(reply.target.as_deref(), Some(&target(Some(address))));
        assert_eq!(
            reply.source.as_ref().expect("let in").address,
            Some(Value::from("client-side"))
        );
    }
}

#[test]
fn rule_05_settle_modes_are_echoed_as_they_came_or_left_out() {
    let mut world = World::new();
    let session = world.session();
    let sending = [
        None,
        Some(UNSETTLED),
        Some(SenderSettleMode::Settled),
        Some(SenderSettleMode::Mixed),
    ];
    let receiving = [
        None,
        Some(ReceiverSettleMode::First),
        Some(ReceiverSettleMode::Second),
    ];
    for snd_settle_mode in sending {
        for rcv_settle_mode in receiving {
            for asked in [sender("orders"), receiver("orders", UNSETTLED)] {
                let name = format!("{snd_settle_mode:?} {rcv_settle_mode:?} {:?}", asked.role);
                let link = world.attach(
                    session,
                    Attach {
                        name,
                        snd_settle_mode,
                        rcv_settle_mode,
                        ..asked
                    },
                );
                let reply = world.reply(link);
                assert_eq!(reply.snd_settle_mode, snd_settle_mode);
                assert_eq!(reply.rcv_settle_mode, rcv_settle_mode);
            }
        }
    }
}

#[test]
fn rule_06_a_reply_as_sender_says_where_its_count_starts() {
    let mut world = World::new();
    let session = world.session();
    for address in ["orders", "orders/$management", "$cbs"] {
        let link = world.attach(session, receiver(address, UNSETTLED));
        assert_eq!(world.reply(link).role, Role::Sender);
        assert_eq!(
            world.reply(link).initial_delivery_count,
            Some(0),
            "{address}"
        );
    }
}

#[test]
fn rule_07_a_reply_to_a_sender_says_how_large_a_message_may_be() {
    let mut world = World::new();
    world.create(
        "large",
        broker::QueueSettings {
            max_message_size: Some(50 << 20),
            ..Default::default()
        },
    );
    world.create(
        "odd",
        broker::QueueSettings {
            max_message_size: Some(u64::MAX),
            ..Default::default()
        },
    );
    for (address, size) in [
        ("orders", 262_144),
        ("large", 50 << 20),
        ("odd", i64::MAX as u64),
    ] {
        let (_, link) = world.sender(address);
        assert_eq!(world.reply(link).max_message_size, Some(size));
        let properties = world
            .reply(link)
            .properties
            .as_ref()
            .expect("there are some");
        let batch = amqp::value::lookup(properties, "com.microsoft:max-message-batch-size");
        assert_eq!(batch, Some(&Value::Ulong(size)));
    }
}

#[test]
fn links_that_the_broker_sends_on_state_no_largest_message() {
    // .NET would apply it to what it receives. (docs/spec/amqp.md#3.3)
    let mut world = World::new();
    let session = world.session();
    for address in [
        "orders",
        "orders/$deadletterqueue",
        "orders/$management",
        "$cbs",
    ] {
        let name = format!("from {address}");
        let attach = Attach {
            name,
            ..receiver(address, UNSETTLED)
        };
        let link = world.attach(session, attach);
        assert!(world.client.is_attached(link), "{address}");
        assert_eq!(world.reply(link).max_message_size, None, "{address}");
    }
    for (address, size) in [
        ("orders", 256 << 10),
        // A few thousand small messages can be scheduled at once.
        ("orders/$management", 4 << 20),
        ("$cbs", 64 << 10),
    ] {
        let link = world.attach(session, sender(address));
        assert_eq!(world.reply(link).max_message_size, Some(size), "{address}");
    }
}

#[test]
fn rule_08_a_refusal_is_an_attach_without_termini_and_a_detach() {
    let mut world = World::new();
    let session = world.session();
    let link = world.attach(session, sender("nowhere"));
    let reply = world.reply(link);
    assert_eq!((&reply.source, &reply.target), (&None, &None));
    let error = world.detach_error(link).expect("detached with an error");
    assert_eq!(error.condition, "amqp:not-found");
}

#[test]
fn an_address_that_names_nothing_but_a_host_is_refused_as_it_was_written() {
    let mut world = World::new();
    for address in ["topic://", "amqp://events", "amqp://host/", "//"] {
        for attach in [sender(address), receiver(address, UNSETTLED)] {
            let error = world.refusal(attach);
            assert_eq!(error.condition, "amqp:not-found");
            let text = error.description.expect("a description");
            let expected = format!("The messaging entity '{address}' could not be found.");
            assert!(text.starts_with(&expected), "{text}");
        }
    }
}

#[test]
fn a_missing_entity_is_named_in_the_words_that_sdks_match_on() {
    let mut world = World::new();
    for attach in [
        sender("no/where"),
        receiver("no/where", UNSETTLED),
        sender("no/where/$management"),
    ] {
        let error = world.refusal(attach);
        assert_eq!(error.condition, "amqp:not-found");
        let text = error.description.expect("a description");
        assert!(
            text.starts_with("The messaging entity 'sb://host/no/where' could not be found."),
            "{text}"
        );
    }
}

#[test]
fn every_place_of_a_queue_can_be_attached() {
    let mut world = World::new();
    let table = [
        ("orders", Subqueue::Main),
        ("orders/$DeadLetterQueue", Subqueue::DeadLetter),
        ("/Orders/$deadletterqueue", Subqueue::DeadLetter),
        (
            "orders/$Transfer/$DeadLetterQueue",
            Subqueue::TransferDeadLetter,
        ),
    ];
    for (address, expected) in table {
        world.receiver(address, UNSETTLED, 1);
        let attached = world
            .commands
            .iter()
            .rev()
            .find_map(|command| match command {
                Command::Attach {
                    subqueue: SubqueueId { subqueue, .. },
                    ..
                } => Some(*subqueue),
                _ => None,
            });
        assert_eq!(attached, Some(expected), "{address}");
        world.pair(&format!("{address}/$management"));
    }
    world.pair("$cbs");
    world.pair("$management");
}

#[test]
fn settled_by_the_sender_means_receive_and_delete_and_all_else_peek_lock() {
    let table = [
        (None, ReceiveMode::PeekLock),
        (Some(UNSETTLED), ReceiveMode::PeekLock),
        (Some(SenderSettleMode::Mixed), ReceiveMode::PeekLock),
        (
            Some(SenderSettleMode::Settled),
            ReceiveMode::ReceiveAndDelete,
        ),
    ];
    for (snd_settle_mode, expected) in table {
        let mut world = World::new();
        let session = world.session();
        world.attach(
            session,
            Attach {
                snd_settle_mode,
                ..receiver("orders", UNSETTLED)
            },
        );
        assert!(world.commands.iter().any(|command| {
            matches!(command, Command::Attach { access, .. } if *access == Access::Consume(expected))
        }));
    }
}

#[test]
fn sends_to_a_dead_letter_queue_are_refused() {
    let mut world = World::new();
    for address in [
        "orders/$DeadLetterQueue",
        "orders/$Transfer/$DeadLetterQueue",
    ] {
        assert_eq!(world.refusal(sender(address)).condition, "amqp:not-allowed");
    }
}

#[test]
fn a_link_without_an_address_is_refused() {
    let mut world = World::new();
    let nameless = Attach {
        target: Some(Box::new(target(None))),
        ..sender("x")
    };
    let nothing = Attach {
        target: None,
        ..sender("x")
    };
    let source = Source {
        address: Some(Value::Int(1)),
        ..Source::default()
    };
    let number = Attach {
        source: Some(Box::new(source)),
        ..receiver("x", UNSETTLED)
    };
    for attach in [nameless, nothing, number] {
        assert_eq!(world.refusal(attach).condition, "amqp:invalid-field");
    }
}

fn with_session_filter(address: &str, value: Value) -> Attach {
    let filter = vec![(
        Value::Symbol(Symbol::new("com.microsoft:session-filter")),
        value,
    )];
    let source = Source {
        address: Some(Value::from(address)),
        filter: Some(filter),
        ..Source::default()
    };
    Attach {
        source: Some(Box::new(source)),
        ..receiver(address, UNSETTLED)
    }
}

#[test]
fn a_session_filter_and_an_entity_must_fit() {
    let mut world = World::new();
    for value in [
        Value::from("s"),
        Value::Null,
        Value::described(0x0000_0013_7000_000C, Value::Null),
    ] {
        for address in [
            "orders",
            "orders/$DeadLetterQueue",
            "sessions/$DeadLetterQueue",
        ] {
            let error = world.refusal(with_session_filter(address, value.clone()));
            assert_eq!(error.condition, "amqp:not-allowed", "{address}");
            let text = error.description.expect("a description");
            assert!(
                text.starts_with("A sessionful message receiver cannot be created"),
                "{text}"
            );
        }
    }
    let error = world.refusal(receiver("sessions", UNSETTLED));
    assert_eq!(error.condition, "amqp:not-allowed");
    let text = error.description.expect("a description");
    assert!(
        text.starts_with("It is not possible for an entity that requires sessions"),
        "{text}"
    );
    world.receiver("sessions/$DeadLetterQueue", UNSETTLED, 1);
}

#[test]
fn filters_that_are_not_applied_are_left_out_of_the_echo() {
    let mut world = World::new();
    let filter = vec![(
        Value::Symbol(Symbol::new("apache.org:no-local-filter:list")),
        Value::described(0x0000_468C_0000_0003, Value::List(Vec::new())),
    )];
    let source = Source {
        address: Some(Value::from("orders")),
        filter: Some(filter),
        ..Source::default()
    };
    let session = world.session();
    let link = world.attach(
        session,
        Attach {
            source: Some(Box::new(source)),
            ..receiver("orders", UNSETTLED)
        },
    );
    let source = world.reply(link).source.clone().expect("let in");
    assert!(source.filter.is_none_or(|filter| filter.is_empty()));
}

#[test]
fn link_properties_are_echoed() {
    let mut world = World::new();
    let sent = vec![
        (
            Value::Symbol(Symbol::new("com.microsoft:timeout")),
            Value::Uint(60_000),
        ),
        (
            Value::Symbol(Symbol::new("com.microsoft:receiver-name")),
            Value::from("me"),
        ),
    ];
    let session = world.session();
    let attach = Attach {
        properties: Some(sent.clone()),
        ..receiver("orders", UNSETTLED)
    };
    let link = world.attach(session, attach);
    assert_eq!(world.reply(link).properties.as_ref(), Some(&sent));
    let link = world.attach(
        session,
        Attach {
            properties: Some(sent.clone()),
            ..sender("orders")
        },
    );
    let properties = world.reply(link).properties.as_ref().expect("echoed");
    assert!(sent.iter().all(|entry| properties.contains(entry)));
}

#[test]
fn a_right_that_is_missing_is_named_and_existence_is_not_told() {
    let mut world = World::with(Login::Plain("sender", SEND_KEY), |_| {});
    let (_, link) = world.sender("orders");
    assert!(world.client.is_attached(link));
    for address in ["orders", "nowhere"] {
        let error = world.refusal(receiver(address, UNSETTLED));
        assert_eq!(error.condition, "amqp:unauthorized-access");
        let expected = format!(
            "Unauthorized access. 'Listen' claim(s) are required to perform this operation. \
             Resource: 'sb://host/{address}'."
        );
        assert_eq!(text(&error), expected);
    }
    // A management node may be attached with either right.
    world.pair("orders/$management");
}

#[test]
fn an_entity_that_is_deleted_takes_its_links_with_it() {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    let receiver = world.receiver("orders", UNSETTLED, 1);
    let pair = world.pair("orders/$management");
    let (_, other) = world.sender("orders2");
    world.remove("orders");
    for link in [sender, receiver, pair.request, pair.response] {
        assert_eq!(
            world.detach_error(link).expect("detached").condition,
            "amqp:not-found"
        );
    }
    assert!(world.client.is_attached(other));
    assert!(
        world
            .commands
            .iter()
            .any(|command| matches!(command, Command::Detach { .. }))
    );
}

#[test]
fn a_recreated_entity_does_not_take_over_the_links_of_the_old_one() {
    check_replaced(None, "amqp:not-found");
}

#[test]
fn a_link_to_an_entity_that_was_restored_is_to_be_attached_again() {
    let own = store::EntityId(1);
    check_replaced(Some(own), "amqp:link:detach-forced");
    // What the link is attached to had come by a restore itself.
    check_replaced(Some(store::EntityId(0)), "amqp:link:detach-forced");
    // A restore has replaced another entity that had the path meanwhile.
    check_replaced(Some(store::EntityId(98)), "amqp:not-found");
}

/// What links are told when another entity has the path.
fn check_replaced(replaces: Option<store::EntityId>, expected: &str) {
    let mut world = World::new();
    let (_, sender) = world.sender("orders");
    let receiver = world.receiver("orders", UNSETTLED, 1);
    let pair = world.pair("orders/$management");
    let mut directory = access::Directory::new(crate::world::rules());
    directory.insert(access::Entity {
        id: store::EntityId(99),
        path: "orders".to_owned(),
        kind: broker::EntityKind::Queue,
        settings: broker::QueueSettings::default(),
        replaces,
    });
    let directory = std::sync::Arc::new(directory);
    world.server.set_directory(world.clock_reading(), directory);
    world.pump();
    for link in [sender, receiver, pair.request, pair.response] {
        let error = world.detach_error(link).expect("detached");
        assert_eq!(error.condition, expected);
    }
}

#[test]
fn a_receiver_that_the_broker_evicts_is_detached() {
    let mut world = World::new();
    let link = world.receiver("orders", UNSETTLED, 1);
    let receiver = world.commands.iter().find_map(|command| match command {
        Command::Attach { receiver, .. } => Some(*receiver),
        _ => None,
    });
    let output = broker::Output::Evicted {
        receiver: receiver.expect("attached"),
        reason: broker::Eviction::NotFound,
    };
    world.server.handle_output(world.clock_reading(), output);
    world.pump();
    assert_eq!(
        world.detach_error(link).expect("detached").condition,
        "amqp:not-found"
    );
}

#[test]
fn a_link_that_detaches_leaves_the_broker() {
    let mut world = World::new();
    let link = world.receiver("orders", UNSETTLED, 1);
    world.client.detach(link, true, None);
    world.pump();
    assert!(
        world
            .commands
            .iter()
            .any(|command| matches!(command, Command::Detach { .. }))
    );
    assert!(world.events.iter().any(|event| {
        matches!(event, Event::Detached { link: of, closed: true, error: None, .. } if *of == link)
    }));
}

#[test]
fn the_broker_loses_a_receiver_the_moment_we_detach_it() {
    let mut world = World::new();
    world.receiver("orders", UNSETTLED, 1);
    world.client_stalls = true;
    world.remove("orders");
    assert!(
        world
            .commands
            .iter()
            .any(|command| matches!(command, Command::Detach { .. }))
    );
}
