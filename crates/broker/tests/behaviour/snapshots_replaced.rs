//! What the server is told of entities that restores have replaced, one by the next.

use broker::{
    BrokerSettings, Command, EntityDescription, NamespaceOrder, Order, Output, QueueSettings,
};
use store::{EntityId, NamespaceId};

use crate::world::{QUEUE, World, request};

/// What is said of the entities that are there after an order.
fn changed(world: &mut World, order: Order) -> Vec<(EntityId, Option<EntityId>)> {
    let said = world.turn(Command::Administer {
        request: request(1),
        namespace: NamespaceId(0),
        order: Box::new(order),
    });
    let mut changes = Vec::new();
    for output in said {
        match output {
            Output::Administered { result, .. } => drop(result.expect("it is carried out")),
            Output::EntityChanged(change) if change.settings.is_some() => {
                changes.push((change.id, change.replaces));
            }
            _ => {}
        }
    }
    changes
}

#[test]
fn an_entity_names_the_first_of_those_that_restores_have_replaced() {
    let mut world = World::new(BrokerSettings::default(), QueueSettings::default());
    let (name, snapshot) = ("default".to_owned(), "base".to_owned());
    let take = NamespaceOrder::TakeSnapshot {
        name: name.clone(),
        snapshot: snapshot.clone(),
    };
    assert_eq!(changed(&mut world, Order::Namespaces(take)), vec![]);
    let restore = || NamespaceOrder::Restore {
        name: name.clone(),
        snapshot: snapshot.clone(),
    };
    let mut before = QUEUE;
    for _ in 0..3 {
        let restored = changed(&mut world, Order::Namespaces(restore()));
        let [(id, Some(QUEUE))] = restored[..] else {
            panic!("{restored:?}");
        };
        assert!(id > before, "ids rise");
        let mut description = Box::<EntityDescription>::default();
        description.settings.max_delivery_count = 3;
        let update = Order::Update {
            entity: id,
            description,
        };
        assert_eq!(changed(&mut world, update), [(id, Some(QUEUE))]);
        before = id;
    }
}
