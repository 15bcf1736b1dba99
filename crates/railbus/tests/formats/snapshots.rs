//! Snapshots in the stores of this test: one of the namespace that has a queue of its own.

use broker::{NamespaceOrder, Order, Subqueue};
use store::Image;
use store::image::MessageKey;

use super::namespaces::{PATH, order};
use super::routers::version_of;
use super::shop::{NAMESPACE, Shop, message};
use super::{copies, payloads};

const NAME: &str = "shop";

/// A snapshot of the namespace, whose message is still there.
pub fn fill(shop: &mut Shop) {
    let (name, snapshot) = (NAME.to_owned(), "kept".to_owned());
    let asked = NamespaceOrder::TakeSnapshot { name, snapshot };
    order(shop, NAMESPACE, Order::Namespaces(asked));
}

/// Whether the body of a row belongs to what a snapshot has.
pub fn borrows(image: &Image, key: &MessageKey) -> bool {
    let is_frozen = |entity| {
        let definition = &image.entities[entity].definition;
        definition.starts_with(br#"{"frozen""#)
    };
    let body = image.messages[key].body;
    let mut others = image.messages.iter();
    !is_frozen(&key.0) && others.any(|((other, ..), row)| row.body == body && is_frozen(other))
}

#[test]
fn a_namespace_goes_back_to_its_snapshot() {
    // Stores have snapshots from format 10 on.
    let copies = copies().into_iter();
    for copy in copies.filter(|copy| version_of(copy.path()) >= 10) {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        let before = shop.entity(PATH).id;
        for _ in 0..2 {
            let asked = NamespaceOrder::Reset(NAME.to_owned());
            order(&mut shop, NAMESPACE, Order::Namespaces(asked));
            let (name, snapshot) = (NAME.to_owned(), "kept".to_owned());
            let asked = NamespaceOrder::Restore { name, snapshot };
            order(&mut shop, NAMESPACE, Order::Namespaces(asked));
            assert_ne!(shop.entity(PATH).id, before);
            let available = shop.receive(PATH, Subqueue::Main);
            assert_eq!(payloads(&available), [message("of the shop", b"small")]);
        }
        shop.close();
    }
}
