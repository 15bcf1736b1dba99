//! Routers in the stores of this test: two, one behind the other, and queues that share a body.

use std::fs;
use std::path::Path;

use broker::{
    Binding, BindingDestination, Command, Ensured, Order, Outcome, Output, Publication,
    QueueSettings, Routed, RouterKind, RouterOrder, RouterSettings, Subqueue,
};

use super::shop::{NAMESPACE, REQUEST, Shop, message};
use super::{copies, ensure, incoming, payloads};

/// The queues that the router `spread` leads to.
pub const COPIES: [&str; 2] = ["copy-1", "copy-2"];

/// Two routers, one behind the other, and a message whose body two queues share.
pub fn fill(shop: &mut Shop) {
    for path in COPIES {
        shop.tell(ensure(Ensured::Queue {
            path: path.to_owned(),
            settings: QueueSettings::default(),
        }));
    }
    let order = |order| Command::Administer {
        request: REQUEST,
        namespace: NAMESPACE,
        order: Box::new(Order::Router(order)),
    };
    shop.tell(order(RouterOrder::Declare {
        name: "spread".to_owned(),
        settings: Box::new(RouterSettings::new(RouterKind::Fanout)),
    }));
    let copies = COPIES.map(|path| BindingDestination::Entity(path.to_owned()));
    let to_copies = copies.map(|destination| ("spread", destination, ""));
    let to_spread = (
        "amq.topic",
        BindingDestination::Router("spread".to_owned()),
        "a.#",
    );
    for (source, destination, key) in to_copies.into_iter().chain([to_spread]) {
        shop.tell(order(RouterOrder::Bind(Box::new(Binding {
            source: source.to_owned(),
            destination,
            key: key.to_owned(),
            arguments: Vec::new(),
        }))));
    }
    publish(shop, "shared");
}

fn publish(shop: &mut Shop, subject: &str) {
    let said = shop.tell(Command::Publish {
        request: REQUEST,
        publication: Box::new(Publication {
            namespace: NAMESPACE,
            router: "amq.topic".to_owned(),
            keys: vec!["a.b".to_owned()],
            message: incoming(subject, b"small"),
        }),
    });
    let [Output::Published { result, .. }] = &said[..] else {
        panic!("{said:?}");
    };
    let destinations = COPIES.len();
    assert_eq!(*result, Ok(Routed::Stored { destinations }));
}

/// Stores have routers from format 8 on. To be asked before the store is opened.
pub fn are_in(store: &Path) -> bool {
    version_of(store) >= 8
}

/// The format of a store that is not open.
pub fn version_of(store: &Path) -> u32 {
    let format = fs::read_to_string(store.join("format")).expect("it has one");
    let version = format.trim().rsplit(' ').next().expect("a number");
    version.parse().expect("a number")
}

#[test]
fn routers_lead_on_and_shared_bodies_stay_until_their_last_queue_goes() {
    for copy in copies().into_iter().filter(|copy| are_in(copy.path())) {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        publish(&mut shop, "new");
        shop.tell(Command::Administer {
            request: REQUEST,
            namespace: NAMESPACE,
            order: Box::new(Order::Remove {
                path: COPIES[0].to_owned(),
            }),
        });
        let left = shop.receive(COPIES[1], Subqueue::Main);
        let expected = [message("shared", b"small"), message("new", b"small")];
        assert_eq!(payloads(&left), expected);
        for delivery in &left {
            shop.settle(COPIES[1], delivery, Outcome::Complete);
        }
        assert_eq!(shop.entity(COPIES[1]).active, 0);
        shop.close();
    }
}
