//! Addresses in all the forms that clients use.

use super::*;

fn entity(path: &str, subqueue: Subqueue) -> Node {
    Node::Entity(EntityAddress {
        entity: path.to_owned(),
        subqueue,
    })
}

fn management(path: &str, subqueue: Subqueue) -> Node {
    Node::Management(Some(EntityAddress {
        entity: path.to_owned(),
        subqueue,
    }))
}

#[test]
fn every_form_of_an_address_names_its_node() {
    let table = [
        ("orders", entity("orders", Subqueue::Main)),
        ("/orders", entity("orders", Subqueue::Main)),
        ("//orders/", entity("orders", Subqueue::Main)),
        ("a/b/c", entity("a/b/c", Subqueue::Main)),
        ("amqps://host/orders", entity("orders", Subqueue::Main)),
        (
            "amqps://host:5671/orders/",
            entity("orders", Subqueue::Main),
        ),
        (
            "sb://user@host:5672//orders",
            entity("orders", Subqueue::Main),
        ),
        ("host:5671/orders", entity("orders", Subqueue::Main)),
        ("queue://orders", entity("orders", Subqueue::Main)),
        ("topic://a/b", entity("a/b", Subqueue::Main)),
        ("/order%20s", entity("order s", Subqueue::Main)),
        ("amqps://host", entity("", Subqueue::Main)),
        ("", entity("", Subqueue::Main)),
        (
            "orders/$DeadLetterQueue",
            entity("orders", Subqueue::DeadLetter),
        ),
        (
            "ORDERS/$deadletterqueue",
            entity("ORDERS", Subqueue::DeadLetter),
        ),
        (
            "/orders/%24DeadLetterQueue",
            entity("orders", Subqueue::DeadLetter),
        ),
        (
            "orders/$Transfer/$DeadLetterQueue",
            entity("orders", Subqueue::TransferDeadLetter),
        ),
        (
            "orders/$transfer/$deadletterqueue/",
            entity("orders", Subqueue::TransferDeadLetter),
        ),
        ("orders/$management", management("orders", Subqueue::Main)),
        (
            "amqps://host/orders/$Management",
            management("orders", Subqueue::Main),
        ),
        (
            "orders/$DeadLetterQueue/$management",
            management("orders", Subqueue::DeadLetter),
        ),
        (
            "orders/$Transfer/$DeadLetterQueue/$management",
            management("orders", Subqueue::TransferDeadLetter),
        ),
        ("$management", Node::Management(None)),
        ("amqp://host/$management", Node::Management(None)),
        ("$cbs", Node::Cbs),
        ("/$CBS", Node::Cbs),
        ("amqps://host/$cbs", Node::Cbs),
        ("orders/$cbs", entity("orders/$cbs", Subqueue::Main)),
        (
            "orders$management",
            entity("orders$management", Subqueue::Main),
        ),
    ];
    for (address, node) in table {
        assert_eq!(Node::parse(address), node, "{address}");
    }
}

#[test]
fn a_nodes_key_is_the_same_for_every_way_to_write_it() {
    let keys = [
        "/Orders/$DeadLetterQueue/$management",
        "amqps://h/orders/$deadletterqueue/$MANAGEMENT",
    ]
    .map(|address| Node::parse(address).key());
    assert_eq!(keys[0], keys[1]);
    assert_ne!(
        Node::parse("orders").key(),
        Node::parse("orders/$management").key()
    );
}
