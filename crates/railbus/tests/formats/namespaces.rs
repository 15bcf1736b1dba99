//! Namespaces in the stores of this test: one with a key and a queue, made like another.

use broker::{
    Answer, AuthorizationRule, Command, NamespaceAnswer, NamespaceDefinition, NamespaceOrder,
    Order, Output, Subqueue,
};

use super::routers::version_of;
use super::shop::{NAMESPACE, REQUEST, Shop, message};
use super::{copies, incoming, payloads, send};

/// The entity of the namespace, of which no other has the path.
pub const PATH: &str = "elsewhere";
/// How many entities there are in namespaces besides the default one.
pub const ENTITIES: usize = 1;

pub fn order(shop: &mut Shop, namespace: store::NamespaceId, order: Order) -> Answer {
    let said = shop.tell(Command::Administer {
        request: REQUEST,
        namespace,
        order: Box::new(order),
    });
    let found = said.into_iter().find_map(|output| match output {
        Output::Administered { result, .. } => Some(*result),
        _ => None,
    });
    found.expect("it is answered").expect("it can be done")
}

fn describe(shop: &mut Shop) -> (store::NamespaceId, NamespaceDefinition) {
    let asked = Order::Namespaces(NamespaceOrder::Describe("shop".to_owned()));
    match order(shop, NAMESPACE, asked) {
        Answer::Namespaces(NamespaceAnswer::One(found)) => (found.id, found.definition),
        other => panic!("{other:?}"),
    }
}

fn definition() -> NamespaceDefinition {
    NamespaceDefinition {
        name: "shop".to_owned(),
        hosts: vec!["shop.example.com".to_owned()],
        keys: vec![AuthorizationRule::of_key(
            "shop".to_owned(),
            "kept".to_owned(),
        )],
        ..NamespaceDefinition::default()
    }
}

/// A namespace with a queue, which has a message.
pub fn fill(shop: &mut Shop) {
    let definition = Box::new(definition());
    let like = None;
    let asked = Order::Namespaces(NamespaceOrder::Create { definition, like });
    order(shop, NAMESPACE, asked);
    let (namespace, _) = describe(shop);
    let queue = broker::Ensured::Queue {
        path: PATH.to_owned(),
        settings: broker::QueueSettings::default(),
    };
    order(shop, namespace, Order::ensure(vec![queue]));
    send(shop, PATH, incoming("of the shop", b"small"));
}

/// Stores have namespaces from format 9 on. To be asked before the store is opened.
pub fn are_in(store: &std::path::Path) -> bool {
    version_of(store) >= 9
}

#[test]
fn a_namespace_has_its_definition_and_its_messages() {
    for copy in copies().into_iter().filter(|copy| are_in(copy.path())) {
        let mut shop = Shop::open(copy.path(), 2_000).expect("it opens");
        let (namespace, found) = describe(&mut shop);
        assert_eq!(found, definition());
        assert_eq!(shop.entity(PATH).namespace, namespace);
        let available = shop.receive(PATH, Subqueue::Main);
        assert_eq!(payloads(&available), [message("of the shop", b"small")]);
        let asked = NamespaceOrder::Reset("shop".to_owned());
        order(&mut shop, NAMESPACE, Order::Namespaces(asked));
        assert_eq!(shop.entity("orders").namespace, NAMESPACE);
        shop.close();
    }
}
